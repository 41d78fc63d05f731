//! Mean, deviations, standard error, confidence interval and quartiles of the folds behind a cell. Sums run in
//! the order they are given and are compensated, so the same folds always make the same last digit.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// What is reported about the values of one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// How many values.
    pub n: usize,
    /// Their mean; none without values.
    pub mean: Option<f64>,
    /// Sample standard deviation (divisor n - 1); not defined for fewer than two values.
    pub std: Option<f64>,
}

impl Summary {
    /// Summarises values in their given order.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len();
        let mean = (n > 0).then(|| sum(values.iter().copied()) / n as f64);
        let std = mean.filter(|_| n > 1).map(|mean| sample_std(values, mean));
        Self { n, mean, std }
    }

    /// Standard error of the mean; not defined for fewer than two values.
    pub fn standard_error(&self) -> Option<f64> {
        self.std.map(|std| std / (self.n as f64).sqrt())
    }
}

/// Standard deviation with divisor n; not defined for fewer than two values, of which it would be 0 and mislead.
pub fn population_std(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = Summary::of(values).mean.filter(|_| values.len() > 1)?;
    Some((squared_deviations(values, mean) / n).sqrt())
}

/// Half the width of the confidence interval of the mean by Student's t, for a level such as 0.95; not defined
/// for fewer than two values or a level outside (0, 1). It takes the values for independent, which folds that
/// share training data are not: it is too narrow for them.
pub fn confidence_half_width(values: &[f64], level: f64) -> Option<f64> {
    let summary = Summary::of(values);
    let error = summary.standard_error().filter(|_| level > 0.0 && level < 1.0)?;
    let student = StudentsT::new(0.0, 1.0, summary.n as f64 - 1.0).ok()?;
    Some(error * student.inverse_cdf(0.5 + level / 2.0))
}

/// The three values that cut sorted values into quarters, with linear interpolation between neighbours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quartiles {
    /// A quarter of the values lies below.
    pub lower: f64,
    /// Half of the values lies below.
    pub median: f64,
    /// Three quarters of the values lie below.
    pub upper: f64,
}

impl Quartiles {
    /// The interquartile range.
    pub fn range(&self) -> f64 {
        self.upper - self.lower
    }
}

/// Median and quartiles; none without values.
pub fn quartiles(values: &[f64]) -> Option<Quartiles> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = |share: f64| {
        let place = share * last as f64;
        let (below, part) = (place.floor() as usize, place.fract());
        sorted[below] + part * (sorted[(below + 1).min(last)] - sorted[below])
    };
    Some(Quartiles { lower: at(0.25), median: at(0.5), upper: at(0.75) })
}

fn sample_std(values: &[f64], mean: f64) -> f64 {
    (squared_deviations(values, mean) / (values.len() as f64 - 1.0)).sqrt()
}

fn squared_deviations(values: &[f64], mean: f64) -> f64 {
    // The second sum is zero but for rounding; taking it away corrects for the rounding of the mean.
    let squares = sum(values.iter().map(|value| (value - mean).powi(2)));
    let drift = sum(values.iter().map(|value| value - mean));
    (squares - drift * drift / values.len() as f64).max(0.0)
}

/// Neumaier's compensated sum: the rounding error of each addition is kept and added at the end.
pub(super) fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut total, mut lost) = (0.0_f64, 0.0_f64);
    for value in values {
        let next = total + value;
        lost += if total.abs() >= value.abs() { (total - next) + value } else { (value - next) + total };
        total = next;
    }
    // An infinite value makes the compensation NaN; the plain sum is then the honest answer.
    if lost.is_finite() { total + lost } else { total }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_divisor_is_n_minus_one() {
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((summary.n, summary.mean), (8, Some(5.0)));
        // statistics.stdev([2, 4, 4, 4, 5, 5, 7, 9]) of Python
        assert_eq!(summary.std, Some(2.138_089_935_299_395));
        assert_eq!(summary.standard_error(), Some(2.138_089_935_299_395 / 8.0_f64.sqrt()));
    }

    #[test]
    fn one_value_has_a_mean_but_no_deviation_and_none_has_neither() {
        assert_eq!(Summary::of(&[0.5]), Summary { n: 1, mean: Some(0.5), std: None });
        assert_eq!(Summary::of(&[0.5]).standard_error(), None);
        assert_eq!(Summary::of(&[]), Summary { n: 0, mean: None, std: None });
    }

    #[test]
    fn one_value_has_a_median_but_no_interval() {
        assert_eq!(quartiles(&[0.5]).map(|quartiles| quartiles.range()), Some(0.0));
        assert_eq!(quartiles(&[]), None);
        assert_eq!((population_std(&[0.5]), confidence_half_width(&[0.5], 0.95)), (None, None));
        assert_eq!(confidence_half_width(&[0.5, 0.6], 1.0), None);
    }

    #[test]
    fn small_values_are_not_lost_beside_large_ones() {
        assert_eq!(Summary::of(&[1.0, 1e100, 1.0, -1e100]).mean, Some(0.5));
    }

    #[test]
    fn equal_values_deviate_by_exactly_nothing() {
        assert_eq!(Summary::of(&[0.1; 10]).std, Some(0.0));
    }

    #[test]
    fn an_infinite_value_stays_infinite_instead_of_turning_into_nan() {
        assert_eq!(Summary::of(&[1.0, f64::INFINITY]).mean, Some(f64::INFINITY));
    }
}
