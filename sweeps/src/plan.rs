//! What a sweep would do, given what is known about folds: how much is done, runs, has failed, is left, and what an edit
//! has orphaned. Pure counting; where the knowledge comes from and what is printed is the caller's business.

use std::collections::HashMap;
use std::str::FromStr;

use serde::Serialize;

use crate::ids::FoldKey;
use crate::spec::SweepSpec;
use crate::words::words;

words!(
    /// The state of a fold in one word.
    FoldWord {
        /// It waits for a worker.
        Pending = "pending",
        /// A worker trains it.
        Running = "running",
        /// It has a result that counts.
        Finished = "finished",
        /// It has failed and will not be tried again by itself.
        Failed = "failed",
    }
);

impl FromStr for FoldWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refusal = || format!("`{text}` is no state of a fold; use pending, running, finished or failed");
        Self::from_word(text).ok_or_else(refusal)
    }
}

/// A fold that somebody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownFold {
    /// Which fold.
    pub key: FoldKey,
    /// What is known about it.
    pub state: FoldWord,
    /// Whether it belongs to the sweep of this name already; folds of other sweeps share their results.
    pub in_sweep: bool,
}

/// What a sweep would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PlanCounts {
    /// Points of the grids, before equal trials are merged.
    pub points: u64,
    /// Distinct trials.
    pub trials: u64,
    /// Folds: done, running, failed and to do.
    pub folds: u64,
    /// Folds with a result, of this sweep or of another.
    pub done: u64,
    /// Folds that are being trained.
    pub running: u64,
    /// Folds that have failed.
    pub failed: u64,
    /// Folds that are still to be trained.
    pub to_do: u64,
    /// Of those to do, folds that this sweep does not know yet: what a submission would add.
    pub new: u64,
    /// Folds of the sweep as it is known that the file no longer has.
    pub orphaned: u64,
}

impl PlanCounts {
    /// Counts what a sweep would do.
    pub fn of(spec: &SweepSpec, known: impl IntoIterator<Item = KnownFold>) -> Self {
        let mut known: HashMap<FoldKey, KnownFold> = known.into_iter().map(|fold| (fold.key, fold)).collect();
        let mut plan =
            Self { points: u64::try_from(spec.grid.count()).unwrap_or(u64::MAX), ..Self::default() };
        plan.trials = spec.trials.len() as u64;
        for key in spec.trials.iter().flat_map(|trial| spec.folds_of(trial.id)) {
            plan.count(known.remove(&key));
        }
        plan.orphaned = known.values().filter(|fold| fold.in_sweep).count() as u64;
        plan
    }

    fn count(&mut self, known: Option<KnownFold>) {
        self.folds += 1;
        match known.map(|fold| fold.state) {
            Some(FoldWord::Finished) => self.done += 1,
            Some(FoldWord::Running) => self.running += 1,
            Some(FoldWord::Failed) => self.failed += 1,
            Some(FoldWord::Pending) | None => {
                self.to_do += 1;
                self.new += u64::from(!known.is_some_and(|fold| fold.in_sweep));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(depths: &str) -> SweepSpec {
        SweepSpec::parse(&format!(
            "version: 1\nname: x\nbase: {{dataset: cycles}}\ngrid: {{depth: {depths}}}\nsplits: [0, 1, 2]\n"
        ))
        .unwrap()
    }

    fn folds(spec: &SweepSpec) -> Vec<FoldKey> {
        spec.trials.iter().flat_map(|trial| spec.folds_of(trial.id)).collect()
    }

    #[test]
    fn a_sweep_that_nobody_knows_is_all_to_do() {
        let plan = PlanCounts::of(&spec("[1, 2]"), []);
        let expected =
            PlanCounts { points: 2, trials: 2, folds: 6, to_do: 6, new: 6, ..PlanCounts::default() };
        assert_eq!(plan, expected);
    }

    #[test]
    fn an_edit_keeps_what_is_known_adds_what_is_new_and_orphans_what_is_gone() {
        let before = spec("[1, 2]");
        let states = [FoldWord::Finished, FoldWord::Running, FoldWord::Pending, FoldWord::Failed];
        let known = folds(&before).into_iter().zip(states.into_iter().cycle());
        let known = known.map(|(key, state)| KnownFold { key, state, in_sweep: true });
        let plan = PlanCounts::of(&spec("[2, 3]"), known);
        let expected = PlanCounts {
            points: 2,
            trials: 2,
            folds: 6,
            done: 1,
            running: 1,
            failed: 1,
            to_do: 3,
            new: 3,
            orphaned: 3,
        };
        assert_eq!(plan, expected);
    }

    #[test]
    fn a_result_of_another_sweep_is_shared_and_never_orphaned() {
        let now = spec("[1]");
        let known = folds(&spec("[1, 2]")).into_iter();
        let known = known.map(|key| KnownFold { key, state: FoldWord::Finished, in_sweep: false });
        let plan = PlanCounts::of(&now, known);
        assert_eq!((plan.done, plan.to_do, plan.orphaned), (3, 0, 0));
    }
}
