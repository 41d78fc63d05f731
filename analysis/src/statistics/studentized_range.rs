//! The distribution of the studentized range with infinitely many degrees of freedom, which Nemenyi's test and
//! its critical difference need and `statrs` does not have: one integral over the normal distribution.

use statrs::distribution::{Continuous, ContinuousCDF, Normal};

/// Beyond this many standard deviations the normal density contributes nothing that a double can hold.
const EDGE: f64 = 9.0;
/// Intervals of Simpson's rule; the integrand is smooth, so this is accurate to about 1e-14.
const INTERVALS: usize = 600;
/// Halvings of the interval in which a quantile lies.
const HALVINGS: usize = 60;

/// Probability that the range of `k` independent standard normal values exceeds `q`.
pub fn range_tail(q: f64, k: usize) -> f64 {
    if q <= 0.0 || k < 2 {
        return if q <= 0.0 { 1.0 } else { 0.0 };
    }
    let normal = Normal::standard();
    // The largest value is z, the other k - 1 lie between z - q and z.
    let density = |z: f64| {
        let between = normal.cdf(z) - normal.cdf(z - q);
        k as f64 * normal.pdf(z) * between.powi(k as i32 - 1)
    };
    let width = 2.0 * EDGE / INTERVALS as f64;
    let weighted = (0..=INTERVALS).map(|at| {
        let weight = match at {
            0 | INTERVALS => 1.0,
            odd if odd % 2 == 1 => 4.0,
            _ => 2.0,
        };
        weight * density(-EDGE + width * at as f64)
    });
    (1.0 - weighted.sum::<f64>() * width / 3.0).clamp(0.0, 1.0)
}

/// The value that the range of `k` independent standard normal values exceeds with probability `tail`.
pub fn range_quantile(tail: f64, k: usize) -> f64 {
    let (mut low, mut high) = (0.0_f64, 4.0 * EDGE);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if range_tail(middle, k) > tail { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}
