//! What makes the parts of a data set a data set: offsets that rise, edges that stay inside their graph,
//! finite features, labels of known classes, published splits that partition the graphs. Only checks live
//! here; the error names the first graph or position that breaks a rule.

use thiserror::Error;

use crate::dataset::{Content, Task};
use crate::splits::SplitRule;

/// Far above any benchmark's.
const MOST_CLASSES: u32 = 1 << 20;

/// Why parts do not form a data set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StructureError {
    /// There is nothing to learn from.
    #[error("the data set holds no graphs")]
    NoGraphs,
    /// An offset array does not start at 0, falls, or has a wrong end.
    #[error("the {array} offsets are not rising from 0 to {end} (see graph {graph})")]
    Offsets {
        /// `node` or `edge`.
        array: &'static str,
        /// The last offset that was expected.
        end: usize,
        /// The graph at which the rule is broken.
        graph: usize,
    },
    /// Two arrays that describe the same things differ in length.
    #[error("{array} has {found} entries, expected {expected}")]
    Length {
        /// The array.
        array: &'static str,
        /// Its length.
        found: usize,
        /// The length the other arrays ask for.
        expected: usize,
    },
    /// A graph without nodes has no prediction.
    #[error("graph {graph} has no nodes; leave it out of the data set")]
    EmptyGraph {
        /// The graph.
        graph: usize,
    },
    /// A graph has more nodes than an edge can name.
    #[error("graph {graph} has {nodes} nodes, more than 32-bit edges can name")]
    GraphTooLarge {
        /// The graph.
        graph: usize,
        /// Its nodes.
        nodes: usize,
    },
    /// An edge names a node its graph does not have.
    #[error(
        "edge {edge} of graph {graph} joins {source_node} and {target_node}, but the graph has {nodes} nodes"
    )]
    EdgeOutsideGraph {
        /// The graph.
        graph: usize,
        /// The edge's position within the graph.
        edge: usize,
        /// Its source.
        source_node: u32,
        /// Its target.
        target_node: u32,
        /// The nodes of the graph.
        nodes: usize,
    },
    /// Models need at least one feature per node.
    #[error("features have width 0; use a constant feature where there is none")]
    NoFeatures,
    /// A feature is NaN or infinite.
    #[error("feature {column} of node {node} is not a finite number")]
    FeatureNotFinite {
        /// The node, counted over all graphs.
        node: usize,
        /// The feature.
        column: usize,
    },
    /// A label is not below the number of classes.
    #[error("label {label} at position {position} is not one of {classes} classes, counted from 0")]
    Label {
        /// The graph or node.
        position: usize,
        /// Its label.
        label: u32,
        /// The number of classes.
        classes: u32,
    },
    /// Counting the members of so many classes would fill the memory.
    #[error("{classes} classes; no data set has more than {MOST_CLASSES}")]
    Classes {
        /// The number of classes.
        classes: u32,
    },
    /// The area under the ROC curve needs two classes.
    #[error("a binary task has 2 classes, not {classes}")]
    NotBinary {
        /// The number of classes.
        classes: u32,
    },
    /// A published split does not partition the graphs.
    #[error("published split {split}: graph {graph} {problem}")]
    PublishedSplit {
        /// The split.
        split: usize,
        /// The graph.
        graph: u32,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The rule and the published splits contradict each other.
    #[error("the split rule expects {expected} published splits, found {found}")]
    PublishedCount {
        /// Splits the rule speaks of.
        expected: usize,
        /// Splits that are there.
        found: usize,
    },
}

/// The first broken rule, if any.
pub(crate) fn check(parts: &Content) -> Result<(), StructureError> {
    check_shapes(parts)?;
    check_edges(parts)?;
    check_features(parts)
}

/// The rules that do not need a walk through all edges and features: what holds for a data set of which only
/// the shapes are in doubt.
pub(crate) fn check_shapes(parts: &Content) -> Result<(), StructureError> {
    check_offsets(parts)?;
    check_graphs(parts)?;
    check_width(parts)?;
    check_labels(parts)?;
    check_published_splits(parts)
}

