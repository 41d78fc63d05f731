//! Mean, sample standard deviation and standard error of the folds behind a cell. Sums run in the order they
//! are given and are compensated, so the same folds always make the same last digit. Knows nothing of frames.

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

fn sample_std(values: &[f64], mean: f64) -> f64 {
    // The second sum is zero but for rounding; taking it away corrects for the rounding of the mean.
    let n = values.len() as f64;
    let squares = sum(values.iter().map(|value| (value - mean).powi(2)));
    let drift = sum(values.iter().map(|value| value - mean));
    ((squares - drift * drift / n).max(0.0) / (n - 1.0)).sqrt()
}

/// Neumaier's compensated sum: the rounding error of each addition is kept and added at the end.
fn sum(values: impl Iterator<Item = f64>) -> f64 {
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
