//! Progress of a sweep on the terminal: bars for trials, folds and each slot's epochs, with the time left.
//! Draws on standard error; where that is no terminal, says a plain line whenever a fold is finished.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressStyle};
use togl_sweeps::visible::visible_in_line;

use crate::remote::{RunningFold, SweepStatus};

/// Shows the states of one sweep as they come.
pub enum Progress {
    /// Bars that redraw themselves.
    Bars(Box<Bars>),
    /// Lines that stay.
    Lines {
        /// Folds finished or failed when the last line was written.
        said: Option<u64>,
    },
}

impl Progress {
    /// Bars on a terminal, lines elsewhere.
    pub fn start() -> Self {
        if std::io::stderr().is_terminal() {
            Self::Bars(Box::new(Bars::new()))
        } else {
            Self::Lines { said: None }
        }
    }

    /// Shows a new state.
    pub fn show(&mut self, status: &SweepStatus) {
        match self {
            Self::Bars(bars) => bars.show(status),
            Self::Lines { said } => {
                let ended = status.sweep.finished + status.sweep.failed;
                if said.replace(ended) != Some(ended) {
                    eprintln!("{}", line(status));
                }
            }
        }
    }

    /// Leaves the terminal tidy.
    pub fn finish(self) {
        if let Self::Bars(bars) = self {
            bars.clear();
        }
    }
}

fn line(status: &SweepStatus) -> String {
    let sweep = &status.sweep;
    let failed = if sweep.failed > 0 { format!(", {} failed", sweep.failed) } else { String::new() };
    let left = time_left(status).map_or_else(String::new, |left| format!(", {left} left"));
    format!(
        "{}: trials {}/{}, folds {}/{}{failed}{left}",
        sweep.name, status.trials_finished, sweep.trials, sweep.finished, sweep.folds
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
    slots: BTreeMap<(String, u32), ProgressBar>,
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::new();
        let bar = |name: &'static str| {
            let bar = all.add(ProgressBar::new(1));
            bar.set_style(style("{prefix:>8} [{bar:30}] {pos}/{len} {msg}"));
            bar.set_prefix(name);
            bar
        };
        let (trials, folds) = (bar("trials"), bar("folds"));
        Self { all, trials, folds, slots: BTreeMap::new() }
    }

    fn show(&mut self, status: &SweepStatus) {
        let sweep = &status.sweep;
        self.trials.set_length(sweep.trials);
        self.trials.set_position(status.trials_finished);
        self.folds.set_length(sweep.folds);
        self.folds.set_position(sweep.finished);
        let failed = (sweep.failed > 0).then(|| format!("{} failed", sweep.failed));
        let left = time_left(status).map(|left| format!("ETA {left}"));
        let words: Vec<String> = [failed, left].into_iter().flatten().collect();
        self.folds.set_message(words.join(", "));
        self.show_slots(&status.in_training);
    }

    fn show_slots(&mut self, running: &[RunningFold]) {
        // Until its first epoch is reported, nobody knows on which slot a fold runs.
        for fold in running.iter().filter(|fold| fold.max_epochs > 0) {
            let bar = self.slots.entry((fold.worker.clone(), fold.slot)).or_insert_with(|| {
                let bar = self.all.add(ProgressBar::new(1));
                bar.set_style(style("{prefix:>8} [{bar:30}] epoch {pos}/{len} {msg}"));
                bar
            });
            bar.set_prefix(format!("slot {}", fold.slot));
            bar.set_length(fold.max_epochs.max(1).into());
            bar.set_position(fold.epoch.into());
            let accuracy = fold.validation_accuracy.map(|a| format!(", validation {:.1} %", 100.0 * a));
            bar.set_message(format!("{}{}", visible_in_line(&fold.title), accuracy.unwrap_or_default()));
        }
        let busy = |key: &(String, u32)| running.iter().any(|f| (&f.worker, f.slot) == (&key.0, key.1));
        let idle: Vec<_> = self.slots.keys().filter(|key| !busy(key)).cloned().collect();
        for key in idle {
            if let Some(bar) = self.slots.remove(&key) {
                bar.finish_and_clear();
            }
        }
    }

    fn clear(self) {
        self.slots.into_values().for_each(|bar| bar.finish_and_clear());
        self.trials.finish();
        self.folds.set_message("");
        self.folds.finish();
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants of this file; a wrong one falls back to the default look.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::Sweep;

    #[test]
    fn a_line_says_how_far_and_how_long() {
        let sweep = Sweep {
            name: "quickstart".to_owned(),
            state: "active".to_owned(),
            trials: 4,
            folds: 12,
            pending: 5,
            running: 2,
            finished: 4,
            failed: 1,
            priority: 0,
            note: String::new(),
        };
        let (in_training, failures) = (Vec::new(), Vec::new());
        let status = SweepStatus { sweep, trials_finished: 1, eta_seconds: 90, in_training, failures };
        assert_eq!(line(&status), "quickstart: trials 1/4, folds 4/12, 1 failed, about 2 minutes left");
    }
}
