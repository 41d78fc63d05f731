//! Stories of interrupted training: whatever is trained and wherever it is interrupted, the result has the same bits
//! as that of an undisturbed run. And of files that must not be believed.

use super::*;
use crate::job::{EpochProgress, Flow, Observer};
use crate::train::continue_fold;
use togl_data::{DatasetBuilder, OpenOptions, Task};
use togl_sweeps::FoldResult;
use togl_sweeps::trial::{Backbone, Features, LastEpoch};

/// Interrupts after some epochs, keeping the checkpoint as the bytes of its file.
#[derive(Default)]
struct Interrupter {
    stop_after: Vec<u32>,
    file: Option<Vec<u8>>,
    epochs_seen: Vec<u32>,
}

impl Observer for Interrupter {
    fn epoch(&mut self, progress: &EpochProgress) -> Flow {
        self.epochs_seen.push(progress.epoch);
        if self.stop_after.contains(&progress.epoch) { Flow::SaveAndStop } else { Flow::Continue }
    }

    fn checkpoint(&mut self, checkpoint: Checkpoint) {
        self.file = Some(checkpoint.to_bytes().unwrap());
    }
}

fn trial() -> TrialConfig {
    TrialConfig {
        dataset: "necklaces".to_owned(),
        hidden_dim: 8,
        depth: 2,
        batch_size: 8,
        max_epochs: 5,
        num_filtrations: 2,
        filtration_hidden: 4,
        lr: 0.02,
        lr_patience: 0,
        ..TrialConfig::default()
    }
}

fn necklaces() -> Dataset {
    togl_data::open("necklaces", &OpenOptions { graphs: Some(30), ..OpenOptions::default() }).unwrap()
}

