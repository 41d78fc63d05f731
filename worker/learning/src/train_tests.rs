//! Stories of training runs on small generated data.

use tch::Tensor;

use super::*;
use crate::device::Device;
use togl_data::{DatasetBuilder, OpenOptions, Task};
use togl_sweeps::FailureClass;
use togl_sweeps::datasets::Scoring;
use togl_sweeps::trial::{Aggregation, Backbone, Features, LastHeads, Placement, Position, TrialConfig};

fn dataset(name: &str, graphs: usize) -> Dataset {
    togl_data::open(name, &OpenOptions { graphs: Some(graphs), ..OpenOptions::default() }).unwrap()
}

fn small(name: &str) -> TrialConfig {
    TrialConfig {
        dataset: name.to_owned(),
        hidden_dim: 16,
        depth: 2,
        batch_size: 8,
        max_epochs: 3,
        num_filtrations: 3,
        filtration_hidden: 8,
        ..TrialConfig::default()
    }
}

fn run(trial: &TrialConfig, data: &Dataset, observer: &mut dyn Observer) -> Result<FoldResult> {
    crate::device::use_threads(1);
    let clock = || 0.0;
    let job = Job { trial, split: 42, seed: 7, device: Device::Cpu, clock: &clock };
    train_fold(&job, data, observer)
}

fn attempt(trial: &TrialConfig, data: &Dataset) -> Result<FoldResult> {
    run(trial, data, &mut |_: &EpochProgress| Flow::Continue)
}

fn train(trial: &TrialConfig, data: &Dataset) -> FoldResult {
    let result = attempt(trial, data).unwrap_or_else(|error| panic!("{}: {error}", trial.canonical()));
    accepted(&result, data);
    result
}

/// Every coordinator must take what is trained here.
fn accepted(result: &FoldResult, data: &Dataset) {
    let metric = match data.task() {
        Task::GraphClassification => Scoring::Accuracy,
        Task::NodeClassification => Scoring::WeightedAccuracy,
        Task::GraphBinaryAuc => Scoring::RocAuc,
    };
    result.clone().check().unwrap().check_confusion(metric).unwrap();
}

#[test]
fn the_same_fold_gives_the_same_bits_twice() {
    let data = dataset("necklaces", 60);
    for (togl, deepset, fixed) in
        [(false, false, false), (true, false, false), (true, true, false), (true, false, true)]
    {
        let trial = TrialConfig {
            togl,
            deepset,
            static_variant: fixed,
            features: Features::Random,
            dropout_p: 0.1,
            ..small("necklaces")
        };
        let (first, second) = (train(&trial, &data), train(&trial, &data));
        assert_eq!(first, second, "togl {togl}, deepset {deepset}, static {fixed}");
    }
}

/// Raise `NUMERICS` in `togl-sweeps` when this has to change: stored results then no longer mix with new ones.
#[test]
fn the_numbers_of_a_short_run_belong_to_this_version_of_the_numerics() {
    assert_eq!(togl_sweeps::trial::NUMERICS, 1);
    let trial = TrialConfig { togl: true, ..small("necklaces") };
    let result = train(&trial, &dataset("necklaces", 60));
    let losses: Vec<f64> = result.history.iter().map(|record| record.validation.loss).collect();
    for (got, pinned) in losses.iter().zip(PINNED_LOSSES) {
        assert!((got - pinned).abs() < 2e-4, "{losses:?}");
    }
}

const PINNED_LOSSES: [f64; 3] = [0.677_220, 0.649_788, 0.655_382];

#[test]
fn topology_learns_cycles() {
    let trial = TrialConfig { togl: true, max_epochs: 15, lr: 5e-3, ..small("cycles") };
    let result = train(&trial, &dataset("cycles", 150));
    let (first, last) = (result.history[0].train.loss, result.history[14].train.loss);
    assert!(last < 0.5 * first, "loss went from {first} to {last}");
    assert!(result.test.accuracy > 0.8, "{:?}", result.test);
}

/// Degrees of cycles are all equal, so nothing but the number of components and cycles tells them apart.
#[test]
fn readouts_of_diagrams_learn_cycles() {
    let data = dataset("cycles", 120);
    for model in [Backbone::Gfl, Backbone::PersLay] {
        let trial = TrialConfig { model, depth: 1, max_epochs: 10, lr: 5e-3, ..small("cycles") };
        let result = train(&trial, &data);
        assert!(result.test.accuracy > 0.9, "{model:?}: {:?}", result.test);
        let short = TrialConfig { max_epochs: 2, ..trial };
        assert_eq!(train(&short, &data), train(&short, &data), "the same bits twice");
    }
}

