//! The data sets that have names of their own, one row each: how a name is spelt, and what is known before a data set is
//! opened, which is how its task is scored and whether its nodes have labels. How they are made or read is in `togl-data`,
//! one row each too. A data set that is not listed is spelt as it is and judged when it is opened.
//!
//! The spelling is part of trial identities and is never changed.

/// What the accuracies of a data set's results are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scoring {
    /// The share of graphs whose class was predicted.
    Accuracy,
    /// The mean over classes of the share of nodes whose class was predicted.
    WeightedAccuracy,
    /// The area under the ROC curve.
    RocAuc,
}

impl Scoring {
    /// The metric of a data set. Those that are not listed tell classes of graphs apart, as all unlisted sources do.
    pub fn of(dataset: &str) -> Self {
        find(dataset).map_or(Self::Accuracy, |known| known.metric)
    }

    /// The task that is scored so, as the predicate of a sentence about a data set.
    pub(crate) fn task(self) -> &'static str {
        match self {
            Self::Accuracy => "tells classes of graphs apart",
            Self::WeightedAccuracy => "labels nodes",
            Self::RocAuc => "is scored by ROC-AUC",
        }
    }
}

/// A data set with a name of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownDataset {
    /// Its one spelling.
    pub name: &'static str,
    /// How its task is scored.
    pub metric: Scoring,
    /// Whether its nodes have labels.
    pub labels: bool,
}

const fn known(name: &'static str, metric: Scoring, labels: bool) -> KnownDataset {
    KnownDataset { name, metric, labels }
}

/// Every data set with a name of its own, in the order of the catalogue.
pub const DATASETS: [KnownDataset; 23] = [
    known("cycles", Scoring::Accuracy, false),
    known("necklaces", Scoring::Accuracy, false),
    known("no-cycles", Scoring::Accuracy, false),
    known("sphere-torus", Scoring::Accuracy, false),
    known("clique-planting", Scoring::Accuracy, false),
    known("pattern", Scoring::WeightedAccuracy, true),
    known("cluster", Scoring::WeightedAccuracy, true),
    known("COLLAB", Scoring::Accuracy, false),
    known("DD", Scoring::Accuracy, true),
    known("ENZYMES", Scoring::Accuracy, true),
    known("IMDB-BINARY", Scoring::Accuracy, false),
    known("IMDB-MULTI", Scoring::Accuracy, false),
    known("MUTAG", Scoring::Accuracy, true),
    known("NCI1", Scoring::Accuracy, true),
    known("NCI109", Scoring::Accuracy, true),
    known("PROTEINS", Scoring::Accuracy, true),
    known("PROTEINS_full", Scoring::Accuracy, true),
    known("PTC_MR", Scoring::Accuracy, true),
    known("REDDIT-BINARY", Scoring::Accuracy, false),
    known("REDDIT-MULTI-5K", Scoring::Accuracy, false),
    known("ogbg-molhiv", Scoring::RocAuc, true),
    known("mnist", Scoring::Accuracy, false),
    known("cifar10", Scoring::Accuracy, false),
];

/// The data set of this name, whatever its case.
pub fn find(name: &str) -> Option<&'static KnownDataset> {
    const { &DATASETS }.iter().find(|known| known.name.eq_ignore_ascii_case(name))
}

/// The one spelling of a name, whatever its case; a name that is not listed is spelt as it is.
pub fn spelled(name: &str) -> &str {
    find(name).map_or(name, |known| known.name)
}