fn with_job<T>(trial: &TrialConfig, work: impl FnOnce(&Job<'_>) -> T) -> T {
    crate::use_threads(1);
    let clock = || 0.0;
    let job = Job { trial, split: 3, seed: 5, device: crate::Device::Cpu, clock: &clock };
    work(&job)
}

/// Wants to end after some batches, whatever epoch it is in, and keeps what it is given.
struct Hurried {
    batches_left: u32,
    file: Option<Vec<u8>>,
}

impl Observer for Hurried {
    fn epoch(&mut self, _: &EpochProgress) -> Flow {
        Flow::Continue
    }

    fn in_haste(&mut self) -> bool {
        self.batches_left = self.batches_left.saturating_sub(1);
        self.batches_left == 0
    }

    fn checkpoint(&mut self, checkpoint: Checkpoint) {
        self.file = Some(checkpoint.to_bytes().unwrap());
    }
}

/// Long epochs on a machine that is taken away: what is left is the state after the last whole epoch.
#[test]
fn a_fold_that_is_stopped_within_a_long_epoch_goes_on_after_the_last_whole_one() {
    let (data, trial) = (necklaces(), trial());
    let calm = undisturbed(&trial, &data);
    let now = std::cell::Cell::new(0.0);
    let clock = || {
        now.set(now.get() + 10.0);
        now.get()
    };
    crate::use_threads(1);
    let device = crate::Device::Cpu;
    let slow = Job { trial: &trial, split: 3, seed: 5, device, clock: &clock };
    // 24 of 30 graphs are learned from: three batches of 8 an epoch.
    for (batches, whole) in [(2, 0), (4, 1), (8, 2)] {
        let mut hurried = Hurried { batches_left: batches, file: None };
        let error = crate::train_fold(&slow, &data, &mut hurried).unwrap_err();
        assert!(
            matches!(error, TrainError::Stopped { epochs } if epochs == whole),
            "{batches} batches: {error}"
        );
        let from = hurried.file.map(|bytes| Checkpoint::from_bytes(&bytes).unwrap());
        assert_eq!(from.as_ref().map_or(0, |from| from.header.epochs), whole);
        let mut rest = Interrupter::default();
        let result = with_job(&trial, |job| continue_fold(job, &data, from.as_ref(), &mut rest).unwrap());
        assert_eq!(FoldResult { seconds: 0.0, ..result }, calm, "after {batches} batches");
        assert_eq!(rest.epochs_seen, (whole..calm.epochs).collect::<Vec<_>>());
    }
}

fn undisturbed(trial: &TrialConfig, data: &Dataset) -> FoldResult {
    with_job(trial, |job| crate::train_fold(job, data, &mut Interrupter::default()).unwrap())
}

/// Trains with an interruption after each of these epochs; every part is a fresh network that knows the file only.
fn interrupted(trial: &TrialConfig, data: &Dataset, stop_after: &[u32]) -> FoldResult {
    with_job(trial, |job| {
        let mut observer = Interrupter { stop_after: stop_after.to_vec(), ..Interrupter::default() };
        let mut parts = 0;
        loop {
            let from = observer.file.take().map(|bytes| Checkpoint::from_bytes(&bytes).unwrap());
            match continue_fold(job, data, from.as_ref(), &mut observer) {
                Ok(result) => {
                    assert_eq!(parts, stop_after.len(), "it was not interrupted as often as intended");
                    let all: Vec<u32> = (0..result.epochs).collect();
                    assert_eq!(observer.epochs_seen, all, "no epoch is trained twice or left out");
                    return result;
                }
                Err(TrainError::Stopped { .. }) => parts += 1,
                Err(other) => panic!("{other}"),
            }
        }
    })
}

/// After the first, a middle and the last epoch alone, and after every epoch.
fn assert_bits_survive(trial: &TrialConfig, data: &Dataset) {
    let calm = undisturbed(trial, data);
    calm.clone().check().unwrap();
    let every: Vec<u32> = (0..calm.epochs).collect();
    for epoch in [0, calm.epochs / 2, calm.epochs - 1] {
        assert_eq!(interrupted(trial, data, &[epoch]), calm, "after epoch {epoch} of {}", trial.canonical());
    }
    assert_eq!(interrupted(trial, data, &every), calm, "after every epoch of {}", trial.canonical());
}

#[test]
fn every_kind_of_network_goes_on_with_the_same_bits() {
    let data = necklaces();
    let togl = TrialConfig { togl: true, ..trial() };
    let regularised = TrialConfig { dropout_p: 0.2, batch_norm: true, ..trial() };
    let trials = [
        trial(),
        togl.clone(),
        TrialConfig { deepset: true, dropout_p: 0.1, ..togl.clone() },
        TrialConfig { static_variant: true, ..togl.clone() },
        TrialConfig { static_variant: true, deepset: true, features: Features::Random, ..togl.clone() },
        TrialConfig { model: Backbone::Gat, num_heads: 2, ..regularised.clone() },
        TrialConfig { model: Backbone::Gin, ..regularised.clone() },
        TrialConfig { model: Backbone::GatedGcn, weight_decay: 1e-3, ..regularised },
        TrialConfig { features: Features::Random, share_filtration_parameters: false, ..togl },
    ];
    for trial in &trials {
        assert_bits_survive(trial, &data);
    }
}

#[test]
fn node_tasks_go_on_with_the_same_bits() {
    let mut builder = DatasetBuilder::new("nodes", Task::NodeClassification, 2, 1);
    for graph in 0..30u32 {
        let edges: &[(u32, u32)] = if graph % 2 == 0 { &[(0, 1), (1, 2), (0, 2)] } else { &[(0, 1)] };
        builder.push_undirected(3, edges, &[graph as f32 / 30.0, 1.0, -1.0], &[graph % 2, 0, 1]);
    }
    let trial = TrialConfig { dataset: "nodes".to_owned(), togl: true, dropout_p: 0.1, ..trial() };
    assert_bits_survive(&trial, &builder.finish().unwrap());
}

/// The places where the state is most particular: right after the best epoch, right before the rate is halved, and
/// after the last epoch, which an exhausted rate may cut short.
#[test]
fn particular_moments_are_among_those_that_were_tried() {
    let data = necklaces();
    let halving = TrialConfig { max_epochs: 14, lr: 0.05, ..trial() };
    let calm = undisturbed(&halving, &data);
    let halved =
        calm.history.windows(2).position(|pair| pair[1].lr < pair[0].lr).expect("the rate never fell");
    assert!(calm.best_epoch + 1 < calm.epochs, "the best epoch is the last one");
    let moments = [calm.best_epoch, halved as u32 - 1, halved as u32, calm.epochs - 1];
    for moment in moments {
        assert_eq!(interrupted(&halving, &data, &[moment]), calm, "after epoch {moment}");
    }
    for last_epoch in [LastEpoch::OneBatch, LastEpoch::Full] {
        let exhausted = TrialConfig { lr_min: 0.02, last_epoch, max_epochs: 40, ..halving.clone() };
        let calm = undisturbed(&exhausted, &data);
        assert!(calm.epochs < 40, "the rate was never exhausted");
        for moment in [calm.epochs - 2, calm.epochs - 1] {
            assert_eq!(
                interrupted(&exhausted, &data, &[moment]),
                calm,
                "{last_epoch:?}, after epoch {moment}"
            );
        }
    }
}

#[test]
fn seconds_of_all_parts_are_added() {
    let (data, trial) = (necklaces(), trial());
    crate::use_threads(1);
    let now = std::cell::Cell::new(0.0);
    let clock = || {
        now.set(now.get() + 1.0);
        now.get()
    };
    let device = crate::Device::Cpu;
    let job = Job { trial: &trial, split: 3, seed: 5, device, clock: &clock };
    let mut observer = Interrupter { stop_after: vec![2], ..Interrupter::default() };
    let whole = crate::train_fold(&job, &data, &mut Interrupter::default()).unwrap().seconds;
    continue_fold(&job, &data, None, &mut observer).unwrap_err();
    let from = Checkpoint::from_bytes(&observer.file.take().unwrap()).unwrap();
    let both = continue_fold(&job, &data, Some(&from), &mut observer).unwrap().seconds;
    assert!((both - whole).abs() <= 3.0, "{both} seconds in two parts, {whole} in one");
    assert!(from.notes.seconds > 3.0, "the first part took its time");
}

fn some_checkpoint() -> Vec<u8> {
    let (data, trial) = (necklaces(), TrialConfig { togl: true, ..trial() });
    let mut observer = Interrupter { stop_after: vec![1], ..Interrupter::default() };
    with_job(&trial, |job| continue_fold(job, &data, None, &mut observer).unwrap_err());
    observer.file.unwrap()
}

#[test]
fn the_header_says_what_a_file_belongs_to() {
    let checkpoint = Checkpoint::from_bytes(&some_checkpoint()).unwrap();
    let trial = TrialConfig { togl: true, ..trial() };
    assert_eq!(checkpoint.header.fold, FoldKey { trial: trial.id(), split: 3, seed: 5 });
    assert_eq!((checkpoint.header.epochs, checkpoint.header.device.as_str()), (2, "cpu"));
    assert_eq!(checkpoint.trial().unwrap().id(), trial.id());
}

#[test]
fn torn_and_damaged_files_are_refused_wherever_the_damage_is() {
    let whole = some_checkpoint();
    for length in [0, 1, 7, 8, 100, whole.len() / 2, whole.len() - 1] {
        assert!(Checkpoint::from_bytes(&whole[..length]).is_err(), "torn after {length} bytes");
    }
    let original = Checkpoint::from_bytes(&whole).unwrap();
    for place in (0..whole.len()).step_by(whole.len() / 200) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x11;
        if let Ok(read) = Checkpoint::from_bytes(&damaged) {
            // Blanks that only fill up lines may differ; what they say may not.
            assert_eq!((read.header, read.notes), (original.header.clone(), original.notes.clone()));
            assert_eq!(read.tensors, original.tensors, "damage at {place} went unnoticed");
        }
    }
    assert!(Checkpoint::from_bytes(b"something else entirely, longer than a header").is_err());
}

