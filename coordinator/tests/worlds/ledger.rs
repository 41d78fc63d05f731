//! What the world remembers beside the coordinator and its workers: who trained, said and was told what. Survives every
//! crash, because it is not part of what is tested.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use togl_coordinator::store::memory::MemoryStore;
use togl_coordinator::store::{Reader, ResultKind, ResultQuery};
use togl_proto::checkpoint::{Held, Torn};
use togl_scheduler::{Change, FleetChange, FoldChange};
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey, SweepName};

use crate::coordinator::{self, STANDSTILL};
use crate::world::Mistake;

/// A result: of which attempt, and the bits of its accuracy.
pub type Trained = (FoldKey, Attempt, u64);

/// How much later than the coordinator the ledger may hear of the time.
const TICKS: Duration = Duration::from_millis(60);

/// Shared by everybody in a world.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
pub struct Notes {
    /// Virtual time.
    now: Duration,
    /// What slots came to.
    pub trained: BTreeSet<Trained>,
    /// What agents reported; the spool keeps it until it is acknowledged, so it must arrive in the end.
    reported: BTreeSet<Trained>,
    /// Results that workers were told are safe.
    acknowledged: BTreeSet<Trained>,
    /// What slots train now, by worker and slot; what a dead worker left here has a name that nobody has any more.
    pub training: BTreeMap<(String, usize), (FoldKey, Attempt)>,
    /// When a worker was told to stop an attempt.
    told_to_stop: BTreeMap<(String, FoldKey, Attempt), Duration>,
    /// Folds whose acceptance was committed.
    finished: BTreeMap<FoldKey, Attempt>,
    /// Who got which attempt, as far as is committed.
    issued: BTreeMap<(FoldKey, Attempt), String>,
    /// The attempt of each fold that runs, as far as is committed.
    running: BTreeMap<FoldKey, Attempt>,
    /// When each attempt was issued, in time that the coordinator was awake.
    began: BTreeMap<(FoldKey, Attempt), Duration>,
    /// How long the coordinator stood still, and since when it does.
    stood: Duration,
    stands_since: Option<Duration>,
    /// What its clock jumped ahead without being noticed.
    unnoticed: Duration,
    /// Workers are newer than the coordinator, or were.
    pub outdated: bool,
    pub was_outdated: bool,
    /// Whether some results are made to contradict themselves, and which were.
    pub spoiling: bool,
    pub spoilt: BTreeSet<(FoldKey, Attempt)>,
    /// How far the checkpoints are that each coordinator said it holds, now, and whoever issued an attempt when it did.
    brought: BTreeMap<(&'static str, FoldKey), u32>,
    brought_before: BTreeMap<(FoldKey, Attempt), u32>,
    /// Which start of a coordinator a worker met last, and when its attempts should have been brought to it.
    met: BTreeMap<String, u64>,
    to_bring: BTreeMap<(String, FoldKey, Attempt), Duration>,
    /// The planted mistake of a coordinator that keeps whatever comes.
    pub compares_nothing: bool,
    /// Whether the coordinator's disk has changed bytes of a checkpoint.
    pub damaged: bool,
    /// Machines in this world.
    pub machines: usize,
    /// Slots of each worker.
    pub slots: BTreeMap<String, usize>,
    /// Promises that were broken.
    pub broken: Vec<String>,
    /// Counts of what happened, to see that worlds are not dull.
    pub seen: BTreeMap<&'static str, u64>,
}

impl Notes {
    /// Time in which the coordinator was awake, as it would measure it.
    fn awake(&self) -> Duration {
        let standing = self.stands_since.map_or(Duration::ZERO, |since| self.now - since);
        self.now - self.stood - standing + self.unnoticed
    }
}

impl Ledger {
    /// That of a world in which this mistake is made.
    pub fn with(mistake: Mistake) -> Self {
        let ledger = Self::default();
        ledger.notes().compares_nothing = mistake == Mistake::AcceptTorn;
        ledger
    }

    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap()
    }

    pub fn now(&self) -> Duration {
        self.notes().now
    }

    pub fn set_now(&self, now: Duration) {
        self.notes().now = now;
    }

    /// The coordinator's clock jumps. What it cannot tell from time that it spent awake shortens leases.
    pub fn jumped(&self, milliseconds: u64) {
        if milliseconds <= STANDSTILL {
            self.notes().unnoticed += Duration::from_millis(milliseconds);
        }
    }

