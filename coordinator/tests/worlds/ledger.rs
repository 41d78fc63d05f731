//! What the world remembers beside the coordinator: who was told what. Survives every crash, because it is not
//! part of what is tested.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use togl_coordinator::store::memory::MemoryStore;
use togl_coordinator::store::{Reader, ResultKind, ResultQuery};
use togl_scheduler::Change;
use togl_sweeps::{Attempt, FoldKey, SweepName};

/// Shared by everybody in a world.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
pub struct Notes {
    /// Results that workers were told are safe, with the bits of their accuracy.
    pub acknowledged: BTreeSet<(FoldKey, Attempt, u64)>,
    /// Folds whose acceptance was committed.
    pub finished: BTreeMap<FoldKey, Attempt>,
    /// The attempt of each fold that runs, as far as is committed.
    pub running: BTreeMap<FoldKey, Attempt>,
    /// Promises that were broken.
    pub broken: Vec<String>,
    /// Counts of what happened, to see that worlds are not dull.
    pub seen: BTreeMap<&'static str, u64>,
}

impl Ledger {
    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap()
    }

    pub fn count(&self, what: &'static str) {
        *self.notes().seen.entry(what).or_default() += 1;
    }

    pub fn broken(&self, what: String) {
        self.notes().broken.push(what);
    }

    /// Looks at what is committed.
    pub fn committed(&self, change: &Change) {
        match change {
            Change::AttemptIssued { fold, attempt, .. } => {
                let before = self.notes().running.insert(*fold, *attempt);
                if let Some(before) = before {
                    self.broken(format!("{fold}: attempt {attempt} was given away while {before} runs"));
                }
            }
            Change::LeaseRevived { fold, attempt } => {
                self.notes().running.insert(*fold, *attempt);
                self.count("revived leases");
            }
            Change::AttemptEnded { fold, .. } => {
                self.notes().running.remove(fold);
                self.count("ended attempts");
            }
            Change::FoldFinished { fold, attempt, .. } => {
                self.notes().running.remove(fold);
                let before = self.notes().finished.insert(*fold, *attempt);
                if let Some(before) = before {
                    self.broken(format!("{fold}: attempt {attempt} was accepted after {before}"));
                }
                self.count("finished");
            }
            Change::ReplicateKept { .. } => self.count("replicates"),
            Change::ConflictLogged { .. } => self.count("conflicts"),
            Change::FoldFailed { .. } => self.count("failed folds"),
            _ => {}
        }
    }

    /// Every acknowledged result must be in the store, as a result or beside one.
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
        let lost: Vec<_> = self.notes().acknowledged.difference(&kept).copied().collect();
        if !lost.is_empty() {
            self.broken(format!("acknowledged and lost: {lost:?}"));
        }
    }
}
