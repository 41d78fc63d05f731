//! What people look at, from memory: the plainest way to say what the databases must say too.

use std::collections::{BTreeMap, BTreeSet};

use togl_scheduler::{FoldState, SavedAttempt, SavedFold, SavedState, SweepSaved};
use togl_sweeps::{Attempt, FoldKey, SweepName, TrialId};

use super::super::history::{ACTS, Acted, Happened};
use super::super::{
    FoldAttempt, FoldDetail, FoldFilter, FoldPage, FoldQuery, FoldWord, LogPiece, PastWorker, Reader,
    ResultKind, ResultPage, ResultQuery, ResultRow, ResultSummary, StoreError, StoredFold, StoredSweep,
    SweepCounts, lookup, unknown_sweep,
};
use super::{Contents, MemoryStore};

impl Contents {
    fn sweep(&self, name: &SweepName) -> Result<&SweepSaved, StoreError> {
        self.snapshot.sweeps.get(name).ok_or_else(|| unknown_sweep(name))
    }

    fn rows(&self, fold: FoldKey, kind: ResultKind) -> impl Iterator<Item = ResultRow> {
        let from = (fold, kind, Attempt(0));
        let to = (fold, kind, Attempt(u32::MAX));
        self.results.range(from..=to).filter_map(move |((_, _, attempt), result)| {
            let worker = attempt_of(self.snapshot.folds.get(&fold)?, *attempt)?.worker.clone();
            let trial = self.snapshot.trials.get(&fold.trial)?.to_string();
            Some(ResultRow { fold, attempt: *attempt, worker, trial, result: result.clone() })
        })
    }

    fn stored(&self, fold: FoldKey) -> Option<StoredFold> {
        let saved = self.snapshot.folds.get(&fold)?;
        let attempt = match saved.state {
            SavedState::Finished { attempt, .. } => attempt,
            SavedState::Pending | SavedState::Leased | SavedState::Failed(_) => {
                Attempt(saved.attempts.len() as u32)
            }
        };
        let worker = attempt_of(saved, attempt).map(|attempt| attempt.worker.clone());
        let state = match (&saved.state, worker.clone()) {
            (SavedState::Pending, _) => FoldState::Pending,
            (SavedState::Leased, worker) => FoldState::Running { attempt, worker: worker? },
            (SavedState::Finished { .. }, worker) => FoldState::Finished { attempt, worker: worker? },
            (SavedState::Failed(failure), _) => FoldState::Failed(failure.clone()),
        };
        let result = self.results.get(&(fold, ResultKind::Accepted, attempt));
        Some(StoredFold {
            fold,
            trial: self.snapshot.trials.get(&fold.trial)?.to_string(),
            state,
            attempts: saved.attempts.len() as u32,
            worker,
            outcome: result.map(ResultSummary::of),
        })
    }

    /// The folds that a query means, with their positions.
    fn chosen(&self, query: &FoldQuery) -> Result<Vec<(u64, StoredFold)>, StoreError> {
        let folds =
            (0..).zip(&self.sweep(&query.sweep)?.folds).filter(|(position, _)| *position >= query.from);
        let folds = folds.filter_map(|(position, fold)| Some((position, self.stored(*fold)?)));
        Ok(folds.filter(|(_, fold)| fits(&query.filter, fold)).collect())
    }
}

fn attempt_of(saved: &SavedFold, attempt: Attempt) -> Option<&SavedAttempt> {
    saved.attempts.get(attempt.0.checked_sub(1)? as usize)
}

fn fits(filter: &FoldFilter, fold: &StoredFold) -> bool {
    let FoldFilter { states, worker, class, trials, dataset } = filter;
    let on = || {
        let settings: serde_json::Value = serde_json::from_str(&fold.trial).ok()?;
        Some(settings.get("dataset")?.as_str()?.to_lowercase())
    };
    (states.is_empty() || states.contains(&fold.state.word()))
        && (worker.is_none() || fold.worker == *worker)
        && class
            .is_none_or(|class| matches!(&fold.state, FoldState::Failed(failure) if failure.class == class))
        && trials.is_none_or(|[least, greatest]| (least..=greatest).contains(&fold.fold.trial))
        && dataset.as_ref().is_none_or(|name| on() == Some(name.to_lowercase()))
}

impl Reader for MemoryStore {
    fn sweeps(&self) -> Result<Vec<StoredSweep>, StoreError> {
        let contents = self.contents();
        let mut sweeps: Vec<_> = contents.snapshot.sweeps.values().collect();
        sweeps.sort_by_key(|sweep| sweep.order);
        let stored = sweeps.into_iter().map(|sweep| StoredSweep {
            name: sweep.name.clone(),
            yaml: sweep.yaml.to_string(),
            state: sweep.state,
            priority: sweep.priority,
        });
        Ok(stored.collect())
    }

    fn counts(&self, sweep: &SweepName) -> Result<SweepCounts, StoreError> {
        let contents = self.contents();
        let sweep = contents.sweep(sweep)?;
        let mut counts = SweepCounts {
            note: sweep.note.as_deref().unwrap_or_default().to_owned(),
            ..SweepCounts::default()
        };
        let mut whole: BTreeMap<TrialId, bool> = BTreeMap::new();
        for fold in sweep.folds.iter().filter_map(|fold| contents.stored(*fold)) {
            let word = fold.state.word();
            *match word {
                FoldWord::Pending => &mut counts.folds.pending,
                FoldWord::Running => &mut counts.folds.running,
                FoldWord::Finished => &mut counts.folds.finished,
                FoldWord::Failed => &mut counts.folds.failed,
            } += 1;
            *whole.entry(fold.fold.trial).or_insert(true) &= word == FoldWord::Finished;
        }
        counts.trials = whole.len() as u64;
        counts.trials_finished = whole.values().filter(|whole| **whole).count() as u64;
        Ok(counts)
    }

