//! Everything that can go wrong between fold rows and a written table, as one enum that a caller can match on.
//! Messages are lowercase, name the thing at fault and end with what would help. Nothing here prints.

use std::path::{Path, PathBuf};

use polars::prelude::PolarsError;
use togl_sweeps::nearest;

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
    /// What was asked for, or what was given, cannot be; nobody needs more of it than the words.
    #[error("{0}")]
    Unfit(String),
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
        what: String,
        /// The column that is empty.
        column: &'static str,
    },
    /// A table has no counterpart among the published ones, or several.
    #[error("cannot compare with a published table: {reason}; {hint}")]
    NothingPublished {
        reason: String,
        /// The tables to choose from.
        hint: String,
    },
    /// Nothing changes along the axis of a figure.
    #[error(
        "`{setting}` is {value} in all of these trials, so there is nothing to draw against it; {}",
        instead(varied)
    )]
    ConstantAxis {
        setting: String,
        value: String,
        /// Settings that do change.
        varied: Vec<String>,
    },
    /// A figure with so many lines that nobody could read it.
    #[error(
        "the figure would have {lines} lines, but at most {most} can be told apart; choose fewer rows, or a layout"
    )]
    TooManyLines { lines: usize, most: usize },
    /// A figure could not be drawn; a fault of this program rather than of its input.
    #[error("drawing failed: {reason}")]
    Drawing { reason: String },
    /// A test of significance would not be honest here.
    #[error("no test: {0}")]
    Refused(#[from] TestRefusal),
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
    /// The same fold twice: averaging both would count it double.
    #[error("the same fold twice: {}; keep one row of each", listed(folds))]
    DuplicateFolds {
        /// As `TRIAL/split/seed`, in the frame's order.
        folds: Vec<String>,
    },
    /// A file could not be written or read.
    #[error("{what} `{}`: {source}", path.display())]
    Io {
        /// What was attempted, such as `cannot write`.
        what: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// Polars refused; a fault of this program rather than of its input.
    #[error("frame computation failed: {0}")]
    Polars(#[from] PolarsError),
}

impl Error {
    pub(crate) fn bad_file(path: &Path, reason: impl ToString) -> Self {
        Self::Unfit(format!("cannot read `{}`: {}", path.display(), reason.to_string()))
    }

    /// A word that is not one of these.
    pub(crate) fn unknown_choice<'a>(
        what: &'static str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        Self::Unfit(format!("{what} cannot be `{name}`; {}", nearest::hint(name, known)))
    }

    pub(crate) fn bad_column(origin: &str, column: &str, reason: impl ToString) -> Self {
        Self::Unfit(format!("{origin}, column `{column}`: {}", reason.to_string()))
    }

    /// A group of folds in which none has the validation value that a choice needs.
    pub(crate) fn nothing_to_choose(group: &[String], column: &str) -> Self {
        let group = group.join(", ");
        let called = called(column);
        Self::Unfit(format!("cannot choose in group ({group}): no fold has a value of `{column}`{called}"))
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

pub(crate) fn backticked(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    listed(&quoted)
}

pub(crate) fn listed(names: &[String]) -> String {
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
