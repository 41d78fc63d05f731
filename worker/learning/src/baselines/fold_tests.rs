//! Stories of kernel trials on small generated data.

use togl_data::{DatasetBuilder, OpenOptions};
use togl_sweeps::FailureClass;
use togl_sweeps::datasets::Scoring;

use super::*;
use crate::device::Device;
use crate::train::train_fold;

fn dataset(name: &str, graphs: usize) -> Dataset {
    togl_data::open(name, &OpenOptions { graphs: Some(graphs), ..OpenOptions::default() }).unwrap()
}

fn kernel(model: Backbone, depth: u32) -> TrialConfig {
    TrialConfig { dataset: "necklaces".to_owned(), model, depth, ..TrialConfig::default() }
}

fn attempt(trial: &TrialConfig, data: &Dataset, split: u32, seed: u64) -> Result<FoldResult> {
    let clock = || 0.0;
    let job = Job { trial, split, seed, device: Device::Cpu, clock: &clock };
    train_fold(&job, data, &mut |_: &EpochProgress| Flow::Continue)
}

/// Every coordinator must take what is learnt here.
fn accepted(result: &FoldResult) {
    result.clone().check().unwrap().check_confusion(Scoring::Accuracy).unwrap();
}

fn fit(trial: &TrialConfig, data: &Dataset) -> FoldResult {
    let result = attempt(trial, data, 42, 7).unwrap();
    accepted(&result);
    result
}

#[test]
fn components_and_cycles_tell_cycles_apart_and_refined_degrees_do_not() {
    let data = dataset("cycles", 300);
    let ph = fit(&kernel(Backbone::Ph, 0), &data);
    assert!(ph.test.accuracy > 0.99 && ph.validation.accuracy > 0.99, "{:?} {:?}", ph.test, ph.validation);
    // All degrees are 2, in every round: all graphs look the same.
    let wl = fit(&kernel(Backbone::Wl, 3), &data);
    assert!(wl.validation.accuracy < 0.65, "{:?}", wl.validation);
}

#[test]
fn degrees_tell_paths_from_cycles() {
    let data = dataset("no-cycles", 200);
    for model in [Backbone::Wl, Backbone::WlOa] {
        for depth in [0, 2] {
            let result = fit(&kernel(model, depth), &data);
            let (test, validation) = (result.test.accuracy, result.validation.accuracy);
            assert!(test > 0.95 && validation > 0.95, "{model:?}, {depth} rounds: {test} {validation}");
        }
    }
}

#[test]
fn the_same_fold_gives_the_same_bits_twice_and_the_seed_deals_inner_folds_only() {
    let data = dataset("necklaces", 120);
    for model in [Backbone::Wl, Backbone::WlOa, Backbone::Ph] {
        let trial = TrialConfig { choose_rounds: true, ..kernel(model, 3) };
        let first = attempt(&trial, &data, 42, 7).unwrap();
        assert_eq!(first, attempt(&trial, &data, 42, 7).unwrap(), "{model:?}");
        let other = attempt(&trial, &data, 42, 8).unwrap();
        assert_eq!(first.split_digest, other.split_digest);
        // Necklaces all have one component and two cycles, so whatever the folds, PH guesses.
        assert_eq!(first.history == other.history, model == Backbone::Ph, "{model:?}: other inner folds");
    }
}

#[test]
fn a_seed_draws_the_outer_folds_where_they_are_asked_for_and_methods_share_them() {
    let data = dataset("no-cycles", 60);
    let repeated = |model| TrialConfig { outer_folds: 3, inner_folds: 3, ..kernel(model, 1) };
    for seed in [0, 1] {
        let folds = |model| [0, 1, 2].map(|split| attempt(&repeated(model), &data, split, seed).unwrap());
        let (wl, ph) = (folds(Backbone::Wl), folds(Backbone::Ph));
        for (one, other) in wl.iter().zip(&ph) {
            accepted(one);
            assert_eq!(one.split_digest, other.split_digest, "two methods in one repeat");
            assert_eq!(one.part_sizes, [40, 0, 20], "nobody validates but the inner folds");
        }
        let tested: u64 = wl.iter().flat_map(|fold| fold.confusion.iter().flatten()).sum();
        assert_eq!(tested, 60, "every graph is tested once a repeat");
        assert_ne!(wl[0].split_digest, wl[1].split_digest);
    }
    let digest = |seed| attempt(&repeated(Backbone::Wl), &data, 0, seed).unwrap().split_digest;
    assert_ne!(digest(0), digest(1), "two repeats");
    assert_eq!(digest(0), digest(0));
}

#[test]
fn a_fold_beyond_the_outer_folds_can_be_trained_nowhere_and_says_which_there_are() {
    let trial = TrialConfig { outer_folds: 3, ..kernel(Backbone::Ph, 0) };
    let error = attempt(&trial, &dataset("necklaces", 40), 42, 0).unwrap_err();
    assert_eq!(error.class(), FailureClass::Config);
    assert_eq!(error.hint().as_deref(), Some("valid splits are 0 to 2"), "{error}");
}