#[test]
fn the_checkpoint_is_the_first_epoch_with_the_lowest_validation_loss() {
    let trial = TrialConfig { max_epochs: 12, lr: 0.02, ..small("necklaces") };
    let result = train(&trial, &dataset("necklaces", 80));
    let losses: Vec<f64> = result.history.iter().map(|record| record.validation.loss).collect();
    let lowest = losses.iter().copied().fold(f64::INFINITY, f64::min);
    let first = losses.iter().position(|loss| *loss == lowest).unwrap();
    assert_eq!((result.best_epoch as usize, result.validation.loss), (first, lowest));
    assert_eq!(result.train, result.history[first].train);
    assert_eq!(result.last_validation, result.history[11].validation);
    assert_eq!(result.part_sizes.iter().sum::<u64>(), 80);
    assert_eq!(result.confusion.iter().flatten().sum::<u64>(), result.part_sizes[2]);
}

#[test]
fn an_exhausted_learning_rate_ends_training_at_once_or_after_one_more_batch() {
    let data = dataset("necklaces", 80);
    let full = TrialConfig {
        max_epochs: 60,
        lr: 0.05,
        lr_min: 0.04,
        lr_patience: 0,
        batch_size: 16,
        ..small("necklaces")
    };
    let stopped = train(&full, &data);
    assert!(stopped.epochs < 60, "the rate never fell");
    assert!(stopped.history.iter().all(|record| record.lr == 0.05));
    let one_batch = train(&TrialConfig { last_epoch: LastEpoch::OneBatch, ..full }, &data);
    assert_eq!(one_batch.epochs, stopped.epochs + 1);
    assert_eq!(one_batch.history[..stopped.history.len()], stopped.history[..]);
    let last = one_batch.history.last().unwrap();
    assert_eq!(last.lr, 0.025);
    assert_eq!((last.train.accuracy * 16.0).fract(), 0.0, "one batch of 16");
}

#[test]
fn a_rate_below_its_limit_from_the_start_is_a_setting_error() {
    let trial = TrialConfig { lr: 1e-4, lr_min: 1e-3, ..small("necklaces") };
    let error = attempt(&trial, &dataset("necklaces", 40)).unwrap_err();
    assert_eq!(error.class(), FailureClass::Config);
}

#[test]
fn the_incomplete_last_batch_is_dropped_unless_it_is_the_only_one() {
    let clock = || 0.0;
    let batches = |batch_size, epoch| {
        let trial = TrialConfig { batch_size, ..small("any") };
        let job = Job { trial: &trial, split: 0, seed: 1, device: Device::Cpu, clock: &clock };
        training_batches(&job, &(0..20).collect::<Vec<u32>>(), epoch)
    };
    assert_eq!(batches(8, 0).iter().map(Vec::len).collect::<Vec<_>>(), [8, 8]);
    assert_eq!(batches(50, 0).iter().map(Vec::len).collect::<Vec<_>>(), [20]);
    assert_ne!(batches(8, 0), batches(8, 1), "every epoch has its own order");
    assert_eq!(batches(8, 1), batches(8, 1));
}

#[test]
fn an_observer_sees_every_epoch_and_can_stop() {
    let data = dataset("necklaces", 40);
    let mut seen = Vec::new();
    let mut observer = |progress: &EpochProgress| {
        seen.push(progress.epoch);
        if progress.epoch == 1 { Flow::Stop } else { Flow::Continue }
    };
    let error = run(&small("necklaces"), &data, &mut observer).unwrap_err();
    assert!(matches!(error, TrainError::Stopped { epochs: 2 }));
    assert_eq!(error.class(), FailureClass::Preempted);
    assert_eq!(seen, [0, 1]);
}

