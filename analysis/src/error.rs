//! Everything that can go wrong between fold rows and a written table, as one enum that a caller can match on.
//! Messages are lowercase, name the thing at fault and end with what would help. Nothing here prints.

use std::path::{Path, PathBuf};

use polars::prelude::PolarsError;
use togl_sweeps::grid::PointError;
use togl_sweeps::nearest;
use togl_sweeps::result::ResultError;

use crate::statistics::TestRefusal;

/// How many folds or cells a message names before it says "and n more".
const NAMED_IN_MESSAGES: usize = 5;

/// What a file without the columns of the schema may be.
pub(crate) const NO_FOLDS: &str =
    "is it a file of folds? Runs of other systems go through `togl import` first";

/// What this crate's functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a frame, a selection or a table could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither results nor a plan: there is nothing to show.
    #[error("{origin} has no folds; is it the right one, and has anything finished yet?")]
    Empty {
        /// The file, or what else was read.
        origin: String,
    },
    /// Runs were read, but none is to be imported.
    #[error("no run is left to import: all {} were left out; the reasons stand above", skipped.len())]
    AllLeftOut {
        /// The runs, each with its file, line and reason.
        skipped: Vec<String>,
    },
    /// Folds are there, but none has what a figure shows.
    #[error("{what} has nothing to show: no fold has a value of `{column}`")]
    NoValues {
        /// The figure.
        what: String,
        /// The column that is empty.
        column: &'static str,
    },
    /// A table or a selection names a setting that trials do not have.
    #[error("no setting `{name}`; {hint}")]
    UnknownSetting {
        /// The name as written.
        name: String,
        /// The nearest known one, or the list of all.
        hint: String,
    },
    /// A condition that no trial fulfils.
    #[error("no trial is left where `{name}` is {}; here it is {}", listed(values), listed(there))]
    FilteredOut {
        /// The setting.
        name: String,
        /// The values that were asked for.
        values: Vec<String>,
        /// The values that the trials have.
        there: Vec<String>,
    },
    /// No published table has this name.
    #[error("no layout `{name}`; {hint}")]
    UnknownLayout {
        /// The name as written.
        name: String,
        /// The nearest known one, or the list of all.
        hint: String,
    },
    /// A word that chooses something is not one of those known.
    #[error("{what} cannot be `{name}`; {hint}")]
    UnknownChoice {
        /// What is chosen.
        what: &'static str,
        /// The word as written.
        name: String,
        /// The nearest known one, or the list of all.
        hint: String,
    },
    /// No row or column of a table is called this, or several are.
    #[error("no single {what} `{name}` in the table; {hint}")]
    NoSuchCell {
        /// `row` or `column`.
        what: &'static str,
        /// The name as written.
        name: String,
        /// The nearest known one, or the list of those that match.
        hint: String,
    },
    /// A table has no counterpart among the published ones, or several.
    #[error("cannot compare with a published table: {reason}; {hint}")]
    NothingPublished {
        /// Why none was found.
        reason: String,
        /// The tables to choose from.
        hint: String,
    },
    /// A file that should hold a table saved as JSON does not.
    #[error("{origin} is not a saved table: {reason}; save one with `--format json`")]
    BadSavedTable {
        /// The file, or what else was read.
        origin: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The kind of a picture is not known from its name.
    #[error("cannot tell the kind of picture from the name `{}`; use .svg, .png or .pdf", path.display())]
    UnknownPicture {
        /// The file.
        path: PathBuf,
    },
    /// Nothing changes along the axis of a figure.
    #[error(
        "`{setting}` is {value} in all of these trials, so there is nothing to draw against it; {}",
        instead(varied)
    )]
    ConstantAxis {
        /// The setting.
        setting: String,
        /// Its only value.
        value: String,
        /// Settings that do change.
        varied: Vec<String>,
    },
    /// A figure with so many lines that nobody could read it.
    #[error(
        "the figure would have {lines} lines, but at most {most} can be told apart; choose fewer rows, or a layout"
    )]
    TooManyLines {
        /// How many there would be.
        lines: usize,
        /// How many there may be.
        most: usize,
    },
    /// A figure could not be drawn; a fault of this program rather than of its input.
    #[error("drawing failed: {reason}")]
    Drawing {
        /// What the drawing library said.
        reason: String,
    },
    /// A test of significance would not be honest here.
    #[error("no test: {0}")]
    Refused(#[from] TestRefusal),
    /// A ranking for which too little has finished.
    #[error(
        "cannot rank: {refusal}; not counted, because not everything has finished there: {}; finish these, or leave out \
         what has not finished with `--filter`",
        listed(sets)
    )]
    Unfinished {
        /// Why there is no test.
        refusal: TestRefusal,
        /// The data sets that are incomplete.
        sets: Vec<String>,
    },
    /// A file that is not what its name promises.
    #[error("cannot read `{}`: {reason}", path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The kind of a file is not known from its name.
    #[error("cannot tell the format of `{}` from its name; use .parquet, .arrow, .csv or .ndjson", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// Written by a newer program.
    #[error(
        "{origin} has schema version {found}, this program knows up to {known}; read it with a newer program"
    )]
    NewerSchema {
        /// The file, or what else was read.
        origin: String,
        /// The version it has.
        found: u64,
        /// The newest version known here.
        known: u64,
    },
    /// Columns that every frame must have are not there.
    #[error("{origin} lacks the column{} {}; {advice}", plural(columns), backticked(columns))]
    MissingColumns {
        /// What else the file may be, and what to do with it.
        advice: &'static str,
        /// The file, or what else was read.
        origin: String,
        /// Their names, in the order of the schema.
        columns: Vec<String>,
    },
    /// A value that cannot be: of the wrong type, or missing where one is needed.
    #[error("{origin}, column `{column}`: {reason}")]
    BadColumn {
        /// The file, or what else was read.
        origin: String,
        /// The column.
        column: String,
        /// What is wrong in it.
        reason: String,
    },
    /// The same fold twice: averaging both would count it double.
    #[error("the same fold twice: {}; keep one row of each", listed(folds))]
    DuplicateFolds {
        /// As `TRIAL/split/seed`, in the frame's order.
        folds: Vec<String>,
    },
    /// A result that can never be a row of a table.
    #[error("fold {fold}: {source}")]
    BadResult {
        /// As `TRIAL/split/seed`.
        fold: String,
        /// What is impossible about it.
        source: ResultError,
    },
    /// A cell of the table would average over different trials.
    #[error(
        "cell ({}) mixes {trials} trials, which differ in {}; add what tells them apart to the table's `rows`, or keep one \
         value of it with a `filter`",
        cell.join(", "),
        backticked(settings)
    )]
    MixedTrials {
        /// Labels of the first such cell: its row's, then its column's.
        cell: Vec<String>,
        /// How many trials fall into it.
        trials: u64,
        /// The settings in which the trials of any mixed cell differ.
        settings: Vec<String>,
    },
    /// A group in which no row has the validation value that the choice needs.
    #[error("cannot choose in group ({}): no fold has a value of `{column}`{}", group.join(", "), called(column))]
    NothingToChoose {
        /// The group, as `setting=value`.
        group: Vec<String>,
        /// The validation column.
        column: String,
    },
    /// A file could not be written or read.
    #[error("{what} `{}`: {source}", path.display())]
    Io {
        /// What was attempted, such as `cannot write`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The sweep that a table belongs to has a point that cannot be.
    #[error("the sweep cannot be planned: {0}")]
    Point(#[from] PointError),
    /// Polars refused; a fault of this program rather than of its input.
    #[error("frame computation failed: {0}")]
    Polars(#[from] PolarsError),
}

impl Error {
    pub(crate) fn bad_file(path: &Path, reason: impl ToString) -> Self {
        Self::BadFile { path: path.to_owned(), reason: reason.to_string() }
    }

    /// A word that is not one of these.
    pub(crate) fn unknown_choice<'a>(
        what: &'static str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        Self::UnknownChoice { what, name: name.to_owned(), hint: nearest::hint(name, known) }
    }

    pub(crate) fn io(what: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }
}

/// What exports call a validation column.
fn called(column: &str) -> &'static str {
    match column {
        "last_validation_accuracy" => "; exports of Weights & Biases call it `val_acc`",
        "validation_accuracy" => "; exports of Weights & Biases call it `best_val_acc`",
        _ => "",
    }
}

