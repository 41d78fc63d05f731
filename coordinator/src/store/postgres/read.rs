//! Tables back into what a scheduler starts from. Everything that comes back is checked: a value that cannot have been
//! stored is a typed error. `facts` reads what people look at.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ::postgres::fallible_iterator::FallibleIterator;
use ::postgres::{Client, GenericClient, IsolationLevel, Row, RowIter};
use togl_scheduler::{Digest, SavedAttempt, SavedData, SavedFold, SavedState, Snapshot, SweepSaved};
use togl_sweeps::{Attempt, Failure, FoldKey, SweepName, TrialId, WorkerId};

use super::super::{StoreError, impossible, word};
use super::{Failed, fleet};

/// Rows one by one: a million of them need not be in memory at the same time.
pub(super) fn rows<'a>(client: &'a mut impl GenericClient, sql: &str) -> Result<RowIter<'a>, Failed> {
    Ok(client.query_raw(sql, std::iter::empty::<i64>())?)
}

pub(super) fn text(what: &'static str, bytes: Vec<u8>) -> Result<String, StoreError> {
    String::from_utf8(bytes).map_err(|error| impossible(what, error))
}

pub(super) fn number(what: &'static str, value: i64) -> Result<u32, StoreError> {
    value.try_into().map_err(|_| impossible(what, value))
}

pub(super) fn trial_id(bytes: &[u8]) -> Result<TrialId, StoreError> {
    let bytes: [u8; 16] = bytes.try_into().map_err(|_| impossible("trial", "an id has 16 bytes"))?;
    Ok(TrialId::from_bytes(bytes))
}

/// A fold's key from three columns: trial, split, seed.
pub(super) fn fold_key(row: &Row, first: usize) -> Result<FoldKey, Failed> {
    let (split, seed): (i64, i64) = (row.try_get(first + 1)?, row.try_get(first + 2)?);
    Ok(FoldKey {
        trial: trial_id(row.try_get(first)?)?,
        split: number("split", split)?,
        seed: seed.cast_unsigned(),
    })
}

/// Everything the scheduler needs to start.
pub(super) fn load(client: &mut Client) -> Result<Snapshot, Failed> {
    let mut on =
        client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start()?;
    let mut attempts = load_attempts(&mut on)?;
    let (trials, floors) = load_trials(&mut on)?;
    let data = load_data(&mut on)?;
    let mut snapshot = Snapshot { trials, floors, data, ..Snapshot::default() };
    let mut keys = HashMap::new();
    let sql = "SELECT fold.id, trial.trial, fold.split, fold.seed, fold.state, fold.forgiven, fold.class,
                   fold.message, fold.attempt, fold.digest
               FROM fold JOIN trial ON trial.id = fold.trial";
    let mut found = rows(&mut on, sql)?;
    while let Some(row) = found.next()? {
        let id: i64 = row.try_get(0)?;
        let key = fold_key(&row, 1)?;
        let attempts = attempts.remove(&id).unwrap_or_default();
        keys.insert(id, key);
        let forgiven = number("number of attempts", row.try_get(5)?)?;
        snapshot.folds.insert(key, SavedFold { state: saved_state(&row)?, forgiven, attempts });
    }
    drop(found);
    snapshot.sweeps = load_sweeps(&mut on, &keys)?;
    fleet::load(&mut on, &mut snapshot)?;
    Ok(snapshot)
}

fn saved_state(row: &Row) -> Result<SavedState, Failed> {
    match row.try_get(4)? {
        "pending" => Ok(SavedState::Pending),
        "leased" => Ok(SavedState::Leased),
        "finished" => {
            let attempt = Attempt(number("attempt", row.try_get(8)?)?);
            Ok(SavedState::Finished { attempt, digest: Digest(row.try_get::<_, i64>(9)?.cast_unsigned()) })
        }
        "failed" => {
            let class = word("failure class", row.try_get(6)?)?;
            Ok(SavedState::Failed(Failure { class, message: text("message", row.try_get(7)?)? }))
        }
        other => Err(impossible("state of a fold", format!("`{other}`")).into()),
    }
}

type Trials = (BTreeMap<TrialId, Arc<str>>, BTreeMap<TrialId, u64>);

/// Settings of trials, and the memory that some of them need.
fn load_trials(on: &mut impl GenericClient) -> Result<Trials, Failed> {
    let mut found = rows(on, "SELECT trial, canonical, memory_floor FROM trial")?;
    let (mut trials, mut floors) = (BTreeMap::new(), BTreeMap::new());
    while let Some(row) = found.next()? {
        let (trial, floor): (_, i64) = (trial_id(row.try_get(0)?)?, row.try_get(2)?);
        trials.insert(trial, row.try_get::<_, &str>(1)?.into());
        if floor != 0 {
            floors.insert(trial, floor.cast_unsigned());
        }
    }
    Ok((trials, floors))
}

