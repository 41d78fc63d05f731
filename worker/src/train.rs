//! `togl-worker train`: one fold with a progress bar, without any coordinator, for looking into a trial. Interrupted,
//! it leaves a checkpoint from which the same command goes on.

use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use togl_agent::clock::AgentClock;
use togl_learning::{Device, EpochProgress, Job, TrainError, baselines};
use togl_sweeps::{Attempt, FailureClass, FoldKey, SweepSpec, TrialConfig, bounded};

use crate::data::Data;
use crate::energy::{self, EnergyWatch};
use crate::fold::{self, Follower, Trained};
use crate::host::PeakMemory;
use crate::saving::Saving;
use crate::version::{Format, print};
use crate::{Usage, devices, signals, trainer};

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
            device: devices::parse(&self.device).map_err(Usage::new)?,
            threads: self.threads,
            data: self.data,
            fresh: self.fresh,
            saving: self.saving,
        };
        let Some(Trained { result, .. }) = local.train(&trial)? else { return Ok(ExitCode::from(130)) };
        let text = match self.format {
            Format::Json => serde_json::to_string_pretty(&result)? + "\n",
            Format::Human => format!(
                "{} on {}: test accuracy {:.1} %, validation {:.1} %, best {} {} of {}, {:.1} s\n",
                trial.method(),
                trial.dataset,
                100.0 * result.test.accuracy,
                100.0 * result.validation.accuracy,
                fold::step_name(&trial),
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
        signals::stop_on(&[libc::SIGINT, libc::SIGTERM])?;
        togl_learning::use_threads(self.threads);
        let mut memory = PeakMemory::start(fold::place(trial, self.device));
        let dataset =
            self.data.open(trial, &|text| eprintln!("{text}")).map_err(|error| Usage::new(error.message))?;
        if self.fresh {
            self.forget_checkpoints(trial);
        }
        let energy = EnergyWatch::start(energy::meter(fold::place(trial, self.device)), std::process::id());
        let (clock, bar) = (AgentClock::start(), progress_bar(trial));
        let seconds = || clock.seconds();
        let (split, seed, device) = (self.split, self.seed, self.device);
        let job = Job { trial, split, seed, device, clock: &seconds };
        let (every, mut saved) = (self.saving.every().as_secs_f64(), 0.0);
        let mut epoch = |progress: &EpochProgress| {
            bar.set_position(u64::from(progress.epoch) + 1);
            bar.set_message(format!("validation {:.1} %", 100.0 * progress.validation.accuracy));
            memory.look();
            if seconds() - saved >= every {
                saved = seconds();
                signals::save();
            }
            signals::next()
        };
        let say = |text: &str| bar.suspend(|| eprintln!("{text}"));
        let mut in_haste = signals::haste(seconds);
        let follower = Follower { say: &say, epoch: &mut epoch, saved: &mut || (), in_haste: &mut in_haste };
        let outcome = fold::train(&job, &dataset, &self.saving.keeping(), Attempt(0), follower);
        bar.finish_and_clear();
        match outcome {
            Ok(mut trained) => {
                trainer::sign(&mut trained, &memory, &energy);
                Ok(Some(trained))
            }
            Err(TrainError::Stopped { epochs }) => {
                eprintln!("{}", interruption(trial, epochs));
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
        FailureClass::Data | FailureClass::Config => {
            Usage { message: error.to_string(), hint: error.hint() }.into()
        }
        _ => error.into(),
    }
}

/// What to say of a fold that was interrupted after this many whole epochs.
fn interruption(trial: &TrialConfig, epochs: u32) -> String {
    let step = fold::step_name(trial);
    match epochs {
        0 => format!("interrupted in the first {step}; the same command starts anew"),
        _ if trial.model.is_kernel() => {
            format!(
                "interrupted after {step} {epochs}; kernels have no checkpoints: the same command starts anew"
            )
        }
        _ => format!("interrupted after {step} {epochs}; the same command goes on from there"),
    }
}

/// Counts epochs, or the points of a kernel's grid.
fn progress_bar(trial: &TrialConfig) -> ProgressBar {
    let template = format!("{{prefix}} [{{bar:30}}] {} {{pos}}/{{len}} {{msg}}", fold::step_name(trial));
    let style = ProgressStyle::with_template(&template);
    let steps = if trial.model.is_kernel() { baselines::grid_points(trial) } else { trial.max_epochs };
    let bar = ProgressBar::new(steps.into()).with_prefix(trial.method());
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "))
}

/// A trial from a sweep file that has exactly one, or from canonical JSON.
pub fn read_trial(file: &std::path::Path) -> anyhow::Result<TrialConfig> {
    let text = std::fs::File::open(file).and_then(|file| bounded::text(file, bounded::WRITTEN_BY_HAND));
    let text = text.map_err(|error| {
        Usage::new(format!("cannot read {}: {error}", file.display()))
            .hint("--trial names a sweep file with one trial, or the canonical JSON of one")
    })?;
    if text.trim_start().starts_with('{') {
        return TrialConfig::from_canonical(&text)
            .map_err(|error| Usage::new(format!("{}: {error}", file.display())).into());
    }
    let mut spec =
        SweepSpec::parse(&text).map_err(|error| Usage::new(format!("{}:{error}", file.display())))?;
    if spec.trials.len() != 1 {
        let (name, count) = (file.display(), spec.trials.len());
        anyhow::bail!(
            Usage::new(format!("{name} has {count} trials; this needs a file with exactly one"))
                .hint(format!("`togl hash {name}` lists them; give every axis one value"))
        );
    }
    Ok(spec.trials.remove(0).config)
}

#[cfg(test)]
mod tests {
    use togl_sweeps::trial::Backbone;

    use super::*;

    #[test]
    fn the_bar_of_a_kernel_counts_the_points_of_its_grid() {
        let network = TrialConfig { max_epochs: 7, ..TrialConfig::default() };
        assert_eq!(progress_bar(&network).length(), Some(7));
        let kernel = TrialConfig { model: Backbone::Wl, depth: 2, choose_rounds: true, ..network };
        assert_eq!(progress_bar(&kernel).length(), Some(21), "three numbers of rounds, seven costs");
        assert_eq!(progress_bar(&TrialConfig { model: Backbone::Ph, ..kernel }).length(), Some(7));
    }

    #[test]
    fn whoever_interrupts_hears_whether_it_was_for_nothing() {
        let network = TrialConfig::default();
        assert!(interruption(&network, 3).ends_with("after epoch 3; the same command goes on from there"));
        assert!(interruption(&network, 0).ends_with("in the first epoch; the same command starts anew"));
        let kernel = TrialConfig { model: Backbone::Ph, ..network };
        assert!(interruption(&kernel, 2).contains("kernels have no checkpoints"));
    }
}