#[test]
fn a_checkpoint_of_another_fold_data_set_or_version_is_foreign() {
    let checkpoint = Checkpoint::from_bytes(&some_checkpoint()).unwrap();
    let ours = checkpoint.header.clone();
    assert_eq!(ours.misfit(&ours), None);
    let other_split = Header { fold: FoldKey { split: 4, ..ours.fold }, ..ours.clone() };
    let others = [
        (other_split.clone(), "the fold"),
        (Header { fold: FoldKey { seed: 6, ..ours.fold }, ..ours.clone() }, "the fold"),
        (Header { data_digest: "other".to_owned(), ..ours.clone() }, "digest other"),
        (Header { device: "cuda".to_owned(), ..ours.clone() }, "kind cuda"),
        (Header { content: Content::Model, ..ours.clone() }, "model"),
    ];
    for (other, word) in others {
        let reason = ours.misfit(&other).unwrap();
        assert!(reason.contains(word), "{reason}");
    }
    let (data, trial) = (necklaces(), TrialConfig { togl: true, ..trial() });
    let foreign = Checkpoint { header: other_split, ..checkpoint };
    let error = with_job(&trial, |job| {
        continue_fold(job, &data, Some(&foreign), &mut Interrupter::default()).unwrap_err()
    });
    assert!(matches!(error, TrainError::Checkpoint(_)), "{error}");
    for versions in [(FORMAT + 1, NUMERICS), (FORMAT, NUMERICS + 1)] {
        let (format, numerics) = versions;
        let newer = Checkpoint { header: Header { format, numerics, ..ours.clone() }, ..some_parts() };
        let error = Checkpoint::from_bytes(&newer.to_bytes().unwrap()).unwrap_err().to_string();
        assert!(error.contains("another version"), "{error}");
    }
}

