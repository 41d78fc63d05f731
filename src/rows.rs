//! From finished folds to the frame behind a table: asks a coordinator, or reads its store when none is serving,
//! and puts every result at its trial's place in the sweep. Computes no numbers.

use std::collections::{BTreeSet, HashMap, HashSet};

use togl_analysis::frame::{FoldFrame, FoldRow};
use togl_coordinator::store::{Reader, ResultQuery, StoredSweep};
use togl_proto::{convert, wire};
use togl_sweeps::{FoldKey, FoldResult, SweepName, SweepSpec, TrialConfig, TrialId};

use crate::embedded::RESTORE;
use crate::problem::Problem;
use crate::remote::{self, Client, Target};
use crate::state::StateDir;

/// One finished fold as it is stored.
struct Finished {
    fold: FoldKey,
    attempt: u32,
    worker: String,
    result: FoldResult,
}

/// A sweep and its finished folds.
pub struct Collected {
    /// The sweep as it was submitted.
    pub spec: SweepSpec,
    /// Its text.
    pub yaml: String,
    /// Its finished folds, with learning curves.
    pub rows: Vec<FoldRow>,
    /// The same folds as a frame: one row each, in their defined order.
    pub frame: FoldFrame,
}

/// Asks the coordinator that was named; reads the store otherwise, which is possible while it is served.
pub async fn collected(target: &Target, sweep: &str) -> Result<Collected, Problem> {
    match target.coordinator {
        Some(_) => from_coordinator(&mut target.connect().await?, sweep).await,
        None => from_store(&target.state()?, sweep),
    }
}

/// Asks a coordinator.
pub async fn from_coordinator(client: &mut Client, sweep: &str) -> Result<Collected, Problem> {
    let request = wire::StatusRequest { sweep: sweep.to_owned() };
    let yaml = client.status(request).await.map_err(remote::refused)?.into_inner().yaml;
    let request = wire::ResultsRequest { sweep: sweep.to_owned() };
    let mut stream = client.results(request).await.map_err(remote::refused)?.into_inner();
    let mut finished = Vec::new();
    while let Some(row) = stream.message().await.map_err(remote::refused)? {
        let broken =
            |error| Problem::ours(format!("the coordinator sent a row that makes no sense: {error}"));
        let result = row.result.ok_or(convert::ConvertError::Missing("result")).map_err(broken)?;
        finished.push(Finished {
            fold: convert::fold(row.fold).map_err(broken)?,
            attempt: row.attempt,
            worker: row.worker,
            result: result.try_into().map_err(broken)?,
        });
    }
    collect(&yaml, finished)
}

/// What the trainers of a fold wrote, by attempt, from a store that nobody need serve. The trial may be shortened.
pub fn stored_log(state: &StateDir, fold: &str) -> Result<Vec<(u32, String)>, Problem> {
    let store = open(state)?;
    let mut found = BTreeSet::new();
    for stored in store.sweeps().map_err(Problem::ours)? {
        let Ok(spec) = SweepSpec::parse(&stored.yaml) else { continue };
        let trials = spec.trials().map_err(Problem::ours)?;
        let folds = trials.iter().flat_map(|trial| spec.folds_of(trial.id));
        found.extend(folds.filter(|key| is_meant(key, fold)));
    }
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(key), None) => {
            let pieces = store.log(&key).map_err(Problem::ours)?;
            Ok(pieces.into_iter().map(|piece| (piece.attempt.0, piece.text)).collect())
        }
        (None, _) => {
            Err(Problem::negative(format!("there is no fold `{fold}` in {}", state.path().display())).hint(
                "a fold is TRIAL/split/seed; `togl table --format json` names the folds behind each cell",
            ))
        }
        (Some(_), Some(_)) => Err(Problem::usage(format!("`{fold}` is the beginning of several folds"))
            .hint("give more digits of the trial")),
    }
}

/// What a trial is called when folds of the same kind are compared.
pub fn title(config: &TrialConfig) -> String {
    format!("{} on {}", config.method(), config.dataset)
}

/// What a finished fold tells about folds like it.
pub struct FinishedFold {
    /// Which fold.
    pub key: FoldKey,
    /// What folds of its kind are called.
    pub title: String,
    /// Seconds of training.
    pub seconds: f64,
    /// Bytes; 0 if unknown.
    pub peak_memory: u64,
}

