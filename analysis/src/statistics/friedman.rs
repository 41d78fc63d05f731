//! Friedman's test of several methods over several data sets, and Nemenyi's critical difference of pairs afterwards.
//! Each data set only ranks the methods, so sets of different difficulty can be put together. Higher is better.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::ranks::ranks;
use super::refusal::TestRefusal;
use super::studentized_range::range_quantile;

/// Rank sums closer than this are equal: means of ranks round.
const SAME_RANK: f64 = 1e-9;

/// Outcome of Friedman's test.
#[derive(Debug, Clone, PartialEq)]
pub struct Friedman {
    /// Mean rank of each method, 1 being the best, in the order given.
    pub ranks: Vec<f64>,
    /// How many data sets.
    pub datasets: usize,
    /// Friedman's statistic, corrected for ties.
    pub chi_square: f64,
    /// Its p-value: whether the methods differ at all.
    pub p: f64,
}

/// Tests whether methods differ. `scores` has one list per method, with its value on each data set in the same
/// order everywhere. Takes at least three methods and two data sets.
pub fn friedman(scores: &[Vec<f64>]) -> Result<Friedman, TestRefusal> {
    let (methods, datasets) = check(scores)?;
    let (k, n) = (methods as f64, datasets as f64);
    let mut sums = vec![0.0; methods];
    let mut ties = 0.0;
    for at in 0..datasets {
        let worst_first: Vec<f64> = scores.iter().map(|values| -values[at]).collect();
        let (ranks, groups) = ranks(&worst_first, 0.0);
        sums.iter_mut().zip(ranks).for_each(|(sum, rank)| *sum += rank);
        ties += groups.iter().map(|size| (size.pow(3) - size) as f64).sum::<f64>();
    }
    let untied = 1.0 - ties / (k * (k * k - 1.0) * n);
    let squares: f64 = sums.iter().map(|sum| sum * sum).sum();
    // All methods equal on all data sets: nothing is left to rank.
    let chi_square = if untied <= 0.0 {
        0.0
    } else {
        (12.0 / (k * n * (k + 1.0)) * squares - 3.0 * n * (k + 1.0)) / untied
    };
    let p = ChiSquared::new(k - 1.0).map_or(f64::NAN, |chi| chi.sf(chi_square.max(0.0)));
    let ranks = sums.into_iter().map(|sum| sum / n).collect();
    Ok(Friedman { ranks, datasets, chi_square, p })
}

fn check(scores: &[Vec<f64>]) -> Result<(usize, usize), TestRefusal> {
    if scores.len() < 3 {
        return Err(TestRefusal::TooFew {
            what: if scores.len() == 1 { "method" } else { "methods" },
            found: scores.len(),
            needed: 3,
        });
    }
    let lengths = scores.iter().map(Vec::len);
    let (shortest, longest) = (lengths.clone().min().unwrap_or_default(), lengths.max().unwrap_or_default());
    if shortest != longest {
        return Err(TestRefusal::Ragged { shortest, longest });
    }
    if shortest < 2 {
        return Err(TestRefusal::TooFew {
            what: if shortest == 1 { "data set" } else { "data sets" },
            found: shortest,
            needed: 2,
        });
    }
    if scores.iter().flatten().any(|value| !value.is_finite()) {
        return Err(TestRefusal::NotFinite);
    }
    Ok((scores.len(), shortest))
}

impl Friedman {
    /// Nemenyi's critical difference: mean ranks further apart than this differ at level `alpha`.
    pub fn critical_difference(&self, alpha: f64) -> f64 {
        let k = self.ranks.len() as f64;
        let rank_error = (k * (k + 1.0) / (6.0 * self.datasets as f64)).sqrt();
        range_quantile(alpha, self.ranks.len()) / 2.0_f64.sqrt() * rank_error
    }

    /// Methods from best to worst, and the largest runs of them whose ranks do not differ at level `alpha`, as
    /// first and last place in that order. These are the bars of a critical-difference diagram.
    pub fn groups(&self, alpha: f64) -> (Vec<usize>, Vec<(usize, usize)>) {
        let critical = self.critical_difference(alpha) + SAME_RANK;
        let mut order: Vec<usize> = (0..self.ranks.len()).collect();
        order.sort_by(|a, b| self.ranks[*a].total_cmp(&self.ranks[*b]));
        let mut groups: Vec<(usize, usize)> = Vec::new();
        for first in 0..order.len() {
            let near = |at: &usize| self.ranks[order[*at]] - self.ranks[order[first]] <= critical;
            let last = (first..order.len()).take_while(near).last().unwrap_or(first);
            if last > first && groups.last().is_none_or(|(_, end)| last > *end) {
                groups.push((first, last));
            }
        }
        (order, groups)
    }
}
