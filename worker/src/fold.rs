//! One fold on this machine, with a net below it: goes on from the newest checkpoint, saves when asked, keeps the
//! trained network where that is wanted. What `train`, `filtrations` and the trainer share. A checkpoint that cannot
//! be written is a warning, never the end of a fold.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use togl_agent::durable;
use togl_data::Dataset;
use togl_learning::{
    Checkpoint, Device, EpochProgress, Flow, Header, Job, Observer, TrainError, continue_fold,
};
use togl_sweeps::{Attempt, FoldResult, TrialConfig};

use crate::checkpoints::{Checkpoints, model_name};

/// What a fold leaves on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeping {
    /// Where its checkpoints go; none are written where absent.
    pub checkpoints: Option<Checkpoints>,
    /// Where its best network is kept; it is not where absent.
    pub models: Option<PathBuf>,
}

/// Who follows a fold.
pub struct Follower<'a> {
    /// Is told what people should know.
    pub say: &'a dyn Fn(&str),
    /// Is told of every epoch, and says what happens next.
    pub epoch: &'a mut dyn FnMut(&EpochProgress) -> Flow,
    /// Is told whenever a checkpoint has been written.
    pub saved: &'a mut dyn FnMut(),
    /// Says after every batch whether the epoch must be cut short.
    pub in_haste: &'a mut dyn FnMut() -> bool,
}

/// What the steps of a fold are called: a kernel has no epochs, it tries the points of a grid.
pub fn step_name(trial: &TrialConfig) -> &'static str {
    if trial.model.is_kernel() { "grid point" } else { "epoch" }
}

/// Where a fold really computes on a slot of this device: kernels know the processor only.
pub fn place(trial: &TrialConfig, device: Device) -> Device {
    if trial.model.is_kernel() { Device::Cpu } else { device }
}

/// A trained fold.
pub struct Trained {
    /// What it reports.
    pub result: FoldResult,
    /// Its best network.
    pub model: Option<Checkpoint>,
    /// Whether an earlier attempt did a part of it.
    pub went_on: bool,
}

/// Trains a fold, going on where its newest checkpoint is.
pub fn train(
    job: &Job<'_>,
    dataset: &Dataset,
    keeping: &Keeping,
    attempt: Attempt,
    follower: Follower<'_>,
) -> Result<Trained, TrainError> {
    let say = follower.say;
    let header = Header::of(job, dataset);
    let from = keeping.checkpoints.as_ref().and_then(|folder| folder.newest(&header, say));
    if let Some(from) = &from {
        let Header { epochs, attempt, .. } = from.header;
        say(&format!("goes on after epoch {epochs}, from the checkpoint of attempt {attempt}"));
    }
    let mut saver = Saver { keeping, attempt, follower, model: None, trouble: String::new() };
    let mut went_on = from.is_some();
    let mut outcome = continue_fold(job, dataset, from.as_ref(), &mut saver);
    if let Err(TrainError::Checkpoint(reason)) = &outcome {
        say(&format!("warning: the checkpoint is of no use, training starts anew: {reason}"));
        went_on = false;
        outcome = continue_fold(job, dataset, None, &mut saver);
    }
    let (result, model) = (outcome?, saver.model);
    if let (Some(folder), Some(model)) = (&keeping.models, &model)
        && let Err(reason) = keep_model(folder, model)
    {
        say(&format!("warning: the model is not kept: {reason}"));
    }
    Ok(Trained { result, model, went_on })
}

/// Writes what training hands over.
struct Saver<'a, 'f> {
    keeping: &'a Keeping,
    attempt: Attempt,
    follower: Follower<'f>,
    model: Option<Checkpoint>,
    /// What was last complained about; once is enough.
    trouble: String,
}

impl Observer for Saver<'_, '_> {
    fn epoch(&mut self, progress: &EpochProgress) -> Flow {
        (self.follower.epoch)(progress)
    }

    fn in_haste(&mut self) -> bool {
        (self.follower.in_haste)()
    }

    fn checkpoint(&mut self, checkpoint: Checkpoint) {
        let Some(folder) = &self.keeping.checkpoints else { return };
        match folder.save(self.attempt, checkpoint) {
            Ok(()) => {
                self.trouble.clear();
                (self.follower.saved)();
            }
            Err(error) => {
                let trouble = format!("warning: no checkpoint written, training goes on without: {error}");
                if trouble != self.trouble {
                    (self.follower.say)(&trouble);
                    self.trouble = trouble;
                }
            }
        }
    }

    fn trained(&mut self, model: Checkpoint) {
        self.model = Some(model);
    }
}

fn keep_model(folder: &Path, model: &Checkpoint) -> Result<(), String> {
    let bytes = model.to_bytes().map_err(|error| error.to_string())?;
    let path = folder.join(model_name(model.header.fold));
    fs::create_dir_all(folder)
        .and_then(|()| durable::write_with_mode(&path, &bytes, togl_durable::EVERYBODYS))
        .map_err(|error| format!("{}: {error}", folder.display()))
}
