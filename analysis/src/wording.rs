//! What is written around a table's numbers: the caption (what they are, what ± means, over how many folds) and
//! the notes (what marks mean, what is missing or left out). Owns these words; counts cells, changes nothing.

use std::collections::BTreeSet;

use togl_sweeps::spec::Metric;
use togl_sweeps::{Goal, Scale};

use crate::spread::Spread;
use crate::table::{Cell, Mark, Table, TableRow, Winners};

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
    format!("{}{}, {folds}.", metric_words(table.metric, &table.scale), how(&table.scale))
}

/// What a metric is, as the beginning of a caption or the name of an axis.
pub fn metric_words(metric: Metric, scale: &Scale) -> String {
    let name = &scale.name;
    match metric {
        Metric::TestAccuracy => format!("Test {name} of the best checkpoint"),
        Metric::ValidationAccuracy => format!("Validation {name} of the best checkpoint"),
        Metric::LastValidationAccuracy => format!("Validation {name} of the last epoch"),
        Metric::TrainAccuracy => format!("Training {name} of the best checkpoint"),
        Metric::TestF1 => "Test F1 of the best checkpoint (mean over classes)".to_owned(),
        Metric::TestRocAuc => "Test ROC-AUC of the best checkpoint".to_owned(),
    }
}

/// How its values are to be read, behind what they are.
pub fn how(scale: &Scale) -> &'static str {
    match (scale.is_share(), scale.goal) {
        (true, Goal::Max) => " in percent",
        (true, Goal::Min) => " in percent, lower is better",
        (false, Goal::Max) => ", higher is better",
        (false, Goal::Min) => ", lower is better",
    }
}

/// The same as the beginning of a sentence.
pub fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A number with so many digits; what rounds to zero has no sign.
pub fn fixed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(size) if !size.contains(|digit: char| ('1'..='9').contains(&digit)) => size.to_owned(),
        _ => text,
    }
}

/// Settings that tell methods and data apart; whatever else rows differ in was searched.
const COMPARED: [&str; 14] = [
    "method",
    "model",
    "dataset",
    "data_seed",
    "features",
    "togl",
    "togl_position",
    "placement",
    "deepset",
    "static",
    "dim1",
    "wl_labels",
    "choose_rounds",
    "as_published",
];

/// The settings that whoever takes the best mean of a column (or row) would choose by test values; none where nothing is
/// set off, or where other values are shown.
pub fn chosen_by_test(table: &Table) -> Vec<&str> {
    let won = table.cells().any(|(_, _, cell)| cell.best);
    if !won || !table.metric.is_of_test() {
        return Vec::new();
    }
    let searched = |name: &&str| !COMPARED.contains(name);
    match table.winners {
        Winners::PerRow => {
            let columns = Some(table.column_setting.as_str()).filter(|_| table.columns.len() > 1);
            columns.into_iter().filter(searched).collect()
        }
        Winners::PerColumn => {
            let names = table.row_settings.iter().map(String::as_str).enumerate();
            let names: Vec<(usize, &str)> = names.filter(|(_, name)| searched(name)).collect();
            let alike = |a: &TableRow, b: &TableRow| {
                let mut labels = a.labels.iter().zip(&b.labels).enumerate();
                labels.all(|(at, (a, b))| a == b || names.iter().any(|(searched, _)| *searched == at))
            };
            let differs = |(at, _): &&(usize, &str)| {
                rivals(table)
                    .any(|(winner, rival)| alike(winner, rival) && winner.labels[*at] != rival.labels[*at])
            };
            names.iter().filter(differs).map(|(_, name)| *name).collect()
        }
    }
}

/// Every winner of a column with each row that it won against.
fn rivals(table: &Table) -> impl Iterator<Item = (&TableRow, &TableRow)> {
    let columns = 0..table.columns.len();
    columns.flat_map(move |column| {
        let winners = table.rows.iter().filter(move |row| row.cells[column].best);
        winners.flat_map(move |winner| {
            let rivals = table.rows.iter().filter(move |row| row.cells[column].is_complete());
            rivals.map(move |rival| (winner, rival))
        })
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rounds_to_zero_has_no_sign() {
        assert_eq!(
            [fixed(-0.04, 1), fixed(-0.0, 2), fixed(-0.05, 1), fixed(-10.0, 0)],
            ["0.0", "0.00", "-0.1", "-10"]
        );
    }
}
