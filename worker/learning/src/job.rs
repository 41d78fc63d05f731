//! What a caller asks for and hears while a fold is trained: the job, the observer of its epochs, and what the observer
//! may want next. Owns these words for networks and kernels alike; trains nothing.

use togl_data::{Dataset, Split};
use togl_sweeps::result::{EpochRecord, FoldResult, Metrics, Provenance, version_of};
use togl_sweeps::trial::{NUMERICS, TrialConfig};

use crate::checkpoint::Checkpoint;
use crate::device::{self, Device};

/// One fold to train.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The hyperparameters.
    pub trial: &'a TrialConfig,
    /// Fold index, or split seed for data without published folds.
    pub split: u32,
    /// Training seed.
    pub seed: u64,
    /// Where to train.
    pub device: Device,
    /// Seconds since any fixed moment, never going back.
    pub clock: &'a dyn Fn() -> f64,
}

/// What an observer wants to happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Train on.
    Continue,
    /// Hand a checkpoint to [`Observer::checkpoint`], then train on.
    Save,
    /// Hand over a checkpoint, then end as [`TrainError::Stopped`](crate::TrainError::Stopped).
    SaveAndStop,
    /// End as [`TrainError::Stopped`](crate::TrainError::Stopped).
    Stop,
}

/// State after an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpochProgress {
    /// Epoch that has just ended, from 0.
    pub epoch: u32,
    /// Training ends after this many epochs at the latest.
    pub max_epochs: u32,
    /// Learning rate used in it.
    pub lr: f64,
    /// On the training batches, in training mode.
    pub train: Metrics,
    /// On the validation part.
    pub validation: Metrics,
    /// Epoch of the best checkpoint so far.
    pub best_epoch: u32,
    /// Training graphs a second in this epoch (without validation); 0 if the clock stood still.
    pub graphs_per_second: f64,
    /// Seconds of training, those before an interruption included.
    pub seconds: f64,
}

/// Is told about every epoch.
pub trait Observer {
    /// Called after every epoch; says what happens next.
    fn epoch(&mut self, progress: &EpochProgress) -> Flow;

    /// Called after every mini-batch: whether training must end now, before the epoch does. It then ends as
    /// [`TrainError::Stopped`](crate::TrainError::Stopped), and [`Observer::checkpoint`] is given what the last whole epoch left, if epochs are long.
    fn in_haste(&mut self) -> bool {
        false
    }

    /// Takes the checkpoint that was asked for.
    fn checkpoint(&mut self, _checkpoint: Checkpoint) {}

    /// Takes the best network when training is over.
    fn trained(&mut self, _model: Checkpoint) {}
}

/// Any closure observes.
impl<F: FnMut(&EpochProgress) -> Flow> Observer for F {
    fn epoch(&mut self, progress: &EpochProgress) -> Flow {
        self(progress)
    }
}

/// What every result says, whatever was trained; `best` is the record of what was chosen. How long it took and what it
/// is made of, the caller adds; what the machine did, the worker.
pub(crate) fn result(
    dataset: &Dataset,
    split: &Split,
    device: &str,
    best: EpochRecord,
    test: Metrics,
    history: Vec<EpochRecord>,
) -> FoldResult {
    let (device, libtorch, processor) =
        (device.to_owned(), device::libtorch_version(), device::processor(device));
    FoldResult {
        version: version_of(None),
        numerics: NUMERICS,
        score: None,
        test,
        validation: best.validation,
        train: best.train,
        last_validation: best.validation,
        best_epoch: best.epoch,
        epochs: history.len() as u32,
        seconds: 0.0,
        finished_at: None,
        energy_joules: None,
        peak_memory: 0,
        parameters: 0,
        confusion: Vec::new(),
        part_sizes: [&split.train, &split.validation, &split.test].map(|part| part.len() as u64),
        data_digest: dataset.digest().to_string(),
        split_digest: split.digest().to_string(),
        provenance: Provenance { device, libtorch, processor, ..Provenance::default() },
        history,
    }
}
