//! One worker as the page shows it: what it trains, what it finished in the last hour, what it lost. Folds are read from the
//! store one by one and only the latest are kept; whoever has a great many is looked at in part, and it says so.

use std::collections::BTreeMap;

use togl_coordinator::store::reading::{Fact, FoldsWanted, Wanted};
use togl_coordinator::store::{FoldFilter, FoldState, StoredFold};
use togl_sweeps::WorkerId;
use togl_web::view;

use super::views;
use crate::clock;
use crate::facts::{Facts as _, KnownWorkers, Remote, sweep_name};
use crate::problem::Problem;
use crate::remote::fold_title;

/// What is called lately, in milliseconds.
const LATELY: u64 = 60 * 60 * 1_000;

/// Stretches that are shown.
const MOST: usize = 300;

/// Folds of one sweep, and sweeps, that are looked at.
const FOLDS: u64 = 20_000;
const SWEEPS: usize = 8;

/// What folds of a worker amount to.
struct Account {
    now: u64,
    looked_at: u64,
    finished: u64,
    seconds: f64,
    last_hour: u64,
    failed: BTreeMap<String, u64>,
    lately: Vec<view::Stretch>,
}

impl Account {
    fn new(now: u64) -> Self {
        let (failed, lately) = (BTreeMap::new(), Vec::new());
        Self { now, looked_at: 0, finished: 0, seconds: 0.0, last_hour: 0, failed, lately }
    }

    fn add(&mut self, fold: &StoredFold) {
        self.looked_at += 1;
        match &fold.state {
            FoldState::Failed(failure) => *self.failed.entry(failure.class.to_string()).or_default() += 1,
            FoldState::Pending | FoldState::Running { .. } => {}
            FoldState::Finished { .. } => {
                let Some(outcome) = &fold.outcome else { return };
                self.finished += 1;
                self.seconds += outcome.seconds;
                let until = outcome.finished_at.unwrap_or_default();
                if until.saturating_add(LATELY) < self.now {
                    return;
                }
                self.last_hour += 1;
                let from = until.saturating_sub((outcome.seconds.max(0.0) * 1e3) as u64);
                let title = fold_title(&fold.trial, fold.fold.split, fold.fold.seed);
                self.lately.push(view::Stretch { fold: fold.fold.to_string(), title, from, until });
                if self.lately.len() > 2 * MOST {
                    self.cut();
                }
            }
        }
    }

    fn cut(&mut self) {
        self.lately.sort_by_key(|stretch| stretch.until);
        self.lately.drain(..self.lately.len().saturating_sub(MOST));
    }
}

pub async fn worker(remote: &mut Remote, name: &str) -> Result<view::WorkerNow, Problem> {
    let id: WorkerId = name.parse().map_err(Problem::usage)?;
    let here = match remote.workers().await? {
        KnownWorkers::Here(workers) => workers.into_iter().find(|worker| worker.worker == name),
        KnownWorkers::Past(_) => None,
    };
    let here = here.ok_or_else(|| Problem::negative(format!("no worker `{name}` is connected")))?;
    let sweeps = remote.sweeps(false).await?;
    let mut account = Account::new(clock::unix_seconds().saturating_mul(1_000));
    let mut in_training = Vec::new();
    for sweep in sweeps.iter().rev().take(SWEEPS) {
        let filter = FoldFilter { worker: Some(id.clone()), ..FoldFilter::default() };
        let folds = Some(FoldsWanted { filter, skip: 0, limit: Some(FOLDS) });
        let wanted = Wanted { sweep: Some(sweep_name(&sweep.name)?), folds, ..Wanted::default() };
        let mut take = |fact| {
            if let Fact::Fold(fold) = fact {
                account.add(&fold);
            }
            Ok(())
        };
        remote.read(wanted, &mut take).await?;
        if sweep.running > 0 {
            let running = remote.status(&sweep.name).await?.in_training.into_iter();
            in_training.extend(running.filter(|fold| fold.worker == name).map(views::in_training));
        }
    }
    account.cut();
    let Account { now, looked_at, finished, seconds, last_hour, failed, lately } = account;
    Ok(view::WorkerNow {
        worker: views::worker(here),
        in_training: in_training.into_iter().take(64).collect(),
        looked_at,
        finished,
        last_hour,
        seconds_a_fold: (finished > 0).then(|| seconds / finished as f64),
        failed_by_class: failed,
        lately,
        at: now,
    })
}

#[cfg(test)]
mod tests {
    use togl_coordinator::store::ResultSummary;
    use togl_sweeps::{Attempt, FoldKey, TrialId};

    use super::*;

    #[test]
    fn only_the_last_hour_is_drawn_and_never_more_than_fits() {
        let mut account = Account::new(10 * LATELY);
        for at in 0..5_000_u64 {
            let worker: WorkerId = "w".parse().unwrap();
            account.add(&StoredFold {
                fold: FoldKey { trial: TrialId::from_bytes([1; 16]), split: at as u32, seed: 0 },
                trial: String::new(),
                state: FoldState::Finished { attempt: Attempt(1), worker: worker.clone() },
                attempts: 1,
                worker: Some(worker),
                outcome: Some(ResultSummary {
                    value: 0.5,
                    seconds: 2.0,
                    finished_at: Some(9 * LATELY - 2_500_000 + 1_000 * at),
                }),
            });
        }
        account.cut();
        assert_eq!((account.finished, account.last_hour), (5_000, 2_500));
        assert_eq!(account.lately.len(), MOST);
        let last = account.lately.last().unwrap();
        assert_eq!((last.until, last.until - last.from), (9 * LATELY - 2_500_000 + 4_999_000, 2_000));
    }
}
