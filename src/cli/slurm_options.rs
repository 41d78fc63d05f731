//! The options that `togl slurm try` and `togl slurm up` share: what a job is given, by Slurm and by the worker in it, and what
//! follows from them. Everything that can be wrong with them is found here, before anything is submitted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use togl_proto::client::is_local;
use togl_sweeps::blocks;
use togl_sweeps::blocks::DeviceKind;

use crate::local;
use crate::problem::Problem;
use crate::remote::CoordinatorTarget;
use crate::slurm::pool::Pool;
use crate::slurm::script::{self, Start};

/// Logs of workers that are kept; the oldest go first.
const LOGS: usize = 200;

/// What a job is given, by Slurm and by the worker in it.
#[derive(Debug, clap::Args)]
pub(super) struct JobOptions {
    /// How long a worker lives
    #[arg(long, value_name = "DURATION", default_value = "12h", value_parser = humantime::parse_duration)]
    time: Duration,
    /// The device of the workers: only folds that it fits count [default: any]
    #[arg(long, value_name = "cpu|cuda|mps", value_parser = device)]
    device: Option<DeviceKind>,
    /// The memory of one device, such as 24GiB: folds that need more do not count
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
    /// Slots of a worker [default: the worker's own choice]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    slots: Option<u32>,
    /// Where the coordinator listens, as seen from the nodes [default: --coordinator]
    #[arg(long, value_name = "HOST:PORT")]
    join: Option<String>,
    /// File with a worker token, as seen from the nodes [default: that of the state directory]
    #[arg(long, value_name = "FILE")]
    worker_token_file: Option<PathBuf>,
    /// The worker program, as seen from the nodes [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    worker: Option<PathBuf>,
    /// Where workers keep results that wait and write logs, as seen from the nodes [default: slurm in the state directory]
    #[arg(long, value_name = "DIR")]
    worker_state: Option<PathBuf>,
    /// Where all workers keep checkpoints, so that one goes on where another had to stop [default: checkpoints beside them]
    #[arg(long, value_name = "DIR")]
    checkpoint_dir: Option<PathBuf>,
    /// Seconds without work after which a worker leaves
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    idle_exit: u64,
    /// A line of shell before the worker starts, such as 'module load cuda'; may be repeated
    #[arg(long, value_name = "LINE")]
    setup: Vec<String>,
    /// An option of `togl-worker join`, such as --worker-option=--threads=2; may be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    worker_option: Vec<String>,
    #[command(flatten)]
    pub(super) target: CoordinatorTarget,
    /// What else `sbatch` is given, such as --partition=gpu --gres=gpu:1
    #[arg(last = true, value_name = "SBATCH OPTIONS")]
    pub(super) sbatch: Vec<String>,
}

impl JobOptions {
    pub(super) fn pool(&self, name: &str, max_workers: u32, max_waiting: u32) -> Pool {
        Pool {
            name: name.to_owned(),
            max_workers,
            max_waiting,
            device: self.device.unwrap_or_default().as_str().to_owned(),
            memory: self.memory,
            slots: self.slots,
            lifetime: self.time.as_secs(),
            pin: pin(&self.target),
        }
    }

    /// How workers are started. Everything that can be wrong here is found before anything is submitted.
    pub(super) fn start(&self) -> Result<Start, Problem> {
        script::check_options(&self.sbatch).map_err(Problem::usage)?;
        let address = self.join.clone().map_or_else(|| self.target.address(), Ok)?;
        if self.join.is_none() && is_local(&address) {
            return Err(Problem::usage(format!(
                "the coordinator listens at {address}, which no other node can reach"
            ))
            .hint("serve with `--listen 0.0.0.0:7447`, and say with --join HOST:PORT where nodes find it"));
        }
        let state = self.target.state()?;
        let token_file = self.worker_token_file.clone().unwrap_or_else(|| state.path().join("worker.token"));
        if !token_file.is_file() {
            return Err(Problem::usage(format!("there is no worker token in {}", token_file.display()))
                .hint("make one with `togl token create --role worker` and name its file with --worker-token-file"));
        }
        let program = self.worker.clone().map_or_else(local::worker_program, Ok)?;
        let folder = self.worker_state.clone().unwrap_or_else(|| state.path().join("slurm"));
        let checkpoints = self.checkpoint_dir.clone().unwrap_or_else(|| folder.join("checkpoints"));
        let absolute = |path: &Path| std::path::absolute(path).map_err(Problem::usage);
        let logs = absolute(&folder.join("logs"))?;
        std::fs::create_dir_all(&logs)
            .map_err(|error| Problem::usage(format!("cannot make {}: {error}", logs.display())))?;
        forget_old_logs(&logs);
        Ok(Start {
            setup: self.setup.clone(),
            program: absolute(&program)?,
            address,
            token_file: absolute(&token_file)?,
            state: absolute(&folder)?,
            checkpoints: absolute(&checkpoints)?,
            idle_exit: self.idle_exit,
            options: self.worker_option.clone(),
            logs,
            sbatch: self.sbatch.clone(),
        })
    }
}

/// The CA that the pool's jobs are marked with.
pub(super) fn pin(target: &CoordinatorTarget) -> String {
    target.pin().map_or_else(|| "-".to_owned(), |pin| pin.chars().take(12).collect())
}

/// Only the newest logs are of use, and file systems of clusters suffer from many files.
fn forget_old_logs(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let logs = entries.flatten().filter(|entry| entry.path().extension().is_some_and(|ext| ext == "log"));
    let mut logs: Vec<_> =
        logs.filter_map(|log| Some((log.metadata().ok()?.modified().ok()?, log.path()))).collect();
    logs.sort();
    for (_, path) in logs.iter().take(logs.len().saturating_sub(LOGS)) {
        let _ = std::fs::remove_file(path); // another autoscaler may have done it
    }
}

fn device(text: &str) -> Result<DeviceKind, String> {
    DeviceKind::from_word(text).ok_or_else(|| "write cpu, cuda, mps or any".to_owned())
}

fn memory(text: &str) -> Result<u64, String> {
    blocks::bytes(text).ok_or_else(|| "write an amount of memory, such as 24GiB or 500MB".to_owned())
}
