//! The inner cross-validation: each point of the grid (rounds, cost) is judged on folds of the graphs that are learned
//! from, never on the test part. Owns the folds, which are stratified, and the rule of choice: the highest accuracy,
//! the first of equal ones.

use togl_data::{Purpose, RandomStream};
use togl_sweeps::result::Metrics;

use super::gram::Gram;
use super::svm::Classifier;

/// One fold: graphs that are learned from, and those that judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InnerFold {
    pub learned: Vec<u32>,
    pub held_out: Vec<u32>,
}

/// Deals each class out in turn, in an order that depends on seed, split and class only. A fold that nobody was dealt
/// to is left out.
pub(super) fn deal(learned: &[u32], labels: &[u32], folds: u32, seed: u64, split: u64) -> Vec<InnerFold> {
    let classes = learned.iter().map(|graph| labels[*graph as usize]).max().map_or(0, |most| most + 1);
    let mut fold_of = vec![0u32; learned.len()];
    let mut dealt = 0;
    for class in 0..classes {
        let members = learned.iter().enumerate().filter(|(_, graph)| labels[**graph as usize] == class);
        let mut members: Vec<usize> = members.map(|(at, _)| at).collect();
        RandomStream::new(seed, split, Purpose::Shuffle, 0, u64::from(class)).shuffle(&mut members);
        for at in members {
            fold_of[at] = dealt % folds;
            dealt += 1;
        }
    }
    let fold = |fold: u32| {
        let (held_out, learned): (Vec<_>, Vec<_>) =
            learned.iter().zip(&fold_of).partition(|(_, of)| **of == fold);
        let graphs = |pairs: Vec<(&u32, &u32)>| pairs.into_iter().map(|(graph, _)| *graph).collect();
        InnerFold { learned: graphs(learned), held_out: graphs(held_out) }
    };
    (0..folds).map(fold).filter(|fold| !fold.held_out.is_empty() && !fold.learned.is_empty()).collect()
}

/// What one point of the grid reaches, pooled over all folds: on what was learned from, and on what was held out.
pub(super) fn judge(gram: &Gram, folds: &[InnerFold], labels: &[u32], cost: f64) -> (Metrics, Metrics) {
    let (mut train, mut validation) = (KernelTally::default(), KernelTally::default());
    for fold in folds {
        let machine = Classifier::fit(gram, &fold.learned, labels, cost);
        train.add(&machine, gram, &fold.learned, labels);
        validation.add(&machine, gram, &fold.held_out, labels);
    }
    (train.metrics(), validation.metrics())
}

/// Hits among predictions.
#[derive(Debug, Default)]
pub(super) struct KernelTally {
    hits: usize,
    all: usize,
}

impl KernelTally {
    pub(super) fn add(&mut self, machine: &Classifier, gram: &Gram, graphs: &[u32], labels: &[u32]) {
        self.all += graphs.len();
        let hit = |graph: &&u32| machine.predict(gram, **graph) == labels[**graph as usize];
        self.hits += graphs.iter().filter(hit).count();
    }

    /// The share of hits as accuracy, of misses as loss.
    pub(super) fn metrics(&self) -> Metrics {
        let accuracy = self.hits as f64 / self.all.max(1) as f64;
        Metrics { loss: 1.0 - accuracy, accuracy }
    }
}

/// Costs from the smallest to the largest, each ten times the one before.
pub(super) fn costs(smallest: f64, largest: f64) -> Vec<f64> {
    let next = |cost: &f64| Some(cost * 10.0).filter(|cost| *cost <= largest * (1.0 + 1e-9));
    std::iter::successors(Some(smallest), next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_partition_what_is_learned_from_and_keep_the_shares_of_classes() {
        let labels: Vec<u32> = (0..100).map(|graph| u32::from(graph % 4 == 0)).collect();
        let learned: Vec<u32> = (0..90).collect();
        let folds = deal(&learned, &labels, 5, 7, 2);
        assert_eq!(folds.len(), 5);
        let mut seen: Vec<u32> = folds.iter().flat_map(|fold| fold.held_out.clone()).collect();
        seen.sort_unstable();
        assert_eq!(seen, learned);
        for fold in &folds {
            assert_eq!(fold.learned.len() + fold.held_out.len(), 90);
            let ones = fold.held_out.iter().filter(|graph| labels[**graph as usize] == 1).count();
            assert!((4..=5).contains(&ones), "{ones} of 23 in one of five folds");
        }
        assert_eq!(folds, deal(&learned, &labels, 5, 7, 2));
        assert_ne!(folds, deal(&learned, &labels, 5, 8, 2), "seeds deal in other orders");
    }

    #[test]
    fn fewer_graphs_than_folds_leave_folds_out() {
        assert_eq!(deal(&[0, 1, 2], &[0, 1, 0], 5, 0, 0).len(), 3);
    }

    #[test]
    fn costs_go_up_by_ten() {
        assert_eq!(costs(1e-3, 1e3).len(), 7);
        assert_eq!(costs(2.0, 100.0), [2.0, 20.0]);
        assert_eq!(costs(1.0, 1.0), [1.0]);
    }
}