#[test]
fn a_result_says_what_was_tried_and_what_was_chosen() {
    let data = dataset("necklaces", 120);
    let trial =
        TrialConfig { choose_rounds: true, svm_c_min: 0.1, svm_c_max: 10.0, ..kernel(Backbone::Wl, 2) };
    let mut seen = Vec::new();
    let clock = || 0.0;
    let job = Job { trial: &trial, split: 42, seed: 7, device: Device::Cpu, clock: &clock };
    let mut observer = |progress: &EpochProgress| {
        seen.push((progress.epoch, progress.max_epochs));
        Flow::Continue
    };
    let result = train_fold(&job, &data, &mut observer).unwrap();
    assert_eq!(result.epochs, 9, "three kernels, three costs");
    assert_eq!(seen, (0..9).map(|epoch| (epoch, 9)).collect::<Vec<_>>());
    let fixed = TrialConfig { model: Backbone::Ph, ..trial.clone() };
    assert_eq!(fit(&fixed, &data).epochs, grid_points(&fixed), "no rounds to choose among");
    let best = result.history.iter().map(|record| record.validation.accuracy).fold(0.0, f64::max);
    let first = result.history.iter().position(|record| record.validation.accuracy == best).unwrap();
    assert_eq!((result.best_epoch as usize, result.validation.accuracy), (first, best));
    assert_eq!(result.last_validation, result.validation);
    assert_eq!(result.part_sizes.iter().sum::<u64>(), 120);
    assert_eq!(result.confusion.iter().flatten().sum::<u64>(), result.part_sizes[2]);
    let learned = result.part_sizes[0] + result.part_sizes[1];
    assert!((1..=learned).contains(&result.parameters), "{} support vectors", result.parameters);
    assert_eq!(result.provenance.device, "cpu");
}

#[test]
fn leaving_out_the_last_round_gives_the_numbers_of_one_round_less() {
    let data = dataset("necklaces", 100);
    let published = TrialConfig { as_published: true, ..kernel(Backbone::Wl, 3) };
    assert_eq!(fit(&published, &data), fit(&kernel(Backbone::Wl, 2), &data));
}

#[test]
fn one_class_only_is_a_data_error_that_names_the_split() {
    let mut builder = DatasetBuilder::new("alike", Task::GraphClassification, 2, 1);
    (0..20).for_each(|_| builder.push_undirected(2, &[(0, 1)], &[1.0, 1.0], &[1]));
    let data = builder.finish().unwrap();
    for model in [Backbone::Wl, Backbone::Ph] {
        let error = attempt(&kernel(model, 1), &data, 42, 0).unwrap_err();
        assert_eq!(error.class(), FailureClass::Data);
        assert_eq!(error.to_string(), "the training part of split 42 of alike has graphs of one class only");
    }
}

#[test]
fn a_class_with_a_single_graph_does_not_stop_the_inner_folds() {
    let mut builder = DatasetBuilder::new("rare", Task::GraphClassification, 2, 1);
    for graph in 0..20 {
        builder.push_undirected(2, &[(0, 1)], &[1.0, 1.0], &[u32::from(graph == 3)]);
    }
    let data = builder.finish().unwrap();
    let split = (0..50).find(|split| !data.split(*split).unwrap().test.contains(&3)).unwrap();
    accepted(&attempt(&kernel(Backbone::Wl, 1), &data, split as u32, 0).unwrap());
}

#[test]
fn a_node_task_is_a_setting_error() {
    let mut builder = DatasetBuilder::new("nodes", Task::NodeClassification, 2, 1);
    (0..20).for_each(|_| builder.push_undirected(2, &[(0, 1)], &[1.0, 1.0], &[0, 1]));
    let data = builder.finish().unwrap();
    for model in [Backbone::WlOa, Backbone::Ph, Backbone::Gfl, Backbone::PersLay] {
        let error = attempt(&kernel(model, 1), &data, 42, 0).unwrap_err();
        assert_eq!(error.class(), FailureClass::Config, "{error}");
        assert!(error.to_string().contains("tells classes of graphs apart"), "{error}");
    }
}

#[test]
fn an_observer_can_stop_between_points_of_the_grid() {
    let data = dataset("necklaces", 60);
    let trial = kernel(Backbone::Wl, 2);
    let clock = || 0.0;
    let job = Job { trial: &trial, split: 1, seed: 7, device: Device::Cpu, clock: &clock };
    for wish in [Flow::Stop, Flow::SaveAndStop] {
        let mut stop = |progress: &EpochProgress| if progress.epoch == 2 { wish } else { Flow::Continue };
        assert!(
            matches!(train_fold(&job, &data, &mut stop), Err(TrainError::Stopped { epochs: 3 })),
            "{wish:?}"
        );
    }
}

#[test]
fn labels_are_asked_for_only_where_they_are_refined() {
    let node = |model| TrialConfig { wl_labels: WlLabels::Node, ..kernel(model, 1) };
    assert_eq!(feature_choice(&node(Backbone::Wl)), FeatureChoice::NodeLabels);
    assert_eq!(feature_choice(&node(Backbone::Gcn)), FeatureChoice::AsPublished);
    assert_eq!(feature_choice(&kernel(Backbone::WlOa, 1)), FeatureChoice::AsPublished);
}

/// What sweep files know about data sets before they are opened names data sets that exist, and is true of them.
#[test]
fn sweep_files_know_data_sets_by_their_names() {
    let names = |known: &togl_sweeps::datasets::KnownDataset| known.name;
    let ours: Vec<&str> = togl_data::sources().iter().map(|source| source.name).collect();
    assert_eq!(togl_sweeps::datasets::DATASETS.each_ref().map(names)[..], ours);
    for source in togl_data::sources() {
        let metric = match source.task {
            Task::GraphClassification => Scoring::Accuracy,
            Task::NodeClassification => Scoring::WeightedAccuracy,
            Task::GraphBinaryAuc => Scoring::RocAuc,
        };
        assert_eq!(Scoring::of(source.name), metric, "{}", source.name);
    }
}
