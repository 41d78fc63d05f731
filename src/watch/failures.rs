//! The view of what failed: each class with how often, then the folds of it.

use super::model::Picture;
use super::sheet::{Cell, Row, Sheet, Tint, grouped};
use crate::remote::{FoldGivenUp, SweepStatus};

pub fn sheet(picture: &Picture) -> Sheet {
    let mut rows = Vec::new();
    if let Some(status) = &picture.status {
        let mut failures: Vec<&FoldGivenUp> = status.failures.iter().collect();
        failures.sort_by_key(|fold| (std::cmp::Reverse(count(status, &fold.class)), &fold.class));
        rows.extend(failures.into_iter().map(|fold| row(fold, count(status, &fold.class))));
        let more = status.sweep.failed.saturating_sub(status.failures.len() as u64);
        if more > 0 {
            let words = format!(
                "and {} more; `togl folds {} --in failed` lists them",
                grouped(more),
                status.sweep.name
            );
            rows.push(Row { id: String::new(), cells: vec![Cell::tinted(words, Tint::Faint)] });
        }
    }
    Sheet { heads: vec!["CLASS", "IN ALL", "WHAT", "MESSAGE"], rows, empty: "nothing failed".to_owned() }
}

/// How often a class was the reason.
fn count(status: &SweepStatus, class: &str) -> u64 {
    let shown = || status.failures.iter().filter(|fold| fold.class == class).count() as u64;
    status.failed_by_class.get(class).copied().unwrap_or_else(shown)
}

fn row(fold: &FoldGivenUp, all: u64) -> Row {
    let cells = vec![
        Cell::tinted(&fold.class, Tint::Bad),
        Cell::new(grouped(all)),
        Cell::new(&fold.title),
        Cell::tinted(&fold.message, Tint::Faint),
    ];
    Row { id: fold.fold.clone(), cells }
}