fn load_data(on: &mut impl GenericClient) -> Result<BTreeMap<String, SavedData>, Failed> {
    let mut data: BTreeMap<String, SavedData> = BTreeMap::new();
    let mut found = rows(on, "SELECT name, digest FROM data_set")?;
    while let Some(row) = found.next()? {
        let digest = text("digest", row.try_get(1)?)?;
        data.insert(text("data set", row.try_get(0)?)?, SavedData { digest, dissent: BTreeMap::new() });
    }
    drop(found);
    let sql = "SELECT trial.trial, fold.split, fold.seed, dissent.data_set, dissent.digest
               FROM dissent JOIN fold ON fold.id = dissent.fold JOIN trial ON trial.id = fold.trial";
    let mut found = rows(on, sql)?;
    while let Some(row) = found.next()? {
        let (name, digest) = (text("data set", row.try_get(3)?)?, text("digest", row.try_get(4)?)?);
        data.entry(name).or_default().dissent.insert(fold_key(&row, 0)?, digest);
    }
    Ok(data)
}

fn load_workers(on: &mut impl GenericClient) -> Result<HashMap<i64, (WorkerId, String)>, Failed> {
    let mut found = rows(on, "SELECT id, name, host FROM worker")?;
    let mut workers = HashMap::new();
    while let Some(row) = found.next()? {
        let worker = (word("worker", row.try_get(1)?)?, text("host", row.try_get(2)?)?);
        workers.insert(row.try_get(0)?, worker);
    }
    Ok(workers)
}

fn load_attempts(on: &mut impl GenericClient) -> Result<HashMap<i64, Vec<SavedAttempt>>, Failed> {
    let workers = load_workers(on)?;
    let mut replicates = HashMap::new();
    let mut found = rows(on, "SELECT fold, attempt, digest FROM result WHERE kind = 'replicate'")?;
    while let Some(row) = found.next()? {
        let of: (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        replicates.insert(of, Digest(row.try_get::<_, i64>(2)?.cast_unsigned()));
    }
    drop(found);
    let mut found = rows(on, "SELECT fold, attempt, worker, ending FROM attempt ORDER BY fold, attempt")?;
    let mut attempts: HashMap<i64, Vec<SavedAttempt>> = HashMap::new();
    while let Some(row) = found.next()? {
        let (fold, number, worker): (i64, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let of_fold = attempts.entry(fold).or_insert_with(|| Vec::with_capacity(1));
        if number != of_fold.len() as i64 + 1 {
            let detail = format!("number {number} after {}", of_fold.len());
            return Err(impossible("attempt", detail).into());
        }
        let (name, host) = workers.get(&worker).ok_or_else(|| impossible("worker of an attempt", worker))?;
        let ending: Option<&str> = row.try_get(3)?;
        of_fold.push(SavedAttempt {
            worker: name.clone(),
            host: host.clone(),
            ending: ending.map(|ending| word("ending", ending)).transpose()?,
            replicate: replicates.get(&(fold, number)).copied(),
        });
    }
    Ok(attempts)
}

fn load_sweeps(
    on: &mut impl GenericClient,
    keys: &HashMap<i64, FoldKey>,
) -> Result<BTreeMap<SweepName, SweepSaved>, Failed> {
    let mut references = load_references(on, keys)?;
    let mut sweeps = BTreeMap::new();
    let mut found = rows(
        on,
        "SELECT id, name, place, yaml, priority, limits, state, resources, note FROM sweep WHERE name <> ''",
    )?;
    while let Some(row) = found.next()? {
        let name: SweepName = word("name of a sweep", row.try_get(1)?)?;
        let (priority, note): (i64, Option<Vec<u8>>) = (row.try_get(4)?, row.try_get(8)?);
        let sweep = SweepSaved {
            name: name.clone(),
            order: row.try_get::<_, i64>(2)?.cast_unsigned(),
            yaml: text("text of a sweep", row.try_get(3)?)?.into(),
            priority: priority.try_into().map_err(|_| impossible("priority", priority))?,
            limits: serde_json::from_str(row.try_get(5)?)
                .map_err(|error| impossible("limits of a sweep", error))?,
            resources: serde_json::from_str(row.try_get(7)?)
                .map_err(|error| impossible("resources of a sweep", error))?,
            state: word("state of a sweep", row.try_get(6)?)?,
            note: note.map(|note| text("note", note)).transpose()?.map(Into::into),
            folds: references.remove(&row.try_get(0)?).unwrap_or_default(),
            gathered: 0,
        };
        sweeps.insert(name, sweep);
    }
    Ok(sweeps)
}

fn load_references(
    on: &mut impl GenericClient,
    keys: &HashMap<i64, FoldKey>,
) -> Result<HashMap<i64, Vec<FoldKey>>, Failed> {
    let mut found = rows(on, "SELECT sweep, fold FROM sweep_fold ORDER BY sweep, position")?;
    let mut references: HashMap<i64, Vec<FoldKey>> = HashMap::new();
    while let Some(row) = found.next()? {
        let (sweep, fold): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let key = keys.get(&fold).copied().ok_or_else(|| impossible("fold of a sweep", fold))?;
        references.entry(sweep).or_default().push(key);
    }
    Ok(references)
}
