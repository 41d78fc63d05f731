//! A [`Table`] as text, one format per file. Owns how a cell falls into pieces (mean, deviation, count, marks),
//! so that all formats show the same facts, and the writing of a table's files together. Computes no numbers.

mod csv;
mod grid;
pub(crate) mod head;
mod html;
mod json;
pub(crate) mod latex;
mod markdown;
mod terminal;

use std::fs;
use std::path::{Path, PathBuf};

pub use csv::csv;
pub use grid::{GridCell, GridRow, TableGrid, grid};
pub(crate) use html::escape;
pub use html::{fragment, html, page};
pub use json::json;
pub(crate) use json::typed;
pub use latex::latex;
pub use markdown::markdown;
pub use terminal::terminal;

use togl_sweeps::Goal;
use unicode_width::UnicodeWidthStr;

use crate::atomic::{draft_of, publish};
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::table::{Cell, Mark, Table, Winners};
use crate::wording::{chosen_by_test, fixed};
use head::{
    column_header, columns_are, full_header, lines_above, row_headers, row_labels, row_labels_in_words,
};

/// Stands for a deviation that is not defined.
const UNDEFINED: &str = "n/a";

/// Writes the table as `STEM.md`, `STEM.tex` and `STEM.csv` and the folds behind it as `STEM.parquet`; returns
/// the paths. Nothing gets its name before everything is written, so a failure leaves the old files.
pub fn write_all(dir: &Path, stem: &str, table: &Table, frame: &FoldFrame) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(dir).map_err(|source| Error::io("cannot make the folder", dir, source))?;
    let path = |extension: &str| dir.join(format!("{stem}.{extension}"));
    let drafts = [
        draft_of(&path("md"), markdown(table))?,
        draft_of(&path("tex"), latex(table))?,
        draft_of(&path("csv"), csv(table))?,
        frame.draft(&path("parquet"))?,
    ];
    drafts.into_iter().map(publish).collect()
}

/// What a cell shows, before a format spells it.
enum Shown {
    /// The plan has no such combination.
    NotPlanned,
    /// Planned, but nothing has finished.
    Missing,
    /// A number.
    Number(ShownNumber),
}

/// The parts of a number as text.
struct ShownNumber {
    mean: String,
    std: String,
    /// `n=7/10` where not all planned folds are behind the number.
    count: Option<String>,
    marks: Vec<Mark>,
}

/// What a format puts before and after a part of a number.
struct Around {
    italic: [&'static str; 2],
    bold: [&'static str; 2],
    count: [&'static str; 2],
    marks: [&'static str; 2],
}

impl Around {
    /// A cell as text, for formats in which a number is one piece.
    fn number(&self, cell: &Cell, table: &Table, sign: fn(&str) -> String) -> String {
        let value = match shown(cell, table) {
            Shown::NotPlanned => return String::new(),
            Shown::Missing => return "–".to_owned(),
            Shown::Number(value) => value,
        };
        let within = |[before, after]: [&str; 2], text: String| match text.is_empty() {
            true => text,
            false => format!("{before}{text}{after}"),
        };
        let number = format!("{} ± {}", value.mean, value.std);
        let number = if cell.wins_comparison { within(self.italic, number) } else { number };
        let number = if cell.stands_out() { within(self.bold, number) } else { number };
        let marks: String = value.marks.iter().map(|mark| sign(mark.sign())).collect();
        number + &within(self.count, value.count.unwrap_or_default()) + &within(self.marks, marks)
    }
}

fn shown(cell: &Cell, table: &Table) -> Shown {
    let decimals = table.decimals;
    let Some(mean) = cell.centre(table.spread) else {
        return if cell.planned == 0 { Shown::NotPlanned } else { Shown::Missing };
    };
    let spread = cell.plus_minus(table.spread);
    let std = spread.map_or_else(|| UNDEFINED.to_owned(), |spread| fixed(spread, decimals));
    let incomplete = cell.marks.contains(&Mark::Incomplete) || cell.marks.contains(&Mark::Stopped);
    Shown::Number(ShownNumber {
        mean: fixed(mean, decimals),
        std,
        count: incomplete.then(|| format!("n={}/{}", cell.n, cell.planned)),
        marks: cell.marks.iter().copied().collect(),
    })
}

/// `text` filled up with spaces on the right, as terminals show it: some characters take two columns and some none.
fn left(text: &str, room: usize) -> String {
    format!("{text}{}", " ".repeat(room.saturating_sub(text.width())))
}

/// `text` filled up with spaces on the left.
fn right(text: &str, room: usize) -> String {
    format!("{}{text}", " ".repeat(room.saturating_sub(text.width())))
}

/// Rows of text under headers, aligned to the left with two spaces between columns.
pub fn aligned(headers: &[&str], rows: &[Vec<String>]) -> String {
    let room = |at: usize| {
        let cells = rows.iter().map(|row| row[at].width());
        cells.chain([headers[at].width()]).max().unwrap_or_default()
    };
    let rooms: Vec<usize> = (0..headers.len()).map(room).collect();
    let line = |cells: Vec<&str>| {
        let padded: Vec<String> = cells.iter().zip(&rooms).map(|(text, room)| left(text, *room)).collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let body = rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
    std::iter::once(line(headers.to_vec())).chain(body).collect()
}

/// The caption, then the notes; `best` and `comparison` say how this format sets off winners of a column and of a
/// comparison within it.
fn lines_below(table: &Table, best: &str, comparison: &str) -> Vec<String> {
    let has_winners = table.cells().any(|(_, _, cell)| cell.stands_out());
    let (among, compared) = match table.winners {
        Winners::PerColumn => ("column", "rows"),
        Winners::PerRow => ("row", "columns"),
    };
    let also = table.emphasis.also();
    let searched = match chosen_by_test(table).as_slice() {
        [] => String::new(),
        names => format!(
            ". Among {compared} that differ in {} only this is a choice by test values, which flatters it; choose by validation",
            names.join(", ")
        ),
    };
    let which = match table.scale.goal {
        Goal::Max => "best",
        Goal::Min => "best (lowest)",
    };
    let winners = has_winners.then(|| format!("{best} {which} mean of its {among}{also}{searched}"));
    let comparisons = table.cells().any(|(_, _, cell)| cell.wins_comparison);
    let comparisons =
        comparisons.then(|| format!("{comparison} best of its comparison (same backbone and size)"));
    let notes = table.notes.iter().cloned();
    std::iter::once(table.caption.clone()).chain(winners).chain(comparisons).chain(notes).collect()
}

#[cfg(test)]
mod tests;
