//! What keys do, told as stories; no terminal.

use super::*;
use crate::remote::{FoldGivenUp, FoldInTraining};

pub(in crate::watch) fn sweep(name: &str, finished: u64) -> ListedSweep {
    ListedSweep {
        name: name.to_owned(),
        state: "active".to_owned(),
        trials: 1_000,
        folds: 10_000,
        pending: 10_000 - finished - 52,
        running: 38,
        finished,
        failed: 14,
        priority: 0,
        note: String::new(),
    }
}

pub(in crate::watch) fn worker(name: &str, state: &str) -> ListedWorker {
    ListedWorker {
        worker: name.to_owned(),
        host: format!("{name}.example"),
        state: state.to_owned(),
        slots: 8,
        devices: vec!["cuda:0".to_owned(); 8],
        running: vec!["0/0/0".to_owned(); 3],
        code_version: "0.1.0".to_owned(),
        allocation: String::new(),
        note: String::new(),
    }
}

pub(in crate::watch) fn training(fold: &str, epoch: u32, accuracy: f64) -> FoldInTraining {
    FoldInTraining {
        fold: fold.to_owned(),
        title: format!("GCN-3-TOGL-1 on ZINC, split {fold}"),
        attempt: 1,
        worker: "gpu-3".to_owned(),
        slot: 2,
        epoch,
        max_epochs: 100,
        validation_accuracy: Some(accuracy),
        scale: togl_sweeps::Scale::SHARE,
    }
}

pub(in crate::watch) fn status(in_training: Vec<FoldInTraining>) -> SweepStatus {
    let failure = |fold: &str, class: &str, message: &str| FoldGivenUp {
        fold: fold.to_owned(),
        title: "GIN-4 on ZINC, split 3, seed 0".to_owned(),
        class: class.to_owned(),
        message: message.to_owned(),
        host: "gpu-3".to_owned(),
    };
    SweepStatus {
        sweep: sweep("zinc-depth", 6_120),
        trials_finished: 480,
        eta_seconds: 7_830,
        in_training,
        failures: vec![
            failure("a/0/0", "not-finite", "loss is not finite"),
            failure("b/0/0", "out-of-memory", "CUDA out of memory \u{1b}[2J"),
        ],
        failed_by_class: [("not-finite".to_owned(), 5), ("out-of-memory".to_owned(), 9)].into(),
        standstill: String::new(),
        race: String::new(),
    }
}

/// Two sweeps and two workers, all of them on the screen.
pub(in crate::watch) fn overview() -> WatchModel {
    let mut model = WatchModel::new("gpu-head:7447".to_owned(), true, None);
    model.take(Update::All {
        sweeps: vec![sweep("zinc-depth", 6_120), sweep("mutag", 100)],
        workers: vec![worker("gpu-1", "connected"), worker("gpu-3", "draining")],
        at: Duration::ZERO,
    });
    model.take(Update::Now("12:04:31 UTC".to_owned()));
    model
}

/// The same in a sweep that was opened.
pub(in crate::watch) fn opened() -> WatchModel {
    let mut model = overview();
    assert_eq!(model.key(KeyPress::Enter), Some(WatchRequest::Look));
    model.take(Update::Status(
        Box::new(status(vec![training("c/0/0", 7, 0.71), training("d/0/0", 9, 0.64)])),
        [7_800, 9_600],
    ));
    model
}

fn ids(model: &WatchModel) -> Vec<String> {
    model.sheet().rows.into_iter().map(|row| row.id).collect()
}

fn chosen(model: &WatchModel) -> String {
    let sheet = model.sheet();
    sheet.rows[model.place(&sheet)].id.clone()
}

#[test]
fn enter_opens_a_sweep_then_a_fold_and_escape_goes_back_step_by_step() {
    let mut model = overview();
    model.key(KeyPress::Down);
    assert_eq!(chosen(&model), "mutag");
    assert_eq!(model.key(KeyPress::Enter), Some(WatchRequest::Look));
    assert_eq!((model.sweep.as_deref(), model.view), (Some("mutag"), View::Table));
    let mut other = status(vec![training("d/0/0", 1, 0.5)]);
    model.take(Update::Status(Box::new(other.clone()), [7_800, 9_600]));
    assert!(model.picture().status.is_none(), "it is of a sweep that nobody looks at");
    other.sweep.name = "mutag".to_owned();
    other.in_training[0].fold = "c/0/0".to_owned();
    model.take(Update::Status(Box::new(other), [7_800, 9_600]));
    model.key(KeyPress::Char('2'));
    assert_eq!(model.key(KeyPress::Enter), Some(WatchRequest::Look));
    assert_eq!(model.open, Some(("c/0/0".to_owned(), View::Running)));
    model.key(KeyPress::Escape);
    assert_eq!((model.view, model.open.is_none()), (View::Running, true));
    model.key(KeyPress::Escape);
    assert_eq!((model.view, model.sweep.is_none()), (View::Sweeps, true));
    assert_eq!(model.key(KeyPress::Escape), None, "there is nothing further back");
    assert_eq!(model.key(KeyPress::Char('q')), Some(WatchRequest::Leave));
}

