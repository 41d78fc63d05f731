//! `togl-worker train`: one fold with a progress bar, without any coordinator, for looking into a trial. Interrupted,
//! it leaves a checkpoint from which the same command goes on.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use togl_agent::clock::Clock;
use togl_learning::{Device, Job, Progress, TrainError};
use togl_sweeps::{Attempt, FailureClass, FoldKey, SweepSpec, TrialConfig};

use crate::data::Data;
use crate::energy::{self, Watch};
use crate::fold::{self, Follower, Trained};
use crate::host::PeakMemory;
use crate::saving::Saving;
use crate::version::{Format, print};
use crate::{Usage, devices, trainer, wishes};

/// Train one fold here, without a coordinator
#[derive(Debug, clap::Args)]
pub struct Train {
    /// A sweep file with one trial, or the canonical JSON of a trial
    #[arg(long, value_name = "FILE")]
    trial: PathBuf,
    /// Which split of the data set
    #[arg(long, default_value_t = 0)]
    split: u32,
    /// Training seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Device to train on
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Threads of the trainer; one is bit-reproducible
    #[arg(long, default_value_t = 1)]
    threads: usize,
    #[command(flatten)]
    data: Data,
    /// Start anew instead of going on from a checkpoint
    #[arg(long)]
    fresh: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    #[command(flatten)]
    saving: Saving,
}

impl Train {
    /// Trains and prints the result.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let trial = read_trial(&self.trial)?;
        let local = Local {
            split: self.split,
            seed: self.seed,
            device: devices::parse(&self.device).map_err(Usage)?,
            threads: self.threads,
            data: self.data,
            fresh: self.fresh,
            saving: self.saving,
        };
        let Some(Trained { result, .. }) = local.train(&trial)? else { return Ok(ExitCode::from(130)) };
        let text = match self.format {
            Format::Json => serde_json::to_string_pretty(&result)? + "\n",
            Format::Human => format!(
                "{} on {}: test accuracy {:.1} %, validation {:.1} %, best epoch {} of {}, {:.1} s\n",
                trial.method(),
                trial.dataset,
                100.0 * result.test.accuracy,
                100.0 * result.validation.accuracy,
                result.best_epoch + 1,
                result.epochs,
                result.seconds
            ),
        };
        print(&text)?;
        local.forget_checkpoints(&trial);
        Ok(ExitCode::SUCCESS)
    }
}

/// A fold trained by a command of its own.
pub struct Local {
    /// Which split of the data set.
    pub split: u32,
    /// Training seed.
    pub seed: u64,
    /// Where to train.
    pub device: Device,
    /// Threads of the training.
    pub threads: usize,
    /// Where data sets come from.
    pub data: Data,
    /// Whether to start anew.
    pub fresh: bool,
    /// What is kept, and where.
    pub saving: Saving,
}

impl Local {
    /// Trains with a progress bar; nothing if it was interrupted, which it says.
    pub fn train(&self, trial: &TrialConfig) -> anyhow::Result<Option<Trained>> {
        wishes::stop_on(&[libc::SIGINT, libc::SIGTERM]);
        togl_learning::use_threads(self.threads);
        let mut memory = PeakMemory::start();
        let dataset =
            self.data.open(trial, &|text| eprintln!("{text}")).map_err(|error| Usage(error.message))?;
        if self.fresh {
            self.forget_checkpoints(trial);
        }
        let energy = Watch::start(energy::meter(self.device), std::process::id());
        let (clock, bar) = (Clock::start(), progress_bar(trial));
        let seconds = || clock.seconds();
        let (split, seed, device) = (self.split, self.seed, self.device);
        let job = Job { trial, split, seed, device, time_limit: None, clock: &seconds };
        let (every, mut saved) = (self.saving.every().as_secs_f64(), 0.0);
        let mut epoch = |progress: &Progress| {
            bar.set_position(u64::from(progress.epoch) + 1);
            bar.set_message(format!("validation {:.1} %", 100.0 * progress.validation.accuracy));
            memory.look();
            if seconds() - saved >= every {
                saved = seconds();
                wishes::save();
            }
            wishes::next()
        };
        let say = |text: &str| bar.suspend(|| eprintln!("{text}"));
        let follower = Follower { say: &say, epoch: &mut epoch };
        let outcome = fold::train(&job, &dataset, &self.saving.keeping(), Attempt(0), follower);
        bar.finish_and_clear();
        match outcome {
            Ok(mut trained) => {
                trainer::sign(&mut trained, &memory, &energy);
                Ok(Some(trained))
            }
            Err(TrainError::Stopped { epoch }) => {
                eprintln!("interrupted after epoch {}; the same command goes on from there", epoch + 1);
                Ok(None)
            }
            Err(error) => Err(explained(error)),
        }
    }

    /// Removes the checkpoints of the fold.
    pub fn forget_checkpoints(&self, trial: &TrialConfig) {
        let fold = FoldKey { trial: trial.id(), split: self.split, seed: self.seed };
        if let Some(checkpoints) = self.saving.room().checkpoints()
            && let Err(error) = checkpoints.remove(fold)
        {
            eprintln!("warning: cannot remove the checkpoints of {fold}: {error}");
        }
    }
}

/// What the user can mend is bad input; the rest is ours.
pub fn explained(error: TrainError) -> anyhow::Error {
    match error.class() {
        FailureClass::Data | FailureClass::Config => Usage(error.to_string()).into(),
        _ => error.into(),
    }
}

fn progress_bar(trial: &TrialConfig) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} [{bar:30}] epoch {pos}/{len} {msg}");
    let bar = ProgressBar::new(trial.max_epochs.into()).with_prefix(trial.method());
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "))
}

/// A trial from a sweep file that has exactly one, or from canonical JSON.
pub fn read_trial(file: &std::path::Path) -> anyhow::Result<TrialConfig> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read {}", file.display()))
        .map_err(|error| Usage(format!("{error:#}")))?;
    if text.trim_start().starts_with('{') {
        return TrialConfig::from_canonical(&text)
            .map_err(|error| Usage(format!("{}: {error}", file.display())).into());
    }
    let spec = SweepSpec::parse(&text).map_err(|error| Usage(format!("{}:{error}", file.display())))?;
    let mut trials = spec.trials().map_err(|error| Usage(error.to_string()))?;
    if trials.len() != 1 {
        let message =
            format!("{} has {} trials; this needs a file with exactly one", file.display(), trials.len());
        anyhow::bail!(Usage(message));
    }
    Ok(trials.remove(0).config)
}
