//! Support vector machines on a given kernel: one for each pair of classes, which vote. LIBSVM's solver does the work
//! and sees the kernel through `PairMatrix`, so that no part of it is copied; votes are counted as LIBSVM and
//! scikit-learn do, equal votes going to the lower class. Owns nothing about folds.

use libsvm_rs::qmatrix::QMatrix;
use libsvm_rs::solver::{Solver, SolverVariant};

use super::gram::Gram;

/// The tolerance at which LIBSVM and scikit-learn stop.
const TOLERANCE: f64 = 1e-3;

/// A classifier of graphs.
#[derive(Debug, Clone, PartialEq)]
pub struct Classifier {
    /// Classes that were learned from, ascending.
    classes: Vec<u32>,
    /// One for each two of them, in the order (0, 1), (0, 2), ..., (1, 2), ...
    pairs: Vec<PairMachine>,
}

/// Tells two classes apart.
#[derive(Debug, Clone, PartialEq)]
struct PairMachine {
    /// Graphs that matter, and how much; positive ones speak for the first class.
    support: Vec<(u32, f64)>,
    offset: f64,
}

impl Classifier {
    /// Learns from some graphs; `labels` has the class of every graph of the kernel.
    pub fn fit(gram: &Gram, learned: &[u32], labels: &[u32], cost: f64) -> Self {
        libsvm_rs::set_quiet(true);
        let mut classes: Vec<u32> = learned.iter().map(|graph| labels[*graph as usize]).collect();
        classes.sort_unstable();
        classes.dedup();
        let of = |class: u32| learned.iter().copied().filter(move |graph| labels[*graph as usize] == class);
        let mut pairs = Vec::new();
        for (at, first) in classes.iter().enumerate() {
            for second in &classes[at + 1..] {
                let members: Vec<u32> = of(*first).chain(of(*second)).collect();
                pairs.push(PairMachine::fit(gram, &members, of(*first).count(), cost));
            }
        }
        Self { classes, pairs }
    }

    /// The class of a graph; 0 where nothing was learned from.
    pub fn predict(&self, gram: &Gram, graph: u32) -> u32 {
        let mut votes = vec![0u32; self.classes.len()];
        let mut pairs = self.pairs.iter();
        for first in 0..self.classes.len() {
            for second in first + 1..self.classes.len() {
                let winner = pairs.next().is_some_and(|pair| pair.decide(gram, graph) > 0.0);
                votes[if winner { first } else { second }] += 1;
            }
        }
        let most = votes.iter().max().copied().unwrap_or(0);
        let winner = votes.iter().position(|count| *count == most).unwrap_or(0);
        self.classes.get(winner).copied().unwrap_or(0)
    }

    /// The decisions of all pairs about a graph; positive ones are for the lower class.
    pub fn decisions(&self, gram: &Gram, graph: u32) -> Vec<f64> {
        self.pairs.iter().map(|pair| pair.decide(gram, graph)).collect()
    }

    /// Graphs that at least one pair needs.
    pub fn support_count(&self) -> usize {
        let mut graphs: Vec<u32> =
            self.pairs.iter().flat_map(|pair| pair.support.iter().map(|(graph, _)| *graph)).collect();
        graphs.sort_unstable();
        graphs.dedup();
        graphs.len()
    }
}

impl PairMachine {
    /// Learns from the members, of which the first ones are of the first class.
    fn fit(gram: &Gram, members: &[u32], first: usize, cost: f64) -> Self {
        let signs: Vec<i8> = (0..members.len()).map(|at| if at < first { 1 } else { -1 }).collect();
        let matrix = PairMatrix::new(gram, members, &signs);
        let (linear, mut weights) = (vec![-1.0; members.len()], vec![0.0; members.len()]);
        let solution = Solver::solve(
            SolverVariant::Standard,
            members.len(),
            Box::new(matrix),
            &linear,
            &signs,
            &mut weights,
            cost,
            cost,
            TOLERANCE,
            true,
        );
        let signed = weights.iter().zip(&signs).map(|(weight, sign)| weight * f64::from(*sign));
        let support = members.iter().copied().zip(signed).filter(|(_, weight)| *weight != 0.0).collect();
        Self { support, offset: solution.rho }
    }

    fn decide(&self, gram: &Gram, graph: u32) -> f64 {
        let row = gram.row(graph as usize);
        self.support.iter().map(|(other, weight)| weight * row[*other as usize]).sum::<f64>() - self.offset
    }
}

/// The matrix that the solver asks for, row by row: sign times sign times kernel value.
struct PairMatrix<'a> {
    gram: &'a Gram,
    members: Vec<u32>,
    signs: Vec<i8>,
    diagonal: Vec<f64>,
    row: Vec<f32>,
}

impl<'a> PairMatrix<'a> {
    fn new(gram: &'a Gram, members: &[u32], signs: &[i8]) -> Self {
        let own = |graph: &u32| gram.get(*graph as usize, *graph as usize);
        Self {
            gram,
            members: members.to_vec(),
            signs: signs.to_vec(),
            diagonal: members.iter().map(own).collect(),
            row: vec![0.0; members.len()],
        }
    }
}

impl QMatrix for PairMatrix<'_> {
    fn get_q(&mut self, i: usize, len: usize) -> &[f32] {
        let (values, sign) = (self.gram.row(self.members[i] as usize), f64::from(self.signs[i]));
        let others = self.members[..len].iter().zip(&self.signs);
        for (place, (member, other)) in self.row.iter_mut().zip(others) {
            *place = (sign * f64::from(*other) * values[*member as usize]) as f32;
        }
        &self.row[..len]
    }

    fn get_qd(&self) -> &[f64] {
        &self.diagonal
    }

    /// The solver moves what it has finished with to the end.
    fn swap_index(&mut self, i: usize, j: usize) {
        self.members.swap(i, j);
        self.signs.swap(i, j);
        self.diagonal.swap(i, j);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points on a line with the product as kernel.
    fn line(points: &[f64]) -> Gram {
        Gram::from_fn(points.len(), |left, right| points[left] * points[right]).unwrap()
    }

    #[test]
    fn two_points_are_told_apart_in_their_middle() {
        let gram = line(&[-1.0, 1.0, 0.25, -3.0]);
        let machine = Classifier::fit(&gram, &[0, 1], &[0, 1, 9, 9], 10.0);
        assert_eq!([1, 2, 3].map(|graph| machine.predict(&gram, graph)), [1, 1, 0]);
        assert!((machine.decisions(&gram, 2)[0] + 0.25).abs() < 1e-6, "{machine:?}");
        assert_eq!(machine.support_count(), 2);
    }

    #[test]
    fn three_classes_vote_and_a_draw_goes_to_the_lowest() {
        let gram = Gram::from_fn(6, |left, right| f64::from(u8::from(left / 2 == right / 2))).unwrap();
        let labels = [4, 4, 2, 2, 7, 7];
        let machine = Classifier::fit(&gram, &[0, 2, 4], &labels, 1.0);
        assert_eq!([1, 3, 5].map(|graph| machine.predict(&gram, graph)), [4, 2, 7]);
        let nobody = Gram::zeros(6).unwrap();
        assert_eq!(machine.predict(&nobody, 0), {
            let decisions = machine.decisions(&nobody, 0);
            if decisions[0] > 0.0 { 2 } else { 7 }
        });
    }

    #[test]
    fn one_class_is_predicted_without_any_machine() {
        let gram = line(&[1.0, 2.0]);
        let machine = Classifier::fit(&gram, &[0, 1], &[3, 3], 1.0);
        assert_eq!((machine.predict(&gram, 0), machine.support_count()), (3, 0));
    }
}
