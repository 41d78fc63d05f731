//! Who trains, who validates, who tests. A split depends on the data set and the split number only, never
//! on the training seed, so methods are compared on equal terms. This file owns the three rules and their
//! sizes; published splits are read elsewhere and arrive here as lists of graphs. Folds that a seed draws
//! anew are not a data set's own splits: they are in `repeats`.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::dataset::{Dataset, Task};
use crate::digest::{ContentHasher, SplitDigest};
use crate::streams::{Purpose, RandomStream};

/// The shuffle of all stratified folds; one partition serves every fold number.
const STRATIFIED_SHUFFLE_SEED: u64 = 42;
const RANDOM_TEST_FRACTION: f64 = 0.1;
const RANDOM_VALIDATION_FRACTION: f64 = 0.1;
const STRATIFIED_VALIDATION_FRACTION: f64 = 0.25;

/// A partition of the graphs of a data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Graphs that are learned from.
    pub train: Vec<u32>,
    /// Graphs that choose the checkpoint.
    pub validation: Vec<u32>,
    /// Graphs that are reported on.
    pub test: Vec<u32>,
}

impl Split {
    /// Identity of this partition, order included.
    pub fn digest(&self) -> SplitDigest {
        let mut hasher = ContentHasher::new("togl split v1");
        self.hash_into(&mut hasher);
        hasher.into()
    }

    pub(crate) fn hash_into(&self, hasher: &mut ContentHasher) {
        self.parts().into_iter().for_each(|part| hasher.indices(part));
    }

    /// The first graph that is not in exactly one part, and what is wrong with it.
    pub(crate) fn check_partition(&self, graphs: usize) -> Result<(), (u32, &'static str)> {
        let mut seen = vec![false; graphs];
        for &graph in self.parts().into_iter().flatten() {
            match seen.get_mut(graph as usize) {
                None => return Err((graph, "does not exist")),
                Some(true) => return Err((graph, "is listed twice")),
                Some(slot) => *slot = true,
            }
        }
        match seen.iter().position(|seen| !seen) {
            None => Ok(()),
            Some(missing) => Err((missing as u32, "is missing")),
        }
    }

    fn parts(&self) -> [&Vec<u32>; 3] {
        [&self.train, &self.validation, &self.test]
    }
}

/// How a data set is split, and what the split number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SplitRule {
    /// A random 81/9/10 partition; the split number is its seed.
    RandomBySeed,
    /// Stratified folds: the split number is the test fold; a quarter of the rest, unstratified, validates.
    StratifiedFolds {
        /// Number of folds.
        folds: u32,
    },
    /// The partitions that came with the data; the split number is the position.
    Published {
        /// Number of partitions.
        splits: u32,
    },
}

impl fmt::Display for SplitRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SplitRule::RandomBySeed => formatter.write_str("random by seed"),
            SplitRule::StratifiedFolds { folds } => write!(formatter, "{folds} stratified folds"),
            SplitRule::Published { splits } => write!(formatter, "{splits} published splits"),
        }
    }
}

/// The split numbers a rule accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidSplits {
    /// Every number: it is a seed.
    AnySeed,
    /// The numbers below this count.
    Below(u32),
}

impl ValidSplits {
    /// Whether this split number is accepted.
    pub fn contains(self, split: u64) -> bool {
        match self {
            ValidSplits::AnySeed => true,
            ValidSplits::Below(count) => split < u64::from(count),
        }
    }
}

impl fmt::Display for ValidSplits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValidSplits::AnySeed => formatter.write_str("any seed"),
            ValidSplits::Below(1) => formatter.write_str("0"),
            ValidSplits::Below(count) => write!(formatter, "0 to {}", count.saturating_sub(1)),
        }
    }
}

/// Why a split cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SplitError {
    /// The split number is not one of the rule's.
    #[error("split {split} of {dataset} does not exist")]
    OutOfRange { dataset: String, split: u64, valid: ValidSplits },
    /// A part would be empty.
    #[error("{dataset} has {graphs} graphs, too few for {rule}: the {part} part would be empty")]
    TooFewGraphs { dataset: String, graphs: usize, rule: SplitRule, part: &'static str },
    /// Strata are classes of graphs, which a node task does not have.
    #[error("{dataset} labels nodes, so its graphs cannot be stratified")]
    NoStrata { dataset: String },
}

impl SplitError {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            SplitError::OutOfRange { valid, .. } => Some(format!("valid splits are {valid}")),
            SplitError::TooFewGraphs { .. } | SplitError::NoStrata { .. } => None,
        }
    }
}

