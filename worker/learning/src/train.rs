//! Trains one fold: epochs of mini-batches, validation after each, the best checkpoint tested at the end.
//! Everything is a function of (trial, split, seed, data); the clock is an argument and only fills in durations and
//! enforces the time limit. A fold that was interrupted goes on from a checkpoint and ends with the same bits.
//! Owns the order of these steps; losses, schedule and layers are elsewhere.

use tch::Tensor;
use togl_data::{Dataset, Purpose, Split, Stage, Stream, Task};
use togl_sweeps::result::{EpochRecord, FoldResult, Metrics, Provenance, RESULT_VERSION};
use togl_sweeps::trial::{LastEpoch, NUMERICS, TrialConfig};

use crate::adam::Adam;
use crate::baselines;
use crate::batch::{Batch, Collator, Draws, Needs};
use crate::checkpoint::{Checkpoint, Header, Notes};
use crate::device::{self, Device};
use crate::error::{Result, TrainError, guard};
use crate::layers::Pass;
use crate::metrics::{self, Tally};
use crate::model::{Model, Shape};
use crate::parameters::{Parameters, Snapshot};
use crate::schedule::Plateau;

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
    /// Seconds after which training ends as [`TrainError::TimeLimit`].
    pub time_limit: Option<f64>,
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
    /// Hand over a checkpoint, then end as [`TrainError::Stopped`].
    SaveAndStop,
    /// End as [`TrainError::Stopped`].
    Stop,
}

/// State after an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
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
    fn epoch(&mut self, progress: &Progress) -> Flow;

    /// Takes the checkpoint that [`Observer::epoch`] asked for.
    fn checkpoint(&mut self, _checkpoint: Checkpoint) {}

    /// Takes the best network when training is over.
    fn trained(&mut self, _model: Checkpoint) {}
}

/// Any closure observes.
impl<F: FnMut(&Progress) -> Flow> Observer for F {
    fn epoch(&mut self, progress: &Progress) -> Flow {
        self(progress)
    }
}

/// Trains one fold and tests its best checkpoint.
///
/// The provenance of the result has `libtorch` and `device`; the caller fills in the rest and `peak_memory`.
///
/// # Errors
/// See [`TrainError`]; [`TrainError::class`] says what kind of failure it is.
pub fn train_fold(job: &Job<'_>, dataset: &Dataset, observer: &mut dyn Observer) -> Result<FoldResult> {
    continue_fold(job, dataset, None, observer)
}

/// As [`train_fold`], going on from a checkpoint where there is one. The result has the same bits as that of a fold
/// that was never interrupted, apart from its seconds.
///
/// # Errors
/// [`TrainError::Checkpoint`] if the checkpoint does not belong to this job, before anything was trained; otherwise
/// see [`TrainError`].
pub fn continue_fold(
    job: &Job<'_>,
    dataset: &Dataset,
    from: Option<&Checkpoint>,
    observer: &mut dyn Observer,
) -> Result<FoldResult> {
    let split = baselines::split_of(job, dataset)?;
    if job.trial.model.is_kernel() {
        return baselines::fit_fold(job, dataset, &split, observer);
    }
    guard(|| {
        let mut training = Training::new(job, dataset, &split)?;
        if let Some(checkpoint) = from {
            training.resume(checkpoint)?;
        }
        training.run(observer)?;
        training.finish(observer)
    })
}

/// A network in training: the part that benchmarks and folds share.
#[derive(Debug)]
pub(crate) struct Learner {
    pub parameters: Parameters,
    pub model: Model,
    pub adam: Adam,
    pub task: Task,
    pub classes: u32,
}

impl Learner {
    pub(crate) fn new(job: &Job<'_>, dataset: &Dataset) -> Result<Self> {
        let device = job.device.open()?;
        let mut parameters = Parameters::new(job.seed, job.split.into(), device);
        let model = Model::new(job.trial, Shape::of(dataset, job.trial), &mut parameters)?;
        let adam = Adam::new(&parameters, job.trial.weight_decay);
        Ok(Self { parameters, model, adam, task: dataset.task(), classes: dataset.classes() })
    }

    /// One optimiser step; returns loss and scores.
    pub(crate) fn learn(&mut self, batch: &Batch, draws: Draws, lr: f64) -> Result<(Tensor, Tensor)> {
        let scores = self.model.forward(&Pass { batch, training: true, draws })?;
        let loss = metrics::loss(self.task, self.classes, &scores, batch)?;
        loss.f_backward()?;
        self.adam.step(lr)?;
        Ok((loss, scores))
    }

    fn evaluate(&self, batches: &[(Batch, Draws)], place: &str) -> Result<Tally> {
        // A guard, not a closure: it switches gradients back on even when an operation panics.
        let _no_grad = tch::no_grad_guard();
        let mut tally = Tally::new(self.task, self.classes);
        for (batch, draws) in batches {
            let scores = self.model.forward(&Pass { batch, training: false, draws: *draws })?;
            let loss = metrics::loss(self.task, self.classes, &scores, batch)?;
            tally.add(&loss, &scores, &batch.host_labels, place)?;
        }
        Ok(tally)
    }
}