    /// The coordinator stands still, or goes on.
    pub fn set_standing(&self, stands: bool) {
        let mut notes = self.notes();
        let now = notes.now;
        let since = if stands { Some(notes.stands_since.unwrap_or(now)) } else { None };
        let before = std::mem::replace(&mut notes.stands_since, since);
        // A pause that is too short to be noticed is time like any other.
        let stood = before.filter(|_| !stands).map_or(Duration::ZERO, |before| now - before);
        if stood > Duration::from_millis(STANDSTILL) {
            notes.stood += stood;
        }
    }

    pub fn count(&self, what: &'static str) {
        self.add(what, 1);
    }

    /// Something happened so often.
    pub fn add(&self, what: &'static str, times: u64) {
        *self.notes().seen.entry(what).or_default() += times;
    }

    pub fn broken(&self, what: String) {
        self.notes().broken.push(what);
    }

    /// Says what happens, in a world that is looked at alone.
    pub fn tell(&self, who: &str, what: &dyn std::fmt::Debug) {
        if crate::single_seed().is_some() {
            println!("{:>9.3?} {who}: {what:?}", self.now().as_secs_f64());
        }
    }

    /// What the slots of a worker train now.
    pub fn in_training(&self, worker: &str) -> Vec<(FoldKey, Attempt)> {
        let notes = self.notes();
        let its = notes.training.iter().filter(|((name, _), _)| name == worker);
        its.map(|(_, attempt)| *attempt).collect()
    }

    /// An agent reports a result: one that a slot came to, under the attempt that it was.
    pub fn reported(&self, worker: &str, (fold, attempt): (FoldKey, Attempt), bits: u64) {
        let known = self.notes().trained.contains(&(fold, attempt, bits));
        if !known {
            self.broken(format!(
                "{worker} reports a result of {fold}, attempt {attempt}, that nobody trained"
            ));
        }
        let new = self.notes().reported.insert((fold, attempt, bits));
        self.count(if new { "reports" } else { "repeated reports" });
    }

    /// Whether a result contradicts itself. Decided once, when it is reported first.
    pub fn is_spoilt(&self, (fold, attempt): (FoldKey, Attempt), chance: bool) -> bool {
        let mut notes = self.notes();
        let fresh = notes.reported.range((fold, attempt, 0)..=(fold, attempt, u64::MAX)).next().is_none();
        if fresh && notes.spoiling && chance {
            notes.spoilt.insert((fold, attempt));
        }
        notes.spoilt.contains(&(fold, attempt))
    }

    /// Workers are newer than the coordinator from now on.
    pub fn outdate(&self) {
        let mut notes = self.notes();
        (notes.outdated, notes.was_outdated) = (true, true);
    }

    /// A worker hears that its report is safe.
    pub fn acknowledged(&self, fold: FoldKey, attempt: Attempt) {
        let mut notes = self.notes();
        let known = notes.reported.range((fold, attempt, 0)..=(fold, attempt, u64::MAX)).copied();
        let known: Vec<Trained> = known.collect();
        notes.acknowledged.extend(known);
    }

    /// A worker hears that it shall stop an attempt.
    pub fn told_to_stop(&self, worker: &str, fold: FoldKey, attempt: Attempt) {
        self.count("told to stop");
        let mut notes = self.notes();
        let now = notes.now;
        notes.told_to_stop.entry((worker.to_owned(), fold, attempt)).or_insert(now);
    }

    /// An attempt came to its own end, which it must not long after the word to stop.
    pub fn ended_by_itself(&self, worker: &str, fold: FoldKey, attempt: Attempt, patience: Duration) {
        let told = self.notes().told_to_stop.get(&(worker.to_owned(), fold, attempt)).copied();
        if told.is_some_and(|told| self.now().saturating_sub(told) > patience) {
            self.broken(format!(
                "{worker} went on with {fold}, attempt {attempt}, after it was told to stop"
            ));
        }
        let due = self.notes().to_bring.remove(&(worker.to_owned(), fold, attempt));
        if due.is_some_and(|due| self.now().saturating_sub(due) > patience) {
            self.broken(format!(
                "{worker} met another coordinator and was not told to bring {fold}, attempt {attempt}"
            ));
        }
    }

