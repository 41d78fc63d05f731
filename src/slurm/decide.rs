//! How many jobs to submit or to cancel now, and why not more: a function of the demand, the queue and what is remembered.
//! Runs nothing, reads no clock. Running jobs are never cancelled: workers leave by themselves when there is nothing to do.

use std::collections::{BTreeMap, BTreeSet};

use togl_proto::wire;

use super::jobs::{JobId, JobState, SlurmJob};
use super::memory::{Memory, SubmitTrouble};
use super::pool::{Misfit, Pool};

/// Seconds between two submissions.
const PAUSE: u64 = 10;

/// Looks that must find too many jobs before those that wait are cancelled.
const PATIENCE: u32 = 2;

/// Looks without `squeue` before somebody is told.
const BLIND: u32 = 3;

/// What is known at one moment.
#[derive(Debug, Clone, Copy)]
pub struct SlurmLook<'a> {
    /// Seconds since any fixed moment.
    pub now: u64,
    /// What the coordinator wants.
    pub demand: &'a [wire::Shape],
    /// The pool's jobs; none if `squeue` did not answer.
    pub jobs: Option<&'a [SlurmJob]>,
    /// Where connected workers run.
    pub joined: &'a BTreeSet<String>,
    /// Slots of a worker of this pool, as far as one has said.
    pub slots: Option<u32>,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlurmAct {
    /// Submit so many jobs, as one array.
    Submit(u32),
    /// Cancel these, if they still wait.
    CancelPending(Vec<JobId>),
}

/// What to do, and why not more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// At most one thing at a time.
    pub act: Option<SlurmAct>,
    /// For people.
    pub why: String,
}

fn nothing(why: impl Into<String>) -> Decision {
    Decision { act: None, why: why.into() }
}

/// The pool's jobs by where they stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// Not begun, or just submitted.
    pub waiting: u32,
    /// Begun; their workers have not joined yet.
    pub starting: u32,
    /// Their workers have joined.
    pub joined: u32,
}

impl JobCounts {
    /// Counts jobs.
    pub fn of(jobs: &[SlurmJob], joined: &BTreeSet<String>, unseen: u32) -> Self {
        let mut counts = Self { waiting: unseen, ..Self::default() };
        for job in jobs {
            match job.standing {
                JobState::Ended => {}
                _ if joined.contains(&job.id.allocation()) => counts.joined += 1,
                JobState::Waiting => counts.waiting += 1,
                JobState::Alive => counts.starting += 1,
            }
        }
        counts
    }

    /// All of them.
    pub fn all(self) -> u32 {
        self.waiting + self.starting + self.joined
    }

    fn coming(self) -> u32 {
        self.waiting + self.starting
    }
}

/// What the demand means for a pool.
struct Wanted {
    /// Workers that are to come.
    workers: u32,
    /// For people.
    why: String,
}

/// Decides about one pool.
pub fn decide(pool: &Pool, look: SlurmLook<'_>, memory: &mut Memory) -> Decision {
    let Some(jobs) = look.jobs else {
        memory.blind = memory.blind.saturating_add(1);
        let often =
            if memory.blind >= BLIND { format!(" {} times in a row", memory.blind) } else { String::new() };
        return nothing(format!("squeue did not answer{often}: nothing is submitted blindly"));
    };
    memory.blind = 0;
    let counts = JobCounts::of(jobs, look.joined, memory.unseen(look.now, jobs));
    let wanted = wanted(pool, look);
    if counts.coming() > wanted.workers {
        return too_many(jobs, look.joined, counts, &wanted, memory);
    }
    memory.surplus = 0;
    if counts.coming() == wanted.workers {
        return nothing(match wanted.workers {
            0 => wanted.why,
            coming => format!("{}; {coming} {} on their way", wanted.why, workers(coming)),
        });
    }
    submit(pool, look.now, counts, wanted, memory)
}

