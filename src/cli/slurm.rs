//! `togl slurm`: workers that a Slurm cluster starts, as many as there is work for. `try` asks Slurm and starts one worker, `up`
//! goes on until it is stopped, `status` says what there is and why nothing is submitted, `down` ends a pool.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use togl_proto::wire;

use super::VerbOutcome;
use super::slurm_options::{JobOptions, pin};
use crate::clock;
use crate::output::{self, ListRow, Listing};
use crate::problem::Problem;
use crate::remote::{self, Client, CoordinatorTarget};
use crate::slurm::autoscaler::Autoscaler;
use crate::slurm::commands::SlurmCommands as Cluster;
use crate::slurm::decide::JobCounts;
use crate::slurm::jobs::{JobId, JobState, SlurmJob, SubmitRefusal};
use crate::slurm::pool::{Pool, check_name};
use crate::slurm::script::Start;

/// Between two looks while somebody waits for an answer.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Let a Slurm cluster start workers, as many as there is work for
#[derive(Debug, clap::Args)]
pub struct Slurm {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Ask Slurm whether it would take such a job, then start one worker, see it join, and let it leave
    Try(Box<Try>),
    /// Start workers as long as folds wait for slots; runs until it is stopped
    Up(Box<Up>),
    /// Show pools, their jobs, and why nothing is submitted
    Status(Status),
    /// Stop the autoscaler of a pool, cancel what waits, and let its workers finish what they train and leave
    Down(Down),
}

#[derive(Debug, clap::Args)]
struct Try {
    #[command(flatten)]
    job: JobOptions,
}

#[derive(Debug, clap::Args)]
struct Up {
    /// Name of the pool: one autoscaler at a time may have it
    #[arg(long, value_name = "NAME", default_value = "slurm", value_parser = check_name)]
    pool: String,
    /// Workers at once, waiting and running
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_workers: u32,
    /// Jobs that wait in the queue at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    max_waiting: u32,
    /// Seconds between two looks at coordinator and queue
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=60))]
    every: u64,
    #[command(flatten)]
    job: JobOptions,
}

#[derive(Debug, clap::Args)]
struct Status {
    #[command(flatten)]
    target: CoordinatorTarget,
    #[command(flatten)]
    listing: Listing,
}

#[derive(Debug, clap::Args)]
struct Down {
    /// Name of the pool
    #[arg(long, value_name = "NAME", default_value = "slurm", value_parser = check_name)]
    pool: String,
    #[command(flatten)]
    target: CoordinatorTarget,
}

impl Slurm {
    pub(super) async fn run(self) -> VerbOutcome {
        match self.action {
            Action::Try(verb) => verb.run().await,
            Action::Up(verb) => verb.run().await.map(|()| ExitCode::SUCCESS),
            Action::Status(verb) => verb.run().await.map(|()| ExitCode::SUCCESS),
            Action::Down(verb) => verb.run().await.map(|()| ExitCode::SUCCESS),
        }
    }
}

/// One autoscaler of a pool and a folder at a time; the lock ends with the process, however that ends.
fn alone(folder: &Path, pool: &str) -> Result<std::fs::File, Problem> {
    let path = folder.join(format!("{pool}.lock"));
    let refuse = |error: std::io::Error| Problem::usage(format!("cannot lock {}: {error}", path.display()));
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path).map_err(refuse)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::Error(error)) => Err(refuse(error)),
        Err(std::fs::TryLockError::WouldBlock) => Err(Problem::usage(format!(
            "another `togl slurm up` here has pool `{pool}`"
        ))
        .hint(format!("choose another name with --pool, or stop it with `togl slurm down --pool {pool}`"))),
    }
}

/// Done when the user or the system wants this process to end.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

/// Slurm is asked before anything is submitted, so that a wrong partition is an error and not a pause.
fn not_taken(refusal: &SubmitRefusal) -> Problem {
    Problem::usage(format!("Slurm would not take such a job: {}", refusal.words()))
        .hint("change the options after `--`; `sinfo` lists partitions and their limits")
}

