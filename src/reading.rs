//! What people see while a command reads or waits for long: on a terminal a line on standard error that goes away again, on
//! anything else nothing. Owns that line; knows nothing of what is read.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use togl_coordinator::store::reading::Fact;

use crate::output;

/// Folds that are read before anything is shown: fewer are there in a moment.
const AT_LEAST: u64 = 20_000;

/// How many folds were read, of how many.
pub struct ReadSoFar {
    bar: Option<ProgressBar>,
    read: u64,
    of: u64,
}

impl ReadSoFar {
    /// Nothing is read yet.
    pub fn new() -> Self {
        Self { bar: None, read: 0, of: 0 }
    }

    /// So many folds may come; more than will, if not all of them have finished.
    pub fn expect(&mut self, folds: u128) {
        self.of = self.of.saturating_add(u64::try_from(folds).unwrap_or(u64::MAX));
    }

    /// Takes note of a fact that was read.
    pub fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::Result(_) | Fact::Fold(_) => {
                self.read += 1;
                if self.read >= AT_LEAST && self.read.is_multiple_of(1_000) {
                    self.show();
                }
            }
            Fact::Sweep(_) | Fact::Folds { .. } | Fact::Replicate(_) => {}
        }
    }

    fn show(&mut self) {
        if self.bar.is_none() && is_seen() {
            let bar = ProgressBar::new(self.of);
            let style = ProgressStyle::with_template("read {human_pos} of {human_len} folds");
            self.bar = Some(style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style)));
        }
        if let Some(bar) = &self.bar {
            bar.set_length(self.of.max(self.read));
            bar.set_position(self.read);
        }
    }
}

impl Drop for ReadSoFar {
    fn drop(&mut self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

/// A line that says what is waited for, until it is dropped.
pub struct Wait(Option<ProgressBar>);

impl Wait {
    /// Begins to wait.
    pub fn of(what: String) -> Self {
        let bar = is_seen().then(|| {
            let bar = ProgressBar::new_spinner().with_message(what);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self(bar)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.iter().for_each(ProgressBar::finish_and_clear);
    }
}

fn is_seen() -> bool {
    io::stderr().is_terminal() && !output::is_dumb() && !output::is_quiet()
}
