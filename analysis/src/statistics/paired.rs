//! The paired t test by fold with Nadeau and Bengio's correction. Folds of one data set share most of their
//! training data, so their differences are correlated and the plain test finds differences that are not there; the
//! correction widens the variance by the ratio of test to training size. Owns what may be paired with what.

use std::collections::BTreeMap;

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::refusal::TestRefusal;
use super::summary::Summary;

/// One measurement: the value of one trial on one split with one training seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoldValue {
    /// Which split of the data.
    pub split: u32,
    /// Which training seed.
    pub seed: u64,
    /// What was measured.
    pub value: f64,
}

/// How many examples a fold trains on and is tested on; means where folds differ a little.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartSizes {
    /// Size of the training part, without validation: what the weights were fitted to.
    pub train: f64,
    /// Size of the test part.
    pub test: f64,
}

/// Outcome of the corrected paired t test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorrectedT {
    /// Mean of first minus second.
    pub mean_difference: f64,
    /// Student's t with the corrected variance.
    pub t: f64,
    /// Degrees of freedom: splits minus one.
    pub degrees: usize,
    /// Two-sided p-value.
    pub p: f64,
    /// Standard error of the mean difference, by the corrected variance.
    pub error: f64,
}

impl CorrectedT {
    /// Half the width of the interval of the mean difference at a level such as 0.95: the differences that the test would
    /// not tell from the one that was found.
    pub fn half_width(&self, level: f64) -> Option<f64> {
        let student = StudentsT::new(0.0, 1.0, self.degrees as f64).ok()?;
        let width = self.error * student.inverse_cdf(0.5 + level / 2.0);
        (level > 0.0 && level < 1.0 && width.is_finite()).then_some(width)
    }
}

/// First minus second for each split, in the order of splits. Seeds of one split are averaged first, because
/// they are not further samples of the data. Refuses sides that were not measured on the same folds.
pub fn differences(first: &[FoldValue], second: &[FoldValue]) -> Result<Vec<f64>, TestRefusal> {
    let (first, second) = (by_fold(first), by_fold(second));
    let missing = first.keys().filter(|key| !second.contains_key(key)).count();
    let extra = second.keys().filter(|key| !first.contains_key(key)).count();
    if missing + extra > 0 {
        return Err(TestRefusal::NotPaired { missing, extra });
    }
    let mut by_split: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (key, value) in &first {
        let difference = value - second[key];
        if !difference.is_finite() {
            return Err(TestRefusal::NotFinite);
        }
        by_split.entry(key.0).or_default().push(difference);
    }
    match by_split.len() {
        0 => Err(TestRefusal::TooFew { what: "folds", found: 0, needed: 2 }),
        1 if first.len() == 1 => Err(TestRefusal::TooFew { what: "fold", found: 1, needed: 2 }),
        1 => Err(TestRefusal::OneSplit { seeds: first.len() }),
        _ => Ok(by_split.values().filter_map(|values| Summary::of(values).mean).collect()),
    }
}

fn by_fold(values: &[FoldValue]) -> BTreeMap<(u32, u64), f64> {
    values.iter().map(|measured| ((measured.split, measured.seed), measured.value)).collect()
}

/// Tests whether two methods differ on resampled splits of one data set: t = d / √((1/k + test/train) s²) with
/// k - 1 degrees of freedom. The sizes are those of the real parts.
pub fn corrected_paired_t(
    first: &[FoldValue],
    second: &[FoldValue],
    sizes: Option<PartSizes>,
) -> Result<CorrectedT, TestRefusal> {
    let differences = differences(first, second)?;
    let sizes =
        sizes.filter(|sizes| sizes.train > 0.0 && sizes.test > 0.0).ok_or(TestRefusal::UnknownSizes)?;
    let k = differences.len() as f64;
    let summary = Summary::of(&differences);
    let (mean, std) = (summary.mean.unwrap_or_default(), summary.std.unwrap_or_default());
    let error = ((1.0 / k + sizes.test / sizes.train) * std * std).sqrt();
    let degrees = differences.len() - 1;
    let t = match (mean, error) {
        (0.0, 0.0) => 0.0,
        (mean, error) => mean / error,
    };
    // An infinite t, from differences that are all the same, has p = 0.
    let p = if t.is_infinite() { 0.0 } else { two_sided(t, degrees) };
    Ok(CorrectedT { mean_difference: mean, t, degrees, p, error })
}

fn two_sided(t: f64, degrees: usize) -> f64 {
    StudentsT::new(0.0, 1.0, degrees as f64).map_or(f64::NAN, |student| 2.0 * student.sf(t.abs()))
}