fn some_parts() -> Checkpoint {
    Checkpoint::from_bytes(&some_checkpoint()).unwrap()
}

/// Keeps the best network.
#[derive(Default)]
struct Keeper(Option<Checkpoint>);

impl Observer for Keeper {
    fn epoch(&mut self, _progress: &EpochProgress) -> Flow {
        Flow::Continue
    }

    fn trained(&mut self, model: Checkpoint) {
        self.0 = Some(Checkpoint::from_bytes(&model.to_bytes().unwrap()).unwrap());
    }
}

#[test]
fn a_kept_model_gives_the_filtrations_of_the_best_network() {
    let (data, trial) = (necklaces(), TrialConfig { togl: true, ..trial() });
    let mut keeper = Keeper::default();
    let result = with_job(&trial, |job| crate::train_fold(job, &data, &mut keeper).unwrap());
    let model = keeper.0.unwrap();
    let of = |graphs: &[u32]| crate::filtrations(&model, &data, graphs, crate::Device::Cpu);
    let learnt = of(&[2, 0]).unwrap();
    assert_eq!((learnt.best_epoch, learnt.num_filtrations), (result.best_epoch, 2));
    assert_eq!(learnt.graphs.iter().map(|graph| graph.graph).collect::<Vec<_>>(), [2, 0]);
    for graph in &learnt.graphs {
        assert_eq!(graph.edges, data.undirected_edges(graph.graph as usize));
        assert_eq!(graph.filtrations.len(), 2);
        assert!(graph.filtrations.iter().all(|values| values.len() == graph.vertices));
        assert_eq!(graph.degrees.iter().sum::<u32>() as usize, 2 * graph.edges.len());
    }
    let alone = of(&[0]).unwrap();
    assert_eq!(alone.graphs[0], learnt.graphs[1], "values do not depend on the company");
    assert!(of(&[30]).unwrap_err().to_string().contains("use 0 to 29"));
}

#[test]
fn a_network_without_topology_learnt_no_filtrations() {
    let (data, trial) = (necklaces(), trial());
    let mut keeper = Keeper::default();
    with_job(&trial, |job| crate::train_fold(job, &data, &mut keeper).unwrap());
    let error = crate::filtrations(&keeper.0.unwrap(), &data, &[0], crate::Device::Cpu).unwrap_err();
    assert!(error.to_string().contains("no topological layer"), "{error}");
}
