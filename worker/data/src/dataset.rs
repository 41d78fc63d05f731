//! The one in-memory form of every data set: concatenated graphs in offset arrays, row-major features,
//! labels, published splits. A `Dataset` exists only if its parts passed the checks of `structure`; it
//! never changes afterwards, so its digest is computed once. It knows nothing about files or generators.

use std::ops::Range;

use crate::array::Array;
use crate::digest::{ContentHasher, DataDigest};
use crate::splits::{Split, SplitError, SplitRule, ValidSplits};
use crate::structure::{self, StructureError};

togl_sweeps::words!(
    /// What a model predicts on a data set, and how that is scored. Its word is part of digests.
    Task {
        /// One class per graph, scored by accuracy.
        GraphClassification = "graph-classification",
        /// One class per node, scored by class-weighted accuracy.
        NodeClassification = "node-classification",
        /// One of two classes per graph, scored by the area under the ROC curve.
        GraphBinaryAuc = "graph-binary-auc",
    }
);

/// The raw material of a data set, unchecked.
#[derive(Clone, Debug)]
pub struct DatasetParts {
    /// The name under which the catalogue knows it.
    pub name: String,
    /// What is predicted.
    pub task: Task,
    /// Number of classes; labels are below it.
    pub classes: u32,
    /// First node of each graph, then the number of nodes.
    pub node_offsets: Vec<usize>,
    /// First directed edge of each graph, then the number of directed edges.
    pub edge_offsets: Vec<usize>,
    /// Source of each directed edge, counted within its graph.
    pub sources: Vec<u32>,
    /// Target of each directed edge, counted within its graph.
    pub targets: Vec<u32>,
    /// Features per node.
    pub feature_width: usize,
    /// One row of `feature_width` values per node.
    pub features: Vec<f32>,
    /// One label per graph, or per node for a node task.
    pub labels: Vec<u32>,
    /// How the data set is split.
    pub split_rule: SplitRule,
    /// The splits that were published with it, in their order.
    pub published_splits: Vec<Split>,
}

/// The same parts wherever they lie: read, generated, or in a mapped file.
#[derive(Clone, Debug)]
pub(crate) struct DatasetContent {
    pub(crate) name: String,
    pub(crate) task: Task,
    pub(crate) classes: u32,
    pub(crate) node_offsets: Array<usize>,
    pub(crate) edge_offsets: Array<usize>,
    pub(crate) sources: Array<u32>,
    pub(crate) targets: Array<u32>,
    pub(crate) feature_width: usize,
    pub(crate) features: Array<f32>,
    pub(crate) labels: Array<u32>,
    pub(crate) split_rule: SplitRule,
    pub(crate) published_splits: Vec<Split>,
}

impl From<DatasetParts> for DatasetContent {
    fn from(parts: DatasetParts) -> DatasetContent {
        DatasetContent {
            name: parts.name,
            task: parts.task,
            classes: parts.classes,
            node_offsets: parts.node_offsets.into(),
            edge_offsets: parts.edge_offsets.into(),
            sources: parts.sources.into(),
            targets: parts.targets.into(),
            feature_width: parts.feature_width,
            features: parts.features.into(),
            labels: parts.labels.into(),
            split_rule: parts.split_rule,
            published_splits: parts.published_splits,
        }
    }
}

/// A checked, immutable data set.
#[derive(Clone, Debug)]
pub struct Dataset {
    content: DatasetContent,
    digest: DataDigest,
}

impl Dataset {
    /// Checks the parts and computes their digest.
    pub fn new(parts: DatasetParts) -> Result<Dataset, StructureError> {
        let content = DatasetContent::from(parts);
        structure::check(&content)?;
        let digest = content_digest(&content);
        Ok(Dataset { content, digest })
    }

    /// What was checked and stored together with its digest. Only shapes are checked again, so that nothing
    /// that is done with the data set leaves its arrays.
    pub(crate) fn restored(content: DatasetContent, digest: DataDigest) -> Result<Dataset, StructureError> {
        structure::check_shapes(&content)?;
        Ok(Dataset { content, digest })
    }

