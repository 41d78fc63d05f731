//! Folds as runs of MLflow: a parent run a trial, a child run a fold. Owns what is said of a run, in batches within MLflow's
//! limits, and what is done with runs of an earlier export: a finished one of the same result is left alone, every other one is
//! deleted and made again, because MLflow appends to metrics and replaces none. Talks through [`Tracking`].

use std::collections::HashMap;

use serde_json::{Value, json};
use togl_analysis::FoldRow;
use togl_sweeps::TrialId;

use super::server::{ServerError, Tracking};
use super::{digest, ended, epoch, numbers, provenance, settings, started};

/// What one batch may hold.
const METRICS: usize = 1_000;
const PARAMETERS: usize = 100;
const TAGS: usize = 100;
/// And all of that together.
const ITEMS: usize = 1_000;
/// Runs on a page of a search.
const PAGE: u32 = 1_000;

/// What became of an export.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Runs that were made.
    pub made: usize,
    /// Runs that were there already.
    pub kept: usize,
    /// Unfinished or outdated runs that were deleted.
    pub redone: usize,
    /// Runs of folds that the sweep has no result of any more.
    pub left: usize,
}

/// Exports the folds of a sweep into an experiment, which is made if it is not there.
pub fn export(
    server: &mut dyn Tracking,
    experiment: &str,
    sweep: &str,
    rows: &[FoldRow],
) -> Result<Sent, ServerError> {
    let mut there = There::of(server, experiment, sweep)?;
    let mut sent = Sent::default();
    let mut trials: Vec<TrialId> = Vec::new();
    let mut ordered: Vec<&FoldRow> = rows.iter().collect();
    ordered.sort_by_key(|row| (row.position, row.fold.split, row.fold.seed));
    for row in &ordered {
        if trials.last() != Some(&row.fold.trial) {
            trials.push(row.fold.trial);
        }
    }
    for trial in trials {
        let folds: Vec<&FoldRow> = ordered.iter().copied().filter(|row| row.fold.trial == trial).collect();
        there.trial(server, sweep, &folds, &mut sent)?;
    }
    sent.left = there.folds.values().map(Vec::len).sum();
    Ok(sent)
}

/// A run as MLflow knows it.
struct Run {
    id: String,
    finished: bool,
    /// Digest of the result that it was made of; of a parent how many folds it sums up.
    of: String,
}

impl Run {
    /// With the fold and the trial that it is of.
    fn read(run: &Value) -> Option<(String, String, Self)> {
        let tags = run["data"]["tags"].as_array()?;
        let tag = |name: &str| {
            let found = tags.iter().find(|tag| tag["key"] == name);
            found.and_then(|tag| tag["value"].as_str()).unwrap_or_default().to_owned()
        };
        let finished = run["info"]["status"] == "FINISHED";
        let id = run["info"]["run_id"].as_str()?.to_owned();
        Some((tag("togl.fold"), tag("togl.trial"), Self { id, finished, of: tag("togl.result") }))
    }
}

/// What an experiment holds of a sweep.
struct There {
    experiment: String,
    parents: HashMap<String, Run>,
    folds: HashMap<String, Vec<Run>>,
}

impl There {
    fn of(server: &mut dyn Tracking, name: &str, sweep: &str) -> Result<Self, ServerError> {
        let filter = json!({"filter": format!("name = '{name}'"), "max_results": 1});
        let found = server.post("experiments/search", &filter)?;
        let experiment = match found["experiments"][0]["experiment_id"].as_str() {
            Some(id) => id.to_owned(),
            None => said(&server.post("experiments/create", &json!({"name": name}))?["experiment_id"]),
        };
        let mut there = Self { experiment, parents: HashMap::new(), folds: HashMap::new() };
        let mut page = String::new();
        loop {
            let mut wanted = json!({
                "experiment_ids": [there.experiment],
                "filter": format!("tags.`togl.sweep` = '{sweep}'"),
                "max_results": PAGE,
            });
            if !page.is_empty() {
                wanted["page_token"] = json!(page);
            }
            let found = server.post("runs/search", &wanted)?;
            for (fold, trial, run) in found["runs"].as_array().into_iter().flatten().filter_map(Run::read) {
                match fold.is_empty() {
                    true => drop(there.parents.insert(trial, run)),
                    false => there.folds.entry(fold).or_default().push(run),
                }
            }
            page = said(&found["next_page_token"]);
            if page.is_empty() {
                return Ok(there);
            }
        }
    }

    fn trial(
        &mut self,
        server: &mut dyn Tracking,
        sweep: &str,
        folds: &[&FoldRow],
        sent: &mut Sent,
    ) -> Result<(), ServerError> {
        let parent = match self.parents.remove(&folds[0].fold.trial.to_string()) {
            Some(run) => run,
            None => {
                let tags = parent_tags(sweep, folds[0]);
                let start = folds.iter().map(|row| started(row)).min().unwrap_or_default();
                let id = self.create(server, &folds[0].config.method(), start, &tags)?;
                Run { id, finished: false, of: String::new() }
            }
        };
        for row in folds {
            let runs = self.folds.remove(&row.fold.to_string()).unwrap_or_default();
            let is_whole = |run: &Run| run.finished && run.of == digest(row);
            let keep = runs.iter().position(is_whole);
            for (_, run) in runs.iter().enumerate().filter(|(at, _)| Some(*at) != keep) {
                server.post("runs/delete", &json!({"run_id": run.id}))?;
                sent.redone += 1;
            }
            match keep {
                Some(_) => sent.kept += 1,
                None => {
                    self.fold(server, sweep, &parent.id, row)?;
                    sent.made += 1;
                }
            }
        }
        let of = folds_digest(folds);
        let end =
            folds.iter().map(|row| ended(row, row.result.epochs.saturating_sub(1))).max().unwrap_or_default();
        let mut said = Said::default();
        match (parent.finished, parent.of == of) {
            (true, true) => return Ok(()),
            (false, true) => {} // one batch, which has arrived
            (_, false) => {
                said.parameters = parameters(folds[0]);
                said.metrics =
                    means(folds).map(|(name, value)| metric(&name, value, end, folds.len())).collect();
                said.tags = vec![tag("togl.result", &of)];
            }
        }
        finish(server, &parent.id, said, end)
    }

