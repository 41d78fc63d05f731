//! What the page shows, made of what commands know: conversions from listed sweeps, tables, folds and results to the view
//! types of `togl-web`. Pure; asks nobody.

use std::collections::BTreeMap;

use togl_analysis::best::RankedTrial;
use togl_analysis::render::{self, GridCell, GridRow};
use togl_analysis::{Best, Table};
use togl_coordinator::store::history::Happened;
use togl_coordinator::store::replicates::Replicate;
use togl_coordinator::store::{FoldState, LogPiece, ResultRow, StoredFold};
use togl_sweeps::result::EpochRecord;
use togl_sweeps::settings::{self, Setting};
use togl_sweeps::{FoldResult, Scale, TrialConfig, WorkerId};
use togl_web::view;

use crate::facts::FoldExplanation;
use crate::live::{Made, Pace};
use crate::remote::{FoldInTraining, ListedSweep, ListedWorker, SweepStatus};

/// Points of a learning curve that the page gets.
const POINTS: usize = 128;

/// Bytes of an attempt's log, and attempts with a log, that it gets.
const LOG_TAIL: usize = 8 * 1024;
const LOGS: usize = 3;

/// Rows and cells of a table that a page shows; who copies it gets all of them.
const MOST_ROWS: usize = 200;
const MOST_CELLS: usize = 1_500;

/// Sweeps, workers, and folds and devices of a worker that an overview names.
const MOST_SWEEPS: usize = 200;
const MOST_WORKERS: usize = 100;
const MOST_NAMED: usize = 8;

/// Bytes of the lines of one answer: together with what stands around them less than 256 KB.
const MOST_BYTES: usize = 230 * 1024;

/// Attempts and events of a fold, and classes of a confusion matrix that are shown.
const MOST_LINES: usize = 200;
const MOST_CLASSES: usize = 64;

/// Trials behind a cell that are named.
const NAMED: usize = 8;

pub fn sweep(listed: ListedSweep, pace: &Pace) -> view::SweepOnPage {
    let folds_an_hour = pace.an_hour(&listed.name);
    let ListedSweep { name, state, trials, folds, pending, running, finished, failed, priority, note } =
        listed;
    view::SweepOnPage {
        name,
        state,
        trials,
        folds,
        pending,
        running,
        finished,
        failed,
        priority,
        note,
        folds_an_hour,
    }
}

pub fn worker(listed: ListedWorker) -> view::WorkerOnPage {
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
    let busy = running.len() as u64;
    let running = running.into_iter().take(MOST_NAMED).collect();
    let devices = devices.into_iter().take(MOST_NAMED).collect();
    view::WorkerOnPage { worker, host, state, slots, devices, busy, running, version, note }
}

/// All that is connected, cut to what a page shows.
pub fn overview(
    sweeps: Vec<ListedSweep>,
    workers: Vec<ListedWorker>,
    disputes: Vec<String>,
    pace: &Pace,
) -> view::Overview {
    let mut worker_states = BTreeMap::new();
    for worker in &workers {
        *worker_states.entry(worker.state.clone()).or_default() += 1;
    }
    let sweeps_total = sweeps.len() as u64;
    let skipped = sweeps.len().saturating_sub(MOST_SWEEPS);
    view::Overview {
        sweeps_total,
        sweeps: sweeps.into_iter().skip(skipped).map(|listed| sweep(listed, pace)).collect(),
        slots: workers.iter().map(|worker| u64::from(worker.slots)).sum(),
        busy: workers.iter().map(|worker| worker.running.len() as u64).sum(),
        worker_states,
        workers: workers.into_iter().take(MOST_WORKERS).map(worker).collect(),
        disputes: disputes.into_iter().take(100).collect(),
    }
}

pub fn in_training(fold: FoldInTraining) -> view::InTraining {
    view::InTraining {
        fold: fold.fold,
        title: fold.title,
        attempt: fold.attempt,
        worker: fold.worker,
        epoch: fold.epoch,
        max_epochs: fold.max_epochs,
        validation_accuracy: finite(fold.validation_accuracy),
        score: score(&fold.scale),
    }
}

