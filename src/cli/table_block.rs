//! The table block from the command line: the options that `togl table` has in common with the `table` block of a sweep
//! file, laid over it. Checks words; makes no table.

use togl_sweeps::nearest;
use togl_sweeps::spec::{Metric, Selection, TableSpec};

use crate::problem::Problem;

/// What the table shows.
#[derive(Debug, Default, clap::Args)]
pub struct Block {
    /// Settings, or `method`, that make a row, with commas between
    #[arg(long, value_name = "SETTINGS", value_delimiter = ',')]
    rows: Vec<String>,
    /// The setting that makes the columns
    #[arg(long, value_name = "SETTING")]
    columns: Option<String>,
    /// What is averaged: test_accuracy, validation_accuracy, last_validation_accuracy or train_accuracy
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// The setting of which each value has a common header over its columns
    #[arg(long, value_name = "SETTING")]
    group: Option<String>,
    /// Only trials with one of these values; may be given several times
    #[arg(long, value_name = "SETTING=VALUES")]
    filter: Vec<String>,
    /// In each split, show the best by validation of the trials that differ only in these settings
    #[arg(long, value_name = "SETTINGS", value_delimiter = ',')]
    select: Vec<String>,
}

impl Block {
    /// Only these, for commands that have no more of them.
    pub fn of(rows: &[String], columns: Option<&String>, metric: Option<&String>) -> Self {
        let (columns, metric) = (columns.cloned(), metric.cloned());
        Self { rows: rows.to_vec(), columns, metric, ..Self::default() }
    }

    /// The block of the sweep file with what was typed in its place.
    pub fn over(
        &self,
        spec: &TableSpec,
        selection: Option<&Selection>,
    ) -> Result<(TableSpec, Option<Selection>), Problem> {
        let mut spec = spec.clone();
        if !self.rows.is_empty() {
            spec.rows.clone_from(&self.rows);
        }
        if let Some(columns) = &self.columns {
            spec.columns.clone_from(columns);
        }
        if let Some(word) = &self.metric {
            spec.metric = metric(word)?;
        }
        if self.group.is_some() {
            spec.group.clone_from(&self.group);
        }
        for text in &self.filter {
            spec.filter.push(condition(text)?);
        }
        let selection = match self.select.as_slice() {
            [] => selection.cloned(),
            among => Some(Selection { among: among.to_vec(), by: Metric::LastValidationAccuracy }),
        };
        Ok((spec, selection))
    }
}

/// The metric of this name.
pub fn metric(word: &str) -> Result<Metric, Problem> {
    Metric::from_word(word).ok_or_else(|| {
        Problem::usage(format!("no metric `{word}`")).hint(nearest::hint(word, Metric::WORDS.iter().copied()))
    })
}

/// `SETTING=VALUE,VALUE`.
pub fn condition(text: &str) -> Result<(String, Vec<String>), Problem> {
    let (name, values) = text.split_once('=').ok_or_else(|| {
        Problem::usage(format!("`{text}` is not a filter"))
            .hint("use --filter SETTING=VALUES, such as --filter dataset=DD,ENZYMES")
    })?;
    Ok((name.to_owned(), values.split(',').map(str::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_setting_and_its_values() {
        let (name, values) = condition("lr=0.0010,1e-3").unwrap();
        assert_eq!((name.as_str(), values), ("lr", vec!["0.0010".to_owned(), "1e-3".to_owned()]));
        assert!(condition("depth").is_err());
    }
}
