//! What an autoscaler remembers between two looks. All of it may be forgotten at any time: it makes things smoother and
//! nothing right. Decides nothing about how many workers there should be.

use std::collections::{BTreeMap, BTreeSet};

use super::jobs::{Ended, JobId, JobState, SlurmJob, SubmitRefusal};

/// How long an id that `sbatch` has returned counts although `squeue` does not show it, in seconds.
const FRESH: u64 = 60;

/// When `squeue` should show what was submitted, in seconds.
const LATE: u64 = 5;

/// How long a node is left out, in seconds.
const EXCLUDED: u64 = 3_600;

/// A job that ends so early without a worker had a bad start, in seconds.
const EARLY: u64 = 60;

/// Bad starts in a row, on so many nodes, after which nothing more is submitted.
const BAD_STARTS: usize = 3;
const BAD_NODES: usize = 2;

/// Pauses after one failed submission, after two, and so on, in seconds.
const PAUSES: [u64; 5] = [10, 60, 300, 900, 3_600];

/// How long a full queue is believed to be full if none of the jobs ends, in seconds.
const FULL: u64 = 300;

/// Whether something may be submitted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SubmitTrouble {
    /// It may.
    #[default]
    None,
    /// It did not work; it is tried again later.
    Later { until: u64, tries: usize, said: String },
    /// The queue took no more jobs than these.
    Full { jobs: usize, until: u64, said: String },
    /// It will not work before somebody changes something.
    Paused { said: String },
}

/// Everything that is remembered.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// Arrays that `sbatch` returned: their number, how many jobs, when.
    fresh: Vec<(String, u32, u64)>,
    /// When something was submitted last.
    pub(super) submitted: Option<u64>,
    /// Whether something may be submitted.
    pub(super) trouble: SubmitTrouble,
    /// Looks in a row that found more workers on their way than are wanted.
    pub(super) surplus: u32,
    /// Looks in a row without `squeue`.
    pub(super) blind: u32,
    /// Jobs that wait or run, and whether their worker has joined.
    seen: BTreeMap<JobId, bool>,
    /// Nodes that are left out, until when.
    excluded: BTreeMap<String, u64>,
    /// Nodes of the bad starts since the last good one.
    bad: Vec<String>,
}

impl Memory {
    /// Jobs that were submitted and that `squeue` does not show yet.
    pub fn unseen(&self, now: u64, jobs: &[SlurmJob]) -> u32 {
        let young = self.fresh.iter().filter(|(_, _, at)| now < at + FRESH);
        let unseen = young.filter(|(array, ..)| !jobs.iter().any(|job| job.id.is_of(array)));
        unseen.map(|(_, count, _)| count).sum()
    }

    /// Takes note of the queue; gives the jobs that have ended without a worker, begun or not.
    pub fn note_queue(&mut self, now: u64, jobs: &[SlurmJob], joined: &BTreeSet<String>) -> Vec<JobId> {
        // `squeue` shows all tasks of an array or none: those that it leaves out began and ended between two looks.
        let missing = self.fresh.iter().filter(|(array, ..)| jobs.iter().any(|job| job.id.is_of(array)));
        let missing = missing.flat_map(|(array, count, _)| tasks(array, *count));
        self.seen.extend(missing.map(|id| (id, false)));
        self.fresh.retain(|(array, _, at)| now < at + FRESH && !jobs.iter().any(|job| job.id.is_of(array)));
        self.excluded.retain(|_, until| now < *until);
        for job in jobs.iter().filter(|job| job.standing != JobState::Ended) {
            let has_joined = job.standing == JobState::Alive && joined.contains(&job.id.allocation());
            let before = self.seen.entry(job.id.clone()).or_default();
            if has_joined && !*before {
                self.bad.clear();
            }
            *before |= has_joined;
        }
        let alive = |id: &JobId| jobs.iter().any(|job| job.id == *id && job.standing != JobState::Ended);
        let gone: Vec<JobId> = self.seen.keys().filter(|id| !alive(id)).cloned().collect();
        let gone = gone.into_iter().filter(|id| self.seen.remove(id) == Some(false)).collect::<Vec<_>>();
        gone.into_iter().chain(self.never_seen(now)).collect()
    }

    /// Jobs that `squeue` should show by now: perhaps they began and ended between two looks.
    fn never_seen(&self, now: u64) -> Vec<JobId> {
        let late = self.fresh.iter().filter(|(_, _, at)| now >= at + LATE);
        late.flat_map(|(array, count, _)| tasks(array, *count)).collect()
    }

    /// A job has ended whose worker never joined.
    pub fn note_end(&mut self, now: u64, id: &JobId, ended: &Ended) {
        self.fresh.retain(|(array, ..)| !id.is_of(array)); // `squeue` shows none of its tasks: all have ended
        if !ended.by_itself || ended.seconds >= EARLY || ended.node.is_empty() {
            return;
        }
        self.excluded.insert(ended.node.clone(), now + EXCLUDED);
        self.bad.push(ended.node.clone());
        let nodes: BTreeSet<&String> = self.bad.iter().collect();
        if self.bad.len() >= BAD_STARTS && nodes.len() >= BAD_NODES {
            let said = format!(
                "{} jobs in a row ended within a minute without a worker, on {}; read their logs",
                self.bad.len(),
                nodes.into_iter().cloned().collect::<Vec<_>>().join(", ")
            );
            self.trouble = SubmitTrouble::Paused { said };
        }
    }

    /// `sbatch` was asked for so many jobs while so many were there.
    pub fn note_submission(
        &mut self,
        now: u64,
        count: u32,
        jobs: usize,
        answer: Result<String, SubmitRefusal>,
    ) {
        self.submitted = Some(now);
        let tries = match &self.trouble {
            SubmitTrouble::Later { tries, .. } => *tries,
            SubmitTrouble::None | SubmitTrouble::Full { .. } | SubmitTrouble::Paused { .. } => 0,
        };
        self.trouble = match answer {
            Ok(array) => {
                self.fresh.push((array, count, now));
                SubmitTrouble::None
            }
            Err(SubmitRefusal::Passing(said)) => {
                let pause = PAUSES[tries.min(PAUSES.len() - 1)];
                SubmitTrouble::Later { until: now + pause, tries: tries + 1, said }
            }
            Err(SubmitRefusal::Full(said)) => SubmitTrouble::Full { jobs, until: now + FULL, said },
            Err(SubmitRefusal::Lasting(said)) => SubmitTrouble::Paused { said },
        };
    }

    /// Nodes that are left out.
    pub fn excluded(&self) -> Vec<String> {
        self.excluded.keys().cloned().collect()
    }
}

fn tasks(array: &str, count: u32) -> impl Iterator<Item = JobId> {
    (0..count).map(move |task| JobId(format!("{array}_{task}")))
}
