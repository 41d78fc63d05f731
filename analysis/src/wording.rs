//! What is written around a table's numbers: the caption (what they are, what ± means, over how many folds) and
//! the notes (what marks mean, what is missing or left out). Owns these words; counts cells, changes nothing.

use std::collections::BTreeSet;

use togl_sweeps::spec::Metric;

use crate::spread::Spread;
use crate::table::{Cell, Mark, Table};

/// What the numbers are.
pub fn caption(table: &Table) -> String {
    let planned = cells(table).map(|cell| cell.planned).filter(|planned| *planned > 0);
    let (fewest, most) = planned.fold((usize::MAX, 0), |(low, high), n| (low.min(n), high.max(n)));
    let centre = table.spread.centre();
    let folds = match (fewest, most) {
        (1, 1) => format!("of one fold each (no {})", table.spread.noun()),
        (low, high) if low == high => format!("{centre} ± {} over {high} folds", table.spread),
        (low, high) => format!("{centre} ± {} over {low} to {high} folds", table.spread),
    };
    format!("{} in percent, {folds}.", metric_words(table.metric))
}

/// What a metric is, as the beginning of a caption or the name of an axis.
pub fn metric_words(metric: Metric) -> &'static str {
    match metric {
        Metric::TestAccuracy => "Test accuracy of the best checkpoint",
        Metric::ValidationAccuracy => "Validation accuracy of the best checkpoint",
        Metric::LastValidationAccuracy => "Validation accuracy of the last epoch",
        Metric::TrainAccuracy => "Training accuracy of the best checkpoint",
    }
}

/// What a reader must know beyond the caption.
pub fn notes(table: &Table) -> Vec<String> {
    let marks: BTreeSet<Mark> =
        cells(table).filter(|cell| cell.n > 0).flat_map(|cell| cell.marks.iter().copied()).collect();
    let mut notes: Vec<String> =
        marks.into_iter().map(|mark| format!("{} {}", mark.sign(), mark.meaning())).collect();
    let empty = |cell: &&Cell| cell.n == 0 && cell.planned > 0;
    if cells(table).filter(empty).any(|cell| cell.valueless == 0) {
        notes.push("– planned, but no fold has finished".to_owned());
    }
    if cells(table).filter(empty).any(|cell| cell.valueless > 0) {
        notes.push("– folds have finished, but without the values that this cell needs".to_owned());
    }
    if cells(table).any(|cell| cell.n == 1) {
        notes.push(format!("± n/a: one fold has no {}", table.spread.noun()));
    }
    let undefined = |cell: &Cell| cell.n > 1 && cell.plus_minus(Spread::Repeats).is_none();
    if table.spread == Spread::Repeats && cells(table).any(undefined) {
        notes.push("± n/a: repeats need two or more seeds with the same splits".to_owned());
    }
    if cells(table).any(|cell| cell.cited) {
        notes.push(
            "cited: taken over from the publication, which has it from elsewhere; not trained here, and no rival for \
             the best"
                .to_owned(),
        );
    }
    match table.unplanned {
        0 => {}
        1 => notes.push("1 finished fold is not part of the plan and is left out".to_owned()),
        more => notes.push(format!("{more} finished folds are not part of the plan and are left out")),
    }
    notes
}

fn cells(table: &Table) -> impl Iterator<Item = &Cell> {
    table.cells().map(|(_, _, cell)| cell)
}