impl SplitRule {
    /// Which split numbers exist, known without the data.
    pub fn valid_splits(self) -> ValidSplits {
        match self {
            SplitRule::RandomBySeed => ValidSplits::AnySeed,
            SplitRule::StratifiedFolds { folds } => ValidSplits::Below(folds),
            SplitRule::Published { splits } => ValidSplits::Below(splits),
        }
    }

    pub(crate) fn split(self, dataset: &Dataset, split: u64) -> Result<Split, SplitError> {
        let valid = self.valid_splits();
        let out_of_range = || SplitError::OutOfRange { dataset: dataset.name().to_string(), split, valid };
        if !valid.contains(split) {
            return Err(out_of_range());
        }
        let made = match self {
            SplitRule::RandomBySeed => random_split(dataset.graph_count(), split),
            SplitRule::StratifiedFolds { folds } => stratified_split(dataset, folds, split)?,
            SplitRule::Published { .. } => {
                dataset.published_splits().get(split as usize).cloned().ok_or_else(out_of_range)?
            }
        };
        for (part, members) in ["training", "validation", "test"].into_iter().zip(made.parts()) {
            if members.is_empty() {
                let (dataset, graphs) = (dataset.name().to_string(), dataset.graph_count());
                return Err(SplitError::TooFewGraphs { dataset, graphs, rule: self, part });
            }
        }
        Ok(made)
    }
}

fn random_split(graphs: usize, seed: u64) -> Split {
    let (train, validation) = random_sizes(graphs);
    let mut order = RandomStream::new(0, seed, Purpose::Split, 0, 0).permutation(graphs as u32);
    let test = order.split_off(train + validation);
    let validation = order.split_off(train);
    Split { train: order, validation, test }
}

/// Training and validation size. The fractions are multiplied first, as in the published code: for 1000
/// graphs the validation size is the ceiling of 90.00000000000001.
fn random_sizes(graphs: usize) -> (usize, usize) {
    let rest = 1.0 - RANDOM_TEST_FRACTION;
    let train = (graphs as f64 * (rest * (1.0 - RANDOM_VALIDATION_FRACTION))).floor() as usize;
    let validation = (graphs as f64 * (rest * RANDOM_VALIDATION_FRACTION)).ceil() as usize;
    (train, validation.min(graphs - train))
}

fn stratified_split(dataset: &Dataset, folds: u32, test_fold: u64) -> Result<Split, SplitError> {
    if dataset.task() == Task::NodeClassification {
        return Err(SplitError::NoStrata { dataset: dataset.name().to_string() });
    }
    let shuffle = |class| RandomStream::new(STRATIFIED_SHUFFLE_SEED, 0, Purpose::Split, 0, class);
    let (test, mut train) = deal_into_folds(dataset, folds, test_fold as usize, shuffle);
    RandomStream::new(STRATIFIED_SHUFFLE_SEED, test_fold, Purpose::Split, 1, 0).shuffle(&mut train);
    let validation_size = (train.len() as f64 * STRATIFIED_VALIDATION_FRACTION).ceil() as usize;
    let validation = train.split_off(train.len() - validation_size);
    Ok(Split { train, validation, test })
}

