//! Wilcoxon's signed-rank test of paired differences. Exact for small samples without ties, else the normal
//! approximation with the variance corrected for ties. Differences of zero are left out, as Wilcoxon did.

use statrs::distribution::{ContinuousCDF, Normal};

use super::ranks::ranks;
use super::refusal::TestRefusal;

/// Up to this many differences the exact distribution is used.
const EXACT_UP_TO: usize = 50;

/// Differences whose sizes agree to this share of the largest are tied: subtraction rounds.
const SAME_SIZE: f64 = 1e-9;

/// The outcome of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// The smaller of the rank sums of positive and negative differences.
    pub w: f64,
    /// How many differences are not zero.
    pub n: usize,
    /// Two-sided p-value.
    pub p: f64,
    /// Whether p comes from the exact distribution.
    pub exact: bool,
}

/// Tests whether paired differences are symmetric about zero. It takes them for independent, which folds that
/// share training data are not, so its p-values are too small for cross-validation; it suits one difference per
/// data set.
pub fn signed_rank(differences: &[f64]) -> Result<SignedRank, TestRefusal> {
    if differences.iter().any(|difference| !difference.is_finite()) {
        return Err(TestRefusal::NotFinite);
    }
    let largest = differences.iter().fold(0.0_f64, |largest, difference| largest.max(difference.abs()));
    let tolerance = largest * SAME_SIZE;
    let moved: Vec<f64> = differences.iter().copied().filter(|d| d.abs() > tolerance).collect();
    if moved.is_empty() {
        return Err(TestRefusal::TooFew { what: "differences are not zero", found: 0, needed: 1 });
    }
    let sizes: Vec<f64> = moved.iter().map(|difference| difference.abs()).collect();
    let (ranks, groups) = ranks(&sizes, tolerance);
    let positive: f64 = moved.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, rank)| rank).sum();
    let n = moved.len();
    let w = positive.min(total(n) - positive);
    let exact = n <= EXACT_UP_TO && n == differences.len() && groups.iter().all(|size| *size == 1);
    let p = if exact { exact_p(w, n) } else { normal_p(w, n, &groups) };
    Ok(SignedRank { w, n, p, exact })
}

fn total(n: usize) -> f64 {
    (n * (n + 1)) as f64 / 2.0
}

/// Twice the share of sign patterns whose rank sum is at most `w`.
fn exact_p(w: f64, n: usize) -> f64 {
    let sums = n * (n + 1) / 2;
    // shares[s] = probability that the ranks 1..=n of a random sign pattern sum to s.
    let mut shares = vec![0.0_f64; sums + 1];
    shares[0] = 1.0;
    for rank in 1..=n {
        for sum in (0..=sums).rev() {
            let with = if sum >= rank { shares[sum - rank] } else { 0.0 };
            shares[sum] = 0.5 * (shares[sum] + with);
        }
    }
    let below: f64 = shares.iter().take(w as usize + 1).sum();
    (2.0 * below).min(1.0)
}

fn normal_p(w: f64, n: usize, groups: &[usize]) -> f64 {
    let count = n as f64;
    let ties: f64 = groups.iter().map(|size| (size.pow(3) - size) as f64).sum();
    let variance = count * (count + 1.0) * (2.0 * count + 1.0) / 24.0 - ties / 48.0;
    let z = (w - total(n) / 2.0) / variance.sqrt();
    (2.0 * Normal::standard().cdf(z)).min(1.0)
}
