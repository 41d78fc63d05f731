//! Repeated stratified cross-validation: each repeat deals all graphs into folds anew, whatever splits came with
//! the data. Owns what a repeat's folds are; a data set's own splits are in `splits`. A fold depends on the labels,
//! the number of folds, the repeat and the fold number, so two methods in the same repeat see the same graphs.

use crate::dataset::{Dataset, Task};
use crate::splits::{Split, SplitError, SplitRule, ValidSplits, deal_into_folds};
use crate::streams::{Purpose, RandomStream};

/// Where the stream of a split has the epoch; 0 and 1 belong to a data set's own splits.
const DRAWN_BY_REPEAT: u64 = 2;

impl Dataset {
    /// Fold number `fold` of one repeat: it tests, all others are learned from, nobody validates.
    ///
    /// # Errors
    /// If there is no such fold, if there are too few graphs, or if nodes are labelled and not graphs.
    pub fn repeated_fold(&self, folds: u32, repeat: u64, fold: u64) -> Result<Split, SplitError> {
        let dataset = || self.name().to_owned();
        if self.task() == Task::NodeClassification {
            return Err(SplitError::NoStrata { dataset: dataset() });
        }
        let valid = ValidSplits::Below(folds);
        if !valid.contains(fold) {
            return Err(SplitError::OutOfRange { dataset: dataset(), split: fold, valid });
        }
        let shuffle = |class| RandomStream::new(repeat, 0, Purpose::Split, DRAWN_BY_REPEAT, class);
        let (test, train) = deal_into_folds(self, folds, fold as usize, shuffle);
        for (part, members) in [("training", &train), ("test", &test)] {
            if members.is_empty() {
                let (graphs, rule) = (self.graph_count(), SplitRule::StratifiedFolds { folds });
                return Err(SplitError::TooFewGraphs { dataset: dataset(), graphs, rule, part });
            }
        }
        Ok(Split { train, validation: Vec::new(), test })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::DatasetBuilder;

    /// Edgeless one-node graphs with these labels.
    fn labelled(labels: &[u32]) -> Dataset {
        let mut builder = DatasetBuilder::new("labelled", Task::GraphClassification, 3, 1);
        labels.iter().for_each(|label| builder.push_undirected(1, &[], &[1.0], &[*label]));
        builder.finish().expect("valid graphs")
    }

    fn six_to_three_to_one(graphs: u32) -> Vec<u32> {
        (0..graphs).map(|graph| [0, 0, 0, 0, 0, 0, 1, 1, 1, 2][graph as usize % 10]).collect()
    }

    #[test]
    fn the_folds_of_a_repeat_are_disjoint_cover_everything_and_keep_the_shares_of_classes() {
        let labels = six_to_three_to_one(603);
        let dataset = labelled(&labels);
        let counts = dataset.class_counts();
        for (folds, repeat) in [(5, 0), (5, 9), (3, 0), (3, 421)] {
            let mut tested = Vec::new();
            for fold in 0..folds {
                let split = dataset.repeated_fold(folds, repeat, fold.into()).expect("it exists");
                assert_eq!(split.check_partition(603), Ok(()));
                assert!(split.validation.is_empty());
                for (class, count) in counts.iter().enumerate() {
                    let here =
                        split.test.iter().filter(|graph| labels[**graph as usize] == class as u32).count();
                    let fair = count / folds as usize..=count / folds as usize + 1;
                    assert!(
                        fair.contains(&here),
                        "{here} of {count} in fold {fold} of {folds}, repeat {repeat}"
                    );
                }
                tested.extend(split.test);
            }
            tested.sort_unstable();
            assert_eq!(tested, (0..603).collect::<Vec<_>>(), "{folds} folds, repeat {repeat}");
        }
    }

    #[test]
    fn every_repeat_has_a_partition_of_its_own_and_the_same_one_twice() {
        let dataset = labelled(&six_to_three_to_one(200));
        let digest = |repeat| dataset.repeated_fold(5, repeat, 0).expect("it exists").digest();
        let digests: std::collections::BTreeSet<String> =
            (0..50).map(|repeat| digest(repeat).to_string()).collect();
        assert_eq!(digests.len(), 50);
        assert_eq!(digest(3), digest(3));
    }

    /// Otherwise one of ten repeats would be the data set's own split, whose seed is 42.
    #[test]
    fn no_repeat_is_the_split_that_the_data_set_itself_has() {
        let mut builder = DatasetBuilder::new("labelled", Task::GraphClassification, 3, 1);
        six_to_three_to_one(200).iter().for_each(|label| builder.push_undirected(1, &[], &[1.0], &[*label]));
        let rule = SplitRule::StratifiedFolds { folds: 5 };
        let dataset = builder.split_by(rule, Vec::new()).finish().expect("valid graphs");
        let own = dataset.split(0).expect("it exists").test;
        for repeat in [0, 42] {
            assert_ne!(dataset.repeated_fold(5, repeat, 0).expect("it exists").test, own, "repeat {repeat}");
        }
    }

    #[test]
    fn repeats_are_the_same_on_every_machine() {
        let split = labelled(&six_to_three_to_one(103)).repeated_fold(5, 7, 1).expect("it exists");
        assert_eq!(split.digest().as_str()[..16], *"9eea0904a1e56e7c");
    }

    #[test]
    fn what_cannot_be_dealt_is_refused_with_the_reason() {
        let dataset = labelled(&six_to_three_to_one(20));
        let error = dataset.repeated_fold(5, 0, 5).expect_err("folds are 0 to 4");
        assert_eq!(error.to_string(), "split 5 of labelled does not exist");
        assert_eq!(error.hint().as_deref(), Some("valid splits are 0 to 4"));
        let error = labelled(&[0, 1]).repeated_fold(5, 0, 4).expect_err("two graphs").to_string();
        assert!(error.contains("2 graphs, too few for 5 stratified folds: the test part"), "{error}");
        let mut builder = DatasetBuilder::new("nodes", Task::NodeClassification, 2, 1);
        builder.push_undirected(2, &[(0, 1)], &[1.0, 1.0], &[0, 1]);
        let nodes = builder.finish().expect("valid");
        assert!(matches!(nodes.repeated_fold(2, 0, 0), Err(SplitError::NoStrata { .. })));
    }
}
