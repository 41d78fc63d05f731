//! A network with its optimiser: one step on a mini-batch, one look at a part of the data; and which graphs and which
//! random numbers a step has. Knows no epochs, no schedule and no checkpoints.

use tch::Tensor;
use togl_data::{Dataset, Purpose, RandomStream, Stage, Task};

use crate::adam::Adam;
use crate::batch::{Batch, Collator, DrawKey};
use crate::error::Result;
use crate::job::Job;
use crate::launches;
use crate::layers::Pass;
use crate::metrics::{self, MetricTally};
use crate::model::{Model, Shape};
use crate::native;
use crate::parameters::Parameters;

/// A network in training: the part that benchmarks and folds share.
#[derive(Debug)]
pub(crate) struct Learner {
    pub parameters: Parameters,
    pub model: Model,
    pub adam: Adam,
    pub task: Task,
    pub classes: u32,
}

/// What a step says of its batch.
#[derive(Debug)]
pub(crate) enum Scored {
    /// Loss and class scores.
    Now { loss: Tensor, scores: Tensor },
    /// What both are read from at the end of the epoch.
    Later { log_probabilities: Tensor },
}

impl Scored {
    /// Adds this batch to a tally.
    pub(crate) fn count(&self, tally: &mut MetricTally, batch: &Batch, place: &str) -> Result<()> {
        match self {
            Self::Now { loss, scores } => tally.add(loss, scores, &batch.host_labels, place),
            Self::Later { log_probabilities } => {
                tally.add_later(log_probabilities, &batch.host_labels, place);
                Ok(())
            }
        }
    }
}

impl Learner {
    pub(crate) fn new(job: &Job<'_>, dataset: &Dataset) -> Result<Self> {
        let device = job.device.open()?;
        let mut parameters = Parameters::new(job.seed, job.split.into(), device);
        let model = Model::new(job.trial, Shape::of(dataset, job.trial), &mut parameters)?;
        let adam = Adam::new(&parameters, job.trial.weight_decay);
        Ok(Self { parameters, model, adam, task: dataset.task(), classes: dataset.classes() })
    }

    /// One optimiser step.
    pub(crate) fn learn(&mut self, batch: &Batch, draws: DrawKey, lr: f64) -> Result<Scored> {
        let scores = self.model.forward(&Pass { batch, training: true, draws })?;
        launches::part("loss");
        let scored = self.score(scores, batch)?;
        match (&scored, &batch.pull) {
            (Scored::Later { log_probabilities }, Some(pull)) => native::backward(log_probabilities, pull)?,
            (Scored::Later { log_probabilities: whole }, None) | (Scored::Now { loss: whole, .. }, _) => {
                whole.f_backward()?;
            }
        }
        launches::part("optimiser");
        self.adam.step(lr)?;
        Ok(scored)
    }

    /// On a device the loss itself is not needed before the end of the epoch, only its gradient, which is known.
    fn score(&self, scores: Tensor, batch: &Batch) -> Result<Scored> {
        if batch.pull.is_some() {
            return Ok(Scored::Later { log_probabilities: scores.f_log_softmax(1, None)? });
        }
        Ok(Scored::Now { loss: metrics::loss(self.task, self.classes, &scores, batch)?, scores })
    }

    pub(crate) fn evaluate(&self, batches: &[(Batch, DrawKey)], place: &str) -> Result<MetricTally> {
        // A guard, not a closure: it switches gradients back on even when an operation panics.
        let _no_grad = tch::no_grad_guard();
        let mut tally = MetricTally::new(self.task, self.classes);
        for (batch, draws) in batches {
            let scores = self.model.forward(&Pass { batch, training: false, draws: *draws })?;
            self.score(scores, batch)?.count(&mut tally, batch, place)?;
        }
        tally.settle()?;
        Ok(tally)
    }
}

/// The training graphs of an epoch: shuffled, in batches, an incomplete last batch dropped. Where there are fewer
/// graphs than a batch holds, all of them are one batch.
pub(crate) fn training_batches(job: &Job<'_>, train: &[u32], epoch: u64) -> Vec<Vec<u32>> {
    let mut order = train.to_vec();
    RandomStream::new(job.seed, job.split.into(), Purpose::Shuffle, epoch, 0).shuffle(&mut order);
    let size = (job.trial.batch_size as usize).min(order.len()).max(1);
    order.chunks_exact(size).map(<[u32]>::to_vec).collect()
}

pub(crate) fn draws(job: &Job<'_>, stage: Stage, epoch: u64, step: usize) -> DrawKey {
    DrawKey { seed: job.seed, split: job.split.into(), stage, epoch, step: step as u64 }
}

/// The batches of these graphs as the first epoch sees them, each with its random numbers.
pub(crate) fn collated<'a>(
    job: &Job<'_>,
    collator: &Collator<'_>,
    members: impl Iterator<Item = &'a [u32]>,
    stage: Stage,
) -> Result<Vec<(Batch, DrawKey)>> {
    let batch = |(step, members)| {
        let draws = draws(job, stage, 0, step);
        Ok((collator.collate(members, draws)?, draws))
    };
    members.enumerate().map(batch).collect()
}
