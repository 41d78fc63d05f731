//! The table block from the command line: the options that `togl table` has in common with the `table` block of a sweep
//! file, laid over it. Checks words; makes no table.

use togl_sweeps::nearest;
use togl_sweeps::spec::{MOST_DECIMALS, Metric, Per, Selection, TableSpec};

use crate::problem::Problem;

/// What the table shows.
#[derive(Debug, Default, clap::Args)]
pub struct TableBlock {
    /// Settings, or `method`, that make a row, with commas between
    #[arg(long, value_name = "SETTINGS", value_delimiter = ',')]
    rows: Vec<String>,
    /// The setting that makes the columns
    #[arg(long, value_name = "SETTING")]
    columns: Option<String>,
    /// What is averaged: test_accuracy, validation_accuracy, last_validation_accuracy, train_accuracy, test_f1 or test_roc_auc
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// The setting of which each value has a common header over its columns
    #[arg(long, value_name = "SETTING")]
    group: Option<String>,
    /// Only trials with one of these values; may be given several times
    #[arg(long, value_name = "SETTING=VALUES")]
    filter: Vec<String>,
    /// Show the best by validation: in each split of the trials that differ only in these settings, or with the word
    /// `config` one configuration for each cell, by its mean over all splits
    #[arg(long, value_name = "SETTINGS", value_delimiter = ',')]
    select: Vec<String>,
    /// What decides that choice: validation_accuracy or last_validation_accuracy
    #[arg(long, value_name = "METRIC")]
    by: Option<String>,
    /// Values of a setting in the order in which rows or columns stand; may be given several times
    #[arg(long, value_name = "SETTING=VALUES")]
    order: Vec<String>,
    /// Digits after the decimal point
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=MOST_DECIMALS))]
    decimals: Option<u64>,
    /// What stands above the table instead of the name of the sweep
    #[arg(long, value_name = "TEXT")]
    caption: Option<String>,
    /// What a LaTeX paper refers to it by, such as tab:depth
    #[arg(long, value_name = "NAME")]
    label: Option<String>,
}

impl TableBlock {
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
        for text in &self.order {
            let (name, values) = condition(text)?;
            spec.order.retain(|(known, _)| *known != name);
            spec.order.push((name, values));
        }
        spec.decimals = self.decimals.map(|decimals| decimals as usize).or(spec.decimals);
        spec.caption = self.caption.clone().or(spec.caption);
        spec.label = self.label.clone().or(spec.label);
        let mut selection = self.selection().or_else(|| selection.cloned());
        match (&mut selection, &self.by) {
            (Some(selection), Some(word)) => selection.by = metric(word)?,
            (None, Some(_)) => return Err(Problem::usage("--by decides a choice").hint("say --select too")),
            (_, None) => {}
        }
        Ok((spec, selection))
    }

    /// What is chosen among, if anything was typed.
    fn selection(&self) -> Option<Selection> {
        let (per, among) = match self.select.as_slice() {
            [] => return None,
            [word] if word == "config" => (Per::Config, None),
            among => (Per::Split, Some(among.to_vec())),
        };
        Some(Selection { among, by: per.usual_metric(), per })
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
        Problem::usage(format!("`{text}` is not a setting with its values"))
            .hint("write SETTING=VALUES, such as dataset=DD,ENZYMES")
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
