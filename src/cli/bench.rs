//! `togl bench`: how fast the coordinator is on this machine. `dispatch` measures folds per second and latencies,
//! `requeue` how long a fold of a dead worker waits for another. Both use a real coordinator process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;
use togl_coordinator::tokens::Tokens;
use togl_proto::client;
use togl_sweeps::SweepSpec;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::sources::SweepSource;
use super::steer::Because;
use super::submit;
use crate::bench::crowd::{CrowdFigures, Manner, SimulatedWorker};
use crate::bench::figures::Latency;
use crate::bench::watchers::{Turns, Watchers, longest_silence};
use crate::bench::{ServerUnderTest, refuse_used};
use crate::clock;
use crate::descriptors;
use crate::output::{self, Plain};
use crate::problem::Problem;

/// Measure the coordinator on this machine
#[derive(Debug, Args)]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Folds per second, latencies, processor time and memory with simulated workers
    Dispatch(Dispatch),
    /// How long the fold of a worker that is gone waits for another worker
    Requeue(Requeue),
}

/// A sweep of folds that train nothing.
#[derive(Debug, Args)]
struct Dispatch {
    /// Folds to hand out and store
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    folds: u64,
    /// Simulated workers
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    workers: u32,
    /// Slots of each
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    slots: u32,
    /// How long a fold lasts, in milliseconds
    #[arg(long, default_value_t = 0, value_name = "M")]
    fold_ms: u64,
    /// Keep the state directory in this new folder, to measure with it what reads a store
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The store, which must be empty, such as postgres://USER@HOST/DATABASE [default: a file in a folder of its own]
    #[arg(long, value_name = "ADDRESS")]
    store: Option<String>,
    /// Stop after about so many folds, to leave a sweep that is finished in part
    #[arg(long, value_name = "N")]
    finish: Option<u64>,
    /// People who watch the sweep, during four eighths of the folds
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=128))]
    watchers: u32,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

