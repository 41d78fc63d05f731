//! What stands behind ± in a table, chosen by the reader and said in every caption. Owns the words for it; the
//! numbers are [`crate::statistics`]'.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use togl_sweeps::FoldKey;

use crate::error::{Error, Result};
use crate::statistics::{Summary, confidence_half_width, population_std, quartiles};

/// What ± means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spread {
    /// Sample standard deviation, divisor n - 1: what the published tables print.
    #[default]
    SampleStd,
    /// Population standard deviation, divisor n.
    PopulationStd,
    /// Standard error of the mean.
    StandardError,
    /// Half the width of the confidence interval of the mean by Student's t.
    Confidence {
        /// The level, in percent: 1 to 99.
        percent: u8,
    },
    /// Population standard deviation of the means of repeats, one a seed: what is published of repeated cross-validation.
    Repeats,
    /// Interquartile range; the number before ± is then the median, not the mean.
    Quartiles,
}

const WORDS: [(&str, Spread); 8] = [
    ("std", Spread::SampleStd),
    ("population-std", Spread::PopulationStd),
    ("standard-error", Spread::StandardError),
    ("ci90", Spread::Confidence { percent: 90 }),
    ("ci95", Spread::Confidence { percent: 95 }),
    ("ci99", Spread::Confidence { percent: 99 }),
    ("repeat-std", Spread::Repeats),
    ("iqr", Spread::Quartiles),
];

impl Spread {
    /// The number behind ±, for the values of folds in their given order; not defined for fewer than two.
    pub fn of(self, folds: &[FoldKey], values: &[f64]) -> Option<f64> {
        match self {
            Self::SampleStd => Summary::of(values).std,
            Self::PopulationStd => population_std(values),
            Self::StandardError => Summary::of(values).standard_error(),
            Self::Confidence { percent } => confidence_half_width(values, f64::from(percent) / 100.0),
            Self::Repeats => population_std(&means_of_repeats(folds, values)?),
            Self::Quartiles => {
                quartiles(values).filter(|_| values.len() > 1).map(|quartiles| quartiles.range())
            }
        }
    }

    /// What stands before ±.
    pub fn centre(self) -> &'static str {
        if self == Self::Quartiles { "median" } else { "mean" }
    }

    /// Its name as a column of machine-readable output.
    pub fn name(self) -> String {
        match self {
            Self::SampleStd => "std".to_owned(),
            Self::PopulationStd => "population_std".to_owned(),
            Self::StandardError => "standard_error".to_owned(),
            Self::Confidence { percent } => format!("ci{percent}_half_width"),
            Self::Repeats => "repeat_std".to_owned(),
            Self::Quartiles => "interquartile_range".to_owned(),
        }
    }

    /// What a single fold does not have.
    pub fn noun(self) -> &'static str {
        match self {
            Self::SampleStd | Self::PopulationStd | Self::Repeats => "standard deviation",
            Self::StandardError => "standard error",
            Self::Confidence { .. } => "confidence interval",
            Self::Quartiles => "interquartile range",
        }
    }
}

/// The mean of each seed's folds. None if there is only one seed, or if seeds have different splits: their means would not
/// be means of the same thing.
fn means_of_repeats(folds: &[FoldKey], values: &[f64]) -> Option<Vec<f64>> {
    let mut repeats: BTreeMap<u64, Vec<(u32, f64)>> = BTreeMap::new();
    for (fold, value) in folds.iter().zip(values) {
        repeats.entry(fold.seed).or_default().push((fold.split, *value));
    }
    let splits = |repeat: &Vec<(u32, f64)>| {
        let mut splits: Vec<u32> = repeat.iter().map(|(split, _)| *split).collect();
        splits.sort_unstable();
        splits
    };
    let first = repeats.values().next().map(splits)?;
    let alike = repeats.len() > 1 && repeats.values().all(|repeat| splits(repeat) == first);
    let mean =
        |repeat: &Vec<(u32, f64)>| repeat.iter().map(|(_, value)| value).sum::<f64>() / repeat.len() as f64;
    alike.then(|| repeats.values().map(mean).collect())
}

impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SampleStd => formatter.write_str("sample standard deviation (divisor n - 1)"),
            Self::PopulationStd => formatter.write_str("population standard deviation (divisor n)"),
            Self::StandardError => formatter.write_str("standard error of the mean"),
            Self::Confidence { percent } => write!(
                formatter,
                "half width of the {percent}% confidence interval (Student's t, folds taken as independent)"
            ),
            Self::Repeats => formatter
                .write_str("population standard deviation (divisor n) of the means of repeats, one a seed,"),
            Self::Quartiles => formatter
                .write_str("interquartile range (upper less lower quartile; winners are still by mean)"),
        }
    }
}