    /// The content, for those who store it.
    pub(crate) fn content(&self) -> &DatasetContent {
        &self.content
    }

    /// The digest as it comes out of the content.
    #[cfg(test)]
    pub(crate) fn computed_digest(&self) -> DataDigest {
        content_digest(&self.content)
    }

    /// The name under which the catalogue knows it.
    pub fn name(&self) -> &str {
        &self.content.name
    }

    /// What is predicted.
    pub fn task(&self) -> Task {
        self.content.task
    }

    /// Number of classes.
    pub fn classes(&self) -> u32 {
        self.content.classes
    }

    /// Number of graphs.
    pub fn graph_count(&self) -> usize {
        self.content.node_offsets.len() - 1
    }

    /// Number of nodes of all graphs.
    pub fn node_count(&self) -> usize {
        self.content.node_offsets[self.graph_count()]
    }

    /// Number of directed edges of all graphs.
    pub fn directed_edge_count(&self) -> usize {
        self.content.sources.len()
    }

    /// Features per node.
    pub fn feature_width(&self) -> usize {
        self.content.feature_width
    }

    /// All labels: one per graph, or one per node for a node task.
    pub fn labels(&self) -> &[u32] {
        &self.content.labels
    }

    /// How often each class occurs among the labels.
    pub fn class_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.content.classes as usize];
        self.content.labels.iter().for_each(|label| counts[*label as usize] += 1);
        counts
    }

    /// One graph, borrowed.
    ///
    /// # Panics
    /// Like a slice, where `index` is not below [`Dataset::graph_count`].
    pub fn graph(&self, index: usize) -> Graph<'_> {
        let nodes = self.node_range(index);
        let edges = self.content.edge_offsets[index]..self.content.edge_offsets[index + 1];
        let width = self.content.feature_width;
        let labels = match self.content.task {
            Task::NodeClassification => nodes.clone(),
            Task::GraphClassification | Task::GraphBinaryAuc => index..index + 1,
        };
        Graph {
            index,
            node_count: nodes.len(),
            sources: &self.content.sources[edges.clone()],
            targets: &self.content.targets[edges],
            features: &self.content.features[nodes.start * width..nodes.end * width],
            feature_width: width,
            labels: &self.content.labels[labels],
        }
    }

    /// All graphs in order.
    pub fn graphs(&self) -> impl ExactSizeIterator<Item = Graph<'_>> {
        (0..self.graph_count()).map(|index| self.graph(index))
    }

    /// The undirected edges of one graph: the entries with source <= target, in their original order.
    pub fn undirected_edges(&self, graph: usize) -> Vec<(u32, u32)> {
        self.graph(graph).undirected_edges().collect()
    }

    /// The positions of one graph's nodes among all nodes.
    ///
    /// # Panics
    /// Like a slice, where `index` is not below [`Dataset::graph_count`].
    pub fn node_range(&self, index: usize) -> Range<usize> {
        self.content.node_offsets[index]..self.content.node_offsets[index + 1]
    }

    /// How this data set is split.
    pub fn split_rule(&self) -> SplitRule {
        self.content.split_rule
    }

    /// Which numbers [`Dataset::split`] accepts.
    pub fn valid_splits(&self) -> ValidSplits {
        self.content.split_rule.valid_splits()
    }

    /// The splits that came with the data.
    pub fn published_splits(&self) -> &[Split] {
        &self.content.published_splits
    }

    /// Training, validation and test graphs of one split; it depends on the data set and `split` only.
    pub fn split(&self, split: u64) -> Result<Split, SplitError> {
        self.content.split_rule.split(self, split)
    }

    /// Identity of the content.
    pub fn digest(&self) -> &DataDigest {
        &self.digest
    }
}