/// The best checkpoint so far.
struct Best {
    record: EpochRecord,
    snapshot: Snapshot,
}

struct Training<'a> {
    job: &'a Job<'a>,
    dataset: &'a Dataset,
    split: &'a Split,
    collator: Collator<'a>,
    validation: Vec<(Batch, Draws)>,
    learner: Learner,
    plateau: Plateau,
    best: Option<Best>,
    history: Vec<EpochRecord>,
    started: f64,
    /// Seconds of training before the checkpoint that this run went on from.
    earlier: f64,
}

impl<'a> Training<'a> {
    fn new(job: &'a Job<'a>, dataset: &'a Dataset, split: &'a Split) -> Result<Self> {
        let learner = Learner::new(job, dataset)?;
        let collator = Collator::new(dataset, Needs::of(job.trial), learner.parameters.device());
        let mut training = Self {
            job,
            dataset,
            split,
            collator,
            validation: Vec::new(),
            learner,
            plateau: Plateau::new(job.trial.lr, job.trial.lr_patience),
            best: None,
            history: Vec::new(),
            started: (job.clock)(),
            earlier: 0.0,
        };
        training.validation = training.batches_in_order(&split.validation, Stage::Validation)?;
        Ok(training)
    }

    /// Takes up the state of a checkpoint of the same fold.
    fn resume(&mut self, from: &Checkpoint) -> Result<()> {
        if let Some(reason) = Header::of(self.job, self.dataset).misfit(&from.header) {
            return Err(TrainError::Checkpoint(reason));
        }
        let notes = from.notes.clone();
        let snapshot = from.restore(&self.learner.parameters, &mut self.learner.adam)?;
        self.best = Some(Best { record: notes.best, snapshot });
        (self.plateau, self.history, self.earlier) = (notes.plateau, notes.history, notes.seconds);
        Ok(())
    }

    fn run(&mut self, observer: &mut dyn Observer) -> Result<()> {
        while let Some(one_batch) = self.next_epoch() {
            let epoch = self.history.len() as u32;
            let progress = self.epoch(epoch, one_batch)?;
            let flow = observer.epoch(&progress);
            if let (Flow::Save | Flow::SaveAndStop, Some(best)) = (flow, &self.best) {
                let (adam, parameters) = (self.learner.adam.state(), &self.learner.parameters);
                let header = Header { epochs: epoch + 1, ..Header::of(self.job, self.dataset) };
                let notes = self.notes(best);
                observer.checkpoint(Checkpoint::of(header, notes, parameters, &adam, &best.snapshot));
            }
            if let Flow::Stop | Flow::SaveAndStop = flow {
                return Err(TrainError::Stopped { epoch });
            }
        }
        Ok(())
    }

    /// Whether there is another epoch, and whether it is cut short to one batch.
    fn next_epoch(&self) -> Option<bool> {
        let trial = self.job.trial;
        let exhausted = |lr: f64| lr < trial.lr_min;
        let last = self.history.last();
        let over =
            self.history.len() as u32 >= trial.max_epochs || last.is_some_and(|last| exhausted(last.lr));
        match exhausted(self.plateau.lr()) {
            _ if over => None,
            true if trial.last_epoch == LastEpoch::Full => None,
            cut_short => Some(cut_short),
        }
    }

    fn notes(&self, best: &Best) -> Notes {
        Notes {
            plateau: self.plateau.clone(),
            best: best.record,
            history: self.history.clone(),
            seconds: self.seconds(),
            adam_steps: self.learner.adam.steps(),
        }
    }

    fn seconds(&self) -> f64 {
        self.earlier + (self.job.clock)() - self.started
    }

    /// Trains and validates one epoch; `one_batch` cuts the training short.
    fn epoch(&mut self, epoch: u32, one_batch: bool) -> Result<Progress> {
        let lr = self.plateau.lr();
        let begun = (self.job.clock)();
        let (train, graphs) = self.learn_epoch(epoch, lr, one_batch)?;
        let spent = (self.job.clock)() - begun;
        let validation = self.validate(epoch)?;
        let record = EpochRecord { epoch, lr, train, validation };
        self.history.push(record);
        self.plateau.observe(validation.loss);
        if self.best.as_ref().is_none_or(|best| validation.loss < best.record.validation.loss) {
            self.best = Some(Best { record, snapshot: self.learner.parameters.snapshot() });
        }
        Ok(Progress {
            epoch,
            max_epochs: self.job.trial.max_epochs,
            lr,
            train,
            validation,
            best_epoch: self.best.as_ref().map_or(epoch, |best| best.record.epoch),
            graphs_per_second: if spent > 0.0 { graphs as f64 / spent } else { 0.0 },
            seconds: self.seconds(),
        })
    }

