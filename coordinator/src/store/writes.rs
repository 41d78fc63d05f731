//! Facts into rows: which statements each fact takes, with which values, for every store that speaks SQL. How and when a
//! statement is carried out is the business of the store.

use togl_scheduler::{
    About, Change, DataChange, Digest, FleetChange, FoldChange, Steered, SweepChange, SweepSaved, TrialChange,
};
use togl_sweeps::race::Score;
use togl_sweeps::{Attempt, CheckedResult, Failure, FoldKey};

use super::database::Cell;
use super::history;
use super::statement::{Given, Statement};
use super::{ResultKind, StoreError, encode, impossible};
use crate::telling::{self, Note};

static SAVE_TRIAL: Statement = Statement::insert("trial", &["trial", "canonical"], "trial");
static RAISE_FLOOR: Statement = Statement::update("trial", &["trial"], &["memory_floor"]);

static ADD_FOLD: Statement = Statement::insert("fold", &["trial", "split", "seed", "state"], "trial");
static SET_STATE: Statement =
    Statement::update("fold", &["id"], &["state", "attempt", "digest", "score", "class", "message"]);
static RETRY: Statement = Statement::update("fold", &["id"], &[]).fixed(
    "state = 'pending', attempt = NULL, digest = NULL, score = NULL, class = NULL, message = NULL,
     forgiven = (SELECT count(*) FROM attempt WHERE attempt.fold = fold.id)",
    "",
);
static ISSUE: Statement =
    Statement::insert("attempt", &["fold", "attempt", "worker", "at", "number"], "fold");
static END: Statement = Statement::update("attempt", &["fold", "attempt"], &["ending", "message"]);
static KEEP: Statement =
    Statement::insert("result", &["fold", "kind", "attempt", "digest", "body", "at", "number"], "fold");
/// Of conflicts of one attempt the first stays.
static KEEP_CONFLICT: Statement =
    Statement::insert_new("result", &["fold", "kind", "attempt"], &["digest", "body", "at", "number"]);
static SET_ASIDE: Statement = Statement::update("result", &["fold"], &[])
    .fixed("kind = 'replicate'", "result.kind = 'accepted'")
    .then(&BACK_TO_PENDING);
static BACK_TO_PENDING: Statement = Statement::update("fold", &["id"], &[])
    .fixed("state = 'pending', attempt = NULL, digest = NULL, score = NULL", "");
/// What happened to folds. Nothing depends on it, so it may be written last.
pub(super) static REMEMBER: Statement =
    Statement::insert("history", &["fold", "number", "at", "event", "attempt", "detail"], "fold");

/// Folds of a sweep that is being submitted are listed under one without a name, which nobody sees.
static GATHER: Statement =
    Statement::insert_new("sweep", &["name"], &["place", "yaml", "priority", "limits", "state", "resources"]);
/// They become those of a sweep, if all of them are there.
static ADOPT: Statement = Statement::update("sweep", &["name", GATHERED], &["name"]).of("gathered folds");
const GATHERED: &str =
    "(SELECT coalesce(max(position) + 1, 0) FROM sweep_fold WHERE sweep_fold.sweep = sweep.id)";
static SAVE_SWEEP: Statement = Statement::replace(
    "sweep",
    &["name"],
    &["place", "yaml", "priority", "limits", "state", "resources", "note"],
);
static FORGET_SWEEP: Statement = Statement::delete("sweep", &["name"]);
static FORGET_REFERENCES: Statement = Statement::delete("sweep_fold", &["sweep"]);
static REFER: Statement = Statement::insert("sweep_fold", &["sweep", "position", "fold"], "fold of a sweep");
static STEER: Statement = Statement::update("sweep", &["name"], &["state", "note"]);
static PRIORITISE: Statement = Statement::update("sweep", &["name"], &["priority"]);

