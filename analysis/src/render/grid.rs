//! A table as cells of text, for a page that draws it itself: the words and digits of the other renderers, piece by piece,
//! so that a page shows what a paper prints. Lays nothing out and knows no markup.

use serde::Serialize;

use super::{Shown, full_header, lines_above, lines_below, row_headers, row_labels_in_words, shown};
use crate::table::{Cell, Table};

/// A table in pieces.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableGrid {
    /// What it is called.
    pub title: String,
    /// What stands over the labels of rows.
    pub label_headers: Vec<String>,
    /// Headers that several columns share, line by line, each with how many columns it spans.
    pub above: Vec<Vec<(String, usize)>>,
    /// What stands over each column.
    pub headers: Vec<String>,
    /// The rows.
    pub rows: Vec<GridRow>,
    /// Caption and notes.
    pub below: Vec<String>,
}

/// A row of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GridRow {
    /// One label for each of the headers.
    pub labels: Vec<String>,
    /// A cell for each column.
    pub cells: Vec<GridCell>,
}

/// A cell of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GridCell {
    /// Such as `61.2 ± 2.1`; `–` where nothing has finished, empty where nothing is planned.
    pub number: String,
    /// `n=7/10` where folds are missing, else empty.
    pub count: String,
    /// Signs that the notes explain.
    pub marks: String,
    /// Whether it is set off from the others.
    pub stands_out: bool,
    /// Whether it wins the narrower comparison of a layout.
    pub wins_comparison: bool,
    /// Folds with a value.
    pub n: usize,
    /// Planned folds.
    pub planned: usize,
    /// The trials behind it, while there is any fold.
    pub trials: Vec<String>,
}

/// The table in pieces. `best` and `comparison` are what a page sets such cells off with.
pub fn grid(table: &Table, best: &str, comparison: &str) -> TableGrid {
    let row = |row: &crate::table::TableRow| GridRow {
        labels: row_labels_in_words(table, row),
        cells: row.cells.iter().map(|cell| piece(cell, table)).collect(),
    };
    TableGrid {
        title: table.title.clone(),
        label_headers: row_headers(table),
        above: lines_above(table),
        headers: table.columns.iter().map(|column| full_header(table, column)).collect(),
        rows: table.rows.iter().map(row).collect(),
        below: lines_below(table, best, comparison),
    }
}

fn piece(cell: &Cell, table: &Table) -> GridCell {
    let (number, count, marks) = match shown(cell, table) {
        Shown::NotPlanned => Default::default(),
        Shown::Missing => ("–".to_owned(), String::new(), String::new()),
        Shown::Number(value) => (
            format!("{} ± {}", value.mean, value.std),
            value.count.unwrap_or_default(),
            value.marks.iter().map(|mark| mark.sign()).collect(),
        ),
    };
    let mut trials: Vec<String> = cell.folds.iter().map(|fold| fold.trial.to_string()).collect();
    trials.dedup();
    GridCell {
        number,
        count,
        marks,
        stands_out: cell.stands_out(),
        wins_comparison: cell.wins_comparison,
        n: cell.n,
        planned: cell.planned,
        trials,
    }
}
