//! Gathered facts into tables: one transaction a call, one statement a table. A fact about something that the store
//! does not hold is an error, never silently dropped.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::postgres::types::ToSql;
use ::postgres::{Client, Statement, Transaction};
use togl_scheduler::SweepSaved;
use togl_sweeps::FoldKey;

use super::super::{LogPiece, StoreError, append_bounded, impossible};
use super::stage::{Keys, Notes, Op, Rows, Staged, State};
use super::{Failed, fleet};

type Written = Result<(), Failed>;

/// Statements that a connection keeps ready.
#[derive(Default)]
pub(super) struct Statements {
    ready: HashMap<String, Statement>,
    pub(super) answers: Answers,
}

/// How often the server has answered: whether a long transaction goes on.
#[derive(Default, Clone)]
pub(super) struct Answers(Arc<AtomicU64>);

impl Answers {
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// References to folds that one statement carries at the most.
const CHUNK: usize = 50_000;

/// The folds of `u`, which has the columns trial, split and seed, found in the tables.
const FOUND: &str = "JOIN trial ON trial.trial = u.trial
    JOIN fold ON fold.trial = trial.id AND fold.split = u.split AND fold.seed = u.seed";

/// A transaction with its ready statements.
struct Writer<'a, 'b> {
    transaction: &'a mut Transaction<'b>,
    statements: &'a mut Statements,
    /// When, in milliseconds since 1970.
    at: i64,
}

/// Keeps all of `ops`, or none, as transaction `number` of the store.
pub(super) fn commit(
    client: &mut Client,
    statements: &mut Statements,
    staged: &Staged,
    number: i64,
    holder: i64,
) -> Written {
    let mut transaction = client.transaction()?;
    let mut writer = Writer { transaction: &mut transaction, statements, at: staged.at };
    // First: a session of somebody else that is still writing would hold this row.
    let sql = "UPDATE store SET commits = $1::bigint WHERE commits = $1::bigint - 1 AND holder = $2";
    if writer.run(sql, &[&number, &holder])? != 1 {
        let row = transaction.query_one("SELECT commits, holder FROM store", &[])?;
        let (stored, whose): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        return Err(match whose == holder {
            true => rolled_back(stored, number - 1),
            false => StoreError::TakenOver { address: String::new() },
        }
        .into());
    }
    for op in &staged.ops {
        writer.perform(op)?;
    }
    writer.remember(&staged.notes)?;
    if !staged.log.is_empty() {
        writer.try_to_keep_log(&staged.log)?;
    }
    crate::crash::point("commit-written");
    transaction.commit()?;
    Ok(())
}

/// What a store that is not at its last transaction means.
pub(super) fn rolled_back(stored: i64, expected: i64) -> StoreError {
    let problem = format!(
        "has {stored} transactions where this coordinator has made {expected}: it was rolled back, or somebody else wrote to \
         it; nothing more is acknowledged; restore the newest backup with `togl restore FILE --replace`"
    );
    StoreError::Unusable { address: String::new(), problem }
}

/// Refuses a statement that did not find all its rows.
fn expect(found: u64, wanted: usize, what: &'static str) -> Written {
    if found == wanted as u64 {
        return Ok(());
    }
    Err(impossible(what, format!("{} of {wanted} are not there", (wanted as u64).saturating_sub(found)))
        .into())
}

impl Writer<'_, '_> {
    fn run(&mut self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<u64, Failed> {
        if !self.statements.ready.contains_key(sql) {
            let statement = self.transaction.prepare(sql)?;
            self.statements.ready.insert(sql.to_owned(), statement);
        }
        let found = self.transaction.execute(&self.statements.ready[sql], values)?;
        self.statements.answers.add();
        Ok(found)
    }

    fn perform(&mut self, op: &Op) -> Written {
        match op {
            Op::Rows(rows) => self.rows(rows),
            Op::Retry(folds) => self.retry(folds),
            Op::Aside(folds) => self.set_aside(folds),
            Op::Gather(from, folds) => self.gather(*from, folds),
            Op::Sweep(sweep) => self.save_sweep(sweep),
            Op::State(sweep, state, note) => {
                let sql = "UPDATE sweep SET state = $2, note = $3 WHERE name = $1";
                let note = note.as_deref().map(str::as_bytes);
                let rows = self.run(sql, &[&sweep.as_str(), &state.as_str(), &note])?;
                expect(rows, 1, "sweep")
            }
            Op::Priority(sweep, priority) => {
                let sql = "UPDATE sweep SET priority = $2 WHERE name = $1";
                let rows = self.run(sql, &[&sweep.as_str(), &i64::from(*priority)])?;
                expect(rows, 1, "sweep")
            }
            Op::Floor(trial, bytes) => {
                let sql = "UPDATE trial SET memory_floor = $2 WHERE trial = $1";
                let rows = self.run(sql, &[&trial.as_bytes().as_slice(), &bytes.cast_signed()])?;
                expect(rows, 1, "trial")
            }
            Op::Data(data, digest) => self.settle(data.as_bytes(), digest.as_bytes()),
            Op::Dispute(data, fold, digest) => self.dispute(data.as_bytes(), fold, digest.as_bytes()),
            Op::Fleet(change) => {
                let (sql, values) = fleet::sql(change);
                let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
                self.run(sql, &values).map(drop)
            }
        }
    }

    /// Adds output of trainers. If it cannot be kept, everything else is.
    fn try_to_keep_log(&mut self, pieces: &[LogPiece]) -> Written {
        let mut part = self.transaction.transaction()?;
        let mut writer = Writer { transaction: &mut part, statements: self.statements, at: self.at };
        match writer.keep_log(pieces) {
            Ok(()) => Ok(part.commit()?),
            Err(Failed::Refused(error)) => {
                tracing::warn!(%error, "trainer output was not kept");
                Ok(part.rollback()?)
            }
            Err(lost @ Failed::Lost(_)) => Err(lost),
        }
    }

    /// Adds output of trainers, one piece an attempt; what belongs to no issued attempt is dropped.
    fn keep_log(&mut self, pieces: &[LogPiece]) -> Written {
        let sql = format!(
            "SELECT u.place, fold.id, log.text
             FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY
                 AS u (trial, split, seed, attempt, place)
             {FOUND} JOIN attempt ON attempt.fold = fold.id AND attempt.attempt = u.attempt
             LEFT JOIN log ON log.fold = attempt.fold AND log.attempt = attempt.attempt"
        );
        let Keys { trials, splits, seeds } = &pieces.iter().map(|piece| &piece.fold).collect();
        let attempts: Vec<i64> = pieces.iter().map(|piece| piece.attempt.0.into()).collect();
        let (mut folds, mut numbers, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for row in self.transaction.query(&sql, &[trials, splits, seeds, &attempts])? {
            let place = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or(usize::MAX);
            let Some(piece) = pieces.get(place) else { continue };
            let before: Option<Vec<u8>> = row.try_get(2)?;
            let before = String::from_utf8(before.unwrap_or_default());
            let mut whole = before.map_err(|error| impossible("log", error))?;
            append_bounded(&mut whole, &piece.text);
            folds.push(row.try_get::<_, i64>(1)?);
            numbers.push(i64::from(piece.attempt.0));
            texts.push(whole.into_bytes());
        }
        let sql = "INSERT INTO log (fold, attempt, text) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])
                   ON CONFLICT (fold, attempt) DO UPDATE SET text = excluded.text";
        self.run(sql, &[&folds, &numbers, &texts]).map(drop)
    }

    /// Adds to the histories of folds.
    fn remember(&mut self, notes: &Notes) -> Written {
        if notes.folds.len() == 0 {
            return Ok(());
        }
        let sql = format!(
            "INSERT INTO history (fold, number, at, event, attempt, detail)
             SELECT fold.id, u.number, $8::bigint, u.event, u.attempt, u.detail
             FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[],
                 $7::bytea[]) AS u (trial, split, seed, number, event, attempt, detail)
             {FOUND}"
        );
        let (Keys { trials, splits, seeds }, at) = (&notes.folds, self.at);
        let values: [&(dyn ToSql + Sync); 8] =
            [trials, splits, seeds, &notes.numbers, &notes.events, &notes.attempts, &notes.details, &at];
        let written = self.run(&sql, &values)?;
        expect(written, trials.len(), "fold")
    }

    /// From now on the data set has this digest and nobody disagrees.
    fn settle(&mut self, data: &[u8], digest: &[u8]) -> Written {
        let sql = "INSERT INTO data_set (name, digest) VALUES ($1, $2)
                   ON CONFLICT (name) DO UPDATE SET digest = excluded.digest";
        self.run(sql, &[&data, &digest])?;
        self.run("DELETE FROM dissent WHERE data_set = $1", &[&data])?;
        Ok(())
    }

    fn dispute(&mut self, data: &[u8], fold: &FoldKey, digest: &[u8]) -> Written {
        let sql = "INSERT INTO dissent (fold, data_set, digest)
                   SELECT fold.id, $4, $5 FROM trial JOIN fold ON fold.trial = trial.id
                   WHERE trial.trial = $1 AND fold.split = $2 AND fold.seed = $3
                   ON CONFLICT (fold) DO UPDATE SET data_set = excluded.data_set, digest = excluded.digest";
        let (trial, split, seed) =
            (fold.trial.as_bytes().as_slice(), i64::from(fold.split), fold.seed.cast_signed());
        let written = self.run(sql, &[&trial, &split, &seed, &data, &digest])?;
        expect(written, 1, "fold")
    }

    /// Accepted results become replicates, and their folds are pending.
    fn set_aside(&mut self, folds: &Keys) -> Written {
        let Keys { trials, splits, seeds } = folds;
        let sql = format!(
            "UPDATE result SET kind = 'replicate'
             FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS u (trial, split, seed)
             {FOUND} WHERE result.fold = fold.id AND result.kind = 'accepted'"
        );
        let written = self.run(&sql, &[trials, splits, seeds])?;
        expect(written, folds.len(), "result")?;
        let sql = "UPDATE fold SET state = 'pending', attempt = NULL, digest = NULL
                   FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS u (trial, split, seed)
                   JOIN trial ON trial.trial = u.trial
                   WHERE fold.trial = trial.id AND fold.split = u.split AND fold.seed = u.seed";
        self.run(sql, &[trials, splits, seeds])?;
        Ok(())
    }

    fn rows(&mut self, rows: &Rows) -> Written {
        if !rows.trials.is_empty() {
            let sql = "INSERT INTO trial (trial, canonical) SELECT * FROM unnest($1::bytea[], $2::text[])";
            self.run(sql, &[&rows.trials, &rows.canonical])?;
        }
        if rows.added.len() > 0 {
            let sql = "INSERT INTO fold (trial, split, seed, state)
                       SELECT trial.id, u.split, u.seed, 'pending'
                       FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS u (trial, split, seed)
                       JOIN trial ON trial.trial = u.trial";
            let Keys { trials, splits, seeds } = &rows.added;
            let written = self.run(sql, &[trials, splits, seeds])?;
            expect(written, trials.len(), "trial")?;
        }
        if rows.issued.folds.len() > 0 {
            self.issue(rows)?;
        }
        if !rows.endings.is_empty() {
            self.end_attempts(rows)?;
        }
        if !rows.states.is_empty() {
            self.set_states(rows)?;
        }
        if rows.results.folds.len() > 0 { self.keep(rows) } else { Ok(()) }
    }

    fn issue(&mut self, rows: &Rows) -> Written {
        let (names, hosts): (Vec<_>, Vec<_>) = rows.workers.iter().map(|(name, host)| (name, host)).unzip();
        let sql = "INSERT INTO worker (name, host) SELECT * FROM unnest($1::text[], $2::bytea[])
                   ON CONFLICT DO NOTHING";
        self.run(sql, &[&names, &hosts])?;
        let sql = format!(
            "INSERT INTO attempt (fold, attempt, worker, at, number)
             SELECT fold.id, u.attempt, worker.id, $8::bigint, u.number
             FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bytea[],
                 $7::bigint[]) AS u (trial, split, seed, attempt, name, host, number)
             {FOUND} JOIN worker ON worker.name = u.name AND worker.host = u.host"
        );
        let Keys { trials, splits, seeds } = &rows.issued.folds;
        let (issued, at) = (&rows.issued, self.at);
        let values: [&(dyn ToSql + Sync); 8] =
            [trials, splits, seeds, &issued.attempts, &issued.workers, &issued.hosts, &issued.numbers, &at];
        let written = self.run(&sql, &values)?;
        expect(written, trials.len(), "fold")
    }

