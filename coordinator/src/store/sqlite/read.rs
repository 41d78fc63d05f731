//! Tables back into what a scheduler starts from. Everything that comes back is checked: a value that cannot have been
//! stored is a typed error. `facts` reads what people look at.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rusqlite::{Connection, Row};
use togl_scheduler::{Digest, SavedAttempt, SavedData, SavedFold, SavedState, Snapshot, SweepSaved};
use togl_sweeps::{Attempt, Failure, FoldKey, SweepName, TrialId, WorkerId};

use super::super::{StoreError, impossible, word};
use super::fleet;

/// Everything the scheduler needs to start.
pub(super) fn load(on: &Connection) -> Result<Snapshot, StoreError> {
    let mut attempts = load_attempts(on)?;
    let mut snapshot = Snapshot {
        trials: load_trials(on)?,
        floors: load_floors(on)?,
        data: load_data(on)?,
        ..Snapshot::default()
    };
    let mut keys = HashMap::new();
    let sql = "SELECT fold.id, trial.trial, fold.split, fold.seed, fold.state, fold.forgiven, fold.class,
                   fold.message, fold.attempt, fold.digest
               FROM fold JOIN trial ON trial.id = fold.trial";
    let mut statement = on.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let key = fold_key(row, 1)?;
        let attempts = attempts.remove(&id).unwrap_or_default();
        keys.insert(id, key);
        snapshot.folds.insert(key, SavedFold { state: saved_state(row)?, forgiven: row.get(5)?, attempts });
    }
    snapshot.sweeps = load_sweeps(on, &keys)?;
    fleet::load(on, &mut snapshot)?;
    Ok(snapshot)
}

fn saved_state(row: &Row<'_>) -> Result<SavedState, StoreError> {
    match row.get_ref(4)?.as_str().map_err(rusqlite::Error::from)? {
        "pending" => Ok(SavedState::Pending),
        "leased" => Ok(SavedState::Leased),
        "finished" => {
            let attempt = Attempt(row.get(8)?);
            Ok(SavedState::Finished { attempt, digest: Digest(row.get::<_, i64>(9)?.cast_unsigned()) })
        }
        "failed" => {
            let class: String = row.get(6)?;
            Ok(SavedState::Failed(Failure { class: word("failure class", &class)?, message: row.get(7)? }))
        }
        other => Err(impossible("state of a fold", format!("`{other}`"))),
    }
}

/// A fold's key from three columns: trial, split, seed.
pub(super) fn fold_key(row: &Row<'_>, first: usize) -> Result<FoldKey, StoreError> {
    let trial = TrialId::from_bytes(row.get(first)?);
    let seed: i64 = row.get(first + 2)?;
    Ok(FoldKey { trial, split: row.get(first + 1)?, seed: seed.cast_unsigned() })
}