/// One graph of a data set.
#[derive(Clone, Copy, Debug)]
pub struct Graph<'a> {
    /// Position in the data set.
    pub index: usize,
    /// Number of nodes, at least one.
    pub node_count: usize,
    /// Source of each directed edge.
    pub sources: &'a [u32],
    /// Target of each directed edge.
    pub targets: &'a [u32],
    /// Row-major features, `node_count` rows of `feature_width`.
    pub features: &'a [f32],
    /// Features per node.
    pub feature_width: usize,
    /// One label, or one per node for a node task.
    pub labels: &'a [u32],
}

impl<'a> Graph<'a> {
    /// The directed edges in the data set's order.
    pub fn directed_edges(&self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        self.sources.iter().copied().zip(self.targets.iter().copied())
    }

    /// The entries with source <= target, in their original order; self-loops are kept.
    pub fn undirected_edges(&self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        self.directed_edges().filter(|(source, target)| source <= target)
    }
}

fn content_digest(parts: &DatasetContent) -> DataDigest {
    let mut hasher = ContentHasher::new("togl data set v1");
    hasher.text(&parts.name);
    hasher.text(parts.task.as_str());
    hasher.number(u64::from(parts.classes));
    hasher.offsets(&parts.node_offsets);
    hasher.offsets(&parts.edge_offsets);
    hasher.indices(&parts.sources);
    hasher.indices(&parts.targets);
    hasher.number(parts.feature_width as u64);
    hasher.floats(&parts.features);
    hasher.indices(&parts.labels);
    hasher.text(&parts.split_rule.to_string());
    hasher.number(parts.published_splits.len() as u64);
    parts.published_splits.iter().for_each(|split| split.hash_into(&mut hasher));
    hasher.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::tests::two_small_graphs;

    #[test]
    fn a_graph_is_seen_through_its_own_slices() {
        let dataset = Dataset::new(two_small_graphs()).expect("valid parts");
        assert_eq!((dataset.graph_count(), dataset.node_count(), dataset.directed_edge_count()), (2, 5, 7));
        let second = dataset.graph(1);
        assert_eq!(second.node_count, 2);
        assert_eq!(second.directed_edges().collect::<Vec<_>>(), [(1, 1), (0, 1), (1, 0)]);
        assert_eq!(second.features, [7.0, 8.0, 9.0, 10.0]);
        assert_eq!(second.labels, [1]);
        assert_eq!(dataset.node_range(1), 3..5);
        assert_eq!(dataset.class_counts(), [1, 1]);
    }

    #[test]
    fn undirected_edges_keep_self_loops_and_the_original_order() {
        let dataset = Dataset::new(two_small_graphs()).expect("valid parts");
        assert_eq!(dataset.undirected_edges(0), [(1, 2), (0, 1)]);
        assert_eq!(dataset.undirected_edges(1), [(1, 1), (0, 1)]);
    }

    #[test]
    fn node_tasks_give_each_graph_the_labels_of_its_nodes() {
        let mut parts = two_small_graphs();
        parts.task = Task::NodeClassification;
        parts.labels = vec![0, 1, 0, 1, 1];
        let dataset = Dataset::new(parts).expect("valid parts");
        assert_eq!(dataset.graph(0).labels, [0, 1, 0]);
        assert_eq!(dataset.graph(1).labels, [1, 1]);
    }

    #[test]
    fn every_part_of_the_content_changes_the_digest() {
        let reference = Dataset::new(two_small_graphs()).expect("valid parts").digest().clone();
        let changes: [fn(&mut DatasetParts); 7] = [
            |parts| parts.name.push('x'),
            |parts| parts.task = Task::GraphBinaryAuc,
            |parts| parts.classes = 3,
            |parts| parts.sources.swap(0, 1),
            |parts| parts.features[3] = 0.5,
            |parts| parts.labels.swap(0, 1),
            |parts| parts.split_rule = SplitRule::StratifiedFolds { folds: 5 },
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut parts = two_small_graphs();
            change(&mut parts);
            let changed = Dataset::new(parts).expect("still valid");
            assert_ne!(changed.digest(), &reference, "change {number}");
        }
        assert_eq!(Dataset::new(two_small_graphs()).expect("valid parts").digest(), &reference);
    }
}
