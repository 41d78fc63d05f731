//! What makes the parts of a data set a data set: offsets that rise, edges that stay inside their graph,
//! finite features, labels of known classes, published splits that partition the graphs. Only checks live
//! here; the error names the first graph or position that breaks a rule.

use thiserror::Error;

use crate::dataset::{DatasetContent, Task};
use crate::splits::SplitRule;

/// Far above any benchmark's.
const MOST_CLASSES: u32 = 1 << 20;

/// Why parts do not form a data set: the first broken rule, in words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct StructureError(String);

fn refuse<T>(what: impl Into<String>) -> Result<T, StructureError> {
    Err(StructureError(what.into()))
}

/// The first broken rule, if any.
pub(crate) fn check(parts: &DatasetContent) -> Result<(), StructureError> {
    check_shapes(parts)?;
    check_edges(parts)?;
    check_features(parts)
}

/// The rules that do not need a walk through all edges and features: what holds for a data set of which only
/// the shapes are in doubt.
pub(crate) fn check_shapes(parts: &DatasetContent) -> Result<(), StructureError> {
    check_offsets(parts)?;
    check_graphs(parts)?;
    check_width(parts)?;
    check_labels(parts)?;
    check_published_splits(parts)
}

fn check_offsets(parts: &DatasetContent) -> Result<(), StructureError> {
    let graphs = parts.node_offsets.len().saturating_sub(1);
    if graphs == 0 {
        return refuse("the data set holds no graphs");
    }
    expect_length("edge offsets", parts.edge_offsets.len(), graphs + 1)?;
    expect_length("targets", parts.targets.len(), parts.sources.len())?;
    let nodes = parts.node_offsets[graphs];
    rising("node", &parts.node_offsets, nodes)?;
    rising("edge", &parts.edge_offsets, parts.sources.len())
}

fn rising(array: &'static str, offsets: &[usize], end: usize) -> Result<(), StructureError> {
    let broken =
        |graph| refuse(format!("the {array} offsets are not rising from 0 to {end} (see graph {graph})"));
    if offsets.first() != Some(&0) {
        return broken(0);
    }
    if let Some(graph) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        return broken(graph);
    }
    if offsets.last() != Some(&end) {
        return broken(offsets.len() - 2);
    }
    Ok(())
}

fn check_graphs(parts: &DatasetContent) -> Result<(), StructureError> {
    for (graph, node_ends) in parts.node_offsets.windows(2).enumerate() {
        let nodes = node_ends[1] - node_ends[0];
        if nodes == 0 {
            return refuse(format!("graph {graph} has no nodes; leave it out of the data set"));
        }
        if u32::try_from(nodes).is_err() {
            return refuse(format!("graph {graph} has {nodes} nodes, more than 32-bit edges can name"));
        }
    }
    Ok(())
}

fn check_edges(parts: &DatasetContent) -> Result<(), StructureError> {
    for (graph, (node_ends, edge_ends)) in
        parts.node_offsets.windows(2).zip(parts.edge_offsets.windows(2)).enumerate()
    {
        let nodes = node_ends[1] - node_ends[0];
        let edges = edge_ends[0]..edge_ends[1];
        let ends = parts.sources[edges.clone()].iter().zip(&parts.targets[edges]);
        for (edge, (&source, &target)) in ends.enumerate() {
            if source.max(target) as usize >= nodes {
                return refuse(format!(
                    "edge {edge} of graph {graph} joins {source} and {target}, but the graph has {nodes} nodes"
                ));
            }
        }
    }
    Ok(())
}

fn check_width(parts: &DatasetContent) -> Result<(), StructureError> {
    let nodes = parts.node_offsets[parts.node_offsets.len() - 1];
    if parts.feature_width == 0 {
        return refuse("features have width 0; use a constant feature where there is none");
    }
    expect_length("features", parts.features.len(), nodes.saturating_mul(parts.feature_width))
}

fn check_features(parts: &DatasetContent) -> Result<(), StructureError> {
    match parts.features.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(position) => {
            let (node, column) = (position / parts.feature_width, position % parts.feature_width);
            refuse(format!("feature {column} of node {node} is not a finite number"))
        }
    }
}

fn check_labels(parts: &DatasetContent) -> Result<(), StructureError> {
    let graphs = parts.node_offsets.len() - 1;
    let expected = match parts.task {
        Task::NodeClassification => parts.node_offsets[graphs],
        Task::GraphClassification | Task::GraphBinaryAuc => graphs,
    };
    expect_length("labels", parts.labels.len(), expected)?;
    let classes = parts.classes;
    if classes > MOST_CLASSES {
        return refuse(format!("{classes} classes; no data set has more than {MOST_CLASSES}"));
    }
    if parts.task == Task::GraphBinaryAuc && classes != 2 {
        return refuse(format!("a binary task has 2 classes, not {classes}"));
    }
    match parts.labels.iter().enumerate().find(|(_, label)| **label >= classes) {
        None => Ok(()),
        Some((position, label)) => refuse(format!(
            "label {label} at position {position} is not one of {classes} classes, counted from 0"
        )),
    }
}

fn check_published_splits(parts: &DatasetContent) -> Result<(), StructureError> {
    let expected = match parts.split_rule {
        SplitRule::Published { splits } => splits as usize,
        SplitRule::RandomBySeed | SplitRule::StratifiedFolds { .. } => 0,
    };
    let found = parts.published_splits.len();
    if found != expected {
        return refuse(format!("the split rule expects {expected} published splits, found {found}"));
    }
    let graphs = parts.node_offsets.len() - 1;
    for (split, members) in parts.published_splits.iter().enumerate() {
        if let Err((graph, problem)) = members.check_partition(graphs) {
            return refuse(format!("published split {split}: graph {graph} {problem}"));
        }
    }
    Ok(())
}

fn expect_length(array: &'static str, found: usize, expected: usize) -> Result<(), StructureError> {
    if found == expected {
        return Ok(());
    }
    refuse(format!("{array} has {found} entries, expected {expected}"))
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
