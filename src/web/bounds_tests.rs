//! No answer of the page is larger than 256 KB, however much there is to tell.

use std::collections::BTreeMap;

use togl_analysis::best::RankedTrial;
use togl_analysis::curves::{CurveGroup, CurveGroups};
use togl_analysis::{Best, FoldFrame, Plan, Table};
use togl_coordinator::store::history::Happened;
use togl_coordinator::store::{FoldState, LogPiece, ResultRow, ResultSummary, StoredFold};
use togl_proto::wire;
use togl_sweeps::result::{EpochRecord, example};
use togl_sweeps::spec::{Metric, TableSpec};
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey, Scale, SweepSpec, TrialConfig, TrialId};

use super::failed::Failed;
use super::{curves, views};
use crate::facts::{AttemptLine, FoldExplanation, at};
use crate::live::Pace;
use crate::remote::{FoldInTraining, ListedSweep, ListedWorker, SweepStatus};

const MOST: usize = 256 * 1024;

fn bytes(answer: &impl serde::Serialize) -> usize {
    let text = serde_json::to_string(answer).unwrap();
    assert!(text.len() <= MOST, "{} bytes", text.len());
    text.len()
}

fn key(at: usize) -> FoldKey {
    FoldKey { trial: TrialId::from_bytes((at as u128).to_be_bytes()), split: u32::MAX, seed: u64::MAX }
}

fn sweep(at: usize) -> ListedSweep {
    ListedSweep {
        name: format!("{at:0>60}"),
        state: "cancelled".to_owned(),
        trials: u64::MAX,
        folds: u64::MAX,
        pending: 1,
        running: 2,
        finished: 3,
        failed: 4,
        priority: i32::MIN,
        note: "x".repeat(300),
    }
}

#[test]
fn of_sweeps_and_workers_some_are_named_and_all_are_counted() {
    let worker = |at: usize| ListedWorker {
        worker: format!("{at:0>60}"),
        host: "h".repeat(60),
        state: "quarantined".to_owned(),
        slots: 256,
        devices: vec!["cuda:0".to_owned(); 256],
        running: (0..256).map(|fold| key(fold).to_string()).collect(),
        code_version: "0.1.0".to_owned(),
        allocation: String::new(),
        note: String::new(),
    };
    let sweeps = (0..1_000).map(sweep).collect();
    let seen = views::overview(sweeps, (0..2_000).map(worker).collect(), Vec::new(), &Pace::default());
    assert!(bytes(&seen) > MOST / 2);
    assert_eq!((seen.sweeps_total, seen.slots, seen.busy), (1_000, 512_000, 512_000));
    assert_eq!(seen.worker_states["quarantined"], 2_000);
    assert_eq!(seen.sweeps.last().unwrap().name, sweep(999).name, "the last ones are named");
}

#[test]
fn a_sweep_with_all_that_runs() {
    let training = FoldInTraining {
        scale: Scale::SHARE,
        fold: key(1).to_string(),
        title: "t".repeat(400),
        attempt: u32::MAX,
        worker: "w".repeat(60),
        slot: 1,
        epoch: u32::MAX,
        max_epochs: u32::MAX,
        validation_accuracy: Some(1.0 / 3.0),
    };
    let status = SweepStatus {
        sweep: sweep(1),
        trials_finished: 1,
        eta_seconds: 1,
        in_training: vec![training; 200],
        failures: Vec::new(),
        failed_by_class: BTreeMap::new(),
        standstill: "s".repeat(500),
        race: String::new(),
    };
    bytes(&views::sweep_now(status, vec!["setting".to_owned(); 60], &Scale::SHARE, [1, 2], &Pace::default()));
}

#[test]
fn a_table_of_many_rows_and_columns_is_cut_and_says_how_long_it_is() {
    let yaml = "version: 1\nname: wide\ngrid:\n  dataset: [cycles, necklaces]\n  depth: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n  \
                lr: [1.0e-4, 2.0e-4, 3.0e-4, 4.0e-4, 5.0e-4, 6.0e-4, 7.0e-4, 8.0e-4]\nsplits: [0, 1]\n";
    let spec = SweepSpec::parse(yaml).unwrap();
    let row = |trial: &togl_sweeps::spec::PlannedTrial, key: FoldKey| {
        let result = example(0.5);
        let worker = "w".parse().unwrap();
        at(trial, ResultRow { fold: key, attempt: Attempt(1), worker, trial: String::new(), result })
    };
    let rows: Vec<_> =
        spec.trials.iter().flat_map(|trial| spec.folds_of(trial.id).map(|key| row(trial, key))).collect();
    let frame = FoldFrame::from_rows(rows).unwrap();
    for columns in ["dataset", "depth", "lr"] {
        let rows = ["dataset", "depth", "lr"].into_iter().filter(|name| *name != columns);
        let block = TableSpec {
            rows: rows.map(str::to_owned).collect(),
            columns: columns.to_owned(),
            ..TableSpec::default()
        };
        let table = Table::of_block(&frame, &Plan::of_sweep(&spec), &block, None).unwrap();
        let seen = views::table(&table, 1, 320, false);
        assert_eq!(seen.total as usize, table.rows.len());
        bytes(&seen);
    }
}

