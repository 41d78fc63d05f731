//! A sweep whose first folds all fail for one reason pauses itself and says so, instead of burning the rest.

use std::sync::Arc;

use togl_sweeps::Failure;

use crate::change::{Change, SweepChange};
use crate::place::{FoldAt, SweepAt};
use crate::queue::Sweep;
use crate::state::Scheduler;
use crate::words::SweepState;

/// How the first folds of a sweep ended. In memory only: after a restart the count begins anew.
#[derive(Debug, Default)]
pub(crate) enum EarlyWarning {
    /// Nothing has failed.
    #[default]
    None,
    /// So far every fold that ended failed for this reason.
    Bad { reason: String, folds: u32 },
    /// Folds failed for different reasons, or the operator wants to go on.
    Ignored,
}

impl EarlyWarning {
    /// One more fold failed. Says how many did, all for this reason.
    fn add(&mut self, failure: &Failure) -> u32 {
        let found = gist(failure);
        match self {
            Self::None => {
                *self = Self::Bad { reason: found, folds: 1 };
                1
            }
            Self::Bad { reason, folds } if *reason == found => {
                *folds += 1;
                *folds
            }
            Self::Bad { .. } | Self::Ignored => {
                *self = Self::Ignored;
                0
            }
        }
    }
}

/// What makes two failures the same: the class and the words, without numbers.
fn gist(failure: &Failure) -> String {
    let words = failure.message.chars().filter(|letter| !letter.is_ascii_digit()).take(200);
    format!("{}: {}", failure.class, words.collect::<String>())
}

impl Scheduler {
    /// A fold was given up: the sweeps that have no result yet take it as an early warning.
    pub(crate) fn weigh_failure(&mut self, at: FoldAt, failure: &Failure, changes: &mut Vec<Change>) {
        let sweeps: Vec<SweepAt> = self.folds[at.at()].sweeps.iter().map(|(sweep, _)| *sweep).collect();
        for at in sweeps {
            let sweep = &mut self.sweeps[at.at()];
            if sweep.state != SweepState::Active || sweep.standing.counts.finished > 0 {
                continue;
            }
            let folds = sweep.early_warning.add(failure);
            if folds >= self.limits.same_failures && has_more(sweep) {
                let note = format!(
                    "it paused itself: its first {folds} folds all failed for one reason ({failure}); \
                     when that is mended, `togl retry` and `togl resume` go on"
                );
                self.set_sweep_state(at, SweepState::Paused, Some(note.into()), changes);
            }
        }
    }

    pub(crate) fn set_sweep_state(
        &mut self,
        at: SweepAt,
        state: SweepState,
        note: Option<Arc<str>>,
        changes: &mut Vec<Change>,
    ) {
        let sweep = &mut self.sweeps[at.at()];
        if sweep.state != state || sweep.note != note {
            (sweep.state, sweep.note) = (state, note.clone());
            let sweep = sweep.name.clone();
            changes.push(Change::Sweep(SweepChange::StateSet { sweep, state, note }));
            self.relist(at);
        }
    }
}

fn has_more(sweep: &Sweep) -> bool {
    sweep.standing.counts.pending + sweep.standing.counts.running > 0
}