static SETTLE: Statement = Statement::replace("data_set", &["name"], &["digest"]);
static FORGET_DISSENT: Statement = Statement::delete("dissent", &["data_set"]);
static DISPUTE: Statement = Statement::replace("dissent", &["fold"], &["data_set", "digest"]).of("fold");

static DRAIN: Statement = Statement::replace("drain", &["worker"], &["host"]);
static UNDRAIN: Statement = Statement::delete("drain", &["worker"]);
static QUARANTINE: Statement = Statement::replace("quarantine", &["host"], &["reason"]);
static RELEASE: Statement = Statement::delete("quarantine", &["host"]);

static STEERED: Statement = Statement::insert(
    "steering",
    &["number", "at", "who", "act", "sweep", "about", "detail", "reason"],
    "steering",
);

type Written = Result<(), StoreError>;

/// What carries statements out.
pub(super) type Put<'a> = &'a mut dyn FnMut(&'static Statement, &[Given<'_>]) -> Written;

/// Writes the facts of the transaction of this number, which is made at this time, in milliseconds since 1970.
pub(super) fn write(changes: &[Change], transaction: u64, at: i64, put: Put<'_>) -> Written {
    for (number, change) in (history::first_number(transaction)..).zip(changes) {
        Writes { at, number, put }.change(change)?;
    }
    Ok(())
}

/// The result that a fact brings, and what it is.
pub(super) fn result_of(change: &FoldChange) -> Option<(ResultKind, Attempt, Digest, &CheckedResult)> {
    let (kind, attempt, digest, result) = match change {
        FoldChange::Finished { attempt, digest, result, .. } => {
            (ResultKind::Accepted, attempt, digest, result)
        }
        FoldChange::Replicate { attempt, digest, result, .. } => {
            (ResultKind::Replicate, attempt, digest, result)
        }
        FoldChange::Conflict { attempt, digest, result, .. } => {
            (ResultKind::Conflict, attempt, digest, result)
        }
        FoldChange::Added
        | FoldChange::Issued { .. }
        | FoldChange::Adopted { .. }
        | FoldChange::Revived { .. }
        | FoldChange::Ended { .. }
        | FoldChange::Failed(_)
        | FoldChange::Retried
        | FoldChange::SetAside => return None,
    };
    Some((kind, *attempt, *digest, result))
}

fn number(number: impl Into<i64>) -> Given<'static> {
    Given::Plain(Cell::Number(number.into()))
}

fn text(text: &str) -> Given<'_> {
    Given::Plain(Cell::Text(text))
}

const NULL: Given<'_> = Given::Plain(Cell::Null);

/// A fact that is being written.
struct Writes<'a> {
    at: i64,
    /// Its place in the histories of folds.
    number: i64,
    put: Put<'a>,
}

