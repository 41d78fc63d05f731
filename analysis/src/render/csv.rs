//! Tables as CSV for further computing: one line per cell, numbers not rounded, empty where there is none.

use crate::emphasis::{Emphasis, NOT_WORSE};
use crate::spread::Spread;
use crate::spreadsheet::line;
use crate::table::Table;

/// The table as CSV in long form: the row's labels, the column's label, then the cell.
pub fn csv(table: &Table) -> String {
    let mirrors = table.columns.iter().any(|column| column.printed_as.is_some())
        || table.rows.iter().any(|row| row.printed_as.is_some());
    let printed = mirrors.then_some("printed_as");
    let rest = ["mean", "std", "n", "planned", "best", "marks"];
    let spread = (table.spread != Spread::SampleStd).then(|| table.spread.name());
    let tested = (table.emphasis == Emphasis::NotSignificantlyWorse).then_some(NOT_WORSE.to_owned());
    let has_cited = table.cells().any(|(_, _, cell)| cell.cited);
    let cited = has_cited.then_some("cited");
    let headers = table.settings().into_iter().chain(printed).chain(rest).chain(cited).map(str::to_owned);
    let median = (table.spread == Spread::Quartiles).then_some("median".to_owned());
    let mut text = line(headers.chain(spread.clone()).chain(median.clone()).chain(tested.clone()));
    for (row, column, cell) in table.cells() {
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let marks: Vec<&str> = cell.marks.iter().map(|mark| mark.word()).collect();
        let printed_as = column.printed_as.as_ref().or(row.printed_as.as_ref());
        let printed = mirrors.then(|| printed_as.cloned().unwrap_or_default());
        let labels = table.labels(row, column).into_iter().map(str::to_owned).chain(printed);
        let values = [
            number(cell.mean),
            number(cell.std),
            cell.n.to_string(),
            cell.planned.to_string(),
            cell.best.to_string(),
            marks.join(" "),
        ];
        let spread = spread.is_some().then(|| number(cell.plus_minus(table.spread)));
        let median = median.is_some().then(|| number(cell.centre(table.spread)));
        let tested = tested.is_some().then(|| cell.stands_out().to_string());
        let cited = has_cited.then(|| cell.cited.to_string());
        text.push_str(&line(labels.chain(values).chain(cited).chain(spread).chain(median).chain(tested)));
    }
    text
}
