//! Progress of a sweep on the terminal: bars for trials, folds and each slot's epochs, with the time left or the reason why
//! nothing happens. Draws on standard error; where that is no terminal, says a plain line whenever something changed. Also
//! the one way to write to standard error while bars are there, so that nothing runs into them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use togl_sweeps::visible::visible_in_line;

use crate::output;
use crate::remote::{FoldInTraining, SweepStatus};

/// Slots that get a bar of their own.
const SLOTS: usize = 16;

/// The bars that are on the terminal now.
static SHOWN: Mutex<Option<MultiProgress>> = Mutex::new(None);

fn shown() -> MutexGuard<'static, Option<MultiProgress>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes to standard error, above the bars if there are any.
fn above_bars<T>(write: impl FnOnce() -> T) -> T {
    match shown().as_ref() {
        Some(bars) => bars.suspend(write),
        None => write(),
    }
}

/// Says a line that stays.
pub fn say(text: &str) {
    above_bars(|| eprintln!("{text}"));
}

/// Standard error as logs use it.
pub struct LogLine;

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        above_bars(|| io::stderr().write_all(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Shows the states of one sweep as they come.
pub enum Progress {
    /// Bars that redraw themselves.
    Bars(Box<Bars>),
    /// Lines that stay.
    Lines {
        /// What the last line said, apart from the time left.
        said: Option<String>,
    },
}

impl Progress {
    /// Bars on a terminal that can draw them, lines elsewhere.
    pub fn start() -> Self {
        if !io::stderr().is_terminal() || output::is_dumb() || output::is_quiet() {
            return Self::Lines { said: None };
        }
        let bars = Bars::new(MultiProgress::new());
        *shown() = Some(bars.all.clone());
        Self::Bars(Box::new(bars))
    }

    /// Shows a new state.
    pub fn show(&mut self, status: &SweepStatus) {
        match self {
            Self::Bars(bars) => bars.show(status),
            Self::Lines { said } => {
                let line = line(status);
                let left = time_left(status).map_or_else(String::new, |left| format!(", {left} left"));
                if said.as_ref() != Some(&line) {
                    eprintln!("{line}{left}");
                    *said = Some(line);
                }
            }
        }
    }

    /// Says what is wrong at the moment; the last state stays.
    pub fn trouble(&mut self, text: &str) {
        match self {
            Self::Bars(bars) => {
                bars.say_of_folds(None); // nobody knows how long it takes now
                bars.explain(text);
            }
            Self::Lines { said } => {
                if said.as_deref() != Some(text) {
                    eprintln!("{text}");
                    *said = Some(text.to_owned());
                }
            }
        }
    }
}

impl Drop for Progress {
    /// Leaves the terminal tidy, with the bars where the work ended.
    fn drop(&mut self) {
        if let Self::Bars(bars) = self {
            bars.close();
            *shown() = None;
        }
    }
}

impl Progress {
    /// Leaves everything as it is. Ctrl-C has been echoed into the bars, so whoever drew them again would miss their lines.
    pub fn leave(mut self) {
        if let Self::Bars(bars) = &mut self {
            bars.all.set_draw_target(ProgressDrawTarget::hidden());
            eprint!("\n");
        }
    }
}

fn line(status: &SweepStatus) -> String {
    let sweep = &status.sweep;
    let failed = if sweep.failed > 0 { format!(", {} failed", sweep.failed) } else { String::new() };
    let why = if status.standstill.is_empty() { "" } else { "; nothing runs: " };
    format!(
        "{}: trials {}/{}, folds {}/{}{failed}{why}{}",
        sweep.name, status.trials_finished, sweep.trials, sweep.finished, sweep.folds, status.standstill
    )
}

fn time_left(status: &SweepStatus) -> Option<String> {
    let seconds = status.eta_seconds;
    (seconds > 0).then(|| format!("about {}", HumanDuration(Duration::from_secs(seconds))))
}

/// The bars of one sweep.
pub struct Bars {
    all: MultiProgress,
    trials: ProgressBar,
    folds: ProgressBar,
    failed: u64,
    /// Why nothing happens, while nothing does.
    why: Option<ProgressBar>,
    slots: BTreeMap<(String, u32), ProgressBar>,
    /// How many slots have no bar, if any.
    more: Option<ProgressBar>,
}

impl Bars {
    fn new(all: MultiProgress) -> Self {
        let bar = |name: &'static str| {
            let bar = all.add(ProgressBar::new(1));
            bar.set_style(style("{prefix:>8} [{bar:20}] {pos}/{len} {wide_msg}"));
            bar.set_prefix(name);
            bar
        };
        let (trials, folds) = (bar("trials"), bar("folds"));
        Self { all, trials, folds, failed: 0, why: None, slots: BTreeMap::new(), more: None }
    }

    fn show(&mut self, status: &SweepStatus) {
        let sweep = &status.sweep;
        self.trials.set_length(sweep.trials);
        self.trials.set_position(status.trials_finished);
        self.folds.set_length(sweep.folds);
        self.folds.set_position(sweep.finished);
        self.failed = sweep.failed;
        self.say_of_folds(time_left(status).map(|left| format!("ETA {left}")));
        self.explain(&match status.standstill.as_str() {
            "" => String::new(),
            why => format!("nothing runs: {why}"),
        });
        self.show_slots(&status.in_training);
    }

    fn say_of_folds(&self, left: Option<String>) {
        let failed = (self.failed > 0).then(|| format!("{} failed", self.failed));
        self.folds.set_message([failed, left].into_iter().flatten().collect::<Vec<_>>().join(", "));
    }

    /// A line below the bars of the sweep; an empty one is none.
    fn explain(&mut self, text: &str) {
        note(&mut self.why, text, || self.all.insert_after(&self.folds, ProgressBar::new(1)));
    }

    fn show_slots(&mut self, running: &[FoldInTraining]) {
        let workers: BTreeSet<&str> = running.iter().map(|fold| fold.worker.as_str()).collect();
        // Until its first epoch is reported, nobody knows on which slot a fold runs.
        let mut known: Vec<&FoldInTraining> = running.iter().filter(|fold| fold.max_epochs > 0).collect();
        known.sort_by_key(|fold| (&fold.worker, fold.slot));
        let more = known.len().saturating_sub(SLOTS);
        known.truncate(SLOTS);
        let busy: BTreeSet<_> = known.iter().map(|fold| (fold.worker.clone(), fold.slot)).collect();
        self.slots.retain(|key, bar| {
            let stays = busy.contains(key);
            if !stays {
                bar.finish_and_clear();
            }
            stays
        });
        for fold in known {
            let bar = self.slot(fold);
            let slot = format!("slot {}", fold.slot);
            bar.set_prefix(if workers.len() > 1 { format!("{} {slot}", fold.worker) } else { slot });
            bar.set_length(fold.max_epochs.max(1).into());
            bar.set_position(fold.epoch.into());
            // The title may be cut.
            let accuracy =
                fold.validation_accuracy.map(|value| format!("validation {}, ", fold.scale.show(value)));
            bar.set_message(accuracy.unwrap_or_default() + &visible_in_line(&fold.title));
        }
        let text = if more > 0 { format!("and {more} more") } else { String::new() };
        note(&mut self.more, &text, || self.all.add(ProgressBar::new(1)));
    }

    /// The bar of a slot, at its place among those of the others.
    fn slot(&mut self, fold: &FoldInTraining) -> ProgressBar {
        let key = (fold.worker.clone(), fold.slot);
        if let Some(bar) = self.slots.get(&key) {
            return bar.clone();
        }
        let before = self.slots.range(..&key).next_back().map(|(_, bar)| bar);
        let before = before.or(self.why.as_ref()).unwrap_or(&self.folds);
        let bar = self.all.insert_after(before, ProgressBar::new(1));
        bar.set_style(style("{prefix:>8} [{bar:20}] epoch {pos}/{len} {wide_msg}"));
        self.slots.insert(key, bar.clone());
        bar
    }

    /// Takes away what is over. The bars of the sweep stay where the work ended.
    fn close(&mut self) {
        self.show_slots(&[]);
        self.explain("");
        self.trials.abandon();
        self.say_of_folds(None);
        self.folds.abandon();
    }
}

/// Shows a line of text among the bars, or takes it away if it is empty.
fn note(line: &mut Option<ProgressBar>, text: &str, make: impl FnOnce() -> ProgressBar) {
    if text.is_empty() {
        line.take().into_iter().for_each(|bar| bar.finish_and_clear());
        return;
    }
    let bar = line.get_or_insert_with(|| {
        let bar = make();
        bar.set_style(style("{msg}"));
        bar
    });
    bar.set_message(text.to_owned());
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants of this file; a wrong one falls back to the default look.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