/// One worker that vanishes and one that waits.
#[derive(Debug, Args)]
struct Requeue {
    /// Times
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    times: u32,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

#[derive(Debug, Serialize)]
struct Dispatched {
    folds: u64,
    workers: u32,
    slots: u32,
    fold_ms: u64,
    submit_seconds: f64,
    /// The longest that a worker's heartbeat waited for its answer during the submission.
    submit_longest_wait_ms: f64,
    seconds: f64,
    folds_per_second: f64,
    lease: Latency,
    report: Latency,
    coordinator_cpu_us_per_fold: f64,
    /// Folds that were stored for each transaction.
    folds_per_commit: f64,
    coordinator_rss_bytes: u64,
    store_bytes: u64,
    /// From starting the coordinator again, with all folds finished, until it listens.
    restart_seconds: f64,
    restart_rss_bytes: u64,
    watchers: u32,
    /// Turns without and with watchers, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<[Turns; 2]>,
}

#[derive(Debug, Serialize)]
struct Requeued {
    /// From the closed connection to the next worker's lease.
    after_close: Latency,
    /// From the last heartbeat of a silent worker to the next worker's lease.
    after_silence: Latency,
}

impl Bench {
    pub(super) async fn run(self) -> Result<(), Problem> {
        match self.what {
            What::Dispatch(dispatch) => dispatch.run().await,
            What::Requeue(requeue) => requeue.run().await,
        }
    }
}

/// A coordinator with a sweep of so many folds, and how to be a worker of it. The folder goes with it, unless it is kept.
struct Stage {
    server: ServerUnderTest,
    manner: Manner,
    operator: String,
    submit_seconds: f64,
    longest_wait: Duration,
    folder: PathBuf,
    _goes: Option<tempfile::TempDir>,
}

impl Stage {
    async fn set(
        folds: u64,
        slots: u32,
        fold: Duration,
        keep: Option<PathBuf>,
        store: Option<&str>,
    ) -> Result<Self, Problem> {
        store.map_or(Ok(()), refuse_used)?;
        let (folder, goes) = match keep {
            Some(folder) => {
                std::fs::create_dir(&folder).map_err(|error| {
                    Problem::usage(format!("cannot make the folder {}: {error}", folder.display()))
                        .hint("--keep wants a folder that is not there yet")
                })?;
                (folder, None)
            }
            None => {
                let folder = tempfile::tempdir()?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        let server = ServerUnderTest::start(&folder, store).await?;
        let tokens = Tokens::load(&server.state.tokens()).map_err(Problem::ours)?;
        let mut client = client::sweeps(&server.address, &tokens.operator).await.map_err(Problem::ours)?;
        let manner = Manner { address: server.address.clone(), token: tokens.worker, slots, fold };
        let listener = SimulatedWorker::join("listener".to_owned(), &manner).await?;
        let begin = clock::now();
        let yaml = sweep(folds);
        let spec = SweepSpec::parse(&yaml).map_err(Problem::ours)?;
        let source = SweepSource { yaml, spec, program: None };
        let (_, longest_wait) =
            longest_silence(listener, submit::submit(&mut client, source, &Because::default())).await?;
        let submit_seconds = begin.elapsed().as_secs_f64();
        Ok(Self {
            server,
            manner,
            operator: tokens.operator,
            submit_seconds,
            longest_wait,
            folder,
            _goes: goes,
        })
    }
}

/// Starts the coordinator of a folder once more: how long it takes until it listens, and what it occupies then.
async fn restart(folder: &Path, store: Option<&str>) -> Result<(f64, u64), Problem> {
    let begin = clock::now();
    let again = ServerUnderTest::start(folder, store).await?;
    let found = (begin.elapsed().as_secs_f64(), again.usage().resident);
    again.stop().await?;
    Ok(found)
}

/// Ten splits a trial, as sweeps have; the last folds of an uneven number are seeds of their own.
fn sweep(folds: u64) -> String {
    let (trials, splits) = if folds.is_multiple_of(10) { (folds / 10, 10) } else { (folds, 1) };
    format!(
        "version: 1\nname: bench\nbase: {{dataset: no-op}}\ngrid: {{data_seed: {{from: 1, to: {trials}}}}}\n\
         splits: {{from: 0, to: {}}}\nlimits: {{max_folds: {folds}}}\n",
        splits - 1
    )
}

impl Dispatch {
    async fn run(self) -> Result<(), Problem> {
        descriptors::raise();
        output::one(&self.measure().await?, self.format, Dispatched::describe)
    }

    async fn measure(&self) -> Result<Dispatched, Problem> {
        let fold = Duration::from_millis(self.fold_ms);
        let on = self.store.as_deref();
        let stage = Stage::set(self.folds, self.slots, fold, self.keep.clone(), on).await?;
        let workers = self.crowd(&stage.manner).await?;
        let (before, committed) = (stage.server.usage(), stage.server.transactions()?);
        let begin = clock::now();
        let mut watchers = Watchers::new(&stage.server, &stage.operator, self.watchers, self.folds);
        let seen = self.let_them_work(workers, &mut watchers).await?;
        let seconds = begin.elapsed().as_secs_f64();
        let after = stage.server.usage();
        let turns = (self.watchers > 0).then_some(watchers.done);
        drop(watchers);
        let commits = stage.server.transactions()?.saturating_sub(committed).max(1);
        let store = stage.server.state.path().join("store.sqlite");
        stage.server.stop().await?;
        let (restart_seconds, restart_rss_bytes) = restart(&stage.folder, on).await?;
        let cpu_seconds = after.cpu_seconds - before.cpu_seconds;
        Ok(Dispatched {
            folds: seen.finished,
            workers: self.workers,
            slots: self.slots,
            fold_ms: self.fold_ms,
            submit_seconds: stage.submit_seconds,
            submit_longest_wait_ms: stage.longest_wait.as_secs_f64() * 1e3,
            seconds,
            folds_per_second: seen.finished as f64 / seconds,
            lease: Latency::of(seen.leases),
            report: Latency::of(seen.reports),
            coordinator_cpu_us_per_fold: cpu_seconds * 1e6 / seen.finished as f64,
            folds_per_commit: seen.finished as f64 / commits as f64,
            coordinator_rss_bytes: after.resident,
            store_bytes: std::fs::metadata(store).map_or(0, |file| file.len()),
            restart_seconds,
            restart_rss_bytes,
            watchers: self.watchers,
            turns,
        })
    }

    async fn crowd(&self, manner: &Manner) -> Result<Vec<SimulatedWorker>, Problem> {
        let mut workers = Vec::new();
        for number in 0..self.workers {
            workers.push(SimulatedWorker::join(format!("bench-{number}"), manner).await?);
        }
        Ok(workers)
    }

    /// Until every fold is acknowledged as stored.
    async fn let_them_work(
        &self,
        workers: Vec<SimulatedWorker>,
        watchers: &mut Watchers<'_>,
    ) -> Result<CrowdFigures, Problem> {
        let (stop, told) = watch::channel(false);
        let (done, mut counted) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        // Machines of a cluster do not begin in the same millisecond: the starts are spread over one fold's time.
        let apart = Duration::from_millis(self.fold_ms) / self.workers;
        for (number, worker) in (0..).zip(workers) {
            tasks.spawn(worker.work(apart * number, told.clone(), done.clone()));
        }
        drop(done);
        let mut finished = 0;
        let wanted = self.finish.unwrap_or(self.folds).min(self.folds);
        while finished < wanted {
            match counted.recv().await {
                Some(stored) => finished += stored,
                None => break, // all of them ended early; their errors say why
            }
            if watchers.is_turn_over(finished, self.folds) {
                watchers.end_turn(finished).await?;
                while let Ok(stored) = counted.try_recv() {
                    finished += stored;
                }
                watchers.begin_turn(finished);
            }
        }
        let _ = stop.send(true);
        let mut all = CrowdFigures::default();
        while let Some(ended) = tasks.join_next().await {
            let mut seen = ended.map_err(Problem::ours)??;
            all.finished += seen.finished;
            all.leases.append(&mut seen.leases);
            all.reports.append(&mut seen.reports);
        }
        Ok(all)
    }
}

impl Dispatched {
    fn describe(&self) -> String {
        let latency = |name: &str, latency: &Latency| {
            format!(
                "  {name}     p50 {:.2} ms, p99 {:.2} ms, slowest {:.2} ms\n",
                latency.p50_ms, latency.p99_ms, latency.max_ms
            )
        };
        format!(
            "{} folds of {} ms, {} workers of {} slots\n  folds/s   {:.0} ({:.2} s)\n{}{}  \
             CPU       {:.1} us of the coordinator per fold, {:.2} folds a commit\n  memory    {:.1} MB resident\n  store     {:.1} MB\n  \
             submit    {:.2} s, heartbeats waited {:.0} ms at the most\n  \
             restart   {:.2} s, then {:.1} MB resident\n{}",
            self.folds,
            self.fold_ms,
            self.workers,
            self.slots,
            self.folds_per_second,
            self.seconds,
            latency("lease", &self.lease),
            latency("report", &self.report).replacen("     p50", "    p50", 1),
            self.coordinator_cpu_us_per_fold,
            self.folds_per_commit,
            self.coordinator_rss_bytes as f64 / 1e6,
            self.store_bytes as f64 / 1e6,
            self.submit_seconds,
            self.submit_longest_wait_ms,
            self.restart_seconds,
            self.restart_rss_bytes as f64 / 1e6,
            self.turns.map_or_else(String::new, |turns| self.compare(turns)),
        )
    }

    /// What watchers cost.
    fn compare(&self, [without, with]: [Turns; 2]) -> String {
        format!(
            "  watchers  {}: {:.1} us of the coordinator per fold, {:.1} without: {:.3} times as much; {:.0} folds/s, \
             {:.0} without\n",
            self.watchers,
            with.cpu_us(),
            without.cpu_us(),
            with.cpu_us() / without.cpu_us(),
            with.rate(),
            without.rate()
        )
    }
}

impl Requeue {
    async fn run(self) -> Result<(), Problem> {
        let after_close = self.measure(true).await?;
        let after_silence = self.measure(false).await?;
        let measured =
            Requeued { after_close: Latency::of(after_close), after_silence: Latency::of(after_silence) };
        output::one(&measured, self.format, Requeued::describe)
    }

    async fn measure(&self, close: bool) -> Result<Vec<Duration>, Problem> {
        let mut waits = Vec::new();
        for time in 0..self.times {
            let stage = Stage::set(1, 1, Duration::ZERO, None, None).await?;
            let mut first = SimulatedWorker::join(format!("first-{time}"), &stage.manner).await?;
            let mut second = SimulatedWorker::join(format!("second-{time}"), &stage.manner).await?;
            first.take_one().await?;
            let begin = clock::now();
            let silent = (!close).then_some(first); // dropped, its connection closes; kept, it says nothing
            waits.push(second.take_one().await? - begin);
            drop(silent);
            stage.server.stop().await?;
        }
        Ok(waits)
    }
}

impl Requeued {
    fn describe(&self) -> String {
        let line = |what: &str, latency: &Latency| {
            format!(
                "{what}: median {:.0} ms, slowest {:.0} ms of {}\n",
                latency.p50_ms, latency.max_ms, latency.count
            )
        };
        line("after a closed connection (grace 2000 ms)", &self.after_close)
            + &line("after silence (one lease term)", &self.after_silence)
    }
}

#[cfg(test)]
mod tests {
    use togl_sweeps::SweepSpec;

    #[test]
    fn the_sweep_has_just_so_many_folds() {
        for folds in [1, 7, 10, 1_000] {
            let spec = SweepSpec::parse(&super::sweep(folds)).unwrap();
            assert_eq!(u64::try_from(spec.count_folds()).unwrap(), folds);
        }
    }
}