    /// A worker was welcomed by this start of a coordinator. What it trains has to be brought to one that it had not met.
    pub fn met(&self, worker: &str, start: u64) {
        let training = self.in_training(worker);
        let mut notes = self.notes();
        let (before, now) = (notes.met.insert(worker.to_owned(), start), notes.now);
        if before.is_some_and(|before| before != start) {
            let due = training.into_iter().map(|(fold, attempt)| ((worker.to_owned(), fold, attempt), now));
            notes.to_bring.extend(due);
        }
    }

    /// A slot was told to bring what it trains.
    pub fn brings_anew(&self, worker: &str, fold: FoldKey, attempt: Attempt) {
        self.count("brought again");
        self.notes().to_bring.remove(&(worker.to_owned(), fold, attempt));
    }

    /// The checkpoints of a fold are removed, which nobody may do before its result is safe.
    pub fn tidied(&self, fold: FoldKey) {
        self.count("tidied folds");
        let safe = self.notes().acknowledged.iter().any(|(of, ..)| *of == fold);
        if !safe {
            self.broken(format!("the checkpoints of {fold} were removed before its result was safe"));
        }
    }

    /// This coordinator said that it holds a checkpoint.
    pub fn brought(&self, to: &'static str, fold: FoldKey, epochs: u32) {
        self.count("checkpoints that arrived");
        let mut notes = self.notes();
        let furthest = notes.brought.entry((to, fold)).or_default();
        *furthest = epochs.max(*furthest);
    }

    /// A lease came with this checkpoint: no less far than what the coordinator that gave the fold away had before.
    pub fn leased_with(&self, fold: FoldKey, attempt: Attempt, held: Option<Held>) {
        let epochs = held.map_or(0, |held| held.epochs);
        let brought = self.notes().brought_before.get(&(fold, attempt)).copied().unwrap_or(0);
        let may_be_less = self.notes().damaged;
        if epochs < brought && !may_be_less {
            self.broken(format!(
                "{fold}, attempt {attempt}, begins after epoch {epochs}, and {brought} were held"
            ));
        }
    }

    /// A checkpoint came torn, which happens only where a disk is broken.
    pub fn torn(&self, fold: FoldKey, how: &Torn) {
        self.count("checkpoints that came torn");
        if !self.notes().damaged {
            self.broken(format!("the coordinator holds a torn checkpoint of {fold}: {how}"));
        }
    }

