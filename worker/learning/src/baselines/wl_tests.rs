//! Refinement and both kernels against counting by hand, against the slow definition, and against the best assignment.

use std::collections::BTreeMap;

use tch::Tensor;
use togl_data::{DatasetBuilder, Purpose, RandomStream, Task};

use super::*;

type Edges = Vec<(u32, u32)>;

fn dataset(graphs: &[(usize, Edges)]) -> Dataset {
    let mut builder = DatasetBuilder::new("small", Task::GraphClassification, 2, 1);
    for (at, (nodes, edges)) in graphs.iter().enumerate() {
        builder.push_undirected(*nodes, edges, &vec![1.0; *nodes], &[at as u32 % 2]);
    }
    builder.finish().unwrap()
}

fn random_graphs(seed: u64, count: usize, most: u64) -> Vec<(usize, Edges)> {
    let mut stream = RandomStream::new(seed, 0, Purpose::Generate("kernel tests"), 0, 0);
    let graph = |_| {
        let nodes = 2 + stream.uniform_below(most - 1) as u32;
        let pairs = (0..nodes).flat_map(|u| (u + 1..nodes).map(move |w| (u, w)));
        (nodes as usize, pairs.filter(|_| stream.uniform() < 0.4).collect())
    };
    (0..count).map(graph).collect()
}

fn sums(dataset: &Dataset, comparison: CountComparison, rounds: u32) -> Vec<Vec<f64>> {
    let mut kernel = WlKernel::new(dataset, comparison, None).unwrap();
    (0..rounds).for_each(|_| kernel.refine());
    let row = |graph: usize| kernel.sum.row(graph)[..=graph].to_vec();
    (0..dataset.graph_count()).map(row).collect()
}

/// A path of three nodes and a triangle. Degrees: {1: 2, 2: 1} and {2: 3}. After one round no label is shared.
#[test]
fn a_path_and_a_triangle_are_compared_as_by_hand() {
    let data = dataset(&[(3, vec![(0, 1), (1, 2)]), (3, vec![(0, 1), (1, 2), (0, 2)])]);
    assert_eq!(sums(&data, CountComparison::Subtree, 0), [vec![5.0], vec![3.0, 9.0]]);
    assert_eq!(sums(&data, CountComparison::Subtree, 1), [vec![10.0], vec![3.0, 18.0]]);
    assert_eq!(sums(&data, CountComparison::OptimalAssignment, 0), [vec![3.0], vec![1.0, 3.0]]);
    assert_eq!(sums(&data, CountComparison::OptimalAssignment, 1), [vec![6.0], vec![1.0, 6.0]]);
    let mut kernel = WlKernel::new(&data, CountComparison::Subtree, None).unwrap();
    kernel.refine();
    assert!((kernel.gram().get(0, 1) - 3.0 / 180f64.sqrt()).abs() < 1e-15);
}

/// Labels of every round as texts that spell the whole history out.
fn spelled(nodes: usize, edges: &Edges, rounds: u32) -> Vec<Vec<String>> {
    let around = |node: u32| {
        let other = move |(u, w): &(u32, u32)| (*u == node).then_some(*w).or((*w == node).then_some(*u));
        edges.iter().filter_map(other).collect::<Vec<u32>>()
    };
    let mut all = vec![(0..nodes as u32).map(|node| around(node).len().to_string()).collect::<Vec<_>>()];
    for round in 0..rounds as usize {
        let label = |node: u32| {
            let mut labels: Vec<&str> =
                around(node).iter().map(|other| all[round][*other as usize].as_str()).collect();
            labels.sort_unstable();
            format!("<{}|{}>", all[round][node as usize], labels.join(","))
        };
        all.push((0..nodes as u32).map(label).collect());
    }
    all
}

fn counts(labels: &[String]) -> BTreeMap<&str, f64> {
    let mut counts = BTreeMap::new();
    labels.iter().for_each(|label| *counts.entry(label.as_str()).or_default() += 1.0);
    counts
}

