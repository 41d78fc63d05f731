//! The view of folds in training.

use super::model::Observation;
use super::sheet::{Sheet, SheetCell, SheetRow, Tint};
use crate::remote::FoldInTraining;

pub fn sheet(picture: &Observation) -> Sheet {
    let status = picture.status.as_ref();
    let why = status.map(|status| status.standstill.as_str()).filter(|why| !why.is_empty());
    Sheet {
        heads: vec!["WHAT", "EPOCH", "VALIDATION", "WORKER", "SLOT", "ATTEMPT"],
        rows: status.map(|status| status.in_training.iter().map(row).collect()).unwrap_or_default(),
        empty: why.map_or_else(|| "nothing runs".to_owned(), |why| format!("nothing runs: {why}")),
    }
}

fn row(fold: &FoldInTraining) -> SheetRow {
    let epoch = match fold.max_epochs {
        0 => "begins".to_owned(),
        most => format!("{}/{most}", fold.epoch),
    };
    let accuracy = fold.validation_accuracy.map(|value| fold.scale.show(value)).unwrap_or_default();
    let attempt = if fold.attempt > 1 { Tint::Warn } else { Tint::Faint };
    let cells = vec![
        SheetCell::new(&fold.title),
        SheetCell::new(epoch),
        SheetCell::tinted(accuracy, Tint::Good),
        SheetCell::new(&fold.worker),
        SheetCell::tinted(fold.slot, Tint::Faint),
        SheetCell::tinted(fold.attempt, attempt),
    ];
    SheetRow { id: fold.fold.clone(), cells }
}