impl FromStr for Spread {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = WORDS.iter().find(|(word, _)| *word == name).map(|(_, spread)| *spread);
        found.ok_or_else(|| {
            Error::unknown_choice("the meaning of ±", name, WORDS.iter().map(|(word, _)| *word))
        })
    }
}

#[cfg(test)]
mod tests {
    use togl_sweeps::spec::TableSpec;
    use togl_sweeps::trial::Backbone;

    use super::*;
    use crate::render;
    use crate::table::Table;
    use crate::test_folds::{folds, frame, plan, plan_of, trial};

    fn table() -> Table {
        let gcn = trial("DD", Backbone::Gcn, 4);
        let frame = frame(folds(0, &gcn, &[0.5, 0.6, 0.7, 0.6]));
        Table::make(&frame, &TableSpec::default(), &plan(&[(&gcn, 4)])).unwrap()
    }

    #[test]
    fn every_caption_says_what_plus_minus_means() {
        for (word, spread) in WORDS {
            let parsed: Spread = word.parse().unwrap();
            assert_eq!(parsed, spread);
            let caption = table().with_spread(parsed).caption;
            assert!(caption.contains(&format!("{} ± {spread} over 4 folds", spread.centre())), "{caption}");
        }
        assert!(table().caption.contains("± sample standard deviation (divisor n - 1)"));
    }

    #[test]
    fn the_number_shown_follows_the_choice_and_the_deviation_stays_in_machine_output() {
        let table = table().with_spread("standard-error".parse().unwrap());
        assert!(render::markdown(&table).contains("60.0 ± 4.1"), "{}", render::markdown(&table));
        let json = render::json(&table);
        assert!(json.contains(r#""std":8.16"#) && json.contains(r#""standard_error":4.08"#), "{json}");
        assert!(render::csv(&table).lines().next().unwrap().ends_with("marks,standard_error"));
        let interval = table.with_spread(Spread::Confidence { percent: 95 });
        assert!(render::markdown(&interval).contains("60.0 ± 13.0"));
    }

    #[test]
    fn with_quartiles_the_median_is_shown() {
        let table = table().with_spread("iqr".parse().unwrap());
        assert!(render::markdown(&table).contains("60.0 ± 5.0"), "{}", render::markdown(&table));
        let json = render::json(&table);
        assert!(json.contains(r#""interquartile_range":5.0"#) && json.contains(r#""median":60.0"#), "{json}");
        assert!(render::csv(&table).lines().next().unwrap().ends_with("marks,interquartile_range,median"));
    }

    #[test]
    fn with_repeats_the_deviation_is_that_of_their_means_and_uneven_repeats_have_none() {
        let gcn = trial("DD", Backbone::Gcn, 4);
        let of = |seed, accuracies: &[f64]| {
            let mut folds = folds(0, &gcn, accuracies);
            folds.iter_mut().for_each(|fold| fold.fold.seed = seed);
            folds
        };
        let table = |rows: Vec<crate::frame::FoldRow>| {
            let plan = plan_of(&[(&gcn, rows.iter().map(|row| row.fold).collect())]);
            let table = Table::make(&frame(rows), &TableSpec::default(), &plan).unwrap();
            table.with_spread("repeat-std".parse().unwrap())
        };
        // Means 50 and 60, so a mean of 55 with a deviation of 5; that of the four folds would be 11.2.
        let even = table([of(0, &[0.4, 0.6]), of(1, &[0.5, 0.7])].concat());
        assert!(render::markdown(&even).contains("55.0 ± 5.0"), "{}", render::markdown(&even));
        assert!(render::json(&even).contains(r#""repeat_std":5.0"#), "{}", render::json(&even));
        for lacking in [of(0, &[0.4, 0.6]), [of(0, &[0.4, 0.6]), of(1, &[0.5])].concat()] {
            let text = render::markdown(&table(lacking));
            assert!(text.contains("± n/a") && text.contains("seeds with the same splits"), "{text}");
        }
    }

    #[test]
    fn an_unknown_word_gets_a_hint() {
        let error = "ci96".parse::<Spread>().unwrap_err();
        insta::assert_snapshot!(error, @"the meaning of ± cannot be `ci96`; did you mean `ci90`?");
    }
}