pub fn sweep_now(
    status: SweepStatus,
    varying: Vec<String>,
    scale: &Scale,
    left: [u64; 2],
    pace: &Pace,
) -> view::SweepNow {
    view::SweepNow {
        left,
        sweep: sweep(status.sweep, pace),
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

/// A table that was made, or why there is none.
pub fn made(made: &Made) -> view::TableOnPage {
    let folds = made.frame.len() as u64;
    match &made.table {
        Ok(of) => table(of, made.version, folds, made.reading),
        Err(problem) => no_table(problem.clone(), made.version, folds, made.reading),
    }
}

pub fn table(table: &Table, version: u64, folds: u64, reading: bool) -> view::TableOnPage {
    let grid = render::grid(table, "▲", "△");
    let cell = |cell: GridCell| view::CellOnPage {
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
    let most = (MOST_CELLS / grid.headers.len().max(1)).clamp(1, MOST_ROWS);
    let row = |row: GridRow| view::RowOnPage {
        labels: row.labels,
        cells: row.cells.into_iter().map(cell).collect(),
    };
    view::TableOnPage {
        version,
        folds,
        reading,
        problem: String::new(),
        label_headers: grid.label_headers,
        above: grid.above.into_iter().map(|line| line.into_iter().map(span).collect()).collect(),
        headers: grid.headers,
        rows: grid.rows.into_iter().take(most).map(row).collect(),
        total,
        below: grid.below,
    }
}

/// A table that cannot be made now, and why.
pub fn no_table(problem: String, version: u64, folds: u64, reading: bool) -> view::TableOnPage {
    view::TableOnPage {
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
            (failure.class.to_string(), failure.message.chars().take(160).collect())
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

/// The first lines, as many as fit into one answer.
pub fn within<T: serde::Serialize>(lines: Vec<T>) -> Vec<T> {
    let mut left = MOST_BYTES;
    let fits = |line: &T| {
        let bytes = serde_json::to_string(line).map_or(0, |text| text.len() + 1);
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    };
    lines.into_iter().take_while(fits).collect()
}

pub fn trials(best: Best, from: u64, limit: u64) -> view::Trials {
    let caption = best.caption();
    let total = best.trials.len() as u64;
    let settings = best
        .trials
        .first()
        .map_or_else(Vec::new, |trial| trial.settings.iter().map(|(name, _)| name.clone()).collect());
    let trial = |ranked: RankedTrial| view::TrialOnPage {
        trial: ranked.trial,
        method: ranked.method,
        values: ranked.settings.into_iter().map(|(_, value)| value).collect(),
        validation: finite(ranked.validation_mean),
        test: finite(ranked.test_mean),
        test_std: finite(ranked.test_std),
        n: ranked.n as u64,
        planned: ranked.planned as u64,
    };
    let skipped = usize::try_from(from).unwrap_or(usize::MAX);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let trials = within(best.trials.into_iter().skip(skipped).take(limit).map(trial).collect());
    let next =
        Some(from.saturating_add(trials.len() as u64)).filter(|next| *next < total && !trials.is_empty());
    view::Trials { total, from, next, caption, score: score(&best.scale), settings, trials }
}

/// Everything about a fold, as far as it is known.
pub struct FoldKnowledge {
    pub explanation: FoldExplanation,
    pub history: Vec<Happened>,
    pub log: Vec<LogPiece>,
    pub result: Option<ResultRow>,
    pub config: Option<TrialConfig>,
    pub title: String,
    /// While it is in training.
    pub growing: Vec<view::Along>,
    pub replicates: Vec<Replicate>,
}

pub fn fold(known: FoldKnowledge) -> view::FoldOnPage {
    let FoldKnowledge { explanation, history, log, result, config, title, growing, replicates } = known;
    let attempt = |line: crate::facts::AttemptLine| view::AttemptOnPage {
        attempt: line.attempt,
        worker: line.worker,
        ending: line.ending,
    };
    let happened = |happened: Happened| view::EventOnPage {
        at: happened.at,
        event: happened.event,
        attempt: happened.attempt.map_or(0, |attempt| attempt.0),
        worker: happened.worker.as_ref().map(WorkerId::to_string).unwrap_or_default(),
        detail: happened.detail,
    };
    let piece = |piece: LogPiece| view::LogOnPage { attempt: piece.attempt.0, text: tail(piece.text) };
    view::FoldOnPage {
        fold: explanation.fold,
        title,
        reason: explanation.reason,
        sweeps: explanation.sweeps,
        attempts: explanation.attempts.into_iter().map(attempt).take(MOST_LINES).collect(),
        history: history.into_iter().map(happened).take(MOST_LINES).collect(),
        log: log.into_iter().rev().take(LOGS).map(piece).collect(),
        settings: config.as_ref().map(settings).unwrap_or_default(),
        score: score(config.as_ref().map_or(&Scale::SHARE, TrialConfig::scale)),
        result: result.map(|row| outcome(row.result)),
        growing,
        replicates: replicates.into_iter().take(20).map(again).collect(),
    }
}

fn again(replicate: Replicate) -> view::Again {
    let counted = replicate.counted.into_iter();
    let differs = counted.flat_map(|counted| counted.differences).take(20);
    view::Again {
        attempt: replicate.attempt.0,
        worker: replicate.worker.to_string(),
        kind: replicate.kind.to_string(),
        test: finite(Some(replicate.test_accuracy)),
        differs: differs
            .map(|one| format!("{}: {} instead of {}", one.field, one.other, one.accepted))
            .collect(),
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

fn outcome(result: FoldResult) -> view::OutcomeOnPage {
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
    view::OutcomeOnPage {
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
        confusion: if result.confusion.len() > MOST_CLASSES { Vec::new() } else { result.confusion },
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
