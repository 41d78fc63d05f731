//! What the page shows, made of what commands know: conversions from listed sweeps, tables, folds and results to the view
//! types of `togl-web`. Pure; asks nobody.

use std::collections::BTreeMap;

use togl_analysis::best::RankedTrial;
use togl_analysis::render::{self, GridCell, GridRow};
use togl_analysis::{Best, Table};
use togl_coordinator::store::history::Happened;
use togl_coordinator::store::{FoldState, LogPiece, ResultRow, StoredFold};
use togl_sweeps::result::EpochRecord;
use togl_sweeps::settings::{self, Setting};
use togl_sweeps::{FoldResult, Scale, TrialConfig, WorkerId};
use togl_web::{Trouble, view};

use crate::facts::FoldExplanation;
use crate::problem::{self, Problem};
use crate::remote::{FoldInTraining, ListedSweep, ListedWorker, SweepStatus};

/// Points of a learning curve that the page gets.
const POINTS: usize = 128;

/// Bytes of an attempt's log, and attempts with a log, that it gets.
const LOG_TAIL: usize = 16 * 1024;
const LOGS: usize = 3;

/// Trials that it gets.
const TRIALS: usize = 2_000;

/// Rows of a table that a page shows; who copies it gets all of them.
const MOST_ROWS: usize = 200;

/// Trials behind a cell that are named.
const NAMED: usize = 2;

pub fn trouble(problem: &Problem) -> Trouble {
    let words = problem.in_one_line();
    match problem.code() {
        problem::NEGATIVE => Trouble::Unknown(words),
        problem::USAGE => Trouble::Bad(words),
        problem::UNREACHABLE => Trouble::Away(words),
        _ => Trouble::Ours(words),
    }
}

pub fn sweep(listed: ListedSweep) -> view::Sweep {
    let ListedSweep { name, state, trials, folds, pending, running, finished, failed, priority, note } =
        listed;
    view::Sweep { name, state, trials, folds, pending, running, finished, failed, priority, note }
}

pub fn worker(listed: ListedWorker) -> view::Worker {
    let ListedWorker {
        worker,
        host,
        state,
        slots,
        devices,
        running,
        code_version: version,
        note,
        allocation: _,
    } = listed;
    view::Worker { worker, host, state, slots, devices, running, version, note }
}

pub fn sweep_now(status: SweepStatus, varying: Vec<String>, scale: &Scale) -> view::SweepNow {
    let in_training = |fold: FoldInTraining| view::InTraining {
        fold: fold.fold,
        title: fold.title,
        attempt: fold.attempt,
        worker: fold.worker,
        epoch: fold.epoch,
        max_epochs: fold.max_epochs,
        validation_accuracy: finite(fold.validation_accuracy),
    };
    view::SweepNow {
        sweep: sweep(status.sweep),
        trials_finished: status.trials_finished,
        eta_seconds: status.eta_seconds,
        standstill: status.standstill,
        failed_by_class: status.failed_by_class,
        in_training: status.in_training.into_iter().map(in_training).collect(),
        varying,
        score: score(scale),
    }
}

/// How values are written.
pub fn score(scale: &Scale) -> view::ShownScore {
    view::ShownScore {
        name: scale.name.to_string(),
        factor: scale.factor(),
        unit: scale.unit().to_owned(),
        decimals: scale.decimals() as u32,
    }
}

/// JSON has no word for what is not finite.
fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

pub fn table(table: &Table, version: u64, folds: u64, reading: bool) -> view::Table {
    let grid = render::grid(table, "▲", "△");
    let cell = |cell: GridCell| view::Cell {
        number: cell.number,
        count: cell.count,
        marks: cell.marks,
        best: cell.stands_out,
        n: cell.n as u64,
        planned: cell.planned as u64,
        trials: cell.trials.into_iter().take(NAMED).collect(),
    };
    let span = |(text, columns): (String, usize)| view::Span { text, columns: columns as u64 };
    let total = grid.rows.len() as u64;
    let row =
        |row: GridRow| view::Row { labels: row.labels, cells: row.cells.into_iter().map(cell).collect() };
    view::Table {
        version,
        folds,
        reading,
        problem: String::new(),
        label_headers: grid.label_headers,
        above: grid.above.into_iter().map(|line| line.into_iter().map(span).collect()).collect(),
        headers: grid.headers,
        rows: grid.rows.into_iter().take(MOST_ROWS).map(row).collect(),
        total,
        below: grid.below,
    }
}