impl Up {
    async fn run(self) -> Result<(), Problem> {
        let slurm = Cluster::find(&self.job.sbatch).await?;
        let start = self.job.start()?;
        let pool = self.job.pool(&self.pool, self.max_workers, self.max_waiting);
        let largest = slurm.largest_array().await.unwrap_or(u32::MAX);
        let pool = Pool { max_waiting: self.max_waiting.min(largest.max(1)), ..pool };
        match slurm.test(&start, &pool).await {
            Ok(_) => {}
            Err(refusal @ SubmitRefusal::Lasting(_)) => return Err(not_taken(&refusal)),
            Err(later) => eprintln!("Slurm: {}; it is asked again when workers are wanted", later.words()),
        }
        let _alone = alone(&start.state, &pool.name)?;
        eprintln!("pool {}: logs are in {}; stop with Ctrl-C", pool.name, start.logs.display());
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        // The same after a restart here, so that it goes on at once.
        let holder = format!("{} on {}", start.state.display(), host.trim());
        let (target, every) = (self.job.target.clone(), Duration::from_secs(self.every));
        Autoscaler { slurm, start, pool, target, every, holder }.run(interrupted()).await
    }
}

impl Try {
    async fn run(self) -> VerbOutcome {
        let slurm = Cluster::find(&self.job.sbatch).await?;
        let start = self.job.start()?;
        let pool = self.job.pool(&format!("try-{}", std::process::id()), 1, 1);
        let mut client = self.job.target.connect().await?;
        eprintln!("Slurm: {}", slurm.test(&start, &pool).await.map_err(|refusal| not_taken(&refusal))?);
        let submitted = slurm.submit(&start, &pool, 1, &[]).await;
        let array =
            submitted.map_err(|refusal| Problem::usage(format!("sbatch refused: {}", refusal.words())))?;
        let id = JobId(format!("{array}_0"));
        eprintln!("job {id} is submitted; Ctrl-C takes it back");
        tokio::select! {
            outcome = watch(&slurm, &pool, &id, &mut client, &start) => outcome,
            () = interrupted() => {
                slurm.cancel(&[id], false).await;
                Err(Problem::interrupted("the job is cancelled"))
            }
        }
    }
}

/// Tells how a job goes until its worker has joined or it is over.
async fn watch(slurm: &Cluster, pool: &Pool, id: &JobId, client: &mut Client, start: &Start) -> VerbOutcome {
    let (began, mut told) = (clock::now(), String::new());
    loop {
        let worker = workers(client).await?.into_iter().find(|worker| worker.allocation == id.allocation());
        if let Some(worker) = worker {
            let seconds = began.elapsed().as_secs();
            eprintln!(
                "{} joined from {} after {seconds} s with {} slots",
                worker.worker, worker.host, worker.slots
            );
            drain(client, &worker.worker).await?;
            eprintln!("all is well; the worker leaves again. Go on with `togl slurm up`");
            return Ok(ExitCode::SUCCESS);
        }
        let jobs = slurm.queue(pool).await;
        let job = jobs
            .as_ref()
            .map(|jobs| jobs.iter().find(|job| job.id == *id && job.standing != JobState::Ended));
        let says = match job {
            None => "squeue does not answer".to_owned(),
            Some(Some(SlurmJob { standing: JobState::Waiting, reason, .. })) => match reason.as_str() {
                "None" | "" => "it is about to begin".to_owned(),
                reason => format!("it waits: {reason}"),
            },
            Some(Some(job)) => format!("it runs on {}; its worker has not joined yet", job.node),
            Some(None) if began.elapsed() < LOOK_EVERY * 2 => String::new(),
            Some(None) => {
                let log = start.logs.join(format!("{id}.log"));
                eprintln!("{}", last_lines(&log));
                return Err(Problem::negative(format!("job {id} ended before its worker joined"))
                    .hint(format!("its log is {}", log.display())));
            }
        };
        if says != told && !says.is_empty() {
            eprintln!("{says}");
        }
        told = says;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(4_000)..]).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

async fn workers(client: &mut Client) -> Result<Vec<wire::WorkerSummary>, Problem> {
    let reply = client.list_workers(wire::ListWorkersRequest {}).await.map_err(remote::refused)?;
    Ok(reply.into_inner().workers)
}

async fn drain(client: &mut Client, worker: &str) -> Result<(), Problem> {
    let request = wire::DrainRequest { worker: worker.to_owned(), undo: false };
    match client.drain(request).await {
        Err(status) if status.code() != tonic::Code::Aborted => Err(remote::refused(status)),
        Ok(_) | Err(_) => Ok(()), // aborted: it has left meanwhile
    }
}

/// A pool and its jobs.
#[derive(Serialize)]
struct Row {
    pool: String,
    holder: String,
    waiting: u32,
    starting: u32,
    joined: u32,
    /// What the autoscaler said last, and Slurm's reasons why jobs wait.
    note: String,
}