    fn results(&self, query: &ResultQuery) -> Result<ResultPage, StoreError> {
        let contents = self.contents();
        let sweep = contents.sweep(&query.sweep)?;
        let from = usize::try_from(query.from).unwrap_or(usize::MAX);
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let folds = sweep.folds.iter().skip(from).take(limit);
        let rows = folds.flat_map(|fold| contents.rows(*fold, query.kind)).collect();
        let next = query.from.saturating_add(query.limit);
        Ok(ResultPage { rows, next: (next < sweep.folds.len() as u64).then_some(next) })
    }

    fn result(&self, fold: &FoldKey) -> Result<Option<ResultRow>, StoreError> {
        Ok(self.contents().rows(*fold, ResultKind::Accepted).next())
    }

    fn folds(&self, query: &FoldQuery) -> Result<FoldPage, StoreError> {
        let chosen = self.contents().chosen(query)?.into_iter();
        let page: Vec<_> = chosen.skip(query.skip as usize).take(query.limit as usize).collect();
        let full = page.len() as u64 == query.limit;
        let next = page.last().filter(|_| full).map(|(position, _)| position + 1);
        Ok(FoldPage { folds: page.into_iter().map(|(_, fold)| fold).collect(), next })
    }

    fn count_folds(&self, query: &FoldQuery) -> Result<u64, StoreError> {
        Ok(self.contents().chosen(query)?.len() as u64)
    }

    fn fold(&self, fold: &FoldKey) -> Result<Option<FoldDetail>, StoreError> {
        let contents = self.contents();
        let Some(stored) = contents.stored(*fold) else { return Ok(None) };
        let mut sweeps: Vec<_> =
            contents.snapshot.sweeps.values().filter(|sweep| sweep.folds.contains(fold)).collect();
        sweeps.sort_by_key(|sweep| sweep.order);
        let saved =
            contents.snapshot.folds.get(fold).map(|saved| saved.attempts.as_slice()).unwrap_or_default();
        let attempts = saved.iter().zip(1..).map(|(saved, number)| FoldAttempt {
            attempt: Attempt(number),
            worker: saved.worker.clone(),
            ending: saved.ending,
        });
        Ok(Some(FoldDetail {
            fold: stored,
            sweeps: sweeps.into_iter().map(|sweep| (sweep.name.clone(), sweep.state)).collect(),
            attempts: attempts.collect(),
        }))
    }

    fn folds_between(&self, least: &FoldKey, greatest: &FoldKey) -> Result<Vec<FoldKey>, StoreError> {
        let contents = self.contents();
        let folds = contents.snapshot.folds.keys().filter(|fold| {
            (fold.split, fold.seed) == (least.split, least.seed)
                && (least.trial..=greatest.trial).contains(&fold.trial)
        });
        Ok(folds.take(2).copied().collect())
    }

    fn digits(&self) -> Result<usize, StoreError> {
        Ok(lookup::digits(self.contents().snapshot.trials.keys().copied()))
    }

    fn log(&self, fold: &FoldKey) -> Result<Vec<LogPiece>, StoreError> {
        let contents = self.contents();
        let pieces = contents.logs.range((*fold, Attempt(0))..=(*fold, Attempt(u32::MAX)));
        Ok(pieces
            .map(|((fold, attempt), text)| LogPiece { fold: *fold, attempt: *attempt, text: text.clone() })
            .collect())
    }

    fn history(&self, fold: &FoldKey) -> Result<Vec<Happened>, StoreError> {
        Ok(self.contents().history.get(fold).cloned().unwrap_or_default())
    }

    fn acts(&self, sweep: Option<&SweepName>) -> Result<Vec<Acted>, StoreError> {
        let contents = self.contents();
        let is_meant = |of: &Option<SweepName>| sweep.is_none() || of.as_ref() == sweep;
        let acts = contents.acts.iter().filter(|(of, _)| is_meant(of));
        let meant: Vec<Acted> = acts.map(|(_, act)| act.clone()).collect();
        Ok(meant[meant.len().saturating_sub(ACTS)..].to_vec())
    }

    fn transactions(&self) -> Result<u64, StoreError> {
        Ok(self.contents().commits)
    }

    fn workers(&self) -> Result<Vec<PastWorker>, StoreError> {
        let contents = self.contents();
        let folds = &contents.snapshot.folds;
        let attempts = || folds.values().flat_map(|saved| &saved.attempts);
        let names: BTreeSet<_> = attempts().map(|attempt| (&attempt.worker, &attempt.host)).collect();
        let leased = |of: &_| {
            let lines = contents.history.values().flatten();
            lines
                .filter(|line| matches!(line.event.as_str(), "leased" | "imported"))
                .filter(|line| line.worker.as_ref() == Some(of))
                .map(|line| line.at)
                .max()
        };
        let workers = names.into_iter().map(|(worker, host)| {
            let is_its = |attempt: &SavedAttempt| (&attempt.worker, &attempt.host) == (worker, host);
            let finished = folds.values().filter(|saved| match saved.state {
                SavedState::Finished { attempt, .. } => attempt_of(saved, attempt).is_some_and(is_its),
                SavedState::Pending | SavedState::Leased | SavedState::Failed(_) => false,
            });
            PastWorker {
                worker: worker.clone(),
                host: host.clone(),
                attempts: attempts().filter(|attempt| is_its(attempt)).count() as u64,
                finished: finished.count() as u64,
                last_at: leased(worker).unwrap_or(0),
            }
        });
        Ok(workers.collect())
    }
}