    /// Whether the coordinator has removed the checkpoints of all folds that have a result.
    pub fn is_tidy(&self, folder: &Path) -> bool {
        let notes = self.notes();
        let names: Vec<String> = std::fs::read_dir(folder)
            .map(|entries| entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
            .unwrap_or_default();
        let belongs = |name: &String, fold: &FoldKey| {
            name.starts_with(&format!("{}-{}-{}-", fold.trial, fold.split, fold.seed))
        };
        !names.iter().any(|name| notes.finished.keys().any(|fold| belongs(name, fold)))
    }

    /// Looks at what this coordinator has committed.
    pub fn committed(&self, by: &'static str, change: &Change) {
        match change {
            Change::Steered(_) => self.count("acts"),
            Change::Fold(fold, change) => self.committed_about(by, *fold, change),
            Change::Fleet(FleetChange::Quarantined { .. }) => self.count("quarantines"),
            Change::Fleet(
                FleetChange::Drained { .. } | FleetChange::Undrained { .. } | FleetChange::Released { .. },
            )
            | Change::Trial(..)
            | Change::Sweep(_)
            | Change::Data(_) => {}
        }
    }

    fn committed_about(&self, by: &'static str, fold: FoldKey, change: &FoldChange) {
        match change {
            FoldChange::Issued { attempt, worker, .. } => {
                self.notes().issued.insert((fold, *attempt), worker.to_string());
                let awake = self.notes().awake();
                self.notes().began.insert((fold, *attempt), awake);
                let brought = self.notes().brought.get(&(by, fold)).copied().unwrap_or(0);
                self.notes().brought_before.insert((fold, *attempt), brought);
                let before = self.notes().running.insert(fold, *attempt);
                if let Some(before) = before {
                    self.broken(format!("{fold}: attempt {attempt} was given away while {before} runs"));
                }
                self.check_slots(fold, *attempt);
            }
            FoldChange::Revived { attempt } => {
                self.notes().running.insert(fold, *attempt);
                self.count("revived leases");
                self.check_slots(fold, *attempt);
            }
            FoldChange::Ended { attempt, message, .. } => {
                self.notes().running.remove(&fold);
                self.check_term(fold, *attempt, message);
                self.count("ended attempts");
            }
            FoldChange::Finished { attempt, .. } => {
                self.notes().running.remove(&fold);
                let before = self.notes().finished.insert(fold, *attempt);
                if let Some(before) = before {
                    self.broken(format!("{fold}: attempt {attempt} was accepted after {before}"));
                }
                self.count("finished");
            }
            FoldChange::Replicate { .. } => self.count("replicates"),
            FoldChange::Conflict { .. } => self.count("conflicts"),
            FoldChange::Failed(failure) => self.check_failure(fold, failure),
            FoldChange::Added | FoldChange::Adopted { .. } | FoldChange::Retried | FoldChange::SetAside => {}
        }
    }

    /// While a machine is left that never had it, no fold fails because its workers are gone again and again.
    fn check_failure(&self, fold: FoldKey, failure: &Failure) {
        self.count("failed folds");
        let gone = matches!(failure.class, FailureClass::WorkerLost | FailureClass::Preempted);
        let notes = self.notes();
        let whose = notes.issued.range((fold, Attempt(0))..).take_while(|((of, _), _)| *of == fold);
        let machines: BTreeSet<&str> = whose
            .map(|(_, worker)| worker.split_once('-').map_or(worker.as_str(), |(host, _)| host))
            .collect();
        let left = notes.machines - machines.len();
        drop(notes);
        if gone && left > 0 {
            self.broken(format!("{fold} pays for a host: {failure}"));
        }
    }

    /// Nobody is silent before a whole term has passed in which the coordinator would have heard him.
    fn check_term(&self, fold: FoldKey, attempt: Attempt, message: &str) {
        if !message.starts_with("not renewed") && !message.starts_with("the worker was silent") {
            return;
        }
        let awake = self.notes().awake();
        let held = self.notes().began.get(&(fold, attempt)).map(|began| awake.saturating_sub(*began));
        let term = Duration::from_millis(coordinator::limits().lease_term);
        if let Some(held) = held.filter(|held| *held + TICKS < term) {
            self.broken(format!("the lease of {fold}, attempt {attempt}, ended after {held:?}: {message}"));
        }
    }

    /// Whoever holds this attempt holds no more leases than it has slots.
    fn check_slots(&self, fold: FoldKey, attempt: Attempt) {
        let worker = self.notes().issued[&(fold, attempt)].clone();
        let notes = self.notes();
        let its = |(fold, attempt): &(&FoldKey, &Attempt)| notes.issued[&(**fold, **attempt)] == worker;
        let (held, slots) = (notes.running.iter().filter(its).count(), notes.slots[&worker]);
        drop(notes);
        if held > slots {
            self.broken(format!("{worker} holds {held} leases and has {slots} slots"));
        }
    }

    /// A worker sends a lease back because it has no free slot. That is right if it still trains what the coordinator
    /// has given up: a lease that was long on its way, of which the worker has yet to hear that it is void.
    pub fn sent_back(&self, worker: &str) {
        let training = self.in_training(worker);
        let valid = {
            let notes = self.notes();
            let is_valid = |(fold, attempt): &&(FoldKey, Attempt)| notes.running.get(fold) == Some(attempt);
            training.iter().filter(is_valid).count()
        };
        if valid == self.notes().slots[worker] {
            self.broken(format!("{worker} was given a lease beyond its slots"));
        }
        self.count("leases sent back");
    }

    /// Every reported result must be in the store, as a result or beside one.
    pub fn compare(&self, store: &MemoryStore, sweeps: &[&str]) {
        let mut kept = BTreeSet::new();
        for sweep in sweeps {
            let sweep: SweepName = sweep.parse().unwrap();
            for kind in [ResultKind::Accepted, ResultKind::Replicate, ResultKind::Conflict] {
                let query = ResultQuery { kind, ..ResultQuery::accepted(sweep.clone()) };
                let rows = store.results(&query).unwrap().rows;
                kept.extend(
                    rows.into_iter().map(|row| (row.fold, row.attempt, row.result.test.accuracy.to_bits())),
                );
            }
        }
        let lost = |of: &BTreeSet<Trained>| of.difference(&kept).copied().collect::<Vec<_>>();
        let reported = lost(&self.notes().reported);
        let acknowledged = lost(&self.notes().acknowledged);
        if !acknowledged.is_empty() {
            self.broken(format!("acknowledged and lost: {acknowledged:?}"));
        } else if !reported.is_empty() {
            self.broken(format!("reported, spooled and lost: {reported:?}"));
        }
    }
}