#[test]
fn what_is_chosen_stays_chosen_when_lines_come_and_go() {
    let mut model = overview();
    model.key(KeyPress::End);
    assert_eq!(chosen(&model), "mutag");
    model.take(Update::All {
        sweeps: vec![sweep("a", 1), sweep("mutag", 2), sweep("z", 3)],
        workers: Vec::new(),
        at: Duration::ZERO,
    });
    assert_eq!(chosen(&model), "mutag");
    model.take(Update::All { sweeps: vec![sweep("a", 1)], workers: Vec::new(), at: Duration::ZERO });
    assert_eq!(chosen(&model), "a", "it is gone");
    model.take(Update::All { sweeps: Vec::new(), workers: Vec::new(), at: Duration::ZERO });
    for key in
        [KeyPress::Up, KeyPress::Down, KeyPress::PageDown, KeyPress::Home, KeyPress::End, KeyPress::Enter]
    {
        assert_eq!(model.key(key), None, "nothing is there");
    }
}

#[test]
fn a_filter_narrows_while_it_is_typed_and_escape_takes_it_away() {
    let mut model = overview();
    model.key(KeyPress::Char('/'));
    for sign in "mutq".chars() {
        model.key(KeyPress::Char(sign));
    }
    assert_eq!((ids(&model).len(), model.key(KeyPress::Backspace)), (0, None));
    assert_eq!(ids(&model), ["mutag"], "and q was a letter");
    model.key(KeyPress::Enter);
    assert_eq!((model.prompt.clone(), ids(&model).len()), (Prompt::None, 1));
    model.key(KeyPress::Escape);
    assert_eq!(ids(&model).len(), 2);
}

#[test]
fn space_holds_the_picture_and_later_ones_are_seen_when_it_goes_on() {
    let mut model = overview();
    model.key(KeyPress::Char(' '));
    model.take(Update::All { sweeps: vec![sweep("new", 1)], workers: Vec::new(), at: Duration::ZERO });
    assert_eq!((ids(&model).len(), model.is_held()), (2, true));
    model.key(KeyPress::Char(' '));
    assert_eq!(ids(&model), ["new"]);
}

#[test]
fn what_changes_something_asks_first_and_every_key_but_y_means_no() {
    let mut model = opened();
    for (key, deed) in [
        ('P', SteeringKey::Pause("zinc-depth".to_owned())),
        ('R', SteeringKey::Resume("zinc-depth".to_owned())),
        ('T', SteeringKey::Retry("zinc-depth".to_owned())),
        ('C', SteeringKey::Cancel("zinc-depth".to_owned())),
    ] {
        for no in [
            KeyPress::Enter,
            KeyPress::Escape,
            KeyPress::Char('n'),
            KeyPress::Char(' '),
            KeyPress::Char('q'),
            KeyPress::Char(key),
        ] {
            assert_eq!(model.key(KeyPress::Char(key)), None);
            assert_eq!(model.prompt, Prompt::Ask(deed.clone()));
            assert_eq!((model.key(no), model.prompt.clone()), (None, Prompt::None), "{no:?}");
        }
        model.key(KeyPress::Char(key));
        assert_eq!(model.key(KeyPress::Char('y')), Some(WatchRequest::Do(deed, String::new())));
    }
    model.key(KeyPress::Char('D'));
    assert!(model.said.contains("choose a worker"), "{}", model.said);
    model.key(KeyPress::Char('4'));
    model.key(KeyPress::Down);
    model.key(KeyPress::Char('D'));
    assert_eq!(
        model.key(KeyPress::Char('y')),
        Some(WatchRequest::Do(SteeringKey::Drain("gpu-3".to_owned()), String::new()))
    );
}

#[test]
fn who_may_only_look_is_told_so_and_asked_nothing() {
    let mut model = WatchModel { may_steer: false, ..opened() };
    for key in "PRTCD".chars() {
        assert_eq!(model.key(KeyPress::Char(key)), None);
        assert_eq!(model.prompt, Prompt::None);
        assert!(model.said.contains("change nothing"));
    }
}

#[test]
fn ctrl_c_and_ctrl_z_work_whatever_is_asked() {
    let mut model = opened();
    for prompt in ['/', 'C', '?'] {
        model.key(KeyPress::Char(prompt));
        assert_eq!(model.key(KeyPress::CtrlZ), Some(WatchRequest::Suspend));
        assert_eq!(model.key(KeyPress::CtrlC), Some(WatchRequest::Interrupt));
    }
}

