//! The view of folds in training.

use super::model::Picture;
use super::sheet::{Cell, Row, Sheet, Tint};
use crate::remote::FoldInTraining;

pub fn sheet(picture: &Picture) -> Sheet {
    let status = picture.status.as_ref();
    let why = status.map(|status| status.standstill.as_str()).filter(|why| !why.is_empty());
    Sheet {
        heads: vec!["WHAT", "EPOCH", "VALIDATION", "WORKER", "SLOT", "ATTEMPT"],
        rows: status.map(|status| status.in_training.iter().map(row).collect()).unwrap_or_default(),
        empty: why.map_or_else(|| "nothing runs".to_owned(), |why| format!("nothing runs: {why}")),
    }
}

fn row(fold: &FoldInTraining) -> Row {
    let epoch = match fold.max_epochs {
        0 => "begins".to_owned(),
        most => format!("{}/{most}", fold.epoch),
    };
    let accuracy = fold.validation_accuracy.map(|value| fold.scale.show(value)).unwrap_or_default();
    let attempt = if fold.attempt > 1 { Tint::Warn } else { Tint::Faint };
    let cells = vec![
        Cell::new(&fold.title),
        Cell::new(epoch),
        Cell::tinted(accuracy, Tint::Good),
        Cell::new(&fold.worker),
        Cell::tinted(fold.slot, Tint::Faint),
        Cell::tinted(fold.attempt, attempt),
    ];
    Row { id: fold.fold.clone(), cells }
}