#[test]
fn failures_of_a_thousand_kinds_and_long_lists() {
    let stored = |at: usize, state: FoldState| StoredFold {
        fold: key(at),
        trial: TrialConfig::default().canonical(),
        state,
        attempts: 1,
        worker: Some(format!("worker-{}", at % 500).parse().unwrap()),
        outcome: Some(ResultSummary { value: 1.0 / 3.0, seconds: 1.0 / 3.0, finished_at: None }),
    };
    let letters =
        |at: usize| -> String { (0..6).map(|n| char::from(b'a' + ((at >> (3 * n)) % 8) as u8)).collect() };
    let failed = |at: usize| {
        let message = format!("{}: {}", letters(at), "\u{1}é".repeat(2_000));
        stored(at, FoldState::Failed(Failure { class: FailureClass::Error, message }))
    };
    let mut gathered = Failed::default();
    (0..5_000).for_each(|at| gathered.add(failed(at), &BTreeMap::new()));
    let seen = gathered.view(5_000);
    assert_eq!(seen.looked_at, 5_000);
    assert!(seen.groups.iter().all(|group| group.hosts.len() <= 12));
    bytes(&seen);
    let lines: Vec<_> = (0..500).map(|at| views::fold_line(failed(at), &[])).collect();
    let kept = views::within(lines);
    assert!(!kept.is_empty());
    bytes(&kept);
}

#[test]
fn many_trials_come_in_pages() {
    let trial = |at: usize| RankedTrial {
        rank: Some(1),
        trial: key(at).trial.to_string(),
        method: "m".repeat(200),
        settings: (0..12).map(|n| (format!("setting-{n}"), "value ".repeat(6))).collect(),
        validation_mean: Some(1.0 / 3.0),
        validation_std: None,
        test_mean: Some(1.0 / 3.0),
        test_std: Some(1.0 / 3.0),
        n: 10,
        planned: 10,
    };
    let best = Best {
        scale: Scale::SHARE,
        trials: (0..5_000).map(trial).collect(),
        by: Metric::ValidationAccuracy,
        shown: Metric::TestAccuracy,
    };
    let seen = views::trials(best, 0, 1_000);
    assert!(bytes(&seen) > MOST / 2);
    assert_eq!(seen.next, Some(seen.trials.len() as u64), "the next page begins where this one was cut");
}

#[test]
fn one_fold_with_everything() {
    let fold = key(1);
    let mut result = example(0.5);
    let record = EpochRecord { epoch: 0, lr: 0.1, train: result.train, validation: result.validation };
    result.history = (0..100_000).map(|epoch| EpochRecord { epoch, ..record }).collect();
    result.confusion = vec![vec![u64::from(u32::MAX); 300]; 300];
    let worker: togl_sweeps::WorkerId = "w".parse().unwrap();
    let text = "\u{1b}[2J\u{202e}\"\\".repeat(100_000);
    let history = |at: u32| Happened {
        at: i64::MAX,
        event: "ended".to_owned(),
        attempt: Some(Attempt(at + 1)),
        worker: Some(worker.clone()),
        detail: "d".repeat(500),
    };
    let attempt = |attempt| AttemptLine { attempt, worker: "w".repeat(60), ending: "preempted".to_owned() };
    let known = views::FoldKnowledge {
        explanation: FoldExplanation {
            fold: fold.to_string(),
            reason: "r".repeat(500),
            sweeps: vec!["s".repeat(60); 100],
            attempts: (1..5_000).map(attempt).collect(),
        },
        history: (0..5_000).map(history).collect(),
        log: (1..50).map(|n| LogPiece { fold, attempt: Attempt(n), text: text.clone() }).collect(),
        result: Some(ResultRow {
            fold,
            attempt: Attempt(1),
            worker: worker.clone(),
            trial: String::new(),
            result,
        }),
        config: Some(TrialConfig::default()),
        title: "t".repeat(300),
        growing: vec![[1.0 / 3.0; 2]; 128],
        replicates: Vec::new(),
    };
    bytes(&views::fold(known));
}

#[test]
fn learning_curves_of_many_long_folds() {
    let result = example(0.5);
    let record = EpochRecord { epoch: 0, lr: 0.1, train: result.train, validation: result.validation };
    let history: Vec<_> = (0..2_000).map(|epoch| EpochRecord { epoch, ..record }).collect();
    let group = |at: usize| CurveGroup {
        scale: Scale::SHARE,
        dataset: "cycles".to_owned(),
        label: format!("GCN-{at}"),
        histories: vec![history.clone(); 20],
    };
    let groups = CurveGroups { groups: (0..10).map(group).collect(), mixed: Vec::new() };
    let point = |epoch| wire::CurvePoint { epoch, validation_loss: 0.1, validation_accuracy: 1.0 / 3.0 };
    let running = |at: usize| wire::RunningCurve {
        fold: Some(key(at).into()),
        points: (1_000_000..1_000_128).map(point).collect(),
        config: TrialConfig::default().canonical(),
    };
    let reply = wire::CurvesReply { running: (0..200).map(running).collect() };
    assert!(bytes(&curves::curves(&Scale::SHARE, groups, 200, 100_000, reply)) > MOST / 4);
}