/// Everything that a store knows of folds.
#[derive(Default)]
pub struct StoredFolds {
    /// Finished folds.
    pub finished: Vec<FinishedFold>,
    /// The folds of each sweep.
    pub sweeps: HashMap<String, HashSet<FoldKey>>,
}

/// Reads all sweeps of a store; a fold of two sweeps is listed once.
pub fn stored_folds(state: &StateDir) -> Result<StoredFolds, Problem> {
    let store = open(state)?;
    let (mut all, mut seen) = (StoredFolds::default(), HashSet::new());
    for stored in store.sweeps().map_err(Problem::ours)? {
        let Ok(collected) = read(store.as_ref(), &stored) else { continue }; // of an older language
        let trials = collected.spec.trials().map_err(Problem::ours)?;
        let folds = trials.iter().flat_map(|trial| collected.spec.folds_of(trial.id)).collect();
        all.sweeps.insert(stored.name.to_string(), folds);
        let new = collected.rows.into_iter().filter(|row| seen.insert(row.fold));
        all.finished.extend(new.map(|row| FinishedFold {
            key: row.fold,
            title: title(&row.config),
            seconds: row.result.seconds,
            peak_memory: row.result.peak_memory,
        }));
    }
    Ok(all)
}

/// Whether `text` names this fold, perhaps with a shortened trial.
fn is_meant(key: &FoldKey, text: &str) -> bool {
    let (trial, rest) = text.split_once('/').unwrap_or((text, ""));
    !trial.is_empty()
        && key.trial.to_string().starts_with(trial)
        && format!("{}/{}", key.split, key.seed) == rest
}

/// The store of a state directory, for reading; works whether or not a coordinator is serving it.
pub fn open(state: &StateDir) -> Result<Box<dyn Reader>, Problem> {
    state.store().open_read_only().map_err(|error| match error.is_damage() {
        true => Problem::usage(error).hint(RESTORE),
        false => Problem::usage(error).hint("run a sweep first, or choose another folder with --state"),
    })
}

/// Reads the store of a state directory; works whether or not a coordinator is serving it.
pub fn from_store(state: &StateDir, sweep: &str) -> Result<Collected, Problem> {
    let name: SweepName = sweep.parse().map_err(Problem::usage)?;
    let store = open(state)?;
    let sweeps = store.sweeps().map_err(Problem::ours)?;
    let Some(stored) = sweeps.iter().find(|stored| stored.name == name) else {
        let hint = togl_sweeps::nearest::hint(sweep, sweeps.iter().map(|stored| stored.name.as_str()));
        return Err(Problem::negative(format!(
            "there is no sweep `{sweep}` in {}; {hint}",
            state.path().display()
        )));
    };
    read(store.as_ref(), stored)
}

/// One sweep of a store with its finished folds.
fn read(store: &dyn Reader, stored: &StoredSweep) -> Result<Collected, Problem> {
    let mut query = ResultQuery::accepted(stored.name.clone());
    let mut finished = Vec::new();
    loop {
        let page = store.results(&query).map_err(Problem::ours)?;
        finished.extend(page.rows.into_iter().map(|row| Finished {
            fold: row.fold,
            attempt: row.attempt.0,
            worker: row.worker.to_string(),
            result: row.result,
        }));
        match page.next {
            Some(next) => query.from = next,
            None => return collect(&stored.yaml, finished),
        }
    }
}

fn collect(yaml: &str, finished: Vec<Finished>) -> Result<Collected, Problem> {
    let spec = SweepSpec::parse(yaml)
        .map_err(|error| Problem::ours(format!("the stored sweep file cannot be read any more: {error}")))?;
    let trials = spec.trials().map_err(Problem::ours)?;
    let places: HashMap<TrialId, _> = trials.into_iter().map(|trial| (trial.id, trial)).collect();
    let rows = finished.into_iter().filter_map(|done| {
        let trial = places.get(&done.fold.trial)?;
        Some(FoldRow {
            position: trial.position,
            fold: done.fold,
            config: trial.config.clone(),
            attempt: done.attempt,
            worker: done.worker,
            result: done.result,
        })
    });
    let rows: Vec<FoldRow> = rows.collect();
    let frame = FoldFrame::from_rows(rows.iter().cloned()).map_err(Problem::ours)?;
    Ok(Collected { spec, yaml: yaml.to_owned(), rows, frame })
}