#[test]
fn both_kernels_equal_their_slow_definition_on_random_graphs() {
    let (seed, rounds) = (11, 3);
    let graphs = random_graphs(seed, 14, 9);
    let data = dataset(&graphs);
    let labels: Vec<_> = graphs.iter().map(|(nodes, edges)| spelled(*nodes, edges, rounds)).collect();
    for comparison in [CountComparison::Subtree, CountComparison::OptimalAssignment] {
        for (left, row) in sums(&data, comparison, rounds).iter().enumerate() {
            for (right, value) in row.iter().enumerate() {
                let of_round = |(a, b): (&Vec<String>, &Vec<String>)| {
                    let (a, b) = (counts(a), counts(b));
                    let shared = a.iter().filter_map(|(label, count)| Some((*count, *b.get(label)?)));
                    let value = |(x, y): (f64, f64)| {
                        if comparison == CountComparison::Subtree { x * y } else { x.min(y) }
                    };
                    shared.map(value).sum::<f64>()
                };
                let slow: f64 = labels[left].iter().zip(&labels[right]).map(of_round).sum();
                assert_eq!(*value, slow, "{comparison:?}, graphs {left} and {right}, seed {seed}");
            }
        }
    }
}

/// The largest sum over all ways to give each node of the smaller graph a partner of its own.
fn best_assignment(worth: &[Vec<f64>], taken: &mut Vec<usize>) -> f64 {
    let Some(row) = worth.get(taken.len()) else { return 0.0 };
    let mut best = 0f64;
    for (partner, value) in row.iter().enumerate() {
        if !taken.contains(&partner) {
            taken.push(partner);
            best = best.max(value + best_assignment(worth, taken));
            taken.pop();
        }
    }
    best
}

#[test]
fn the_smaller_counts_add_up_to_the_best_assignment_of_nodes() {
    let (seed, rounds) = (5, 2);
    let graphs = random_graphs(seed, 12, 6);
    let data = dataset(&graphs);
    let labels: Vec<_> = graphs.iter().map(|(nodes, edges)| spelled(*nodes, edges, rounds)).collect();
    for (left, row) in sums(&data, CountComparison::OptimalAssignment, rounds).iter().enumerate() {
        for (right, value) in row.iter().enumerate() {
            let (few, many) = if graphs[left].0 <= graphs[right].0 { (left, right) } else { (right, left) };
            // Two nodes are worth as many rounds as they have the same label in.
            let worth = |u: usize, w: usize| {
                labels[few].iter().zip(&labels[many]).filter(|(a, b)| a[u] == b[w]).count() as f64
            };
            let table: Vec<Vec<f64>> =
                (0..graphs[few].0).map(|u| (0..graphs[many].0).map(|w| worth(u, w)).collect()).collect();
            let best = best_assignment(&table, &mut Vec::new());
            assert_eq!(*value, best, "graphs {left} and {right}, seed {seed}");
        }
    }
}

#[test]
fn both_kernels_are_positive_semidefinite() {
    let data = dataset(&random_graphs(3, 40, 10));
    for comparison in [CountComparison::Subtree, CountComparison::OptimalAssignment] {
        let mut kernel = WlKernel::new(&data, comparison, None).unwrap();
        (0..3).for_each(|_| kernel.refine());
        let gram = kernel.gram();
        let values: Vec<f64> = (0..40).flat_map(|row| gram.row(row).to_vec()).collect();
        let least = Tensor::from_slice(&values).view([40, 40]).linalg_eigvalsh("L").min().double_value(&[]);
        assert!(least > -1e-9, "{comparison:?}: {least}");
    }
}

#[test]
fn labels_that_nodes_do_not_have_are_refused_with_a_way_out() {
    let mut builder = DatasetBuilder::new("attributes", Task::GraphClassification, 2, 2);
    builder.push_undirected(2, &[(0, 1)], &[1.0, 0.0, 0.5, 0.5], &[0]);
    let error = node_labels(&builder.finish().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "the nodes of attributes have no labels; use `wl_labels: degree`");
    let mut builder = DatasetBuilder::new("labels", Task::GraphClassification, 2, 3);
    builder.push_undirected(2, &[(0, 1)], &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0], &[0]);
    assert_eq!(node_labels(&builder.finish().unwrap()).unwrap(), [2, 0]);
}
