//! A store in memory, for tests: what it was given is gone with the last clone of it. A clone is a second
//! door to the same contents, so a test can drop a coordinator and start another one on what it left. `facts` reads it.

mod facts;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use togl_scheduler::{About, Change, FoldChange, Snapshot, Steered};
use togl_sweeps::{Attempt, FoldKey, FoldResult, SweepName};

use crate::clock;
use crate::telling::{self, Note};

use super::history::{Acted, Happened};
use super::writes::result_of;
use super::{LogPiece, Reader, Readers, ResultKind, Store, StoreError, append_bounded};

/// The store. See the file's documentation.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    contents: Arc<Mutex<Contents>>,
    incarnation: u64,
}

#[derive(Debug, Clone, Default)]
struct Contents {
    snapshot: Snapshot,
    results: BTreeMap<(FoldKey, ResultKind, Attempt), FoldResult>,
    logs: BTreeMap<(FoldKey, Attempt), String>,
    history: BTreeMap<FoldKey, Vec<Happened>>,
    /// With the sweep that it was done to, if it was one.
    acts: Vec<(Option<SweepName>, Acted)>,
    commits: u64,
    log_writes: u64,
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
    /// How often output of trainers was written on its own.
    pub fn log_writes(&self) -> u64 {
        self.contents().log_writes
    }

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

    fn commit_with_log(&mut self, changes: &[Change], log: &[LogPiece]) -> Result<(), StoreError> {
        let mut contents = self.contents();
        if contents.fails {
            return Err(StoreError::Injected("commits fail because the test said so"));
        }
        contents.commits += 1;
        let at = clock::unix_milliseconds();
        for change in changes {
            contents.set_aside(change);
            contents.snapshot.apply(change);
            contents.keep_result(change);
            contents.keep_history(at, change);
            contents.keep_act(at, change);
        }
        contents.keep_log(log);
        Ok(())
    }

    fn append_log(&mut self, pieces: &[LogPiece]) -> Result<(), StoreError> {
        let mut contents = self.contents();
        contents.log_writes += 1;
        contents.keep_log(pieces);
        Ok(())
    }

    fn incarnation(&self) -> u64 {
        self.incarnation
    }

    fn readers(&self) -> Arc<dyn Readers> {
        Arc::new(self.clone())
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Contents {
    fn keep_log(&mut self, pieces: &[LogPiece]) {
        for LogPiece { fold, attempt, text } in pieces {
            let issued = self.snapshot.folds.get(fold).map_or(0, |saved| saved.attempts.len());
            if attempt.0 > 0 && attempt.0 as usize <= issued {
                append_bounded(self.logs.entry((*fold, *attempt)).or_default(), text);
            }
        }
    }

    fn keep_history(&mut self, at: i64, change: &Change) {
        let Some(Note { fold, event, attempt, detail }) = telling::note(change) else { return };
        let attempts =
            self.snapshot.folds.get(fold).map(|saved| saved.attempts.as_slice()).unwrap_or_default();
        let index = attempt.and_then(|attempt| attempt.0.checked_sub(1));
        let worker = index.and_then(|index| attempts.get(index as usize)).map(|saved| saved.worker.clone());
        let happened = Happened { at, event: event.to_owned(), attempt, worker, detail: detail.into_owned() };
        self.history.entry(*fold).or_default().push(happened);
    }

    fn keep_act(&mut self, at: i64, change: &Change) {
        let Change::Steered(steered) = change else { return };
        let Steered { by, act, about, detail } = steered.as_ref();
        let sweep = match about {
            About::Sweep(sweep) => Some(sweep.clone()),
            About::Worker(_) | About::Data(_) => None,
        };
        let acted = Acted {
            at,
            by: by.name.clone(),
            act: act.as_str().to_owned(),
            about: about.as_str().to_owned(),
            detail: detail.clone(),
            reason: by.reason.clone(),
        };
        self.acts.push((sweep, acted));
    }

    fn keep_result(&mut self, change: &Change) {
        let Change::Fold(fold, change) = change else { return };
        if let Some((kind, attempt, _, result)) = result_of(change) {
            self.results.entry((*fold, kind, attempt)).or_insert_with(|| FoldResult::clone(result));
        }
    }

    /// An accepted result becomes a replicate; before the snapshot forgets whose it was.
    fn set_aside(&mut self, change: &Change) {
        let Change::Fold(fold, FoldChange::SetAside) = change else { return };
        let accepted =
            (*fold, ResultKind::Accepted, Attempt(0))..=(*fold, ResultKind::Accepted, Attempt(u32::MAX));
        let key = self.results.range(accepted).next().map(|(key, _)| *key);
        if let Some((key, result)) = key.and_then(|key| self.results.remove_entry(&key)) {
            self.results.insert((key.0, ResultKind::Replicate, key.2), result);
        }
    }
}

impl Readers for MemoryStore {
    /// A copy that nobody writes to.
    fn open_reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        let contents = self.contents().clone();
        Ok(Box::new(Self { contents: Arc::new(Mutex::new(contents)), incarnation: self.incarnation }))
    }
}
