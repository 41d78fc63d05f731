//! Which folds changed lately, so that whoever follows a sweep hears of changes instead of reading everything again.
//! Remembers a bounded number of them: who comes too late is told to start over. Reads the state, changes nothing but its
//! own memory.

use std::collections::{HashSet, VecDeque};

use togl_sweeps::SweepName;

use crate::place::FoldAt;
use crate::state::Scheduler;
use crate::views::{FoldView, SweepView};

/// Changes that are remembered.
const REMEMBERED: usize = 65_536;

/// Changes that are looked at in one go: about a millisecond's worth.
const STEPS: usize = 8_192;

/// The latest changes of all folds, each with a number of its own: the first is 1.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    latest: VecDeque<FoldAt>,
    /// Of the last change.
    pub(crate) number: u64,
}

impl Touched {
    pub(crate) fn note(&mut self, fold: FoldAt) {
        if self.latest.len() == REMEMBERED {
            self.latest.pop_front();
        }
        self.latest.push_back(fold);
        self.number += 1;
    }

    /// The changes after that number; none if they are forgotten, or have not happened.
    fn after(&self, number: u64) -> Option<impl Iterator<Item = FoldAt>> {
        let missed = usize::try_from(self.number.checked_sub(number)?).ok()?;
        let first = self.latest.len().checked_sub(missed)?;
        Some(self.latest.range(first..).copied())
    }
}

/// What happened to a sweep since somebody looked last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// The sweep now.
    pub summary: SweepView,
    /// Trials all of whose folds are finished.
    pub trials_finished: u64,
    /// The number to ask with next time.
    pub number: u64,
    /// Folds that changed, each as it is now; none if everything has to be read again.
    pub folds: Option<Vec<FoldView>>,
    /// Whether there is more already.
    pub more: bool,
}

impl Scheduler {
    /// What changed in a sweep after `number`, which came with the last answer. Who has none, or comes too late, reads the
    /// folds of the sweep and goes on from the number in this answer. None if there is no such sweep.
    pub fn follow(&self, name: &SweepName, number: Option<u64>, limit: usize) -> Option<Followed> {
        let place = *self.by_name.get(name)?;
        let sweep = &self.sweeps[place.at()];
        let (summary, trials_finished) = (sweep.view(), sweep.trials_finished());
        let number = number.filter(|number| *number >= sweep.gathered);
        let Some((number, changes)) = number.and_then(|number| Some((number, self.touched.after(number)?)))
        else {
            let number = self.touched.number;
            return Some(Followed { summary, trials_finished, number, folds: None, more: false });
        };
        let (mut folds, mut seen, mut steps) = (Vec::new(), HashSet::new(), 0);
        for at in changes.take(STEPS) {
            let fold = &self.folds[at.at()];
            let ours = fold.sweeps.iter().any(|(of, _)| *of == place);
            if ours && !seen.contains(&at) {
                if folds.len() == limit {
                    break;
                }
                seen.insert(at);
                folds.push(self.fold_view(at));
            }
            steps += 1;
        }
        let number = number + steps;
        let more = number < self.touched.number;
        Some(Followed { summary, trials_finished, number, folds: Some(folds), more })
    }
}