fn check_offsets(parts: &Content) -> Result<(), StructureError> {
    let graphs = parts.node_offsets.len().saturating_sub(1);
    if graphs == 0 {
        return Err(StructureError::NoGraphs);
    }
    expect_length("edge offsets", parts.edge_offsets.len(), graphs + 1)?;
    expect_length("targets", parts.targets.len(), parts.sources.len())?;
    let nodes = parts.node_offsets[graphs];
    rising("node", &parts.node_offsets, nodes)?;
    rising("edge", &parts.edge_offsets, parts.sources.len())
}

fn rising(array: &'static str, offsets: &[usize], end: usize) -> Result<(), StructureError> {
    let broken = |graph| StructureError::Offsets { array, end, graph };
    if offsets.first() != Some(&0) {
        return Err(broken(0));
    }
    if let Some(graph) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        return Err(broken(graph));
    }
    if offsets.last() != Some(&end) {
        return Err(broken(offsets.len() - 2));
    }
    Ok(())
}

fn check_graphs(parts: &Content) -> Result<(), StructureError> {
    for (graph, node_ends) in parts.node_offsets.windows(2).enumerate() {
        let nodes = node_ends[1] - node_ends[0];
        if nodes == 0 {
            return Err(StructureError::EmptyGraph { graph });
        }
        if u32::try_from(nodes).is_err() {
            return Err(StructureError::GraphTooLarge { graph, nodes });
        }
    }
    Ok(())
}

fn check_edges(parts: &Content) -> Result<(), StructureError> {
    for (graph, (node_ends, edge_ends)) in
        parts.node_offsets.windows(2).zip(parts.edge_offsets.windows(2)).enumerate()
    {
        let nodes = node_ends[1] - node_ends[0];
        let edges = edge_ends[0]..edge_ends[1];
        let ends = parts.sources[edges.clone()].iter().zip(&parts.targets[edges]);
        for (edge, (&source, &target)) in ends.enumerate() {
            if source.max(target) as usize >= nodes {
                return Err(StructureError::EdgeOutsideGraph {
                    graph,
                    edge,
                    source_node: source,
                    target_node: target,
                    nodes,
                });
            }
        }
    }
    Ok(())
}

fn check_width(parts: &Content) -> Result<(), StructureError> {
    let nodes = parts.node_offsets[parts.node_offsets.len() - 1];
    if parts.feature_width == 0 {
        return Err(StructureError::NoFeatures);
    }
    expect_length("features", parts.features.len(), nodes.saturating_mul(parts.feature_width))
}

fn check_features(parts: &Content) -> Result<(), StructureError> {
    match parts.features.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(position) => Err(StructureError::FeatureNotFinite {
            node: position / parts.feature_width,
            column: position % parts.feature_width,
        }),
    }
}

fn check_labels(parts: &Content) -> Result<(), StructureError> {
    let graphs = parts.node_offsets.len() - 1;
    let expected = match parts.task {
        Task::NodeClassification => parts.node_offsets[graphs],
        Task::GraphClassification | Task::GraphBinaryAuc => graphs,
    };
    expect_length("labels", parts.labels.len(), expected)?;
    if parts.classes > MOST_CLASSES {
        return Err(StructureError::Classes { classes: parts.classes });
    }
    if parts.task == Task::GraphBinaryAuc && parts.classes != 2 {
        return Err(StructureError::NotBinary { classes: parts.classes });
    }
    match parts.labels.iter().position(|label| *label >= parts.classes) {
        None => Ok(()),
        Some(position) => {
            Err(StructureError::Label { position, label: parts.labels[position], classes: parts.classes })
        }
    }
}

fn check_published_splits(parts: &Content) -> Result<(), StructureError> {
    let expected = match parts.split_rule {
        SplitRule::Published { splits } => splits as usize,
        SplitRule::RandomBySeed | SplitRule::StratifiedFolds { .. } => 0,
    };
    let found = parts.published_splits.len();
    if found != expected {
        return Err(StructureError::PublishedCount { expected, found });
    }
    let graphs = parts.node_offsets.len() - 1;
    for (split, members) in parts.published_splits.iter().enumerate() {
        members.check_partition(graphs).map_err(|(graph, problem)| StructureError::PublishedSplit {
            split,
            graph,
            problem,
        })?;
    }
    Ok(())
}

