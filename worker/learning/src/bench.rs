//! Measures how long a training epoch takes: forward, backward and optimiser over batches that were collated
//! beforehand, and the collation by itself. The clock is an argument; nothing here prints.

use std::time::Duration;

use serde::Serialize;
use togl_data::{Dataset, Stage};
use togl_topology::{RandomGraphs, measure};

use crate::batch::{Batch, BatchNeeds, Collator, DrawKey};
use crate::error::{Result, TrainError, guard};
use crate::job::Job;
use crate::launches::{self, StepLaunches};
use crate::learner::{Learner, collated, draws, training_batches};
use crate::metrics::MetricTally;
use crate::shares::{self, Shares};

/// Seconds of one training epoch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EpochTiming {
    /// Name of the network, such as `GCN-4`.
    pub method: String,
    /// Trainable parameters.
    pub parameters: u64,
    /// Graphs trained in an epoch.
    pub graphs: usize,
    /// Mini-batches in an epoch.
    pub batches: usize,
    /// Epochs measured.
    pub epochs: usize,
    /// Median seconds of an epoch over batches collated beforehand.
    pub median: f64,
    /// Least seconds of an epoch.
    pub min: f64,
    /// Seconds to collate the batches of an epoch.
    pub collation: f64,
    /// Seconds to evaluate the validation part once, as training does after every epoch.
    pub validation: f64,
    /// Graphs a second at the median.
    pub graphs_per_second: f64,
    /// Where the time goes.
    pub shares: Shares,
}

/// Trains the fold of `job` for `warmup` epochs, then measures `epochs` more. The time limit is not applied.
///
/// # Errors
/// As training; and `epochs` must not be 0.
pub fn epoch_seconds(job: &Job<'_>, dataset: &Dataset, warmup: usize, epochs: usize) -> Result<EpochTiming> {
    if epochs == 0 {
        return Err(TrainError::Config("at least one epoch has to be measured".to_owned()));
    }
    guard(|| {
        let mut learner = Learner::new(job, dataset)?;
        let split = dataset.split(job.split.into())?;
        let collator = Collator::new(dataset, BatchNeeds::of(job.trial), learner.parameters.device());
        let shuffled = training_batches(job, &split.train, 0);
        let in_turn = shuffled.iter().map(Vec::as_slice);
        let (batches, collation) = timed(job, || collated(job, &collator, in_turn, Stage::Training))?;
        let in_order = split.validation.chunks(job.trial.batch_size as usize);
        let held_out = collated(job, &collator, in_order, Stage::Validation)?;
        for _ in 0..warmup {
            train(&mut learner, &batches, job.trial.lr)?;
        }
        let mut seconds = Vec::with_capacity(epochs);
        for _ in 0..epochs {
            seconds.push(timed(job, || train(&mut learner, &batches, job.trial.lr))?.1);
        }
        seconds.sort_by(f64::total_cmp);
        let median = (seconds[(epochs - 1) / 2] + seconds[epochs / 2]) / 2.0;
        let (_, validation) = timed(job, || learner.evaluate(&held_out, "in a benchmark"))?;
        let shares = shares::measure(job.trial, batches.iter().map(|(batch, _)| batch), median, job.clock)?;
        let graphs = batches.iter().map(|(batch, _)| batch.graph_ids.len()).sum();
        Ok(EpochTiming {
            method: job.trial.method(),
            parameters: learner.parameters.count(),
            graphs,
            batches: batches.len(),
            epochs,
            median,
            min: seconds[0],
            collation,
            validation,
            shares,
            graphs_per_second: if median > 0.0 { graphs as f64 / median } else { 0.0 },
        })
    })
}

/// What the last of `steps` training steps asks of the device of `job`; those before it warm up.
///
/// # Errors
/// As training; and the device must be one that work is launched on, not the processor.
pub fn step_launches(job: &Job<'_>, dataset: &Dataset, steps: usize) -> Result<StepLaunches> {
    guard(|| {
        let mut learner = Learner::new(job, dataset)?;
        let split = dataset.split(job.split.into())?;
        let device = learner.parameters.device();
        let collator = Collator::new(dataset, BatchNeeds::of(job.trial), device);
        let shuffled = training_batches(job, &split.train, 0);
        let mut counted = None;
        for (step, members) in shuffled.iter().cycle().take(steps.max(1)).enumerate() {
            let draws = draws(job, Stage::Training, 0, step);
            let batch = collator.collate(members, draws)?;
            let mut learn = || learner.learn(&batch, draws, job.trial.lr);
            if step + 1 < steps.max(1) {
                drop(learn()?);
            } else {
                counted = launches::counted(device, learn);
            }
        }
        let refuse = || TrainError::Config("the processor launches nothing; name a device".to_owned());
        let (learnt, lines) = counted.ok_or_else(refuse)?;
        drop(learnt?);
        Ok(launches::table(job.trial.method(), &lines))
    })
}

/// What `work` gives, and the seconds it took.
fn timed<T>(job: &Job<'_>, work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let begun = (job.clock)();
    let made = work()?;
    Ok((made, (job.clock)() - begun))
}

fn train(learner: &mut Learner, batches: &[(Batch, DrawKey)], lr: f64) -> Result<()> {
    let mut tally = MetricTally::new(learner.task, learner.classes);
    for (batch, draws) in batches {
        learner.learn(batch, *draws, lr)?.count(&mut tally, batch, "in a benchmark")?;
    }
    tally.settle()
}

/// Median and least microseconds of persistence for one graph of this size under one filtration, on one thread.
///
/// # Errors
/// If such graphs cannot be made: edges without vertices.
pub fn persistence_microseconds(
    vertices: usize,
    edges: usize,
    repeats: usize,
    clock: &dyn Fn() -> f64,
) -> Result<(f64, f64)> {
    // Eight filtrations of a batch of twenty graphs: what a training step asks for.
    let workload = RandomGraphs { vertices, edges, filtrations: 8, graphs: 20, repeats };
    let timing = measure(workload, || Duration::from_secs_f64(clock()))
        .map_err(|error| TrainError::Config(error.to_string()))?;
    Ok((timing.median, timing.min))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use std::cell::Cell;
    use togl_data::OpenOptions;
    use togl_sweeps::TrialConfig;

    #[test]
    fn epochs_are_timed_by_the_given_clock_only() {
        let data =
            togl_data::open("cycles", &OpenOptions { graphs: Some(30), ..OpenOptions::default() }).unwrap();
        let trial = TrialConfig {
            dataset: "cycles".to_owned(),
            hidden_dim: 8,
            batch_size: 10,
            ..TrialConfig::default()
        };
        let ticks = Cell::new(0.0);
        let clock = || {
            ticks.set(ticks.get() + 2.0);
            ticks.get()
        };
        let job = Job { trial: &trial, split: 0, seed: 1, device: Device::Cpu, clock: &clock };
        let timing = epoch_seconds(&job, &data, 1, 3).unwrap();
        assert_eq!((timing.median, timing.min, timing.batches, timing.graphs), (2.0, 2.0, 2, 20));
        assert_eq!(timing.graphs_per_second, 10.0);
        assert!(epoch_seconds(&job, &data, 0, 0).is_err());
    }
}
