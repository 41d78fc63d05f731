//! What a scheduler starts from, from the tables of either database.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use togl_scheduler::{Digest, SavedAttempt, SavedData, SavedFold, SavedState, Snapshot, SweepSaved};
use togl_sweeps::race::Race;
use togl_sweeps::{Failure, FoldKey, SweepName, SweepSpec, WorkerId};

use super::database::{Database, Row, all};
use super::{StoreError, impossible};

/// Everything the scheduler needs to start.
pub(super) fn load(on: &mut dyn Database) -> Result<Snapshot, StoreError> {
    let mut attempts = load_attempts(on)?;
    let mut snapshot = Snapshot { data: load_data(on)?, ..Snapshot::default() };
    on.each("SELECT trial, canonical, memory_floor FROM trial", &[], &mut |row| {
        let (trial, floor) = (row.get(0)?, row.get(2)?);
        snapshot.trials.insert(trial, row.get(1)?);
        if floor != 0 {
            snapshot.floors.insert(trial, floor);
        }
        Ok(())
    })?;
    let mut keys: HashMap<i64, FoldKey> = HashMap::new();
    let sql = "SELECT fold.id, trial.trial, fold.split, fold.seed, fold.state, fold.forgiven, fold.class,
                   fold.message, fold.attempt, fold.digest, fold.score
               FROM fold JOIN trial ON trial.id = fold.trial";
    on.each(sql, &[], &mut |row| {
        let (id, key) = (row.get(0)?, row.fold(1)?);
        let attempts = attempts.remove(&id).unwrap_or_default();
        keys.insert(id, key);
        snapshot.folds.insert(key, SavedFold { state: saved_state(row)?, forgiven: row.get(5)?, attempts });
        Ok(())
    })?;
    snapshot.sweeps = load_sweeps(on, &keys)?;
    let drains =
        all(on, "SELECT worker, host FROM drain", &[], |row| Ok((row.word("worker", 0)?, row.get(1)?)))?;
    snapshot.drains = drains.into_iter().collect();
    let hosts = all(on, "SELECT host, reason FROM quarantine", &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    snapshot.quarantines = hosts.into_iter().collect();
    Ok(snapshot)
}

fn saved_state(row: &Row<'_>) -> Result<SavedState, StoreError> {
    match row.get(4)? {
        "pending" => Ok(SavedState::Pending),
        "leased" => Ok(SavedState::Leased),
        "finished" => {
            let score = row.maybe_word("score", 10)?.unwrap_or_default();
            Ok(SavedState::Finished { attempt: row.get(8)?, digest: row.get(9)?, score })
        }
        "failed" => {
            let class = row.word("failure class", 6)?;
            Ok(SavedState::Failed(Failure { class, message: row.get(7)? }))
        }
        other => Err(impossible("state of a fold", format!("`{other}`"))),
    }
}

fn load_data(on: &mut dyn Database) -> Result<BTreeMap<String, SavedData>, StoreError> {
    let saved =
        |row: &Row<'_>| Ok((row.get(0)?, SavedData { digest: row.get(1)?, dissent: BTreeMap::new() }));
    let known = all(on, "SELECT name, digest FROM data_set", &[], saved)?;
    let mut data: BTreeMap<String, SavedData> = known.into_iter().collect();
    let sql = "SELECT trial.trial, fold.split, fold.seed, dissent.data_set, dissent.digest
               FROM dissent JOIN fold ON fold.id = dissent.fold JOIN trial ON trial.id = fold.trial";
    on.each(sql, &[], &mut |row| {
        data.entry(row.get(3)?).or_default().dissent.insert(row.fold(0)?, row.get(4)?);
        Ok(())
    })?;
    Ok(data)
}

fn load_attempts(on: &mut dyn Database) -> Result<HashMap<i64, Vec<SavedAttempt>>, StoreError> {
    let worker = |row: &Row<'_>| Ok((row.get(0)?, (row.word("worker", 1)?, row.get(2)?)));
    let workers = all(on, "SELECT id, name, host FROM worker", &[], worker)?;
    let workers: HashMap<i64, (WorkerId, String)> = workers.into_iter().collect();
    let sql = "SELECT fold, attempt, digest FROM result WHERE kind = 'replicate'";
    let replicates = all(on, sql, &[], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
    let replicates: HashMap<(i64, i64), Digest> = replicates.into_iter().collect();
    let mut attempts: HashMap<i64, Vec<SavedAttempt>> = HashMap::new();
    on.each("SELECT fold, attempt, worker, ending FROM attempt ORDER BY fold, attempt", &[], &mut |row| {
        let (fold, number, worker): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let of_fold = attempts.entry(fold).or_insert_with(|| Vec::with_capacity(1));
        if number != of_fold.len() as i64 + 1 {
            return Err(impossible("attempt", format!("number {number} after {}", of_fold.len())));
        }
        let (name, host) = workers.get(&worker).ok_or_else(|| impossible("worker of an attempt", worker))?;
        of_fold.push(SavedAttempt {
            worker: name.clone(),
            host: host.clone(),
            ending: row.maybe_word("ending", 3)?,
            replicate: replicates.get(&(fold, number)).copied(),
        });
        Ok(())
    })?;
    Ok(attempts)
}

/// The race of a sweep, which follows from its text. Few texts have one, so that few are read.
fn race_of(yaml: &str) -> Option<Arc<Race>> {
    let may = yaml.contains("race") || yaml.contains("halve");
    let spec = may.then(|| SweepSpec::parse(yaml).ok())??;
    spec.race().map(Arc::new)
}

fn load_sweeps(
    on: &mut dyn Database,
    keys: &HashMap<i64, FoldKey>,
) -> Result<BTreeMap<SweepName, SweepSaved>, StoreError> {
    let mut references: HashMap<i64, Vec<FoldKey>> = HashMap::new();
    on.each("SELECT sweep, fold FROM sweep_fold ORDER BY sweep, position", &[], &mut |row| {
        let (sweep, fold): (i64, i64) = (row.get(0)?, row.get(1)?);
        let key = keys.get(&fold).copied().ok_or_else(|| impossible("fold of a sweep", fold))?;
        references.entry(sweep).or_default().push(key);
        Ok(())
    })?;
    let mut sweeps = BTreeMap::new();
    let sql =
        "SELECT id, name, place, yaml, priority, limits, state, resources, note FROM sweep WHERE name <> ''";
    on.each(sql, &[], &mut |row| {
        let name: SweepName = row.word("name of a sweep", 1)?;
        let yaml: Arc<str> = row.get(3)?;
        let sweep = SweepSaved {
            name: name.clone(),
            order: row.get(2)?,
            race: race_of(&yaml),
            yaml,
            priority: row.get(4)?,
            limits: serde_json::from_str(row.get(5)?)
                .map_err(|error| impossible("limits of a sweep", error))?,
            resources: serde_json::from_str(row.get(7)?)
                .map_err(|error| impossible("resources of a sweep", error))?,
            state: row.word("state of a sweep", 6)?,
            note: row.get(8)?,
            folds: references.remove(&row.get(0)?).unwrap_or_default(),
            gathered: 0,
        };
        sweeps.insert(name, sweep);
        Ok(())
    })?;
    Ok(sweeps)
}