impl Writes<'_> {
    fn put(&mut self, statement: &'static Statement, values: &[Given<'_>]) -> Written {
        (self.put)(statement, values)
    }

    fn change(&mut self, change: &Change) -> Written {
        match change {
            Change::Trial(trial, TrialChange::Saved(canonical)) => {
                self.put(&SAVE_TRIAL, &[Given::Plain(Cell::Bytes(trial.as_bytes())), text(canonical)])
            }
            Change::Trial(trial, TrialChange::FloorRaised(bytes)) => {
                let trial = Given::Plain(Cell::Bytes(trial.as_bytes()));
                self.put(&RAISE_FLOOR, &[trial, number(bytes.cast_signed())])
            }
            Change::Fold(fold, change) => self.fold(fold, change),
            Change::Sweep(change) => self.sweep(change),
            Change::Data(change) => self.data(change),
            Change::Fleet(change) => self.fleet(change),
            Change::Steered(steered) => self.steered(steered),
        }?;
        if telling::is_dated(change) {
            return Ok(()); // its row tells
        }
        telling::note(change).map_or(Ok(()), |note| self.remember(&note))
    }

    fn fold(&mut self, fold: &FoldKey, change: &FoldChange) -> Written {
        let of = Given::Fold(fold);
        match change {
            FoldChange::Added => {
                let (split, seed) = (number(fold.split), number(fold.seed.cast_signed()));
                self.put(&ADD_FOLD, &[Given::Trial(&fold.trial), split, seed, text("pending")])
            }
            FoldChange::Issued { attempt, worker, host } => {
                let (worker, at) = (Given::Worker(worker, host), number(self.at));
                self.put(&ISSUE, &[of, number(attempt.0), worker, at, number(self.number)])?;
                self.state(fold, "leased", None, None)
            }
            // Nobody leased it here: its note says what happened, not its row.
            FoldChange::Adopted { attempt, worker, host } => {
                let (worker, at) = (Given::Worker(worker, host), number(self.at));
                self.put(&ISSUE, &[of, number(attempt.0), worker, at, number(0)])
            }
            FoldChange::Revived { attempt } => {
                self.put(&END, &[of, number(attempt.0), NULL, NULL])?;
                self.state(fold, "leased", None, None)
            }
            FoldChange::Ended { attempt, ending, message } => {
                self.put(&END, &[of, number(attempt.0), text(ending.as_str()), text(message)])?;
                self.state(fold, "pending", None, None)
            }
            FoldChange::Failed(failure) => self.state(fold, "failed", None, Some(failure)),
            FoldChange::Retried => self.put(&RETRY, &[of]),
            FoldChange::SetAside => self.put(&SET_ASIDE, &[of]),
            FoldChange::Finished { attempt, digest, result, .. } => {
                let score = Score::of(result).to_string();
                self.state(fold, "finished", Some((*attempt, *digest, &score)), None)?;
                self.keep(fold, change)
            }
            FoldChange::Replicate { .. } | FoldChange::Conflict { .. } => self.keep(fold, change),
        }
    }

    fn state(
        &mut self,
        fold: &FoldKey,
        word: &str,
        result: Option<(Attempt, Digest, &str)>,
        failure: Option<&Failure>,
    ) -> Written {
        let [attempt, digest, score] = match result {
            Some((attempt, digest, score)) => {
                [number(attempt.0), number(digest.0.cast_signed()), text(score)]
            }
            None => [NULL, NULL, NULL],
        };
        let [class, message] = match failure {
            Some(failure) => [text(failure.class.as_str()), text(&failure.message)],
            None => [NULL, NULL],
        };
        self.put(&SET_STATE, &[Given::Fold(fold), text(word), attempt, digest, score, class, message])
    }

    fn keep(&mut self, fold: &FoldKey, change: &FoldChange) -> Written {
        let Some((kind, attempt, digest, result)) = result_of(change) else { return Ok(()) };
        let (statement, at, place) = match kind {
            ResultKind::Accepted => (&KEEP, self.at, self.number),
            ResultKind::Replicate => (&KEEP, 0, 0),
            ResultKind::Conflict => (&KEEP_CONFLICT, 0, 0),
        };
        let (fold, kind, attempt) = (Given::Fold(fold), text(kind.as_str()), number(attempt.0));
        let (digest, body) = (number(digest.0.cast_signed()), encode(result)?);
        self.put(statement, &[fold, kind, attempt, digest, text(&body), number(at), number(place)])
    }

    fn remember(&mut self, Note { fold, event, attempt, detail }: &Note<'_>) -> Written {
        let (place, at) = (number(self.number), number(self.at));
        let attempt = attempt.map_or(NULL, |attempt| number(attempt.0));
        self.put(&REMEMBER, &[Given::Fold(fold), place, at, text(event), attempt, text(detail)])
    }

    fn sweep(&mut self, change: &SweepChange) -> Written {
        match change {
            SweepChange::Gathered { from, folds } => {
                if *from == 0 {
                    let (nothing, zero) = (text("{}"), number(0));
                    self.put(&GATHER, &[text(""), zero, text(""), zero, nothing, text("archived"), nothing])?;
                    self.put(&FORGET_REFERENCES, &[Given::Sweep("")])?;
                }
                self.refer("", *from, folds)
            }
            SweepChange::Saved(sweep) => self.save_sweep(sweep),
            SweepChange::StateSet { sweep, state, note } => {
                let note = note.as_deref().map_or(NULL, text);
                self.put(&STEER, &[text(sweep.as_str()), text(state.as_str()), note])
            }
            SweepChange::PrioritySet { sweep, priority } => {
                self.put(&PRIORITISE, &[text(sweep.as_str()), number(*priority)])
            }
        }
    }

    fn save_sweep(&mut self, sweep: &SweepSaved) -> Written {
        let name = sweep.name.as_str();
        let json = |what, value: Result<String, _>| {
            value.map_err(|error: serde_json::Error| impossible(what, error))
        };
        let limits = json("limits of a sweep", serde_json::to_string(&sweep.limits))?;
        let resources = json("resources of a sweep", serde_json::to_string(&sweep.resources))?;
        let (place, note) = (number(sweep.order.cast_signed()), sweep.note.as_deref().map_or(NULL, text));
        let (yaml, priority, state) = (text(&sweep.yaml), number(sweep.priority), text(sweep.state.as_str()));
        // What it had is given up.
        self.put(&FORGET_REFERENCES, &[Given::Sweep(name)])?;
        if sweep.gathered > 0 {
            self.put(&FORGET_SWEEP, &[text(name)])?;
            self.put(&ADOPT, &[text(""), number(sweep.gathered.cast_signed()), text(name)])?;
        }
        let values = [text(name), place, yaml, priority, text(&limits), state, text(&resources), note];
        self.put(&SAVE_SWEEP, &values)?;
        let rest = usize::try_from(sweep.gathered).ok().and_then(|first| sweep.folds.get(first..));
        self.refer(name, sweep.gathered, rest.unwrap_or_default())
    }

    fn refer(&mut self, sweep: &str, from: u64, folds: &[FoldKey]) -> Written {
        for (position, fold) in (from.cast_signed()..).zip(folds) {
            self.put(&REFER, &[Given::Sweep(sweep), number(position), Given::Fold(fold)])?;
        }
        Ok(())
    }

    fn data(&mut self, change: &DataChange) -> Written {
        match change {
            DataChange::Pinned { data, digest } | DataChange::Settled { data, digest } => {
                self.put(&SETTLE, &[text(data), text(digest)])?;
                self.put(&FORGET_DISSENT, &[text(data)])
            }
            DataChange::Disputed { data, fold, digest } => {
                self.put(&DISPUTE, &[Given::Fold(fold), text(data), text(digest)])
            }
        }
    }

    fn fleet(&mut self, change: &FleetChange) -> Written {
        match change {
            FleetChange::Drained { worker, host } => self.put(&DRAIN, &[text(worker.as_str()), text(host)]),
            FleetChange::Undrained { worker } => self.put(&UNDRAIN, &[text(worker.as_str())]),
            FleetChange::Quarantined { host, reason } => self.put(&QUARANTINE, &[text(host), text(reason)]),
            FleetChange::Released { host } => self.put(&RELEASE, &[text(host)]),
        }
    }

    fn steered(&mut self, Steered { by, act, about, detail }: &Steered) -> Written {
        let [sweep, other] = match about {
            About::Sweep(sweep) => [text(sweep.as_str()), NULL],
            About::Worker(_) | About::Data(_) => [NULL, text(about.as_str())],
        };
        let (place, at) = (number(self.number), number(self.at));
        let (who, act, detail, reason) = (text(&by.name), text(act.as_str()), text(detail), text(&by.reason));
        self.put(&STEERED, &[place, at, who, act, sweep, other, detail, reason])
    }
}