fn instead(varied: &[String]) -> String {
    match varied {
        [] => "no other setting changes either".to_owned(),
        names => format!("what changes is {}", backticked(names)),
    }
}

fn plural(names: &[String]) -> &'static str {
    if names.len() == 1 { "" } else { "s" }
}

fn backticked(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    listed(&quoted)
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED_IN_MESSAGES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED_IN_MESSAGES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let folds: Vec<String> = (0..7).map(|n| format!("t/{n}/0")).collect();
        let message = Error::DuplicateFolds { folds }.to_string();
        insta::assert_snapshot!(message, @"the same fold twice: t/0/0, t/1/0, t/2/0, t/3/0, t/4/0 and 2 more; keep one row of each");
    }

    #[test]
    fn missing_columns_are_named() {
        let error = |columns: &[&str]| Error::MissingColumns {
            advice: NO_FOLDS,
            origin: "`x.csv`".to_owned(),
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        };
        insta::assert_snapshot!(error(&["seed"]), @"`x.csv` lacks the column `seed`; is it a file of folds? Runs of other systems go through `togl import` first");
        insta::assert_snapshot!(error(&["split", "seed"]), @"`x.csv` lacks the columns `split`, `seed`; is it a file of folds? Runs of other systems go through `togl import` first");
    }
}