    /// Metrics of the training batches, and how many graphs they held.
    fn learn_epoch(&mut self, epoch: u32, lr: f64, one_batch: bool) -> Result<(Metrics, usize)> {
        let mut tally = Tally::new(self.learner.task, self.learner.classes);
        let mut graphs = 0;
        for (step, members) in training_batches(self.job, &self.split.train, epoch.into()).iter().enumerate()
        {
            let draws = draws(self.job, Stage::Training, epoch.into(), step);
            let batch = self.collator.collate(members, draws)?;
            let (loss, scores) =
                self.learner.learn(&batch, draws, lr).map_err(|error| self.locate(error, epoch))?;
            tally.add(
                &loss,
                &scores,
                &batch.host_labels,
                &format!("in training epoch {epoch}, batch {step}"),
            )?;
            graphs += members.len();
            self.check_time(epoch)?;
            if one_batch {
                break;
            }
        }
        Ok((tally.metrics(), graphs))
    }

    fn validate(&mut self, epoch: u32) -> Result<Metrics> {
        for (batch, draws) in &mut self.validation {
            draws.epoch = epoch.into();
            self.collator.refresh(batch, *draws);
        }
        let place = format!("in validation after epoch {epoch}");
        let tally =
            self.learner.evaluate(&self.validation, &place).map_err(|error| self.locate(error, epoch))?;
        Ok(tally.metrics())
    }

    fn finish(self, observer: &mut dyn Observer) -> Result<FoldResult> {
        let nothing = || TrainError::Config("no epoch was trained: `lr` is below `lr_min`".to_owned());
        let best = self.best.as_ref().ok_or_else(nothing)?;
        let last = self.history.last().ok_or_else(nothing)?;
        self.learner.parameters.restore(&best.snapshot);
        let test = self.batches_in_order(&self.split.test, Stage::Test)?;
        let tally = self.learner.evaluate(&test, "in the final test")?;
        let header = Header::of(self.job, self.dataset);
        let parameters = &self.learner.parameters;
        observer.trained(Checkpoint::model(header, self.notes(best), parameters, &best.snapshot));
        let (device, libtorch) = (self.job.device.kind().to_owned(), device::libtorch_version());
        Ok(FoldResult {
            version: RESULT_VERSION,
            numerics: NUMERICS,
            test: tally.metrics(),
            validation: best.record.validation,
            train: best.record.train,
            last_validation: last.validation,
            best_epoch: best.record.epoch,
            epochs: self.history.len() as u32,
            seconds: self.seconds(),
            peak_memory: 0,
            parameters: parameters.count(),
            confusion: tally.confusion().to_vec(),
            part_sizes: [&self.split.train, &self.split.validation, &self.split.test]
                .map(|part| part.len() as u64),
            data_digest: self.dataset.digest().to_string(),
            split_digest: self.split.digest().to_string(),
            provenance: Provenance { device, libtorch, ..Provenance::default() },
            history: self.history,
        })
    }

    fn batches_in_order(&self, graphs: &[u32], stage: Stage) -> Result<Vec<(Batch, Draws)>> {
        let chunks = graphs.chunks(self.job.trial.batch_size as usize).enumerate();
        let batch = |(step, members)| {
            let draws = draws(self.job, stage, 0, step);
            Ok((self.collator.collate(members, draws)?, draws))
        };
        chunks.map(batch).collect()
    }

    fn check_time(&self, epoch: u32) -> Result<()> {
        match self.job.time_limit {
            Some(limit) if (self.job.clock)() - self.started > limit => {
                Err(TrainError::TimeLimit { limit, epoch })
            }
            _ => Ok(()),
        }
    }

    /// Says in which trial and epoch a value stopped being a number.
    fn locate(&self, error: TrainError, epoch: u32) -> TrainError {
        match error {
            TrainError::NotFinite(what) => {
                let (trial, split, seed) = (self.job.trial.id(), self.job.split, self.job.seed);
                TrainError::NotFinite(format!("{what}, in epoch {epoch} of {trial}/{split}/{seed}"))
            }
            other => other,
        }
    }
}

/// The training graphs of an epoch: shuffled, in batches, an incomplete last batch dropped. Where there are fewer
/// graphs than a batch holds, all of them are one batch.
pub(crate) fn training_batches(job: &Job<'_>, train: &[u32], epoch: u64) -> Vec<Vec<u32>> {
    let mut order = train.to_vec();
    Stream::new(job.seed, job.split.into(), Purpose::Shuffle, epoch, 0).shuffle(&mut order);
    let size = (job.trial.batch_size as usize).min(order.len()).max(1);
    order.chunks_exact(size).map(<[u32]>::to_vec).collect()
}

pub(crate) fn draws(job: &Job<'_>, stage: Stage, epoch: u64, step: usize) -> Draws {
    Draws { seed: job.seed, split: job.split.into(), stage, epoch, step: step as u64 }
}

#[cfg(test)]
#[path = "train_tests.rs"]
mod tests;
