//! Labels of nodes, refined in rounds: the label of the next round stands for (own label, sorted labels of the
//! neighbours). Round 0 has the labels that refinement starts from. The subtree kernel adds up, over rounds 0 to h and
//! all labels, the product of how often the label occurs in either graph; the optimal assignment kernel adds up the
//! smaller of the two counts, which is the value of the best assignment of nodes to nodes.
//!
//! Labels are compared across the whole data set, and every arc counts once. Owns nothing about classes.

use std::collections::HashMap;

use togl_data::Dataset;
use togl_sweeps::trial::{Backbone, TrialConfig, WlLabels};

use super::gram::Gram;
use crate::error::{Result, TrainError};

/// How the counts of one label in two graphs are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountComparison {
    /// Their product.
    Subtree,
    /// The smaller of the two.
    OptimalAssignment,
}

/// A kernel that grows by one round at a time.
#[derive(Debug)]
pub struct WlKernel<'a> {
    dataset: &'a Dataset,
    comparison: CountComparison,
    /// One label a node of the data set, of the current round.
    labels: Vec<u32>,
    /// The neighbours of node n among all nodes are `neighbours[starts[n]..starts[n + 1]]`.
    starts: Vec<usize>,
    neighbours: Vec<u32>,
    /// Sum over all rounds so far, lower triangle only.
    sum: Gram,
}

impl<'a> WlKernel<'a> {
    /// The kernel of a trial with no rounds of refinement yet.
    pub fn of(trial: &TrialConfig, dataset: &'a Dataset) -> Result<Self> {
        let comparison = if trial.model == Backbone::WlOa {
            CountComparison::OptimalAssignment
        } else {
            CountComparison::Subtree
        };
        let labels = match trial.wl_labels {
            WlLabels::Degree => None,
            WlLabels::Node => Some(node_labels(dataset)?),
        };
        Self::new(dataset, comparison, labels)
    }

    /// A kernel that starts from these labels, one a node of the data set, or from degrees.
    pub fn new(dataset: &'a Dataset, comparison: CountComparison, labels: Option<Vec<u32>>) -> Result<Self> {
        let (starts, neighbours) = adjacency(dataset);
        let degrees = || starts.windows(2).map(|bounds| (bounds[1] - bounds[0]) as u32).collect();
        let labels = labels.unwrap_or_else(degrees);
        let sum = Gram::zeros(dataset.graph_count())?;
        let mut kernel = Self { dataset, comparison, labels, starts, neighbours, sum };
        kernel.add_round();
        Ok(kernel)
    }

    /// The labels of the current round, one a node of the data set.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// The kernel of the rounds so far, normalised.
    pub fn gram(&self) -> Gram {
        self.sum.normalised()
    }

    /// Adds one round.
    pub fn refine(&mut self) {
        let mut known: HashMap<Box<[u32]>, u32> = HashMap::new();
        let mut signature = Vec::new();
        let mut next = Vec::with_capacity(self.labels.len());
        for (node, bounds) in self.starts.windows(2).enumerate() {
            signature.clear();
            signature.push(self.labels[node]);
            let around = &self.neighbours[bounds[0]..bounds[1]];
            signature.extend(around.iter().map(|neighbour| self.labels[*neighbour as usize]));
            signature[1..].sort_unstable();
            let fresh = known.len() as u32;
            let label = match known.get(signature.as_slice()) {
                Some(label) => *label,
                None => *known.entry(signature.as_slice().into()).or_insert(fresh),
            };
            next.push(label);
        }
        self.labels = next;
        self.add_round();
    }

    /// Adds what the current labels say about each pair of graphs: label by label, over the graphs that have it.
    fn add_round(&mut self) {
        for having in &occurrences(self.dataset, &self.labels) {
            for (at, (graph, count)) in having.iter().enumerate() {
                let row = self.sum.lower_row(*graph as usize);
                for (other, others) in &having[..=at] {
                    row[*other as usize] += match self.comparison {
                        CountComparison::Subtree => f64::from(*count) * f64::from(*others),
                        CountComparison::OptimalAssignment => f64::from(*count.min(others)),
                    };
                }
            }
        }
    }
}

/// For each label the graphs that have it, ascending, and how often.
fn occurrences(dataset: &Dataset, labels: &[u32]) -> Vec<Vec<(u32, u32)>> {
    let mut having = vec![Vec::new(); labels.iter().max().map_or(0, |most| *most as usize + 1)];
    for graph in 0..dataset.graph_count() {
        let mut own = labels[dataset.node_range(graph)].to_vec();
        own.sort_unstable();
        for run in own.chunk_by(|left, right| left == right) {
            having[run[0] as usize].push((graph as u32, run.len() as u32));
        }
    }
    having
}

/// Where the neighbours of each node of the data set stand, and the neighbours: the targets of its arcs.
fn adjacency(dataset: &Dataset) -> (Vec<usize>, Vec<u32>) {
    let mut starts = vec![0usize; dataset.node_count() + 1];
    let arcs = |graph: usize| {
        let first = dataset.node_range(graph).start;
        let place = move |node: u32| first + node as usize;
        dataset.graph(graph).directed_edges().map(move |(source, target)| (place(source), place(target)))
    };
    let all = || (0..dataset.graph_count()).flat_map(arcs);
    all().for_each(|(source, _)| starts[source + 1] += 1);
    for node in 0..dataset.node_count() {
        starts[node + 1] += starts[node];
    }
    let mut next = starts.clone();
    let mut neighbours = vec![0; dataset.directed_edge_count()];
    for (source, target) in all() {
        neighbours[next[source]] = target as u32;
        next[source] += 1;
    }
    (starts, neighbours)
}

/// The labels of a data set that was opened with one-hot labels as features.
fn node_labels(dataset: &Dataset) -> Result<Vec<u32>> {
    let label = |row: &[f32]| {
        let ones = row.iter().filter(|value| **value == 1.0).count();
        let zeros = row.iter().filter(|value| **value == 0.0).count();
        let found =
            row.iter().position(|value| *value == 1.0).filter(|_| ones == 1 && ones + zeros == row.len());
        found.map(|column| column as u32)
    };
    let width = dataset.feature_width().max(1);
    let labels = dataset.graphs().flat_map(|graph| graph.features.chunks_exact(width)).map(label);
    labels.collect::<Option<Vec<u32>>>().ok_or_else(|| {
        let text = format!("the nodes of {} have no labels; use `wl_labels: degree`", dataset.name());
        TrainError::Data(text)
    })
}

#[cfg(test)]
#[path = "wl_tests.rs"]
mod tests;