fn expect_length(array: &'static str, found: usize, expected: usize) -> Result<(), StructureError> {
    if found == expected { Ok(()) } else { Err(StructureError::Length { array, found, expected }) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::dataset::DatasetParts;
    use crate::splits::Split;

    /// A path on 3 nodes, and 2 nodes with an edge and a self-loop; width 2.
    pub(crate) fn two_small_graphs() -> DatasetParts {
        DatasetParts {
            name: "small".to_string(),
            task: Task::GraphClassification,
            classes: 2,
            node_offsets: vec![0, 3, 5],
            edge_offsets: vec![0, 4, 7],
            sources: vec![1, 0, 1, 2, 1, 0, 1],
            targets: vec![2, 1, 0, 1, 1, 1, 0],
            feature_width: 2,
            features: (1..=10u8).map(f32::from).collect(),
            labels: vec![0, 1],
            split_rule: SplitRule::RandomBySeed,
            published_splits: Vec::new(),
        }
    }

    fn problem_after(change: impl FnOnce(&mut DatasetParts)) -> String {
        let mut parts = two_small_graphs();
        change(&mut parts);
        check(&parts.into()).expect_err("the change breaks a rule").to_string()
    }

    #[test]
    fn sound_parts_pass() {
        assert_eq!(check(&two_small_graphs().into()), Ok(()));
    }

    #[test]
    fn broken_offsets_are_refused_not_followed() {
        assert_eq!(problem_after(|p| p.node_offsets.clear()), "the data set holds no graphs");
        assert_eq!(problem_after(|p| p.edge_offsets.truncate(2)), "edge offsets has 2 entries, expected 3");
        assert_eq!(problem_after(|p| p.targets.truncate(6)), "targets has 6 entries, expected 7");
        let falling = "the edge offsets are not rising from 0 to 7 (see graph 1)";
        assert_eq!(problem_after(|p| p.edge_offsets[1] = 8), falling);
        assert_eq!(problem_after(|p| p.edge_offsets[2] = 6), falling);
        assert!(problem_after(|p| p.node_offsets[0] = 1).contains("node offsets"));
    }

    #[test]
    fn an_edge_that_leaves_its_graph_is_named() {
        let problem = problem_after(|p| p.targets[5] = 2);
        assert_eq!(problem, "edge 1 of graph 1 joins 0 and 2, but the graph has 2 nodes");
    }

    #[test]
    fn graphs_without_nodes_are_refused() {
        assert!(problem_after(|p| p.node_offsets = vec![0, 5, 5]).contains("graph 1 has no nodes"));
    }

    #[test]
    fn features_must_be_finite_and_complete() {
        assert_eq!(problem_after(|p| p.features[5] = f32::NAN), "feature 1 of node 2 is not a finite number");
        assert_eq!(problem_after(|p| p.features.truncate(9)), "features has 9 entries, expected 10");
        assert!(problem_after(|p| p.feature_width = 0).contains("constant feature"));
    }

    #[test]
    fn labels_must_match_task_and_classes() {
        assert_eq!(
            problem_after(|p| p.labels[1] = 2),
            "label 2 at position 1 is not one of 2 classes, counted from 0"
        );
        assert_eq!(problem_after(|p| p.task = Task::NodeClassification), "labels has 2 entries, expected 5");
        let binary = |p: &mut DatasetParts| (p.task, p.classes) = (Task::GraphBinaryAuc, 3);
        assert_eq!(problem_after(binary), "a binary task has 2 classes, not 3");
        let enormous = problem_after(|p| p.classes = u32::MAX);
        assert_eq!(enormous, "4294967295 classes; no data set has more than 1048576");
    }

    #[test]
    fn published_splits_must_partition_the_graphs() {
        let publish = |train: Vec<u32>, test: Vec<u32>| {
            move |p: &mut DatasetParts| {
                p.split_rule = SplitRule::Published { splits: 1 };
                p.published_splits = vec![Split { train, validation: vec![], test }];
            }
        };
        assert!(problem_after(publish(vec![0], vec![2])).contains("graph 2 does not exist"));
        assert!(problem_after(publish(vec![0, 1], vec![1])).contains("graph 1 is listed twice"));
        assert!(problem_after(publish(vec![0], vec![])).contains("graph 1 is missing"));
        let none = |p: &mut DatasetParts| p.split_rule = SplitRule::Published { splits: 10 };
        assert_eq!(problem_after(none), "the split rule expects 10 published splits, found 0");
    }
}
