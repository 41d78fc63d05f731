//! `togl-worker train`: one fold with a progress bar, without any coordinator, for looking into a trial.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use togl_learning::{Flow, Job, Progress, train_fold};
use togl_sweeps::{SweepSpec, TrialConfig};

use crate::clock::Clock;
use crate::version::{Format, print};
use crate::{Usage, devices, trainer};

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
    /// Where data sets are
    #[arg(long, value_name = "DIR", env = "TOGL_DATA")]
    data_dir: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

impl Train {
    /// Trains and prints the result.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let trial = read_trial(&self.trial)?;
        let device = devices::parse(&self.device).map_err(Usage)?;
        togl_learning::use_threads(self.threads);
        let dataset =
            trainer::open_dataset(&trial, self.data_dir.clone()).map_err(|error| Usage(error.message))?;
        let clock = Clock::start();
        let seconds = || clock.seconds();
        let (split, seed) = (self.split, self.seed);
        let job = Job { trial: &trial, split, seed, device, time_limit: None, clock: &seconds };
        let bar = progress_bar(&trial);
        let mut observer = |progress: &Progress| {
            bar.set_position(u64::from(progress.epoch) + 1);
            bar.set_message(format!("validation {:.1} %", 100.0 * progress.validation.accuracy));
            Flow::Continue
        };
        let result = train_fold(&job, &dataset, &mut observer)?;
        bar.finish_and_clear();
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
        Ok(ExitCode::SUCCESS)
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
