//! Appends graphs one at a time to the arrays of a data set. It owns the canonical order of generated
//! edges (all forward edges, then all of them reversed) and leaves every check to `Dataset::new`.

use crate::dataset::{Dataset, DatasetParts, Task};
use crate::splits::SplitRule;
use crate::structure::StructureError;

/// A data set under construction.
#[derive(Clone, Debug)]
pub struct DatasetBuilder {
    parts: DatasetParts,
}

impl DatasetBuilder {
    /// An empty data set whose splits are random.
    pub fn new(name: &str, task: Task, classes: u32, feature_width: usize) -> DatasetBuilder {
        DatasetBuilder {
            parts: DatasetParts {
                name: name.to_string(),
                task,
                classes,
                node_offsets: vec![0],
                edge_offsets: vec![0],
                sources: Vec::new(),
                targets: Vec::new(),
                feature_width,
                features: Vec::new(),
                labels: Vec::new(),
                split_rule: SplitRule::RandomBySeed,
                published_splits: Vec::new(),
            },
        }
    }

    /// Appends a graph given by its undirected edges: they are stored as given, then all reversed. A
    /// self-loop is its own reverse and is stored once.
    pub fn push_undirected(&mut self, nodes: usize, edges: &[(u32, u32)], features: &[f32], labels: &[u32]) {
        let reversed = edges.iter().filter(|(u, v)| u != v);
        let parts = &mut self.parts;
        parts.sources.extend(edges.iter().map(|edge| edge.0).chain(reversed.clone().map(|edge| edge.1)));
        parts.targets.extend(edges.iter().map(|edge| edge.1).chain(reversed.map(|edge| edge.0)));
        parts.features.extend_from_slice(features);
        parts.labels.extend_from_slice(labels);
        parts.node_offsets.push(parts.node_offsets[parts.node_offsets.len() - 1] + nodes);
        parts.edge_offsets.push(parts.sources.len());
    }

    /// Appends a graph whose directed edges and their order are the caller's; the features say how many nodes
    /// it has.
    pub(crate) fn push_directed(
        &mut self,
        sources: &[u32],
        targets: &[u32],
        features: impl Iterator<Item = f32>,
        labels: &[u32],
    ) {
        let parts = &mut self.parts;
        parts.sources.extend_from_slice(sources);
        parts.targets.extend_from_slice(targets);
        parts.features.extend(features);
        parts.labels.extend_from_slice(labels);
        parts.node_offsets.push(parts.features.len() / parts.feature_width.max(1));
        parts.edge_offsets.push(parts.sources.len());
    }

    /// Replaces the split rule, and with it the splits that were published.
    pub fn split_by(mut self, rule: SplitRule, published: Vec<crate::Split>) -> DatasetBuilder {
        self.parts.split_rule = rule;
        self.parts.published_splits = published;
        self
    }

    /// The checked data set.
    pub fn finish(self) -> Result<Dataset, StructureError> {
        Dataset::new(self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_stored_forward_then_reversed_with_self_loops_once() {
        let mut builder = DatasetBuilder::new("tiny", Task::GraphClassification, 1, 1);
        builder.push_undirected(3, &[(0, 1), (1, 1), (2, 0)], &[0.0; 3], &[0]);
        let dataset = builder.finish().expect("valid graph");
        let edges: Vec<_> = dataset.graph(0).directed_edges().collect();
        assert_eq!(edges, [(0, 1), (1, 1), (2, 0), (1, 0), (0, 2)]);
        assert_eq!(dataset.undirected_edges(0), [(0, 1), (1, 1), (0, 2)]);
    }

    #[test]
    fn features_that_do_not_fit_the_nodes_are_found_at_the_end() {
        let mut builder = DatasetBuilder::new("tiny", Task::GraphClassification, 1, 2);
        builder.push_undirected(2, &[(0, 1)], &[0.0; 3], &[0]);
        let error = builder.finish().expect_err("features are missing").to_string();
        assert!(error.starts_with("features has "), "{error}");
    }
}