#[test]
fn curves_are_kept_of_what_runs_begin_anew_with_an_attempt_and_never_grow_without_end() {
    let mut model = opened();
    for epoch in 10..5_000 {
        model.take(Update::Status(Box::new(status(vec![training("c/0/0", epoch, 0.5)])), [7_800, 9_600]));
    }
    let curves = &model.picture().curves;
    assert_eq!(curves.keys().collect::<Vec<_>>(), ["c/0/0"]);
    assert!((32..=128).contains(&curves["c/0/0"].points.len()), "{}", curves["c/0/0"].points.len());
    assert_eq!(curves["c/0/0"].points.last(), Some(&(4_999, 0.5)));
    model.take(Update::Status(Box::new(status(vec![training("c/0/0", 1, 0.25)])), [7_800, 9_600]));
    assert_eq!(model.picture().curves["c/0/0"].points, [(1, 0.25)]);
}

#[test]
fn failures_come_by_class_the_commonest_first() {
    let mut model = opened();
    model.key(KeyPress::Char('3'));
    let sheet = model.sheet();
    let classes: Vec<_> = sheet.rows.iter().map(|row| row.cells[0].text.as_str()).collect();
    assert_eq!(
        classes,
        [
            "out-of-memory",
            "not-finite",
            "2 of 14 failed folds are shown; `togl folds zinc-depth --in failed` lists them all"
        ]
    );
}

#[test]
fn a_coordinator_that_is_away_leaves_the_picture_and_is_forgotten_when_it_is_back() {
    let mut model = opened();
    model.take(Update::Away("away since 12:00:00 UTC".to_owned()));
    assert_eq!((model.away.is_empty(), model.picture().status.is_some()), (false, true));
    model.take(Update::Now("12:00:01 UTC".to_owned()));
    assert!(!model.away.is_empty(), "a clock is no answer");
    model.take(Update::Acts(Vec::new()));
    assert!(model.away.is_empty());
}

#[test]
fn failures_that_differ_in_numbers_only_are_one_line_with_their_hosts() {
    let mut model = opened();
    let mut seen = status(Vec::new());
    let failure = |at: usize| FoldGivenUp {
        fold: format!("{at}/0/0"),
        message: format!("CUDA out of memory: {at} MiB"),
        host: format!("gpu-{}", at % 3),
        ..status(Vec::new()).failures[1].clone()
    };
    seen.failures = (0..9).map(failure).collect();
    model.take(Update::Status(Box::new(seen), [0, 0]));
    model.key(KeyPress::Char('3'));
    let row = &model.sheet().rows[0];
    let cells: Vec<_> = row.cells.iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(cells[..5], ["out-of-memory", "9", "9", "gpu-0 3, gpu-1 3, +1", "CUDA out of memory: # MiB"]);
    model.key(KeyPress::Enter);
    assert_eq!(model.open, Some(("0/0/0".to_owned(), View::Failures)), "Enter opens an example");
}

#[test]
fn a_reason_can_be_given_and_escape_still_means_no() {
    let mut model = opened();
    let typed = |model: &mut WatchModel, text: &str| {
        for sign in text.chars() {
            assert_eq!(model.key(KeyPress::Char(sign)), None);
        }
    };
    model.key(KeyPress::Char('P'));
    assert_eq!(model.key(KeyPress::Char('w')), None);
    typed(&mut model, "a new  fan, quoted");
    model.key(KeyPress::Backspace);
    let deed = SteeringKey::Pause("zinc-depth".to_owned());
    assert_eq!(model.key(KeyPress::Enter), Some(WatchRequest::Do(deed, "a new  fan, quote".to_owned())));
    assert_eq!(model.prompt, Prompt::None);
    model.key(KeyPress::Char('P'));
    model.key(KeyPress::Char('w'));
    typed(&mut model, &"x".repeat(2 * REASON));
    assert!(matches!(&model.prompt, Prompt::Why(_, reason) if reason.len() == REASON));
    assert_eq!((model.key(KeyPress::Escape), model.prompt.clone()), (None, Prompt::None));
}

#[test]
fn how_fast_a_sweep_gets_on_is_known_after_a_minute() {
    let mut model = overview();
    for second in 1..=120 {
        let sweeps = vec![sweep("zinc-depth", 6_120 + second)];
        model.take(Update::All { sweeps, workers: Vec::new(), at: Duration::from_secs(second) });
    }
    assert!((3_500..=3_700).contains(&model.picture().pace.an_hour("zinc-depth").unwrap()));
    model.key(KeyPress::Enter);
    assert!(model.picture().pace.an_hour("zinc-depth").is_some(), "also after the sweep was opened");
}
