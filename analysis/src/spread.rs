//! What stands behind ± in a table, chosen by the reader and said in every caption. Owns the words for it; the
//! numbers are [`crate::statistics`]'.

use std::fmt;
use std::str::FromStr;

use togl_sweeps::nearest;

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
    /// Interquartile range; the number before ± is then the median, not the mean.
    Quartiles,
}

const WORDS: [(&str, Spread); 7] = [
    ("std", Spread::SampleStd),
    ("population-std", Spread::PopulationStd),
    ("standard-error", Spread::StandardError),
    ("ci90", Spread::Confidence { percent: 90 }),
    ("ci95", Spread::Confidence { percent: 95 }),
    ("ci99", Spread::Confidence { percent: 99 }),
    ("iqr", Spread::Quartiles),
];

impl Spread {
    /// The number behind ±, for values in their given order; not defined for fewer than two.
    pub fn of(self, values: &[f64]) -> Option<f64> {
        match self {
            Self::SampleStd => Summary::of(values).std,
            Self::PopulationStd => population_std(values),
            Self::StandardError => Summary::of(values).standard_error(),
            Self::Confidence { percent } => confidence_half_width(values, f64::from(percent) / 100.0),
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
            Self::Quartiles => "interquartile_range".to_owned(),
        }
    }

    /// What a single fold does not have.
    pub fn noun(self) -> &'static str {
        match self {
            Self::SampleStd | Self::PopulationStd => "standard deviation",
            Self::StandardError => "standard error",
            Self::Confidence { .. } => "confidence interval",
            Self::Quartiles => "interquartile range",
        }
    }
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
            Self::Quartiles => formatter
                .write_str("interquartile range (upper less lower quartile; winners are still by mean)"),
        }
    }
}

impl FromStr for Spread {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = WORDS.iter().find(|(word, _)| *word == name).map(|(_, spread)| *spread);
        found.ok_or_else(|| Error::UnknownChoice {
            what: "the meaning of ±",
            name: name.to_owned(),
            hint: nearest::hint(name, WORDS.iter().map(|(word, _)| *word)),
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
    use crate::test_folds::{folds, frame, plan, trial};

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
    fn an_unknown_word_gets_a_hint() {
        let error = "ci96".parse::<Spread>().unwrap_err();
        insta::assert_snapshot!(error, @"the meaning of ± cannot be `ci96`; did you mean `ci90`?");
    }
}