fn load_trials(on: &Connection) -> Result<BTreeMap<TrialId, Arc<str>>, StoreError> {
    let mut statement = on.prepare("SELECT trial, canonical FROM trial")?;
    let rows = statement.query_map([], |row| Ok((TrialId::from_bytes(row.get(0)?), row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn load_floors(on: &Connection) -> Result<BTreeMap<TrialId, u64>, StoreError> {
    let mut statement = on.prepare("SELECT trial, memory_floor FROM trial WHERE memory_floor <> 0")?;
    let rows = statement
        .query_map([], |row| Ok((TrialId::from_bytes(row.get(0)?), row.get::<_, i64>(1)?.cast_unsigned())))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn load_data(on: &Connection) -> Result<BTreeMap<String, SavedData>, StoreError> {
    let mut statement = on.prepare("SELECT name, digest FROM data_set")?;
    let rows = statement.query_map([], |row| {
        Ok((row.get(0)?, SavedData { digest: row.get(1)?, dissent: BTreeMap::new() }))
    })?;
    let mut data: BTreeMap<String, SavedData> = rows.collect::<Result<_, _>>()?;
    let sql = "SELECT trial.trial, fold.split, fold.seed, dissent.data_set, dissent.digest
               FROM dissent JOIN fold ON fold.id = dissent.fold JOIN trial ON trial.id = fold.trial";
    let mut statement = on.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (name, digest): (String, String) = (row.get(3)?, row.get(4)?);
        data.entry(name).or_default().dissent.insert(fold_key(row, 0)?, digest);
    }
    Ok(data)
}

fn load_attempts(on: &Connection) -> Result<HashMap<i64, Vec<SavedAttempt>>, StoreError> {
    let replicates = load_replicates(on)?;
    let workers = load_workers(on)?;
    let sql = "SELECT fold, attempt, worker, ending FROM attempt ORDER BY fold, attempt";
    let mut statement = on.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut attempts: HashMap<i64, Vec<SavedAttempt>> = HashMap::new();
    while let Some(row) = rows.next()? {
        let (fold, number): (i64, u32) = (row.get(0)?, row.get(1)?);
        let of_fold = attempts.entry(fold).or_insert_with(|| Vec::with_capacity(1));
        if number as usize != of_fold.len() + 1 {
            return Err(impossible("attempt", format!("number {number} after {}", of_fold.len())));
        }
        let worker: i64 = row.get(2)?;
        let (name, host) = workers.get(&worker).ok_or_else(|| impossible("worker of an attempt", worker))?;
        let ending: Option<String> = row.get(3)?;
        of_fold.push(SavedAttempt {
            worker: name.clone(),
            host: host.clone(),
            ending: ending.map(|ending| word("ending", &ending)).transpose()?,
            replicate: replicates.get(&(fold, number)).copied(),
        });
    }
    Ok(attempts)
}

fn load_replicates(on: &Connection) -> Result<HashMap<(i64, u32), Digest>, StoreError> {
    let mut statement = on.prepare("SELECT fold, attempt, digest FROM result WHERE kind = 'replicate'")?;
    let rows = statement.query_map([], |row| {
        Ok(((row.get(0)?, row.get(1)?), Digest(row.get::<_, i64>(2)?.cast_unsigned())))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn load_workers(on: &Connection) -> Result<HashMap<i64, (WorkerId, String)>, StoreError> {
    let mut statement = on.prepare("SELECT id, name, host FROM worker")?;
    let mut rows = statement.query([])?;
    let mut workers = HashMap::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(1)?;
        workers.insert(row.get(0)?, (word("worker", &name)?, row.get(2)?));
    }
    Ok(workers)
}

fn load_sweeps(
    on: &Connection,
    keys: &HashMap<i64, FoldKey>,
) -> Result<BTreeMap<SweepName, SweepSaved>, StoreError> {
    let mut statement = on.prepare(
        "SELECT id, name, place, yaml, priority, limits, state, resources, note FROM sweep WHERE name <> ''",
    )?;
    let mut rows = statement.query([])?;
    let mut sweeps = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (id, name, state): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(6)?);
        let name: SweepName = word("name of a sweep", &name)?;
        let (limits, resources): (String, String) = (row.get(5)?, row.get(7)?);
        let sweep = SweepSaved {
            name: name.clone(),
            order: row.get::<_, i64>(2)?.cast_unsigned(),
            yaml: row.get(3)?,
            priority: row.get(4)?,
            limits: serde_json::from_str(&limits).map_err(|error| impossible("limits of a sweep", error))?,
            resources: serde_json::from_str(&resources)
                .map_err(|error| impossible("resources of a sweep", error))?,
            state: word("state of a sweep", &state)?,
            note: row.get(8)?,
            folds: load_references(on, id, keys)?,
            gathered: 0,
        };
        sweeps.insert(name, sweep);
    }
    Ok(sweeps)
}

fn load_references(
    on: &Connection,
    sweep: i64,
    keys: &HashMap<i64, FoldKey>,
) -> Result<Vec<FoldKey>, StoreError> {
    let mut statement =
        on.prepare_cached("SELECT fold FROM sweep_fold WHERE sweep = ?1 ORDER BY position")?;
    let ids = statement.query_map([sweep], |row| row.get::<_, i64>(0))?;
    let find = |id: i64| keys.get(&id).copied().ok_or_else(|| impossible("fold of a sweep", id));
    ids.map(|id| find(id?)).collect()
}
