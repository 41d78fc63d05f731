//! Random search: a seeded sample of a grid, or draws from distributions. The n-th draw depends on the seed and on n
//! alone, so raising the budget later adds draws and repeats none. Owns what is drawn; randomness is in `draws`.

use serde_json::Value;

use crate::draws::{Draws, rounded};
use crate::settings::{Setting, ValueKind};
use crate::trial::TrialConfig;

/// Digits of a drawn number: enough to search with, short enough to read.
const DIGITS: usize = 6;

/// How one setting is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Law {
    /// Every number between two bounds is as likely; whole settings include both.
    Uniform(f64, f64),
    /// Every order of magnitude between two bounds is as likely.
    LogUniform(f64, f64),
    /// Every value of a list is as likely.
    Choice(Vec<Value>),
}

/// A setting and how it is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// The setting.
    pub setting: &'static Setting,
    /// How it is drawn.
    pub law: Law,
}

/// What a sample is drawn from.
#[derive(Debug, Clone, PartialEq)]
pub enum DrawnFrom {
    /// The points of the grid, none twice.
    Grid,
    /// Distributions; each draw is combined with every point of the grid.
    Distributions(Vec<Distribution>),
}

/// A seeded sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Random {
    /// How many draws.
    pub budget: u64,
    /// What the draws depend on.
    pub seed: u64,
    /// What is drawn from.
    pub source: DrawnFrom,
}

impl Distribution {
    /// Puts the n-th draw into a trial.
    pub fn draw(&self, seed: u64, index: u64, trial: &mut TrialConfig) {
        let unit = Draws::new(seed, self.setting.name).unit(index.into());
        self.setting.set(trial, &self.value(unit));
    }

    fn value(&self, unit: f64) -> Value {
        let whole = matches!(self.setting.kind, ValueKind::Whole(..) | ValueKind::Position);
        match &self.law {
            Law::Choice(values) => {
                let index = (unit * values.len() as f64) as usize;
                values.get(index).or(values.last()).cloned().unwrap_or(Value::Null)
            }
            Law::Uniform(from, to) if whole => {
                whole_number((from + (unit * (to - from + 1.0)).floor()).min(*to))
            }
            Law::Uniform(from, to) => rounded(from + unit * (to - from), DIGITS).clamp(*from, *to).into(),
            Law::LogUniform(from, to) => {
                let (low, high) = (libm::log(*from), libm::log(*to));
                let value = libm::exp(low + unit * (high - low));
                if whole {
                    whole_number(value.round().clamp(*from, *to))
                } else {
                    rounded(value, DIGITS).clamp(*from, *to).into()
                }
            }
        }
    }
}

/// A number without a fraction as JSON has whole ones.
fn whole_number(number: f64) -> Value {
    Value::from(number as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::settings;

    fn drawn(name: &str, law: Law, seed: u64, index: u64) -> Value {
        let setting = settings::find(name).unwrap();
        let mut trial = TrialConfig::default();
        Distribution { setting, law }.draw(seed, index, &mut trial);
        setting.value(&trial)
    }

    proptest! {
        #[test]
        fn a_draw_is_in_its_bounds(seed: u64, index: u64) {
            let lr = drawn("lr", Law::LogUniform(1e-5, 1e-1), seed, index).as_f64().unwrap();
            prop_assert!((1e-5..=1e-1).contains(&lr));
            let depth = drawn("depth", Law::Uniform(1.0, 5.0), seed, index).as_u64().unwrap();
            prop_assert!((1..=5).contains(&depth));
            let model = drawn("model", Law::Choice(vec![json!("gin"), json!("gat")]), seed, index);
            prop_assert!(model == "gin" || model == "gat");
        }
    }

    #[test]
    fn draws_spread_over_their_range() {
        let depths: Vec<u64> =
            (0..500).map(|n| drawn("depth", Law::Uniform(1.0, 5.0), 3, n).as_u64().unwrap()).collect();
        for depth in 1..=5 {
            let times = depths.iter().filter(|d| **d == depth).count();
            assert!((60..140).contains(&times), "depth {depth} came {times} times of 500");
        }
        let small = (0..500)
            .filter(|n| drawn("lr", Law::LogUniform(1e-4, 1.0), 3, *n).as_f64().unwrap() < 1e-2)
            .count();
        assert!((200..300).contains(&small), "{small} of 500 in the lower half of the magnitudes");
    }
}
