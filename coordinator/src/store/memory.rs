//! A store in memory, for tests: what it was given is gone with the last clone of it. A clone is a second
//! door to the same contents, so a test can drop a coordinator and start another one on what it left.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use togl_scheduler::{Change, Snapshot};
use togl_sweeps::{Attempt, FoldKey, FoldResult};

use crate::clock;

use super::history::{self, Happened, Note};
use super::{
    LogPiece, Reader, ResultKind, ResultPage, ResultQuery, ResultRow, Store, StoreError, StoredSweep,
    append_bounded, impossible,
};

/// The store. See the file's documentation.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    contents: Arc<Mutex<Contents>>,
    incarnation: u64,
}

#[derive(Debug, Default)]
struct Contents {
    snapshot: Snapshot,
    results: BTreeMap<(FoldKey, ResultKind, Attempt), FoldResult>,
    logs: BTreeMap<(FoldKey, Attempt), String>,
    history: BTreeMap<FoldKey, Vec<Happened>>,
    commits: u64,
    fails: bool,
}

impl Default for MemoryStore {
    fn default() -> Self {
        // The standard library's hash keys are random; a finished empty hash is as random as they are.
        let incarnation = RandomState::new().hash_one("incarnation");
        Self { contents: Arc::default(), incarnation }
    }
}

impl MemoryStore {
    /// How many transactions there were.
    pub fn commits(&self) -> u64 {
        self.contents().commits
    }

    /// Whether commits fail from now on, as on a full disk.
    pub fn set_failing(&self, fails: bool) {
        self.contents().fails = fails;
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn load(&self) -> Result<Snapshot, StoreError> {
        Ok(self.contents().snapshot.clone())
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let mut contents = self.contents();
        if contents.fails {
            return Err(StoreError::Injected("commits fail because the test said so"));
        }
        for result in changes.iter().filter_map(result_of) {
            result.check().map_err(|error| impossible("result", error))?;
        }
        contents.commits += 1;
        let at = clock::unix_milliseconds();
        for change in changes {
            contents.set_aside(change);
            contents.snapshot.apply(change);
            contents.keep_result(change);
            contents.keep_history(at, change);
        }
        Ok(())
    }

    fn append_log(&mut self, pieces: &[LogPiece]) -> Result<(), StoreError> {
        let mut contents = self.contents();
        for LogPiece { fold, attempt, text } in pieces {
            let issued = contents.snapshot.folds.get(fold).map_or(0, |saved| saved.attempts.len());
            if attempt.0 > 0 && attempt.0 as usize <= issued {
                append_bounded(contents.logs.entry((*fold, *attempt)).or_default(), text);
            }
        }
        Ok(())
    }

    fn incarnation(&self) -> u64 {
        self.incarnation
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(self.clone()))
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

/// The result that a fact carries.
fn result_of(change: &Change) -> Option<&FoldResult> {
    match change {
        Change::FoldFinished { result, .. }
        | Change::ReplicateKept { result, .. }
        | Change::ConflictLogged { result, .. } => Some(result),
        _ => None,
    }
}

impl Contents {
    fn keep_history(&mut self, at: i64, change: &Change) {
        let Some(Note { fold, event, attempt, detail }) = history::note(change) else { return };
        let attempts =
            self.snapshot.folds.get(fold).map(|saved| saved.attempts.as_slice()).unwrap_or_default();
        let index = attempt.and_then(|attempt| attempt.0.checked_sub(1));
        let worker = index.and_then(|index| attempts.get(index as usize)).map(|saved| saved.worker.clone());
        let happened = Happened { at, event: event.to_owned(), attempt, worker, detail: detail.into_owned() };
        self.history.entry(*fold).or_default().push(happened);
    }

    fn keep_result(&mut self, change: &Change) {
        let (fold, attempt, kind, result) = match change {
            Change::FoldFinished { fold, attempt, result, .. } => {
                (fold, attempt, ResultKind::Accepted, result)
            }
            Change::ReplicateKept { fold, attempt, result, .. } => {
                (fold, attempt, ResultKind::Replicate, result)
            }
            Change::ConflictLogged { fold, attempt, result, .. } => {
                (fold, attempt, ResultKind::Conflict, result)
            }
            _ => return,
        };
        self.results.entry((*fold, kind, *attempt)).or_insert_with(|| FoldResult::clone(result));
    }

    /// An accepted result becomes a replicate; before the snapshot forgets whose it was.
    fn set_aside(&mut self, change: &Change) {
        let Change::ResultSetAside { fold } = change else { return };
        let accepted =
            (*fold, ResultKind::Accepted, Attempt(0))..=(*fold, ResultKind::Accepted, Attempt(u32::MAX));
        let key = self.results.range(accepted).next().map(|(key, _)| *key);
        if let Some((key, result)) = key.and_then(|key| self.results.remove_entry(&key)) {
            self.results.insert((key.0, ResultKind::Replicate, key.2), result);
        }
    }

    fn rows(&self, fold: FoldKey, kind: ResultKind) -> impl Iterator<Item = ResultRow> {
        let from = (fold, kind, Attempt(0));
        let to = (fold, kind, Attempt(u32::MAX));
        self.results.range(from..=to).filter_map(move |((_, _, attempt), result)| {
            let saved = self.snapshot.folds.get(&fold)?;
            let worker = saved.attempts.get(attempt.0.checked_sub(1)? as usize)?.worker.clone();
            let trial = self.snapshot.trials.get(&fold.trial)?.to_string();
            Some(ResultRow { fold, attempt: *attempt, worker, trial, result: result.clone() })
        })
    }
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
        });
        Ok(stored.collect())
    }

    fn results(&self, query: &ResultQuery) -> Result<ResultPage, StoreError> {
        let contents = self.contents();
        let sweep = contents.snapshot.sweeps.get(&query.sweep);
        let sweep = sweep.ok_or_else(|| StoreError::UnknownSweep(query.sweep.clone()))?;
        let from = usize::try_from(query.from).unwrap_or(usize::MAX);
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let folds = sweep.folds.iter().skip(from).take(limit);
        let rows = folds.flat_map(|fold| contents.rows(*fold, query.kind)).collect();
        let next = query.from.saturating_add(query.limit);
        Ok(ResultPage { rows, next: (next < sweep.folds.len() as u64).then_some(next) })
    }

    fn history(&self, fold: &FoldKey) -> Result<Vec<Happened>, StoreError> {
        Ok(self.contents().history.get(fold).cloned().unwrap_or_default())
    }

    fn log(&self, fold: &FoldKey) -> Result<Vec<LogPiece>, StoreError> {
        let contents = self.contents();
        let pieces = contents.logs.range((*fold, Attempt(0))..=(*fold, Attempt(u32::MAX)));
        Ok(pieces
            .map(|((fold, attempt), text)| LogPiece { fold: *fold, attempt: *attempt, text: text.clone() })
            .collect())
    }
}