    fn end_attempts(&mut self, rows: &Rows) -> Written {
        let keys: Keys = rows.endings.keys().map(|(fold, _)| fold).collect();
        let attempts: Vec<i64> = rows.endings.keys().map(|(_, attempt)| attempt.0.into()).collect();
        let endings: Vec<Option<&str>> =
            rows.endings.values().map(|ending| ending.as_ref().map(|(ending, _)| *ending)).collect();
        let messages: Vec<Option<&[u8]>> = rows
            .endings
            .values()
            .map(|ending| ending.as_ref().map(|(_, message)| message.as_bytes()))
            .collect();
        let sql = format!(
            "UPDATE attempt SET ending = u.ending, message = u.message
             FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bytea[])
                 AS u (trial, split, seed, attempt, ending, message)
             {FOUND} WHERE attempt.fold = fold.id AND attempt.attempt = u.attempt"
        );
        let Keys { trials, splits, seeds } = &keys;
        let written = self.run(&sql, &[trials, splits, seeds, &attempts, &endings, &messages])?;
        expect(written, trials.len(), "attempt")
    }

    fn set_states(&mut self, rows: &Rows) -> Written {
        let keys: Keys = rows.states.keys().collect();
        let mut columns = States::default();
        rows.states.values().for_each(|state| columns.push(state));
        let sql = "UPDATE fold SET state = u.state, attempt = u.attempt, digest = u.digest, class = u.class,
                       message = u.message
                   FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[],
                       $7::text[], $8::bytea[])
                       AS u (trial, split, seed, state, attempt, digest, class, message)
                   JOIN trial ON trial.trial = u.trial
                   WHERE fold.trial = trial.id AND fold.split = u.split AND fold.seed = u.seed";
        let Keys { trials, splits, seeds } = &keys;
        let States { words, attempts, digests, classes, messages } = &columns;
        let written = self.run(sql, &[trials, splits, seeds, words, attempts, digests, classes, messages])?;
        expect(written, trials.len(), "fold")
    }

    /// Keeps results. Of conflicts of one attempt the first stays; of the others there is only one.
    fn keep(&mut self, rows: &Rows) -> Written {
        let (results, at) = (&rows.results, self.at);
        let Keys { trials, splits, seeds } = &results.folds;
        for (conflicts, clause) in [(false, ""), (true, "ON CONFLICT (fold, kind, attempt) DO NOTHING")] {
            let wanted = results.kinds.iter().filter(|kind| (**kind == "conflict") == conflicts).count();
            if wanted == 0 {
                continue;
            }
            let sql = format!(
                "INSERT INTO result (fold, attempt, kind, digest, body, at, number)
                 SELECT fold.id, u.attempt, u.kind, u.digest, u.body,
                     CASE u.number WHEN 0 THEN 0 ELSE $10::bigint END, u.number
                 FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[],
                     $7::text[], $8::bigint[]) WITH ORDINALITY
                     AS u (trial, split, seed, attempt, kind, digest, body, number, place)
                 {FOUND} WHERE (u.kind = 'conflict') = $9::boolean ORDER BY u.place {clause}"
            );
            let values: [&(dyn ToSql + Sync); 10] = [
                trials,
                splits,
                seeds,
                &results.attempts,
                &results.kinds,
                &results.digests,
                &results.bodies,
                &results.numbers,
                &conflicts,
                &at,
            ];
            let written = self.run(&sql, &values)?;
            if !conflicts {
                expect(written, wanted, "fold")?;
            }
        }
        Ok(())
    }

    fn retry(&mut self, folds: &Keys) -> Written {
        let sql =
            "UPDATE fold SET state = 'pending', attempt = NULL, digest = NULL, class = NULL, message = NULL,
                       forgiven = (SELECT count(*) FROM attempt WHERE attempt.fold = fold.id)
                   FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS u (trial, split, seed)
                   JOIN trial ON trial.trial = u.trial
                   WHERE fold.trial = trial.id AND fold.split = u.split AND fold.seed = u.seed";
        let written = self.run(sql, &[&folds.trials, &folds.splits, &folds.seeds])?;
        expect(written, folds.len(), "fold")
    }

    /// Lists folds under a sweep without a name, which nobody sees, until the sweep that they belong to is saved.
    fn gather(&mut self, from: u64, folds: &[FoldKey]) -> Written {
        if from == 0 {
            self.run("DELETE FROM sweep_fold WHERE sweep = (SELECT id FROM sweep WHERE name = '')", &[])?;
            let sql = "INSERT INTO sweep (name, place, yaml, priority, limits, state, resources)
                       VALUES ('', 0, '', 0, '{}', 'archived', '{}') ON CONFLICT DO NOTHING";
            self.run(sql, &[])?;
        }
        let id =
            self.sweep_id("")?.ok_or_else(|| impossible("sweep that is being submitted", "there is none"))?;
        self.refer(id, from.cast_signed(), folds)
    }

    /// The folds that were gathered become those of a sweep; what it had is given up.
    fn adopt(&mut self, sweep: &SweepSaved) -> Written {
        let gathered = self.sweep_id("")?.ok_or_else(|| impossible("gathered folds", "there are none"))?;
        let sql = "SELECT coalesce(max(position) + 1, 0) FROM sweep_fold WHERE sweep = $1";
        let folds: i64 = self.transaction.query_one(sql, &[&gathered])?.try_get(0)?;
        if folds.cast_unsigned() != sweep.gathered {
            return Err(impossible("gathered folds", format!("{folds} instead of {}", sweep.gathered)).into());
        }
        if let Some(old) = self.sweep_id(sweep.name.as_str())? {
            self.run("DELETE FROM sweep_fold WHERE sweep = $1", &[&old])?;
            self.run("DELETE FROM sweep WHERE id = $1", &[&old])?;
        }
        self.run("UPDATE sweep SET name = $2 WHERE id = $1", &[&gathered, &sweep.name.as_str()]).map(drop)
    }

    fn sweep_id(&mut self, name: &str) -> Result<Option<i64>, Failed> {
        let found = self.transaction.query_opt("SELECT id FROM sweep WHERE name = $1", &[&name])?;
        Ok(found.map(|row| row.try_get(0)).transpose()?)
    }

    fn save_sweep(&mut self, sweep: &SweepSaved) -> Written {
        if sweep.gathered > 0 {
            self.adopt(sweep)?;
        }
        let limits =
            serde_json::to_string(&sweep.limits).map_err(|error| impossible("limits of a sweep", error))?;
        let resources = serde_json::to_string(&sweep.resources)
            .map_err(|error| impossible("resources of a sweep", error))?;
        let sql = "INSERT INTO sweep (name, place, yaml, priority, limits, state, resources, note)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                   ON CONFLICT (name) DO UPDATE SET place = excluded.place, yaml = excluded.yaml,
                       priority = excluded.priority, limits = excluded.limits, state = excluded.state,
                       resources = excluded.resources, note = excluded.note
                   RETURNING id";
        let note = sweep.note.as_deref().map(str::as_bytes);
        let (place, priority) = (sweep.order.cast_signed(), i64::from(sweep.priority));
        let (name, yaml, state) = (sweep.name.as_str(), sweep.yaml.as_bytes(), sweep.state.as_str());
        let values: [&(dyn ToSql + Sync); 8] =
            [&name, &place, &yaml, &priority, &limits, &state, &resources, &note];
        let row = self.transaction.query_one(sql, &values)?;
        let id: i64 = row.try_get(0)?;
        let mut first = sweep.gathered.cast_signed();
        self.run("DELETE FROM sweep_fold WHERE sweep = $1 AND position >= $2", &[&id, &first])?;
        let rest = usize::try_from(sweep.gathered).ok().and_then(|gathered| sweep.folds.get(gathered..));
        for chunk in rest.unwrap_or_default().chunks(CHUNK) {
            self.refer(id, first, chunk)?;
            first += chunk.len() as i64;
        }
        Ok(())
    }

    fn refer(&mut self, sweep: i64, first: i64, folds: &[FoldKey]) -> Written {
        let sql = format!(
            "INSERT INTO sweep_fold (sweep, position, fold) SELECT $1::bigint, $2::bigint + u.place - 1, fold.id
             FROM unnest($3::bytea[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS u (trial, split, seed, place)
             {FOUND}"
        );
        let Keys { trials, splits, seeds } = &folds.iter().collect();
        let written = self.run(&sql, &[&sweep, &first, trials, splits, seeds])?;
        expect(written, folds.len(), "fold of a sweep")
    }
}

/// The columns of a fold that a state sets.
#[derive(Default)]
struct States<'a> {
    words: Vec<&'static str>,
    attempts: Vec<Option<i64>>,
    digests: Vec<Option<i64>>,
    classes: Vec<Option<&'static str>>,
    messages: Vec<Option<&'a [u8]>>,
}

impl<'a> States<'a> {
    fn push(&mut self, state: &'a State) {
        let (word, finished, failed) = match state {
            State::Pending => ("pending", None, None),
            State::Leased => ("leased", None, None),
            State::Finished(attempt, digest) => ("finished", Some((attempt, digest)), None),
            State::Failed(class, message) => ("failed", None, Some((*class, message.as_bytes()))),
        };
        self.words.push(word);
        self.attempts.push(finished.map(|(attempt, _)| attempt.0.into()));
        self.digests.push(finished.map(|(_, digest)| digest.0.cast_signed()));
        self.classes.push(failed.map(|(class, _)| class));
        self.messages.push(failed.map(|(_, message)| message));
    }
}

/// Adds output of trainers, apart from everything else.
pub(super) fn append_log(client: &mut Client, statements: &mut Statements, pieces: &[LogPiece]) -> Written {
    let mut transaction = client.transaction()?;
    Writer { transaction: &mut transaction, statements, at: 0 }.keep_log(pieces)?;
    Ok(transaction.commit()?)
}
