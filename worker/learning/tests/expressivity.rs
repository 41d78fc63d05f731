//! What the topological layer can and cannot see, and which reorderings leave its results alone.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic like the tests themselves")]

use tch::{Device, Kind, Tensor};
use togl_data::{Dataset, DatasetBuilder, RandomStream, Stage, Task};
use togl_learning::batch::{BatchNeeds, Collator, DrawKey};
use togl_learning::layers::Pass;
use togl_learning::model::{Model, Shape};
use togl_learning::parameters::Parameters;
use togl_sweeps::TrialConfig;
use togl_sweeps::trial::{Aggregation, Backbone};

const DRAWS: DrawKey = DrawKey { seed: 1, split: 0, stage: Stage::Training, epoch: 0, step: 0 };

type Edges = Vec<(u32, u32)>;

fn one_graph(nodes: usize, edges: &[(u32, u32)], features: &[f32]) -> Dataset {
    let mut builder = DatasetBuilder::new("one", Task::GraphClassification, 2, features.len() / nodes);
    builder.push_undirected(nodes, edges, features, &[0]);
    builder.finish().unwrap()
}

/// Scores of an untrained network in evaluation mode, `[graphs or nodes, 2]`.
fn scores(trial: &TrialConfig, data: &Dataset, node_task: bool) -> Tensor {
    togl_learning::use_threads(1);
    let mut parameters = Parameters::new(11, 0, Device::Cpu);
    let shape = Shape { features: data.feature_width() as i64, classes: 2, node_task };
    let model = Model::new(trial, shape, &mut parameters).unwrap();
    let batch = Collator::new(data, BatchNeeds::of(trial), Device::Cpu).collate(&[0], DRAWS).unwrap();
    tch::no_grad(|| model.forward(&Pass { batch: &batch, training: false, draws: DRAWS })).unwrap()
}

fn difference(left: &Tensor, right: &Tensor) -> f64 {
    (left - right).abs().max().double_value(&[])
}

fn togl() -> TrialConfig {
    TrialConfig { dataset: "one".to_owned(), hidden_dim: 64, depth: 2, togl: true, ..TrialConfig::default() }
}

/// Difference of the scores of two triangles and of a hexagon, all nodes having the same feature.
fn triangles_against_hexagon(trial: &TrialConfig) -> f64 {
    let triangles = one_graph(6, &[(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)], &[1.0; 6]);
    let hexagon = one_graph(6, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)], &[1.0; 6]);
    difference(&scores(trial, &triangles, false), &scores(trial, &hexagon, false))
}

#[test]
fn cycles_separate_two_triangles_from_a_hexagon() {
    let sum = TrialConfig { deepset: true, aggregation_fn: Aggregation::Sum, ..togl() };
    for (trial, what) in [(togl(), "coordinate functions"), (sum, "DeepSet with sums")] {
        let difference = triangles_against_hexagon(&trial);
        assert!(difference > 1e-4, "{what}: {difference}");
    }
}

#[test]
fn without_counting_cycles_they_look_the_same() {
    let plain = TrialConfig { togl: false, ..togl() };
    let dim0 = TrialConfig { dim1: false, ..togl() };
    let mean = TrialConfig { deepset: true, aggregation_fn: Aggregation::Mean, ..togl() };
    let max = TrialConfig { deepset: true, aggregation_fn: Aggregation::Max, ..togl() };
    for (trial, what) in [(plain, "no topology"), (dim0, "dimension 0"), (mean, "mean"), (max, "max")] {
        let difference = triangles_against_hexagon(&trial);
        assert!(difference < 1e-6, "{what}: {difference}");
    }
}

/// A random graph: edges (u < w) and three features a node.
fn random_graph(seed: u64, nodes: u32, percent: u64) -> (Edges, Vec<f32>) {
    let mut stream = RandomStream::new(seed, 0, togl_data::Purpose::Shuffle, 0, 0);
    let pairs = (0..nodes).flat_map(|u| (u + 1..nodes).map(move |w| (u, w)));
    let edges = pairs.filter(|_| stream.uniform_below(100) < percent).collect();
    let mut features = vec![0.0; 3 * nodes as usize];
    stream.fill_standard_normal(&mut features);
    (edges, features)
}

#[test]
fn node_results_move_with_the_nodes_when_cycles_are_not_used() {
    for seed in 0..5 {
        let (edges, features) = random_graph(seed, 9, 35);
        let mut stream = RandomStream::new(seed, 1, togl_data::Purpose::Shuffle, 0, 0);
        let place = stream.permutation(9);
        let mut moved: Edges = edges.iter().map(|(u, w)| (place[*u as usize], place[*w as usize])).collect();
        stream.shuffle(&mut moved);
        let mut moved_features = vec![0.0; features.len()];
        for (node, new) in place.iter().enumerate() {
            moved_features[3 * *new as usize..][..3].copy_from_slice(&features[3 * node..][..3]);
        }
        let (before, after) = (one_graph(9, &edges, &features), one_graph(9, &moved, &moved_features));
        for model in [Backbone::Gcn, Backbone::Gin, Backbone::Gat, Backbone::GatedGcn] {
            for deepset in [false, true] {
                let trial = TrialConfig { dim1: false, deepset, model, ..togl() };
                let index: Vec<i64> = place.iter().map(|new| i64::from(*new)).collect();
                let back = scores(&trial, &after, true).index_select(0, &Tensor::from_slice(&index));
                let difference = difference(&back, &scores(&trial, &before, true));
                assert!(difference < 1e-4, "seed {seed}, {model:?}, deepset {deepset}: {difference}");
            }
        }
    }
}

/// Largest difference, over some dense graphs, of the scores under the edge list and under the reversed list.
fn reversed_list(num_filtrations: u32) -> f64 {
    let trial = TrialConfig { num_filtrations, ..togl() };
    let reversing = |seed| {
        let (edges, features) = random_graph(seed, 7, 80);
        let reversed: Edges = edges.iter().rev().copied().collect();
        let [forward, backward] =
            [edges, reversed].map(|list| scores(&trial, &one_graph(7, &list, &features), false));
        difference(&forward, &backward)
    };
    (0..5).map(reversing).fold(0.0, f64::max)
}

/// Which edge carries a cycle depends on the order of the list, and with several filtrations the set of kept edges
/// too: edge lists must stay in one canonical order.
#[test]
fn the_graph_vector_depends_on_the_order_of_edges_only_with_several_filtrations() {
    let (one, several) = (reversed_list(1), reversed_list(4));
    assert!(one < 1e-5, "{one}");
    assert!(several > 1e-4, "{several}");
}

#[test]
fn a_graph_without_edges_passes_through_every_version() {
    let data = one_graph(3, &[], &[0.5; 9]);
    for deepset in [false, true] {
        for static_variant in [false, true] {
            let trial = TrialConfig { deepset, static_variant, ..togl() };
            let scores = scores(&trial, &data, false);
            assert!(scores.isfinite().all().int64_value(&[]) == 1);
            assert_eq!((scores.size(), scores.kind()), (vec![1, 2], Kind::Float));
        }
    }
}
