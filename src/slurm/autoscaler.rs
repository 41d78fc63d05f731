//! The loop of `togl slurm up`: asks coordinator and queue, decides, acts, says why; again and again until it is told to stop.
//! Holds the pool at the coordinator meanwhile. When it ends, workers go on and leave by themselves.

use std::collections::BTreeSet;
use std::time::Duration;

use togl_proto::wire;
use tonic::Code;

use super::commands::SlurmCommands;
use super::decide::{self, Decision, SlurmAct, SlurmLook};
use super::jobs::SlurmJob;
use super::memory::Memory;
use super::pool::Pool;
use super::script::Start;
use crate::clock;
use crate::problem::Problem;
use crate::remote::{self, Client, CoordinatorTarget};

/// Everything an autoscaler works with.
pub struct Autoscaler {
    /// The cluster.
    pub slurm: SlurmCommands,
    /// How workers are started.
    pub start: Start,
    /// Which workers, and how many.
    pub pool: Pool,
    /// The coordinator.
    pub target: CoordinatorTarget,
    /// Between two looks.
    pub every: Duration,
    /// Who holds the pool; unique per process.
    pub holder: String,
}

/// What the coordinator and the queue say.
struct Seen {
    demand: Vec<wire::Shape>,
    joined: BTreeSet<String>,
    jobs: Option<Vec<SlurmJob>>,
    slots: Option<u32>,
}

impl Autoscaler {
    /// Runs until `stop` is done or somebody asks the holder of the pool to stop.
    pub async fn run(&self, stop: impl Future<Output = ()>) -> Result<(), Problem> {
        let mut client = self.target.connect().await?;
        self.hold(&mut client, "it begins", false).await?;
        tokio::pin!(stop);
        let (start, mut memory, mut said) = (clock::now(), Memory::default(), String::new());
        loop {
            let now = start.elapsed().as_secs();
            let (why, acted) = match self.step(now, &mut client, &mut memory).await {
                Ok(done) => done,
                Err(problem) => {
                    (format!("the coordinator cannot be asked: {problem}; nothing is submitted"), false)
                }
            };
            // What was done is always told, why nothing is done once; seconds that pass are no news.
            if acted || plain(&why) != plain(&said) {
                eprintln!("{}  {why}", clock::time_of_day());
                said.clone_from(&why);
            }
            match self.hold(&mut client, &why, false).await {
                Ok(true) => {
                    eprintln!("somebody asked for `togl slurm down`: no more workers are started");
                    break;
                }
                Ok(false) => {}
                Err(problem) if problem.is_unreachable() => {
                    client = self.target.connect().await.unwrap_or(client);
                }
                Err(problem) => return Err(problem),
            }
            tokio::select! {
                () = tokio::time::sleep(self.every) => {}
                () = &mut stop => {
                    eprintln!("no more workers are started; those that run leave when they have nothing to do");
                    break;
                }
            }
        }
        // If nobody hears it, the hold ends by itself.
        let _ = self.hold(&mut client, "", true).await;
        Ok(())
    }

    /// One look and what follows from it; gives the reason why not more is done, and whether something was.
    async fn step(
        &self,
        now: u64,
        client: &mut Client,
        memory: &mut Memory,
    ) -> Result<(String, bool), Problem> {
        let seen = self.look(client).await?;
        if let Some(jobs) = &seen.jobs {
            for id in memory.note_queue(now, jobs, &seen.joined) {
                if let Some(ended) = self.slurm.end_of(&id).await {
                    memory.note_end(now, &id, &ended);
                }
            }
        }
        let look = SlurmLook {
            now,
            demand: &seen.demand,
            jobs: seen.jobs.as_deref(),
            joined: &seen.joined,
            slots: seen.slots,
        };
        let Decision { act, why } = decide::decide(&self.pool, look, memory);
        match act {
            None => Ok((why, false)),
            Some(SlurmAct::CancelPending(ids)) => {
                self.slurm.cancel(&ids, true).await;
                Ok((format!("{why}; {} that wait are cancelled", ids.len()), true))
            }
            Some(SlurmAct::Submit(count)) => {
                let jobs = seen.jobs.map_or(0, |jobs| jobs.len());
                let answer = self.slurm.submit(&self.start, &self.pool, count, &memory.excluded()).await;
                let told = match &answer {
                    Ok(array) => format!("{count} submitted as job {array}"),
                    Err(refusal) => format!("sbatch refused: {}", refusal.words()),
                };
                memory.note_submission(now, count, jobs, answer);
                Ok((format!("{why}; {told}"), true))
            }
        }
    }

    async fn look(&self, client: &mut Client) -> Result<Seen, Problem> {
        // The queue first: a worker that joins in between is counted as here and as free, not as missing.
        let jobs = self.slurm.queue(&self.pool).await;
        let demand =
            client.demand(wire::DemandRequest {}).await.map_err(remote::refused)?.into_inner().shapes;
        let workers = client.list_workers(wire::ListWorkersRequest {}).await.map_err(remote::refused)?;
        let workers = workers.into_inner().workers;
        let own = |worker: &&wire::WorkerSummary| {
            let jobs = jobs.as_deref().unwrap_or_default();
            jobs.iter().any(|job| job.id.allocation() == worker.allocation)
        };
        let told = workers.iter().filter(own).map(|worker| worker.slots).max();
        let noted = || jobs.as_deref()?.iter().find_map(|job| job.comment.rsplit(':').next()?.parse().ok());
        let slots = self.pool.slots.or(told).or_else(noted);
        let joined =
            workers.into_iter().map(|worker| worker.allocation).filter(|at| !at.is_empty()).collect();
        Ok(Seen { demand, joined, jobs, slots })
    }

    /// Takes the pool, or goes on having it, or gives it back. True if somebody asks to stop.
    async fn hold(&self, client: &mut Client, said: &str, release: bool) -> Result<bool, Problem> {
        let (pool, holder, said) = (self.pool.name.clone(), self.holder.clone(), said.to_owned());
        let request = wire::HoldPoolRequest { pool, holder, said, release, stop: false };
        match client.hold_pool(request).await {
            Ok(reply) => Ok(reply.into_inner().stop),
            Err(status) if status.code() == Code::FailedPrecondition => Err(Problem::told(status.message())),
            Err(status) => Err(remote::refused(status)),
        }
    }
}

/// Words without the numbers in them.
fn plain(words: &str) -> String {
    words.chars().filter(|c| !c.is_ascii_digit()).collect()
}
