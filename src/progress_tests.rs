//! What bars look like, on a terminal that is played.

use std::sync::Arc;

use indicatif::TermLike;

use super::*;
use crate::remote::ListedSweep;

fn status(finished: u64, failed: u64) -> SweepStatus {
    let sweep = ListedSweep {
        name: "quickstart".to_owned(),
        state: "active".to_owned(),
        trials: 4,
        folds: 12,
        pending: 12 - finished - failed,
        running: 0,
        finished,
        failed,
        priority: 0,
        note: String::new(),
    };
    SweepStatus {
        sweep,
        trials_finished: 1,
        eta_seconds: 90,
        in_training: Vec::new(),
        failures: Vec::new(),
        failed_by_class: BTreeMap::new(),
        standstill: String::new(),
        race: String::new(),
    }
}

fn running(worker: &str, slot: u32) -> FoldInTraining {
    FoldInTraining {
        fold: String::new(),
        title: "GCN-3 on necklaces".to_owned(),
        attempt: 1,
        worker: worker.to_owned(),
        slot,
        epoch: 3,
        max_epochs: 10,
        validation_accuracy: None,
        scale: togl_sweeps::Scale::SHARE,
    }
}

/// A terminal as far as bars use one: what is on it, and the cursor.
#[derive(Debug, Clone)]
struct Screen(Arc<Mutex<(Vec<String>, usize)>>, usize);

impl Screen {
    fn new(width: usize) -> Self {
        Self(Arc::new(Mutex::new((vec![String::new()], 0))), width)
    }

    fn bars(&self) -> Bars {
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(self.clone()), u8::MAX);
        Bars::new(MultiProgress::with_draw_target(target))
    }

    fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap().0.clone();
        lines.iter().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
    }

    fn to_row(&self, row: impl FnOnce(usize) -> usize) -> io::Result<()> {
        let (lines, at) = &mut *self.0.lock().unwrap();
        *at = row(*at);
        lines.resize(lines.len().max(*at + 1), String::new());
        Ok(())
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        self.1.try_into().unwrap()
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.to_row(|row| row - n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.to_row(|row| row + n)
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        unreachable!("bars begin at the left")
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        unreachable!("bars begin at the left")
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)?;
        self.move_cursor_down(1)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        for letter in text.chars() {
            let is_full = |(lines, at): &(Vec<String>, usize)| lines[*at].chars().count() == self.1;
            if is_full(&self.0.lock().unwrap()) {
                self.move_cursor_down(1)?;
            }
            let (lines, at) = &mut *self.0.lock().unwrap();
            lines[*at].push(letter);
        }
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        let (lines, at) = &mut *self.0.lock().unwrap();
        lines[*at].clear();
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_log_line_stands_above_the_bars_and_leaves_them_whole() {
    let screen = Screen::new(80);
    let mut bars = screen.bars();
    let mut shown = status(5, 0);
    shown.in_training = vec![running("w1", 0)];
    bars.show(&shown);
    let whole = [
        "  trials [=====>              ] 1/4",
        "   folds [========>           ] 5/12 ETA about 2 minutes",
        "  slot 0 [======>             ] epoch 3/10 GCN-3 on necklaces",
    ];
    assert_eq!(screen.lines(), whole);
    *super::shown() = Some(bars.all.clone());
    above_bars(|| screen.write_line("WARN the disk is nearly full")).unwrap();
    *super::shown() = None;
    assert_eq!(screen.lines(), [&["WARN the disk is nearly full"], &whole[..]].concat());
}

#[test]
fn what_is_long_is_cut_and_not_wrapped() {
    let screen = Screen::new(40);
    let mut bars = screen.bars();
    let mut shown = status(5, 1);
    shown.in_training = vec![running("w1", 0)];
    bars.show(&shown);
    let cut = ["  trials [=====>              ] 1/4", "   folds [========>           ] 5/12 1 f"];
    assert_eq!(screen.lines()[..2], cut);
    bars.close();
    assert_eq!(screen.lines(), cut);
}

#[test]
fn ctrl_c_in_the_middle_of_the_bars_leaves_each_of_them_once() {
    let screen = Screen::new(80);
    let mut bars = screen.bars();
    bars.show(&status(5, 0));
    let before = screen.lines();
    screen.write_str("^C").unwrap(); // as the terminal echoes it, at the cursor
    Progress::Bars(Box::new(bars)).leave();
    assert_eq!(screen.lines(), [&before[..], &["^C".to_owned()]].concat());
}

#[test]
fn nobody_guesses_the_time_left_while_the_coordinator_is_away() {
    let mut bars = bars();
    bars.show(&status(5, 2));
    let mut progress = Progress::Bars(Box::new(bars));
    progress.trouble("the coordinator is away");
    let Progress::Bars(bars) = &progress else { unreachable!() };
    assert_eq!(bars.folds.message(), "2 failed");
    assert_eq!(bars.why.as_ref().unwrap().message(), "the coordinator is away");
}

fn bars() -> Bars {
    Bars::new(MultiProgress::with_draw_target(ProgressDrawTarget::hidden()))
}

#[test]
fn a_line_says_how_far_and_why_not_further() {
    let mut status = status(4, 1);
    assert_eq!(line(&status), "quickstart: trials 1/4, folds 4/12, 1 failed");
    assert_eq!(time_left(&status).unwrap(), "about 2 minutes");
    status.standstill = "no worker is connected".to_owned();
    assert!(line(&status).ends_with("folds 4/12, 1 failed; nothing runs: no worker is connected"));
}

#[test]
fn bars_end_where_the_work_ended() {
    let mut bars = bars();
    bars.show(&status(5, 2));
    bars.close();
    assert!(bars.folds.is_finished() && bars.trials.is_finished());
    assert_eq!((bars.folds.position(), bars.folds.length()), (5, Some(12)));
    assert_eq!((bars.trials.position(), bars.trials.length()), (1, Some(4)));
    assert_eq!(bars.folds.message(), "2 failed");
}

#[test]
fn slots_of_two_workers_are_told_apart_in_order_and_many_are_cut() {
    let mut bars = bars();
    let mut shown = status(5, 0);
    shown.in_training = vec![running("w2", 0), running("w1", 1), running("w1", 0)];
    bars.show(&shown);
    let prefixes: Vec<String> = bars.slots.values().map(ProgressBar::prefix).collect();
    assert_eq!(prefixes, ["w1 slot 0", "w1 slot 1", "w2 slot 0"]);
    shown.in_training = (0..30).map(|slot| running("w1", slot)).collect();
    bars.show(&shown);
    assert_eq!((bars.slots.len(), bars.more.as_ref().unwrap().message().as_str()), (16, "and 14 more"));
    assert_eq!(bars.slots.values().next().unwrap().prefix(), "slot 0");
    shown.in_training.clear();
    shown.standstill = "it is paused".to_owned();
    bars.show(&shown);
    assert!(bars.slots.is_empty() && bars.more.is_none());
    assert_eq!(bars.why.as_ref().unwrap().message(), "nothing runs: it is paused");
}