#[test]
fn every_kind_of_network_trains() {
    let data = dataset("necklaces", 30);
    let base = TrialConfig { max_epochs: 1, num_heads: 2, hidden_dim: 8, ..small("necklaces") };
    let togl = TrialConfig { togl: true, ..base.clone() };
    let deepset = TrialConfig { deepset: true, ..togl.clone() };
    let mut trials = vec![
        TrialConfig { depth: 0, ..base.clone() },
        TrialConfig { depth: 0, togl_position: Position::After(0), ..togl.clone() },
        TrialConfig { togl_position: Position::Last, ..togl.clone() },
        TrialConfig { placement: Placement::Replace, ..togl.clone() },
        TrialConfig { tanh_filtrations: true, share_filtration_parameters: false, ..togl.clone() },
        TrialConfig { residual_and_bn: false, dim1: false, ..togl.clone() },
        TrialConfig { batch_norm: false, residual: false, ..base.clone() },
        TrialConfig { dist_dim1: true, ..deepset.clone() },
        TrialConfig { dist_dim1: true, residual_and_bn: false, ..deepset.clone() },
        TrialConfig { aggregation_fn: Aggregation::Max, residual_and_bn: false, ..deepset.clone() },
        TrialConfig { static_variant: true, ..deepset.clone() },
        TrialConfig { static_variant: true, features: Features::Random, ..togl.clone() },
        TrialConfig { model: Backbone::Gat, gat_last: LastHeads::Concat, dropout_p: 0.2, ..base.clone() },
    ];
    for model in [Backbone::Gcn, Backbone::Gin, Backbone::Gat, Backbone::GatedGcn] {
        trials.push(TrialConfig { model, ..base.clone() });
        trials.push(TrialConfig { model, ..togl.clone() });
        trials.push(TrialConfig { model, ..deepset.clone() });
    }
    for model in [Backbone::Gfl, Backbone::PersLay] {
        trials.push(TrialConfig { model, ..base.clone() });
        trials.push(TrialConfig { model, dim1: false, features: Features::Random, ..base.clone() });
    }
    for trial in trials {
        train(&trial, &data);
    }
}

/// Stars and triangles whose nodes have classes; some graphs have no edges at all.
fn labelled_nodes() -> Dataset {
    let mut builder = DatasetBuilder::new("nodes", Task::NodeClassification, 2, 1);
    for graph in 0..30u32 {
        let edges: &[(u32, u32)] =
            [&[(0, 1), (1, 2), (0, 2)][..], &[(0, 1), (0, 2)], &[]][graph as usize % 3];
        builder.push_undirected(3, edges, &[graph as f32 / 30.0, 1.0, -1.0], &[graph % 2, 0, 1]);
    }
    builder.finish().unwrap()
}

#[test]
fn node_tasks_train_with_weighted_classes_and_edgeless_graphs() {
    let data = labelled_nodes();
    for deepset in [false, true] {
        for static_variant in [false, true] {
            let trial = TrialConfig { togl: true, deepset, static_variant, ..small("nodes") };
            let result = train(&trial, &data);
            assert_eq!(result.confusion.iter().flatten().sum::<u64>(), 3 * result.part_sizes[2]);
        }
    }
}

#[test]
fn values_beyond_every_number_are_an_error_that_names_the_fold() {
    let mut builder = DatasetBuilder::new("huge", Task::GraphClassification, 2, 1);
    (0..20).for_each(|graph| builder.push_undirected(2, &[(0, 1)], &[3e38, -3e38], &[graph % 2]));
    let data = builder.finish().unwrap();
    let trial = TrialConfig { togl: true, ..small("huge") };
    let error = attempt(&trial, &data).unwrap_err();
    assert_eq!(error.class(), FailureClass::NotFinite, "{error}");
    assert!(error.to_string().contains("epoch 0"), "{error}");
}

#[test]
fn a_split_that_does_not_exist_is_a_data_error() {
    let mut builder = DatasetBuilder::new("tiny", Task::GraphClassification, 2, 1);
    builder.push_undirected(1, &[], &[1.0], &[0]);
    let error = attempt(&small("tiny"), &builder.finish().unwrap()).unwrap_err();
    assert_eq!(error.class(), FailureClass::Data);
}

/// A trainer outlives its folds: an operation that panics while gradients are off must not leave them off.
#[test]
fn a_panic_in_evaluation_does_not_disturb_the_next_fold() {
    let data = dataset("necklaces", 40);
    let trial = small("necklaces");
    let clock = || 0.0;
    let job = Job { trial: &trial, split: 42, seed: 7, device: Device::Cpu, clock: &clock };
    let before = train(&trial, &data);
    let broken = guard(|| {
        let learner = Learner::new(&job, &data)?;
        let draws = draws(&job, Stage::Validation, 0, 0);
        let needs = BatchNeeds::of(&trial);
        let mut batch = Collator::new(&data, needs, tch::Device::Cpu).collate(&[0], draws)?;
        batch.features = Tensor::from_slice(&[1f32, 2.0]).view([1, 2]);
        learner.evaluate(&[(batch, draws)], "nowhere").map(|_| ())
    });
    assert!(matches!(broken, Err(TrainError::Torch(_))));
    assert_eq!(train(&trial, &data), before);
}
