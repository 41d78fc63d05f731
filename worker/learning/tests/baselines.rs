//! Kernels, scaling and support vector machines against GraKeL and scikit-learn, whose values lie in
//! `fixtures/baselines.json` beside the script that made them; and the kernels on real graphs, where the data is there.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use serde::Deserialize;
use togl_data::{Dataset, DatasetBuilder, OpenOptions, Task};
use togl_learning::baselines::gram::Gram;
use togl_learning::baselines::svm::Classifier;
use togl_learning::baselines::wl::{CountComparison, WlKernel};
use togl_learning::baselines::{feature_choice, ph};
use togl_learning::{Device, EpochProgress, Flow, Job, train_fold};
use togl_sweeps::TrialConfig;
use togl_sweeps::trial::{Backbone, WlLabels};

#[derive(Deserialize)]
struct Fixture {
    graphs: Vec<SmallGraph>,
    learned: u32,
    kernels: Vec<Reference>,
    gaussian: Gaussian,
}

#[derive(Deserialize)]
struct SmallGraph {
    class: u32,
    nodes: usize,
    edges: Vec<(u32, u32)>,
    labels: Vec<u32>,
}

#[derive(Deserialize)]
struct Reference {
    kernel: String,
    labels: String,
    rounds: u32,
    values: Vec<Vec<f64>>,
    machines: Vec<MachineReference>,
}

#[derive(Deserialize)]
struct MachineReference {
    cost: f64,
    decisions: Vec<Vec<f64>>,
    predicted: Vec<u32>,
    support: usize,
}

#[derive(Deserialize)]
struct Gaussian {
    points: Vec<Vec<f64>>,
    learned: u32,
    values: Vec<Vec<f64>>,
}

fn fixture() -> Fixture {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/baselines.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn dataset(graphs: &[SmallGraph]) -> Dataset {
    let mut builder = DatasetBuilder::new("fixture", Task::GraphClassification, 3, 1);
    for graph in graphs {
        builder.push_undirected(graph.nodes, &graph.edges, &vec![1.0; graph.nodes], &[graph.class]);
    }
    builder.finish().unwrap()
}

fn close(gram: &Gram, values: &[Vec<f64>], what: &str) {
    for (left, row) in values.iter().enumerate() {
        for (right, value) in row.iter().enumerate() {
            let ours = gram.get(left, right);
            assert!((ours - value).abs() < 1e-9, "{what}, graphs {left} and {right}: {ours}, not {value}");
        }
    }
}

#[test]
fn kernels_have_the_values_of_grakel() {
    let fixture = fixture();
    let data = dataset(&fixture.graphs);
    for reference in &fixture.kernels {
        close(&kernel(reference, &fixture, &data), &reference.values, &reference.kernel);
    }
    assert_eq!(fixture.kernels.len(), 4);
}

fn kernel(reference: &Reference, fixture: &Fixture, data: &Dataset) -> Gram {
    let comparison =
        if reference.kernel == "wl" { CountComparison::Subtree } else { CountComparison::OptimalAssignment };
    let labels = fixture.graphs.iter().flat_map(|graph| graph.labels.clone()).collect();
    let labels = (reference.labels == "node").then_some(labels);
    let mut kernel = WlKernel::new(data, comparison, labels).unwrap();
    (0..reference.rounds).for_each(|_| kernel.refine());
    kernel.gram()
}

#[test]
fn machines_decide_as_those_of_scikit_learn() {
    let fixture = fixture();
    let data = dataset(&fixture.graphs);
    let learned: Vec<u32> = (0..fixture.learned).collect();
    for reference in &fixture.kernels {
        let gram = kernel(reference, &fixture, &data);
        for expected in &reference.machines {
            let what =
                format!("{} with {} labels, C = {}", reference.kernel, reference.labels, expected.cost);
            let machine = Classifier::fit(&gram, &learned, data.labels(), expected.cost);
            let rest = || fixture.learned..fixture.graphs.len() as u32;
            for (graph, wanted) in rest().zip(&expected.decisions) {
                for (ours, wanted) in machine.decisions(&gram, graph).iter().zip(wanted) {
                    // Both stop at a tolerance of 1e-3.
                    assert!((ours - wanted).abs() < 5e-3, "{what}, graph {graph}: {ours}, not {wanted}");
                }
            }
            let predicted: Vec<u32> = rest().map(|graph| machine.predict(&gram, graph)).collect();
            assert_eq!(predicted, expected.predicted, "{what}");
            assert!(machine.support_count().abs_diff(expected.support) <= 1, "{what}");
        }
    }
}

#[test]
fn features_are_scaled_and_compared_as_by_scikit_learn() {
    let Gaussian { points, learned, values } = fixture().gaussian;
    let mut features: Vec<ph::PersistenceFeatures> =
        points.into_iter().map(|row| ph::PersistenceFeatures::try_from(row).unwrap()).collect();
    ph::standardise(&mut features, &(0..learned).collect::<Vec<u32>>());
    close(&ph::gaussian(&features).unwrap(), &values, "gaussian");
}

/// The data folder beside the project, or none.
fn data_dir() -> Option<PathBuf> {
    let given = std::env::var_os("TOGL_DATA").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    given.or(Some(beside)).filter(|folder| folder.join("tu/ENZYMES.zip").exists())
}

/// Needs the data folder, and says so without it. The whole table is a sweep: see docs/results/baselines.md.
#[test]
fn refined_node_labels_tell_enzymes_apart_about_as_well_as_published() {
    let Some(data_dir) = data_dir() else {
        eprintln!("skipped: there is no folder with ENZYMES; TOGL_DATA names one");
        return;
    };
    for (model, least) in [(Backbone::Wl, 0.40), (Backbone::WlOa, 0.45)] {
        let trial = TrialConfig {
            dataset: "ENZYMES".to_owned(),
            model,
            depth: 4,
            wl_labels: WlLabels::Node,
            ..TrialConfig::default()
        };
        let options = OpenOptions {
            data_dir: Some(data_dir.clone()),
            features: feature_choice(&trial),
            ..OpenOptions::default()
        };
        let data = togl_data::open("ENZYMES", &options).unwrap();
        let clock = || 0.0;
        let accuracies = [0, 1].map(|split| {
            let job = Job { trial: &trial, split, seed: 0, device: Device::Cpu, clock: &clock };
            let result = train_fold(&job, &data, &mut |_: &EpochProgress| Flow::Continue).unwrap();
            result.test.accuracy
        });
        let mean = accuracies.iter().sum::<f64>() / 2.0;
        assert!(mean > least, "{model:?}: {accuracies:?}");
    }
}
