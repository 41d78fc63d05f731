//! Trains one fold: epochs of mini-batches, validation after each, the best checkpoint tested at the end.
//! Everything is a function of (trial, split, seed, data); the clock is an argument and only fills in durations and
//! enforces the time limit. A fold that was interrupted goes on from a checkpoint and ends with the same bits.
//! Owns the order of these steps; what is asked for and who watches is in `job`, one step of the optimiser in
//! `learner`.

use togl_data::{Dataset, Split, Stage};
use togl_sweeps::result::{EpochRecord, FoldResult, Metrics};
use togl_sweeps::trial::LastEpoch;

use crate::baselines;
use crate::batch::{Batch, BatchNeeds, Collator, DrawKey};
use crate::checkpoint::{Checkpoint, Header, Notes};
use crate::error::{Result, TrainError, guard};
use crate::job::{self, EpochProgress, Flow, Job, Observer};
use crate::learner::{Learner, collated, draws, training_batches};
use crate::metrics::MetricTally;
use crate::parameters::ParameterValues;
use crate::schedule::Plateau;

/// Seconds after which an epoch counts as long: its end is kept in memory, so that a fold that is stopped in the middle
/// of the next epoch loses no more than that one.
const LONG_EPOCH: f64 = 2.0;

/// Trains one fold and tests its best checkpoint.
///
/// The provenance of the result has `libtorch` and `device`; the caller fills in the rest, `peak_memory`, `finished_at`
/// and `energy_joules`.
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

/// The best checkpoint so far.
struct Best {
    record: EpochRecord,
    snapshot: ParameterValues,
}

struct Training<'a> {
    job: &'a Job<'a>,
    dataset: &'a Dataset,
    split: &'a Split,
    collator: Collator<'a>,
    validation: Vec<(Batch, DrawKey)>,
    learner: Learner,
    plateau: Plateau,
    best: Option<Best>,
    history: Vec<EpochRecord>,
    started: f64,
    /// Seconds of training before the checkpoint that this run went on from.
    earlier: f64,
    /// What the last whole epoch left, in case the next one is cut short.
    kept: Option<Checkpoint>,
}

impl<'a> Training<'a> {
    fn new(job: &'a Job<'a>, dataset: &'a Dataset, split: &'a Split) -> Result<Self> {
        let learner = Learner::new(job, dataset)?;
        let collator = Collator::new(dataset, BatchNeeds::of(job.trial), learner.parameters.device());
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
            kept: None,
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
            let begun = self.seconds();
            let outcome = self.epoch(epoch, one_batch, observer);
            if let (Err(TrainError::Stopped { .. }), Some(kept)) = (&outcome, self.kept.take()) {
                observer.checkpoint(kept);
            }
            let progress = outcome?;
            let flow = observer.epoch(&progress);
            if let (Flow::Save | Flow::SaveAndStop, Some(checkpoint)) = (flow, self.checkpoint()) {
                observer.checkpoint(checkpoint);
            }
            if let Flow::Stop | Flow::SaveAndStop = flow {
                return Err(TrainError::Stopped { epochs: epoch + 1 });
            }
            let is_long = self.seconds() - begun > LONG_EPOCH;
            self.kept = is_long.then(|| self.checkpoint()).flatten();
        }
        Ok(())
    }

    /// The state after the epochs so far; there is none before the first.
    fn checkpoint(&self) -> Option<Checkpoint> {
        let best = self.best.as_ref()?;
        let (adam, parameters) = (self.learner.adam.state(), &self.learner.parameters);
        let header = Header { epochs: self.history.len() as u32, ..Header::of(self.job, self.dataset) };
        Some(Checkpoint::of(header, self.notes(best), parameters, &adam, &best.snapshot))
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
    fn epoch(&mut self, epoch: u32, one_batch: bool, observer: &mut dyn Observer) -> Result<EpochProgress> {
        let lr = self.plateau.lr();
        let begun = (self.job.clock)();
        let (train, graphs) = self.learn_epoch(epoch, lr, one_batch, observer)?;
        let spent = (self.job.clock)() - begun;
        let validation = self.validate(epoch)?;
        let record = EpochRecord { epoch, lr, train, validation };
        self.history.push(record);
        self.plateau.observe(validation.loss);
        if self.best.as_ref().is_none_or(|best| validation.loss < best.record.validation.loss) {
            self.best = Some(Best { record, snapshot: self.learner.parameters.snapshot() });
        }
        Ok(EpochProgress {
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
    fn learn_epoch(
        &mut self,
        epoch: u32,
        lr: f64,
        one_batch: bool,
        observer: &mut dyn Observer,
    ) -> Result<(Metrics, usize)> {
        let mut tally = MetricTally::new(self.learner.task, self.learner.classes);
        let mut graphs = 0;
        for (step, members) in training_batches(self.job, &self.split.train, epoch.into()).iter().enumerate()
        {
            let draws = draws(self.job, Stage::Training, epoch.into(), step);
            let batch = self.collator.collate(members, draws)?;
            let scored = self.learner.learn(&batch, draws, lr).map_err(|error| self.locate(error, epoch))?;
            scored.count(&mut tally, &batch, &format!("in training epoch {epoch}, batch {step}"))?;
            graphs += members.len();
            if one_batch {
                break;
            }
            if observer.in_haste() {
                return Err(TrainError::Stopped { epochs: epoch });
            }
        }
        tally.settle()?;
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
        let (record, device) = (best.record, self.job.device.kind());
        Ok(FoldResult {
            last_validation: last.validation,
            seconds: self.seconds(),
            parameters: parameters.count(),
            confusion: tally.confusion().to_vec(),
            ..job::result(self.dataset, self.split, device, record, tally.metrics(), self.history)
        })
    }

    fn batches_in_order(&self, graphs: &[u32], stage: Stage) -> Result<Vec<(Batch, DrawKey)>> {
        let chunks = graphs.chunks(self.job.trial.batch_size as usize);
        collated(self.job, &self.collator, chunks, stage)
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

#[cfg(test)]
#[path = "train_tests.rs"]
mod tests;
