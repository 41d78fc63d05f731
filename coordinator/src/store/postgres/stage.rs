//! Facts of one transaction gathered by table, so that a thousand of them take a handful of statements. Folds do not
//! depend on each other, so facts about different folds may change places; facts about one fold keep their order,
//! because of each column only the last value is kept. Facts that depend on what is stored end a gathering.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use togl_scheduler::{
    Change, DataChange, Digest, FleetChange, FoldChange, SweepChange, SweepSaved, SweepState, TrialChange,
};
use togl_sweeps::{Attempt, CheckedResult, FoldKey, SweepName, TrialId};

use super::super::history::{self, Note};
use super::super::{LogPiece, ResultKind, StoreError, append_bounded, encode};

/// What is written together. Operations are done in order.
pub(super) enum Op {
    /// Rows of folds.
    Rows(Box<Rows>),
    /// Folds that get a clean slate.
    Retry(Keys),
    /// Folds of a sweep that is being submitted, from that position on.
    Gather(u64, Vec<FoldKey>),
    /// A sweep that was submitted or edited.
    Sweep(Box<SweepSaved>),
    /// A sweep that was steered, and why.
    State(SweepName, SweepState, Option<Arc<str>>),
    /// A sweep that is more or less urgent.
    Priority(SweepName, i32),
    /// Bytes that a trial needs.
    Floor(TrialId, u64),
    /// What a data set must be; nobody disagrees any more.
    Data(String, String),
    /// A data set, a fold and the digest of the other data that its result comes from.
    Dispute(String, FoldKey, String),
    /// Folds whose results become replicates.
    Aside(Keys),
    /// Something about workers and hosts.
    Fleet(FleetChange),
}

/// A whole transaction.
pub(super) struct Staged {
    pub(super) ops: Vec<Op>,
    pub(super) notes: Notes,
    /// Output of trainers.
    pub(super) log: Vec<LogPiece>,
    /// When, in milliseconds since 1970.
    pub(super) at: i64,
}

/// What is added to the histories of folds.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) folds: Keys,
    pub(super) numbers: Vec<i64>,
    pub(super) events: Vec<&'static str>,
    pub(super) attempts: Vec<Option<i64>>,
    pub(super) details: Vec<Vec<u8>>,
}

impl Notes {
    fn push(&mut self, number: i64, note: &Note<'_>) {
        self.folds.push(note.fold);
        self.numbers.push(number);
        self.events.push(note.event);
        self.attempts.push(note.attempt.map(|attempt| attempt.0.into()));
        self.details.push(note.detail.as_bytes().to_vec());
    }
}

/// Keys of folds, a column each.
#[derive(Default)]
pub(super) struct Keys {
    pub(super) trials: Vec<Vec<u8>>,
    pub(super) splits: Vec<i64>,
    pub(super) seeds: Vec<i64>,
}

impl Keys {
    pub(super) fn push(&mut self, fold: &FoldKey) {
        self.trials.push(fold.trial.as_bytes().to_vec());
        self.splits.push(fold.split.into());
        self.seeds.push(fold.seed.cast_signed());
    }

    pub(super) fn len(&self) -> usize {
        self.trials.len()
    }

    fn extend(&mut self, more: Self) {
        self.trials.extend(more.trials);
        self.splits.extend(more.splits);
        self.seeds.extend(more.seeds);
    }
}

impl<'a> FromIterator<&'a FoldKey> for Keys {
    fn from_iter<I: IntoIterator<Item = &'a FoldKey>>(folds: I) -> Self {
        let mut keys = Self::default();
        folds.into_iter().for_each(|fold| keys.push(fold));
        keys
    }
}

/// Rows to insert and to change, by table, in the order in which they are written.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) trials: Vec<Vec<u8>>,
    pub(super) canonical: Vec<String>,
    pub(super) added: Keys,
    pub(super) workers: HashSet<(String, Vec<u8>)>,
    pub(super) issued: Issued,
    pub(super) endings: HashMap<(FoldKey, Attempt), Option<(&'static str, String)>>,
    pub(super) states: HashMap<FoldKey, State>,
    pub(super) results: Results,
}

/// Attempts that were issued.
#[derive(Default)]
pub(super) struct Issued {
    pub(super) folds: Keys,
    pub(super) attempts: Vec<i64>,
    pub(super) workers: Vec<String>,
    pub(super) hosts: Vec<Vec<u8>>,
    pub(super) numbers: Vec<i64>,
}

/// Results to keep.
#[derive(Default)]
pub(super) struct Results {
    pub(super) folds: Keys,
    pub(super) attempts: Vec<i64>,
    pub(super) kinds: Vec<&'static str>,
    pub(super) digests: Vec<i64>,
    pub(super) bodies: Vec<String>,
    /// 0 for those that do not count.
    pub(super) numbers: Vec<i64>,
}

