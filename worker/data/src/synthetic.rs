//! What all synthetic sources share: one random stream per graph, a label by a fair coin, features from the
//! standard normal distribution unless the generator has its own. Because each graph has its own stream, a
//! smaller data set is a prefix of a larger one. The shapes themselves live one source a file.

use crate::builder::DatasetBuilder;
use crate::catalogue::OpenOptions;
use crate::dataset::{Dataset, Task};
use crate::error::Error;
use crate::streams::{Purpose, RandomStream};

const DEFAULT_GRAPHS: usize = 1000;
const MOST_GRAPHS: usize = 1_000_000;
const NORMAL_FEATURES: usize = 3;

/// A graph before its label is attached.
pub(crate) struct Sketch {
    pub(crate) nodes: usize,
    pub(crate) edges: Vec<(u32, u32)>,
    pub(crate) features: SketchFeatures,
}

/// Where the node features come from.
pub(crate) enum SketchFeatures {
    /// Three standard normal variates per node, drawn after the edges.
    Normal,
    /// The generator's own rows of this width.
    Own { width: usize, rows: Vec<f32> },
}

/// Generates a two-class data set; `draw` makes the graph of a label.
pub(crate) fn generate(
    name: &str,
    options: &OpenOptions,
    draw: impl Fn(&mut RandomStream, bool) -> Sketch,
) -> Result<Dataset, Error> {
    let graphs = graph_count(name, options, DEFAULT_GRAPHS)?;
    options.refuse_features(name)?;
    let mut builder = None;
    for index in 0..graphs {
        let mut stream = RandomStream::new(options.data_seed, 0, Purpose::Generate(name), 0, index as u64);
        let label = stream.coin();
        let Sketch { nodes, edges, features } = draw(&mut stream, label);
        let (width, rows) = match features {
            SketchFeatures::Own { width, rows } => (width, rows),
            SketchFeatures::Normal => (NORMAL_FEATURES, normal_rows(&mut stream, nodes)),
        };
        builder
            .get_or_insert_with(|| DatasetBuilder::new(name, Task::GraphClassification, 2, width))
            .push_undirected(nodes, &edges, &rows, &[u32::from(label)]);
    }
    let builder = builder.unwrap_or_else(|| DatasetBuilder::new(name, Task::GraphClassification, 2, 1));
    builder.finish().map_err(|source| Error::Structure { dataset: name.to_string(), source })
}

/// The number of nodes of the small shapes: uniform on 10 to 19.
pub(crate) fn ten_to_nineteen(stream: &mut RandomStream) -> u32 {
    10 + stream.uniform_below(10) as u32
}

/// The edges of a walk along `length` consecutive vertices.
pub(crate) fn path(first: u32, length: u32) -> impl Iterator<Item = (u32, u32)> {
    (first + 1..first + length).map(|vertex| (vertex - 1, vertex))
}

/// The same walk, closed by an edge from its last vertex to its first.
pub(crate) fn cycle(first: u32, length: u32) -> impl Iterator<Item = (u32, u32)> {
    path(first, length).chain([(first + length - 1, first)])
}

/// The number of graphs to generate, if it is a sensible one.
pub(crate) fn graph_count(name: &str, options: &OpenOptions, default: usize) -> Result<usize, Error> {
    let graphs = options.graphs.unwrap_or(default);
    if (1..=MOST_GRAPHS).contains(&graphs) {
        return Ok(graphs);
    }
    let reason = format!("the number of graphs is 1 to {MOST_GRAPHS}");
    Err(Error::bad_option(name, "graphs", graphs, reason))
}

fn normal_rows(stream: &mut RandomStream, nodes: usize) -> Vec<f32> {
    let mut rows = vec![0.0; nodes * NORMAL_FEATURES];
    stream.fill_standard_normal(&mut rows);
    rows
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::catalogue::open;

    /// Connected components and independent cycles, by union-find.
    pub(crate) fn betti_numbers(dataset: &Dataset, graph: usize) -> (usize, usize) {
        let nodes = dataset.graph(graph).node_count;
        let edges = dataset.undirected_edges(graph);
        let mut parent: Vec<usize> = (0..nodes).collect();
        let root = |parent: &[usize], mut node: usize| {
            while parent[node] != node {
                node = parent[node];
            }
            node
        };
        let mut components = nodes;
        for (u, v) in &edges {
            let (a, b) = (root(&parent, *u as usize), root(&parent, *v as usize));
            if a != b {
                parent[a] = b;
                components -= 1;
            }
        }
        (components, edges.len() + components - nodes)
    }

    /// Degrees by undirected edges, self-loops left out.
    pub(crate) fn degrees(dataset: &Dataset, graph: usize) -> Vec<usize> {
        let mut degrees = vec![0; dataset.graph(graph).node_count];
        for (u, v) in dataset.undirected_edges(graph).into_iter().filter(|(u, v)| u != v) {
            degrees[u as usize] += 1;
            degrees[v as usize] += 1;
        }
        degrees
    }

    /// The default data set, and the first 16 digits of its digest.
    pub(crate) fn opened(name: &str) -> (Dataset, String) {
        let dataset = open(name, &OpenOptions::default()).expect("synthetic data needs no files");
        let digest = dataset.digest().as_str()[..16].to_string();
        (dataset, digest)
    }

    /// What holds for every source of a thousand labelled graphs.
    pub(crate) fn assert_common_shape(dataset: &Dataset, width: usize) {
        assert_eq!(dataset.graph_count(), 1000);
        assert_eq!((dataset.classes(), dataset.task()), (2, Task::GraphClassification));
        assert_eq!(dataset.feature_width(), width);
        let ones = dataset.class_counts()[1];
        assert!((430..=570).contains(&ones), "a fair coin gave {ones} ones in 1000");
        for graph in dataset.graphs() {
            let distinct: HashSet<_> = graph.directed_edges().collect();
            assert_eq!(distinct.len(), graph.sources.len(), "graph {} lists an edge twice", graph.index);
            assert!(distinct.iter().all(|(u, v)| distinct.contains(&(*v, *u))), "graph {}", graph.index);
        }
    }

    #[test]
    fn another_data_seed_gives_other_graphs_and_the_same_seed_the_same() {
        let with_seed = |data_seed| {
            let options = OpenOptions { data_seed, graphs: Some(50), ..OpenOptions::default() };
            open("necklaces", &options).expect("opens").digest().clone()
        };
        assert_eq!(with_seed(1), with_seed(1));
        assert_ne!(with_seed(1), with_seed(2));
    }

    #[test]
    fn a_smaller_data_set_is_a_prefix_of_a_larger_one() {
        let small = OpenOptions { graphs: Some(20), ..OpenOptions::default() };
        let small = open("cycles", &small).expect("opens");
        let (large, _) = opened("cycles");
        for (left, right) in small.graphs().zip(large.graphs()) {
            assert_eq!(
                (left.sources, left.features, left.labels),
                (right.sources, right.features, right.labels)
            );
        }
    }

    #[test]
    fn zero_graphs_are_refused_with_the_range() {
        let options = OpenOptions { graphs: Some(0), ..OpenOptions::default() };
        let error = open("cycles", &options).expect_err("nothing to generate").to_string();
        assert_eq!(error, "graphs 0 cannot be used for cycles: the number of graphs is 1 to 1000000");
    }
}