    fn fold(
        &self,
        server: &mut dyn Tracking,
        sweep: &str,
        parent: &str,
        row: &FoldRow,
    ) -> Result<(), ServerError> {
        let mut tags = vec![
            tag("togl.sweep", sweep),
            tag("togl.trial", &row.fold.trial.to_string()),
            tag("togl.fold", &row.fold.to_string()),
            tag("togl.result", &digest(row)),
            tag("mlflow.parentRunId", parent),
        ];
        let name = format!("{} split {} seed {}", row.config.method(), row.fold.split, row.fold.seed);
        let run = self.create(server, &name, started(row), &tags)?;
        let end = ended(row, row.result.epochs.saturating_sub(1));
        let mut metrics: Vec<Value> = Vec::new();
        for at in &row.result.history {
            let time = ended(row, at.epoch);
            metrics.extend(epoch(at).map(|(name, value)| metric(name, value, time, at.epoch as usize)));
        }
        let best = row.result.best_epoch as usize;
        metrics.extend(numbers(row).into_iter().map(|(name, value)| metric(name, value, end, best)));
        tags =
            provenance(row).into_iter().map(|(name, value)| tag(&format!("togl.{name}"), &value)).collect();
        let mut parameters = parameters(row);
        parameters.extend([
            json!({"key": "split", "value": row.fold.split.to_string()}),
            json!({"key": "seed", "value": row.fold.seed.to_string()}),
        ]);
        finish(server, &run, Said { metrics, parameters, tags }, end)
    }

    fn create(
        &self,
        server: &mut dyn Tracking,
        name: &str,
        start: u64,
        tags: &[Value],
    ) -> Result<String, ServerError> {
        let run = json!({
            "experiment_id": self.experiment, "run_name": name, "start_time": start, "tags": tags,
        });
        Ok(said(&server.post("runs/create", &run)?["run"]["info"]["run_id"]))
    }
}

fn said(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn parent_tags(sweep: &str, row: &FoldRow) -> Vec<Value> {
    vec![tag("togl.sweep", sweep), tag("togl.trial", &row.fold.trial.to_string())]
}

/// All there is to say of a run.
#[derive(Debug, Default)]
struct Said {
    metrics: Vec<Value>,
    parameters: Vec<Value>,
    tags: Vec<Value>,
}

/// Says it, and that the run is finished: who is killed before that leaves a run that is not.
fn finish(server: &mut dyn Tracking, run: &str, said: Said, end: u64) -> Result<(), ServerError> {
    for mut batch in batches(said) {
        batch["run_id"] = json!(run);
        server.post("runs/log-batch", &batch)?;
    }
    server.post("runs/update", &json!({"run_id": run, "status": "FINISHED", "end_time": end}))?;
    Ok(())
}

/// In pieces that MLflow takes.
fn batches(said: Said) -> Vec<Value> {
    let Said { mut metrics, mut parameters, mut tags } = said;
    let mut batches = Vec::new();
    while !(metrics.is_empty() && parameters.is_empty() && tags.is_empty()) {
        let some =
            |list: &mut Vec<Value>, most: usize| list.drain(..list.len().min(most)).collect::<Vec<_>>();
        let (parameters, tags) = (some(&mut parameters, PARAMETERS), some(&mut tags, TAGS));
        let metrics = some(&mut metrics, METRICS.min(ITEMS - parameters.len() - tags.len()));
        batches.push(json!({"metrics": metrics, "params": parameters, "tags": tags}));
    }
    batches
}

fn metric(name: &str, value: f64, milliseconds: u64, step: usize) -> Value {
    json!({"key": name, "value": value, "timestamp": milliseconds, "step": step})
}

fn tag(name: &str, value: &str) -> Value {
    json!({"key": name, "value": value})
}

fn parameters(row: &FoldRow) -> Vec<Value> {
    settings(&row.config).into_iter().map(|(name, value)| json!({"key": name, "value": value})).collect()
}

fn folds_digest(folds: &[&FoldRow]) -> String {
    let digests: Vec<String> = folds.iter().map(|row| digest(row)).collect();
    blake3::hash(digests.join(" ").as_bytes()).to_hex()[..32].to_owned()
}

/// Means over the folds of a trial, by which MLflow sorts parents.
fn means<'a>(folds: &'a [&FoldRow]) -> impl Iterator<Item = (String, f64)> + 'a {
    let accuracies = ["test_accuracy", "validation_accuracy", "last_validation_accuracy", "train_accuracy"];
    accuracies.into_iter().filter_map(|name| {
        let values: Option<Vec<f64>> = folds
            .iter()
            .map(|row| numbers(row).into_iter().find(|(found, _)| *found == name).map(|(_, value)| value))
            .collect();
        let values = values?;
        Some((format!("{name}_mean"), values.iter().sum::<f64>() / values.len() as f64))
    })
}

#[cfg(test)]
#[path = "mlflow_tests.rs"]
mod tests;