/// Where a fold stands after the transaction.
pub(super) enum State {
    Pending,
    Leased,
    Finished(Attempt, Digest),
    Failed(&'static str, String),
}

/// Gathers the facts of the transaction of this number.
pub(super) fn stage(
    changes: &[Change],
    log: &[LogPiece],
    transaction: u64,
    at: i64,
) -> Result<Staged, StoreError> {
    let (mut ops, mut notes) = (Vec::new(), Notes::default());
    for (number, change) in (history::first_number(transaction)..).zip(changes) {
        if let Some(note) = history::note(change).filter(|_| !history::is_dated(change)) {
            notes.push(number, &note);
        }
        stage_one(&mut ops, number, change)?;
    }
    Ok(Staged { ops, notes, log: merge(log), at })
}

/// One piece an attempt.
pub(super) fn merge(pieces: &[LogPiece]) -> Vec<LogPiece> {
    let mut merged: Vec<LogPiece> = Vec::new();
    let mut places: HashMap<(FoldKey, Attempt), usize> = HashMap::new();
    for piece in pieces {
        match places.get(&(piece.fold, piece.attempt)) {
            Some(place) => append_bounded(&mut merged[*place].text, &piece.text),
            None => {
                places.insert((piece.fold, piece.attempt), merged.len());
                merged.push(piece.clone());
            }
        }
    }
    merged
}

fn stage_one(ops: &mut Vec<Op>, number: i64, change: &Change) -> Result<(), StoreError> {
    let op = match change {
        Change::Trial(trial, TrialChange::Saved(canonical)) => {
            let rows = rows(ops);
            rows.trials.push(trial.as_bytes().to_vec());
            rows.canonical.push(canonical.to_string());
            return Ok(());
        }
        Change::Trial(trial, TrialChange::FloorRaised(bytes)) => Op::Floor(*trial, *bytes),
        Change::Fold(fold, FoldChange::Retried) => Op::Retry([fold].into_iter().collect()),
        Change::Fold(fold, FoldChange::SetAside) => Op::Aside([fold].into_iter().collect()),
        Change::Fold(fold, change) => return rows(ops).take(number, fold, change),
        Change::Sweep(SweepChange::Gathered { from, folds }) => Op::Gather(*from, folds.clone()),
        Change::Sweep(SweepChange::Saved(sweep)) => Op::Sweep(sweep.clone()),
        Change::Sweep(SweepChange::StateSet { sweep, state, note }) => {
            Op::State(sweep.clone(), *state, note.clone())
        }
        Change::Sweep(SweepChange::PrioritySet { sweep, priority }) => Op::Priority(sweep.clone(), *priority),
        Change::Data(DataChange::Pinned { data, digest } | DataChange::Settled { data, digest }) => {
            Op::Data(data.clone(), digest.clone())
        }
        Change::Data(DataChange::Disputed { data, fold, digest }) => {
            Op::Dispute(data.clone(), *fold, digest.clone())
        }
        Change::Fleet(change) => Op::Fleet(change.clone()),
    };
    join(ops, op);
    Ok(())
}

/// The rows that are being gathered.
fn rows(ops: &mut Vec<Op>) -> &mut Rows {
    if !matches!(ops.last(), Some(Op::Rows(_))) {
        ops.push(Op::Rows(Box::default()));
    }
    match ops.last_mut() {
        Some(Op::Rows(rows)) => rows,
        _ => unreachable!("pushed above"),
    }
}

/// Adds an operation; folds that are treated alike one after the other are treated together.
fn join(ops: &mut Vec<Op>, op: Op) {
    match (ops.last_mut(), op) {
        (Some(Op::Retry(keys)), Op::Retry(more)) | (Some(Op::Aside(keys)), Op::Aside(more)) => {
            keys.extend(more)
        }
        (_, op) => ops.push(op),
    }
}

impl Rows {
    fn take(&mut self, number: i64, fold: &FoldKey, change: &FoldChange) -> Result<(), StoreError> {
        match change {
            FoldChange::Added => self.added.push(fold),
            FoldChange::Issued { attempt, worker, host } => {
                self.issue(fold, *attempt, worker.as_str(), host);
                self.issued.numbers.push(number);
            }
            FoldChange::Revived { attempt } => self.end(fold, *attempt, None, State::Leased),
            FoldChange::Ended { attempt, ending, message } => {
                self.end(fold, *attempt, Some((ending.as_str(), message.clone())), State::Pending);
            }
            FoldChange::Failed(failure) => {
                self.states.insert(*fold, State::Failed(failure.class.as_str(), failure.message.clone()));
            }
            FoldChange::Retried | FoldChange::SetAside => {} // written alone
            FoldChange::Finished { attempt, digest, result, .. } => {
                self.states.insert(*fold, State::Finished(*attempt, *digest));
                self.results.push(fold, *attempt, ResultKind::Accepted, *digest, result)?;
                self.results.numbers.push(number);
            }
            FoldChange::Replicate { attempt, digest, result, .. } => {
                self.results.push(fold, *attempt, ResultKind::Replicate, *digest, result)?;
                self.results.numbers.push(0);
            }
            FoldChange::Conflict { attempt, digest, result, .. } => {
                self.results.push(fold, *attempt, ResultKind::Conflict, *digest, result)?;
                self.results.numbers.push(0);
            }
        }
        Ok(())
    }

    fn end(
        &mut self,
        fold: &FoldKey,
        attempt: Attempt,
        ending: Option<(&'static str, String)>,
        state: State,
    ) {
        self.endings.insert((*fold, attempt), ending);
        self.states.insert(*fold, state);
    }

    fn issue(&mut self, fold: &FoldKey, attempt: Attempt, worker: &str, host: &str) {
        let (worker, host) = (worker.to_owned(), host.as_bytes().to_vec());
        self.workers.insert((worker.clone(), host.clone()));
        self.issued.folds.push(fold);
        self.issued.attempts.push(attempt.0.into());
        self.issued.workers.push(worker);
        self.issued.hosts.push(host);
        self.states.insert(*fold, State::Leased);
    }
}

impl Results {
    fn push(
        &mut self,
        fold: &FoldKey,
        attempt: Attempt,
        kind: ResultKind,
        digest: Digest,
        result: &CheckedResult,
    ) -> Result<(), StoreError> {
        let body = encode(result)?;
        self.folds.push(fold);
        self.attempts.push(attempt.0.into());
        self.kinds.push(kind.as_str());
        self.digests.push(digest.0.cast_signed());
        self.bodies.push(body);
        Ok(())
    }
}