impl ListRow for Row {
    const COLUMNS: &'static [&'static str] = &["POOL", "HOLDER", "WAITING", "STARTING", "JOINED", "NOTE"];

    fn cells(&self) -> Vec<String> {
        let Self { pool, holder, waiting, starting, joined, note } = self;
        let counts = [waiting, starting, joined].map(u32::to_string);
        [pool.clone(), holder.clone()].into_iter().chain(counts).chain([note.clone()]).collect()
    }
}

/// A pool of which nothing but the name is needed.
fn named(name: &str, target: &CoordinatorTarget) -> Pool {
    let (device, pin) = ("any".to_owned(), pin(target));
    Pool {
        name: name.to_owned(),
        max_workers: 0,
        max_waiting: 0,
        device,
        memory: None,
        slots: None,
        lifetime: 0,
        pin,
    }
}

impl Status {
    async fn run(self) -> Result<(), Problem> {
        let slurm = Cluster::find(&[]).await?;
        let mut client = self.target.connect().await?;
        let reply = client.list_pools(wire::ListPoolsRequest {}).await.map_err(remote::refused)?;
        let joined = workers(&mut client).await?.into_iter().map(|worker| worker.allocation).collect();
        let mut rows = Vec::new();
        for wire::PoolSummary { pool, holder, said, seconds_ago } in reply.into_inner().pools {
            let jobs = slurm.queue(&named(&pool, &self.target)).await;
            let counts = JobCounts::of(jobs.as_deref().unwrap_or_default(), &joined, 0);
            let mut note = format!("{seconds_ago} s ago: {said}");
            let waits = |job: &&SlurmJob| job.standing == JobState::Waiting;
            let mut reasons: Vec<&str> =
                jobs.iter().flatten().filter(waits).map(|job| job.reason.as_str()).collect();
            reasons.dedup();
            if !reasons.is_empty() {
                note += &format!("; Slurm: {}", reasons.join(", "));
            }
            let JobCounts { waiting, starting, joined } = counts;
            rows.push(Row { pool, holder, waiting, starting, joined, note });
        }
        let none = "nobody starts workers here; begin with `togl slurm try`, then `togl slurm up`";
        output::list_unless_empty(&rows, &self.listing, none)
    }
}

impl Down {
    async fn run(self) -> Result<(), Problem> {
        let slurm = Cluster::find(&[]).await?;
        let mut client = self.target.connect().await?;
        let request = wire::HoldPoolRequest { pool: self.pool.clone(), stop: true, ..Default::default() };
        if client.hold_pool(request).await.map_err(remote::refused)?.into_inner().stop {
            eprintln!("the autoscaler is told to stop");
        }
        tokio::select! {
            ended = self.empty(&slurm, &mut client) => ended,
            () = interrupted() => Err(Problem::interrupted("what runs finishes its folds and leaves")),
        }
    }

    /// Cancels what waits and drains what joins until nothing is left.
    async fn empty(&self, slurm: &Cluster, client: &mut Client) -> Result<(), Problem> {
        let (pool, mut told) = (named(&self.pool, &self.target), String::new());
        loop {
            let pools = client.list_pools(wire::ListPoolsRequest {}).await.map_err(remote::refused)?;
            let held = pools.into_inner().pools.iter().any(|held| held.pool == self.pool);
            let jobs = slurm.queue(&pool).await.ok_or_else(|| Problem::usage("squeue does not answer"))?;
            let alive: Vec<&SlurmJob> = jobs.iter().filter(|job| job.standing != JobState::Ended).collect();
            let waiting = alive.iter().filter(|job| job.standing == JobState::Waiting);
            let waiting: Vec<JobId> = waiting.map(|job| job.id.clone()).collect();
            if !waiting.is_empty() {
                slurm.cancel(&waiting, true).await;
            }
            for worker in workers(client).await? {
                if worker.state != "draining"
                    && alive.iter().any(|job| job.id.allocation() == worker.allocation)
                {
                    drain(client, &worker.worker).await?;
                }
            }
            let says = match (held, alive.len()) {
                (false, 0) => {
                    eprintln!("nothing of pool {} is left", self.pool);
                    return Ok(());
                }
                (true, jobs) => format!("{jobs} jobs; the autoscaler has not stopped yet"),
                (false, jobs) => format!("{jobs} jobs finish what they train; Ctrl-C stops waiting for them"),
            };
            if says != told {
                eprintln!("{says}");
            }
            told = says;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