/// The test fold and the rest, each in ascending order. Each class is shuffled by the stream of its number and
/// dealt out in turn, the next class starting where the last one ended: fold sizes and class counts then differ by
/// at most one.
pub(crate) fn deal_into_folds(
    dataset: &Dataset,
    folds: u32,
    test_fold: usize,
    shuffle: impl Fn(u64) -> RandomStream,
) -> (Vec<u32>, Vec<u32>) {
    let mut fold_of = vec![0usize; dataset.graph_count()];
    let mut dealt = 0;
    for class in 0..dataset.classes() {
        let labels = dataset.labels().iter().zip(0u32..);
        let mut members: Vec<u32> =
            labels.filter(|(label, _)| **label == class).map(|(_, graph)| graph).collect();
        shuffle(u64::from(class)).shuffle(&mut members);
        for graph in members {
            fold_of[graph as usize] = dealt % folds as usize;
            dealt += 1;
        }
    }
    (0..dataset.graph_count() as u32).partition(|graph| fold_of[*graph as usize] == test_fold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::DatasetBuilder;

    /// Edgeless one-node graphs with these labels.
    fn labelled(labels: &[u32], rule: SplitRule) -> Dataset {
        let classes = labels.iter().max().map_or(1, |most| most + 1);
        let mut builder = DatasetBuilder::new("labelled", Task::GraphClassification, classes, 1);
        labels.iter().for_each(|label| builder.push_undirected(1, &[], &[1.0], &[*label]));
        builder.split_by(rule, Vec::new()).finish().expect("valid graphs")
    }

    fn sizes(split: &Split) -> [usize; 3] {
        split.parts().map(Vec::len)
    }

    #[test]
    fn a_thousand_graphs_split_into_810_91_and_99() {
        let dataset = labelled(&[0; 1000], SplitRule::RandomBySeed);
        for seed in 42..47 {
            let split = dataset.split(seed).expect("any seed is valid");
            assert_eq!(sizes(&split), [810, 91, 99]);
            assert_eq!(split.check_partition(1000), Ok(()));
        }
        assert_ne!(dataset.split(42), dataset.split(43));
        assert_eq!(dataset.split(42), dataset.split(42));
    }

    #[test]
    fn random_sizes_cover_every_number_of_graphs_that_can_be_split() {
        for graphs in 10..3000 {
            let (train, validation) = random_sizes(graphs);
            assert!(train > 0 && validation > 0 && train + validation < graphs, "{graphs} graphs");
        }
    }

    #[test]
    fn splits_are_the_same_on_every_machine() {
        let random = labelled(&[0; 1000], SplitRule::RandomBySeed).split(42).expect("valid");
        assert_eq!(random.digest().as_str()[..16], *"6949a2a61a71c451");
        let labels: Vec<u32> = (0..103).map(|graph| graph % 3).collect();
        let folds = labelled(&labels, SplitRule::StratifiedFolds { folds: 5 }).split(1).expect("valid");
        assert_eq!(folds.digest().as_str()[..16], *"6908869e08e1e487");
    }

    #[test]
    fn stratified_folds_keep_class_shares_and_their_tests_partition_the_data() {
        let labels: Vec<u32> = (0..1113).map(|graph| u32::from(graph % 5 < 2)).collect();
        let dataset = labelled(&labels, SplitRule::StratifiedFolds { folds: 5 });
        let ones = dataset.class_counts()[1];
        let mut tested = Vec::new();
        for fold in 0..5 {
            let split = dataset.split(fold).expect("five folds");
            assert_eq!(split.check_partition(1113), Ok(()));
            let test_ones = split.test.iter().filter(|graph| labels[**graph as usize] == 1).count();
            assert!(test_ones == ones / 5 || test_ones == ones / 5 + 1, "fold {fold}: {test_ones} of {ones}");
            assert!((222..=223).contains(&split.test.len()));
            assert_eq!(split.validation.len(), (split.train.len() + split.validation.len()).div_ceil(4));
            tested.extend(split.test);
        }
        tested.sort_unstable();
        assert_eq!(tested, (0..1113).collect::<Vec<_>>());
    }

    #[test]
    fn validation_graphs_differ_between_folds_and_are_drawn_from_all_classes() {
        let labels: Vec<u32> = (0..500).map(|graph| u32::from(graph >= 250)).collect();
        let dataset = labelled(&labels, SplitRule::StratifiedFolds { folds: 5 });
        let split = dataset.split(0).expect("valid");
        assert_eq!(sizes(&split), [300, 100, 100]);
        let ones = split.validation.iter().filter(|graph| labels[**graph as usize] == 1).count();
        assert!((25..75).contains(&ones), "{ones}");
    }

    #[test]
    fn a_split_that_does_not_exist_is_answered_with_those_that_do() {
        let dataset = labelled(&[0, 1, 0, 1, 0, 1, 0, 1, 0, 1], SplitRule::StratifiedFolds { folds: 5 });
        let error = dataset.split(5).expect_err("folds are 0 to 4");
        assert_eq!(error.to_string(), "split 5 of labelled does not exist");
        assert_eq!(error.hint().as_deref(), Some("valid splits are 0 to 4"));
    }

    #[test]
    fn too_few_graphs_are_an_error_not_an_empty_part() {
        let error = labelled(&[0, 1], SplitRule::RandomBySeed).split(0).expect_err("two graphs");
        assert!(matches!(error, SplitError::TooFewGraphs { graphs: 2, .. }), "{error}");
    }

    #[test]
    fn a_node_task_cannot_be_stratified() {
        let mut builder = DatasetBuilder::new("nodes", Task::NodeClassification, 2, 1);
        builder.push_undirected(2, &[(0, 1)], &[1.0, 1.0], &[0, 1]);
        let folds = SplitRule::StratifiedFolds { folds: 5 };
        let dataset = builder.split_by(folds, Vec::new()).finish().expect("valid");
        assert!(matches!(dataset.split(0), Err(SplitError::NoStrata { .. })));
    }
}