fn wanted(pool: &Pool, look: SlurmLook<'_>) -> Wanted {
    let (mut slots, mut folds, mut misfits) = (0, 0, BTreeMap::<Misfit, u64>::new());
    for shape in look.demand {
        match pool.fits(shape) {
            Ok(()) => {
                folds += shape.folds;
                slots += shape.folds.saturating_sub(shape.free_slots);
            }
            Err(misfit) => *misfits.entry(misfit).or_default() += shape.folds,
        }
    }
    let others = misfits.iter().map(|(misfit, folds)| format!("; {folds} others {}", misfit.words()));
    let others: String = others.collect();
    if slots == 0 {
        let why = match folds {
            0 => format!("no fold waits that this pool could train{others}"),
            _ => format!("{folds} folds wait and as many slots are free{others}"),
        };
        return Wanted { workers: 0, why };
    }
    // Before a worker has said how many slots it has, one is tried.
    let (each, known) = (u64::from(look.slots.unwrap_or(1).max(1)), look.slots.is_some());
    let workers = if known { slots.div_ceil(each) } else { 1 };
    let unknown = if known { "" } else { "; the first worker will say how many slots one has" };
    let why = format!("{slots} slots are wanted for {folds} folds{unknown}{others}");
    Wanted { workers: u32::try_from(workers).unwrap_or(u32::MAX), why }
}

/// The newest of those that wait go first: they have waited least.
fn too_many(
    jobs: &[SlurmJob],
    joined: &BTreeSet<String>,
    counts: JobCounts,
    wanted: &Wanted,
    memory: &mut Memory,
) -> Decision {
    let surplus = (counts.coming() - wanted.workers) as usize;
    let waits = |job: &&SlurmJob| job.standing == JobState::Waiting && !joined.contains(&job.id.allocation());
    let mut waiting: Vec<JobId> = jobs.iter().filter(waits).map(|job| job.id.clone()).collect();
    let why = format!(
        "{}; {} {} on their way, {surplus} too many",
        wanted.why,
        counts.coming(),
        workers(counts.coming())
    );
    memory.surplus = memory.surplus.saturating_add(1);
    if memory.surplus < PATIENCE || waiting.is_empty() {
        return nothing(why);
    }
    memory.surplus = 0;
    let kept = waiting.len().saturating_sub(surplus);
    Decision { act: Some(SlurmAct::CancelPending(waiting.split_off(kept))), why }
}

fn submit(pool: &Pool, now: u64, counts: JobCounts, wanted: Wanted, memory: &mut Memory) -> Decision {
    let short = wanted.workers - counts.coming();
    let room = pool.max_workers.saturating_sub(counts.all());
    let room_to_wait = pool.max_waiting.saturating_sub(counts.waiting);
    let mut count = short.min(room).min(room_to_wait);
    if room == 0 {
        return nothing(format!(
            "{}; {} workers are there, which is --max-workers",
            wanted.why,
            counts.all()
        ));
    }
    if room_to_wait == 0 {
        return nothing(format!("{}; {} jobs wait, which is --max-waiting", wanted.why, counts.waiting));
    }
    match &memory.trouble {
        SubmitTrouble::Paused { said } => {
            return nothing(format!("paused: {said}; change what is wrong and start `togl slurm up` again"));
        }
        SubmitTrouble::Later { until, said, .. } if now < *until => {
            return nothing(format!("sbatch said: {said}; it is asked again in {} s", until - now));
        }
        SubmitTrouble::Full { jobs, until, said } if counts.all() as usize >= *jobs && now < *until => {
            return nothing(format!(
                "the queue is full ({said}); the next try is when a job ends or in {} s",
                until - now
            ));
        }
        SubmitTrouble::Full { .. } => count = 1,
        SubmitTrouble::Later { .. } | SubmitTrouble::None => {}
    }
    if let Some(before) = memory.submitted.filter(|before| now < before + PAUSE) {
        return nothing(format!("{}; the next submission is in {} s", wanted.why, before + PAUSE - now));
    }
    Decision { act: Some(SlurmAct::Submit(count)), why: wanted.why }
}

fn workers(count: u32) -> &'static str {
    if count == 1 { "worker is" } else { "workers are" }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