/// A table that cannot be made now, and why.
pub fn no_table(problem: String, version: u64, folds: u64, reading: bool) -> view::Table {
    view::Table {
        version,
        folds,
        reading,
        problem,
        label_headers: Vec::new(),
        above: Vec::new(),
        headers: Vec::new(),
        rows: Vec::new(),
        total: 0,
        below: Vec::new(),
    }
}

pub fn fold_line(stored: StoredFold, varying: &[&'static Setting]) -> view::FoldLine {
    let StoredFold { fold, trial, state, attempts, worker, outcome } = stored;
    let config = TrialConfig::from_canonical(&trial).ok();
    let show = |name| config.as_ref().and_then(|config| config.show(name)).unwrap_or_default();
    let word = state.word().as_str().to_owned();
    let (class, message) = match state {
        FoldState::Failed(failure) => {
            (failure.class.to_string(), failure.message.chars().take(300).collect())
        }
        FoldState::Pending | FoldState::Running { .. } | FoldState::Finished { .. } => Default::default(),
    };
    view::FoldLine {
        fold: fold.to_string(),
        method: show("method"),
        dataset: show("dataset"),
        settings: varying.iter().map(|setting| (setting.name.to_owned(), show(setting.name))).collect(),
        state: word,
        attempts,
        worker: worker.as_ref().map(WorkerId::to_string).unwrap_or_default(),
        value: finite(outcome.map(|outcome| outcome.value)),
        seconds: finite(outcome.map(|outcome| outcome.seconds)),
        class,
        message,
    }
}

/// What was said, so that what differs in numbers only is the same.
pub fn alike(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let mut text = String::new();
    for character in line.chars().take(160) {
        match character.is_ascii_digit() {
            true if text.ends_with('#') => {}
            true => text.push('#'),
            false => text.push(character),
        }
    }
    text
}

pub fn failures(folds: Vec<StoredFold>, total: u64) -> view::Failures {
    let looked_at = folds.len() as u64;
    let mut groups: BTreeMap<(String, String), view::FailureGroup> = BTreeMap::new();
    for fold in folds {
        let FoldState::Failed(failure) = fold.state else { continue };
        let (class, words) = (failure.class.to_string(), alike(&failure.message));
        let group = groups.entry((class.clone(), words.clone())).or_insert_with(|| view::FailureGroup {
            class,
            words,
            folds: 0,
            example: fold.fold.to_string(),
            message: failure.message.chars().take(2_000).collect(),
            workers: BTreeMap::new(),
        });
        group.folds += 1;
        if let Some(worker) = fold.worker {
            *group.workers.entry(worker.to_string()).or_default() += 1;
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.folds));
    groups.truncate(100);
    view::Failures { total, looked_at, groups }
}

pub fn trials(best: Best) -> view::Trials {
    let caption = best.caption();
    let total = best.trials.len() as u64;
    let settings = best
        .trials
        .first()
        .map_or_else(Vec::new, |trial| trial.settings.iter().map(|(name, _)| name.clone()).collect());
    let trial = |ranked: RankedTrial| view::Trial {
        trial: ranked.trial,
        method: ranked.method,
        values: ranked.settings.into_iter().map(|(_, value)| value).collect(),
        validation: finite(ranked.validation_mean),
        test: finite(ranked.test_mean),
        test_std: finite(ranked.test_std),
        n: ranked.n as u64,
        planned: ranked.planned as u64,
    };
    view::Trials {
        total,
        caption,
        score: score(&best.scale),
        settings,
        trials: best.trials.into_iter().take(TRIALS).map(trial).collect(),
    }
}

/// Everything about a fold, as far as it is known.
pub struct Known {
    pub explanation: FoldExplanation,
    pub history: Vec<Happened>,
    pub log: Vec<LogPiece>,
    pub result: Option<ResultRow>,
    pub config: Option<TrialConfig>,
    pub title: String,
}

pub fn fold(known: Known) -> view::Fold {
    let Known { explanation, history, log, result, config, title } = known;
    let attempt = |line: crate::facts::AttemptLine| view::Attempt {
        attempt: line.attempt,
        worker: line.worker,
        ending: line.ending,
    };
    let happened = |happened: Happened| view::Happened {
        at: happened.at,
        event: happened.event,
        attempt: happened.attempt.map_or(0, |attempt| attempt.0),
        worker: happened.worker.as_ref().map(WorkerId::to_string).unwrap_or_default(),
        detail: happened.detail,
    };
    let piece = |piece: LogPiece| view::Log { attempt: piece.attempt.0, text: tail(piece.text) };
    view::Fold {
        fold: explanation.fold,
        title,
        reason: explanation.reason,
        sweeps: explanation.sweeps,
        attempts: explanation.attempts.into_iter().map(attempt).collect(),
        history: history.into_iter().map(happened).collect(),
        log: log.into_iter().rev().take(LOGS).map(piece).collect(),
        settings: config.as_ref().map(settings).unwrap_or_default(),
        result: result.map(|row| outcome(row.result)),
    }
}

/// The settings of a trial that are not the default.
fn settings(config: &TrialConfig) -> BTreeMap<String, String> {
    let usual = TrialConfig::default();
    let names = settings::names_of([config]).into_iter().chain(["dataset".to_owned()]);
    names
        .filter(|name| config.show(name) != usual.show(name) || name == "dataset" || name == "model")
        .filter_map(|name| Some((name.clone(), config.show(&name)?)))
        .collect()
}

/// The last lines of a log.
fn tail(mut text: String) -> String {
    if text.len() > LOG_TAIL {
        let mut cut = text.len() - LOG_TAIL;
        while !text.is_char_boundary(cut) {
            cut += 1;
        }
        text.drain(..cut);
    }
    text
}

fn outcome(result: FoldResult) -> view::Outcome {
    let from = &result.provenance;
    let provenance = [
        ("host", from.host.clone()),
        ("worker", from.worker.clone()),
        ("device", from.device.clone()),
        ("processor", from.processor.clone()),
        ("version", from.code_version.clone()),
        ("commit", from.commit.clone()),
        ("libtorch", from.libtorch.clone()),
        ("data", result.data_digest.clone()),
        ("split", result.split_digest.clone()),
    ];
    view::Outcome {
        score: score(result.scale()),
        test: result.test.accuracy,
        validation: result.validation.accuracy,
        train: result.train.accuracy,
        best_epoch: result.best_epoch,
        epochs: result.epochs,
        seconds: result.seconds,
        parameters: result.parameters,
        provenance: provenance.map(|(name, value)| [name.to_owned(), value]).to_vec(),
        curve: curve(&result.history),
        confusion: result.confusion,
    }
}

fn curve(history: &[EpochRecord]) -> Vec<view::CurvePoint> {
    let (step, last) = (history.len().div_ceil(POINTS - 1).max(1), history.len().saturating_sub(1));
    let kept = history.iter().enumerate().filter(|(at, _)| at % step == 0 || *at == last);
    let point = |record: &EpochRecord| view::CurvePoint {
        epoch: record.epoch,
        train_loss: record.train.loss,
        validation_loss: record.validation.loss,
        train: record.train.accuracy,
        validation: record.validation.accuracy,
    };
    let is_number = |point: &view::CurvePoint| {
        [point.train_loss, point.validation_loss, point.train, point.validation].iter().all(|v| v.is_finite())
    };
    kept.map(|(_, record)| point(record)).filter(is_number).collect()
}

#[cfg(test)]
mod tests {
    use togl_sweeps::result::example;

    use super::*;

    #[test]
    fn failures_that_differ_in_numbers_only_are_alike() {
        assert_eq!(alike("CUDA out of memory: 12.5 GiB\nat line 3"), alike("CUDA out of memory: 1.25 GiB"));
        assert_ne!(alike("loss is not finite"), alike("loss is finite"));
        assert!(alike(&"x".repeat(1_000_000)).len() <= 160);
    }

    #[test]
    fn a_long_curve_and_a_long_log_are_cut_and_keep_their_ends() {
        let mut result = example(0.5);
        let record = EpochRecord { epoch: 0, lr: 0.1, train: result.train, validation: result.validation };
        result.history = (0..10_000).map(|epoch| EpochRecord { epoch, ..record }).collect();
        let seen = curve(&result.history);
        assert!(seen.len() <= POINTS && seen.last().unwrap().epoch == 9_999, "{}", seen.len());
        let log = tail("é".repeat(LOG_TAIL) + "end");
        assert!(log.len() <= LOG_TAIL && log.ends_with("end"));
    }
}
