//! What the full-screen watch knows and what keys do to it. Pure: pictures and keys go in, wishes come out. Draws nothing, asks
//! nobody, reads no clock.

use std::time::Duration;

pub use super::picture::{Observation, RunningCurve};
use super::sheet::Sheet;
use super::{acts, curves, failures, fold, running, sweeps, table, workers};
use crate::remote::{ListedSweep, ListedWorker, SweepStatus};

/// A key that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPress {
    Char(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Left,
    Right,
    Enter,
    Escape,
    Backspace,
    CtrlC,
    CtrlZ,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Sweeps,
    Table,
    Running,
    Failures,
    Workers,
    Curves,
    History,
    Fold,
}

impl View {
    /// Those of a sweep, in the order of their digits, with a name and a short one.
    pub const TABS: [(Self, &'static str, &'static str); 6] = [
        (Self::Table, "Table", "Table"),
        (Self::Running, "Running", "Run"),
        (Self::Failures, "Failures", "Fail"),
        (Self::Workers, "Workers", "Work"),
        (Self::Curves, "Curves", "Curve"),
        (Self::History, "History", "Hist"),
    ];

    /// Those without a sweep.
    pub const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::Sweeps, "Sweeps", "Sweeps"),
        (Self::Workers, "Workers", "Workers"),
        (Self::History, "History", "History"),
    ];
}

/// What somebody may do to a sweep or a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SteeringKey {
    Pause(String),
    Resume(String),
    Retry(String),
    Cancel(String),
    Drain(String),
}

impl SteeringKey {
    /// What is asked before it is done, with what follows from it.
    pub fn question(&self) -> String {
        match self {
            Self::Pause(sweep) => format!("pause {sweep}? what runs goes on"),
            Self::Resume(sweep) => format!("go on with {sweep}?"),
            Self::Retry(sweep) => format!("try the failed folds of {sweep} again?"),
            Self::Cancel(sweep) => format!("cancel {sweep}? running folds are stopped, results are kept"),
            Self::Drain(worker) => format!("drain {worker}? it finishes what it trains and leaves"),
        }
    }
}

/// What the model cannot do itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchRequest {
    /// Something else is looked at.
    Look,
    /// Do this, for this reason.
    Do(SteeringKey, String),
    /// Let the shell have the terminal.
    Suspend,
    /// End.
    Leave,
    /// End at once, as Ctrl-C does.
    Interrupt,
}

/// Something new.
#[derive(Debug, Clone)]
pub enum Update {
    All {
        sweeps: Vec<ListedSweep>,
        workers: Vec<ListedWorker>,
        /// When, on a clock that begins anywhere.
        at: Duration,
    },
    /// A sweep, with how long it takes still, in seconds at the least and at the most.
    Status(Box<SweepStatus>, [u64; 2]),
    Table {
        sweep: String,
        lines: Vec<String>,
    },
    Acts(Vec<Vec<String>>),
    Fold(Vec<String>),
    /// The coordinator does not answer, in words.
    Away(String),
    /// Something to say.
    Said(String),
    /// What time it is.
    Now(String),
}

/// A line that is being typed at the bottom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    None,
    Filter,
    Ask(SteeringKey),
    /// Agreed to; a reason is being typed, which may stay empty.
    Why(SteeringKey, String),
    Help,
}

/// Bytes of a reason; the coordinator keeps a few more.
const REASON: usize = 400;

/// The state of the screen.
#[derive(Debug, Clone)]
pub struct WatchModel {
    pub coordinator: String,
    /// Whether the token may change anything.
    pub may_steer: bool,
    /// The sweep that is looked at; all of them if there is none.
    pub sweep: Option<String>,
    pub view: View,
    /// The fold that was opened, and where to go back to.
    pub open: Option<(String, View)>,
    picture: Observation,
    /// What is shown while new pictures are held back.
    held: Option<Box<Observation>>,
    /// The line that is chosen in the view, by its id.
    selected: Option<String>,
    pub filter: String,
    pub prompt: Prompt,
    /// Sorted by this column; as they come if none.
    pub sort: Option<usize>,
    pub said: String,
    pub away: String,
    pub now: String,
    /// Rows that fitted when it was last drawn.
    pub page: usize,
}

impl WatchModel {
    pub fn new(coordinator: String, may_steer: bool, sweep: Option<String>) -> Self {
        let view = if sweep.is_some() { View::Table } else { View::Sweeps };
        Self {
            coordinator,
            may_steer,
            sweep,
            view,
            open: None,
            picture: Observation::default(),
            held: None,
            selected: None,
            filter: String::new(),
            prompt: Prompt::None,
            sort: None,
            said: String::new(),
            away: String::new(),
            now: String::new(),
            page: 10,
        }
    }

    /// What is shown.
    pub fn picture(&self) -> &Observation {
        self.held.as_deref().unwrap_or(&self.picture)
    }

    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// The tabs that there are now.
    pub fn tabs(&self) -> &'static [(View, &'static str, &'static str)] {
        if self.sweep.is_some() { &View::TABS } else { &View::ALL }
    }

    /// Something new came. What was chosen stays chosen.
    pub fn take(&mut self, update: Update) {
        if !matches!(update, Update::Away(_) | Update::Said(_) | Update::Now(_)) {
            self.away.clear();
        }
        match update {
            Update::All { sweeps, workers, at } => {
                (self.picture.sweeps, self.picture.workers) = (sweeps, workers);
                self.picture.pace.note(at, &self.picture.sweeps);
            }
            Update::Status(status, _) if self.sweep.as_ref() != Some(&status.sweep.name) => {}
            Update::Status(status, left) => {
                self.picture.note_curves(&status);
                (self.picture.status, self.picture.left) = (Some(*status), left);
            }
            Update::Table { sweep, lines } if self.sweep.as_ref() == Some(&sweep) => {
                self.picture.table = lines
            }
            Update::Table { .. } => {} // of one that was left
            Update::Acts(acts) => self.picture.acts = acts,
            Update::Fold(lines) => self.picture.fold = lines,
            Update::Away(since) => self.away = since,
            Update::Said(words) => self.said = words,
            Update::Now(now) => self.now = now,
        }
    }

    /// The lines of the view: those that fit the filter, in the order that was chosen.
    pub fn sheet(&self) -> Sheet {
        let picture = self.picture();
        let mut sheet = match self.view {
            View::Sweeps => sweeps::sheet(picture),
            View::Table => table::sheet(picture),
            View::Running => running::sheet(picture),
            View::Failures => failures::sheet(picture),
            View::Workers => workers::sheet(picture),
            View::Curves => curves::sheet(picture),
            View::History => acts::sheet(picture),
            View::Fold => fold::sheet(picture),
        };
        sheet.choose(&self.filter, self.sort);
        sheet
    }

    /// The place of the chosen line.
    pub fn place(&self, sheet: &Sheet) -> usize {
        let chosen = self.selected.as_ref();
        chosen.and_then(|id| sheet.rows.iter().position(|row| row.id == *id)).unwrap_or(0)
    }

    /// A key was pressed.
    pub fn key(&mut self, key: KeyPress) -> Option<WatchRequest> {
        self.said.clear();
        match key {
            KeyPress::CtrlC => return Some(WatchRequest::Interrupt),
            KeyPress::CtrlZ => return Some(WatchRequest::Suspend),
            _ => {}
        }
        match std::mem::replace(&mut self.prompt, Prompt::None) {
            Prompt::None => self.plain(key),
            Prompt::Filter => self.typed(key),
            Prompt::Ask(deed) => {
                match key {
                    KeyPress::Char('y' | 'Y') => return Some(WatchRequest::Do(deed, String::new())),
                    KeyPress::Char('w' | 'W') => self.prompt = Prompt::Why(deed, String::new()),
                    _ => {}
                }
                None
            }
            Prompt::Why(deed, reason) => self.reason(key, deed, reason),
            Prompt::Help => None, // any key closes it
        }
    }

    /// A reason is typed: Enter does it, Escape does nothing.
    fn reason(&mut self, key: KeyPress, deed: SteeringKey, mut reason: String) -> Option<WatchRequest> {
        match key {
            KeyPress::Enter => return Some(WatchRequest::Do(deed, reason)),
            KeyPress::Escape => return None,
            KeyPress::Char(sign) if reason.len() < REASON => reason.push(sign),
            KeyPress::Backspace => _ = reason.pop(),
            _ => {}
        }
        self.prompt = Prompt::Why(deed, reason);
        None
    }

    fn typed(&mut self, key: KeyPress) -> Option<WatchRequest> {
        match key {
            KeyPress::Char(sign) => self.filter.push(sign),
            KeyPress::Backspace => _ = self.filter.pop(),
            KeyPress::Escape => {
                self.filter.clear();
                return None;
            }
            KeyPress::Enter => return None,
            _ => {}
        }
        self.prompt = Prompt::Filter;
        None
    }

    fn plain(&mut self, key: KeyPress) -> Option<WatchRequest> {
        match key {
            KeyPress::Char('q') => return Some(WatchRequest::Leave),
            KeyPress::Char('?') => self.prompt = Prompt::Help,
            KeyPress::Char('/') => self.prompt = Prompt::Filter,
            KeyPress::Char(' ') => self.hold(),
            KeyPress::Char('s') => self.sort_next(),
            KeyPress::Char('w') => return self.show_all(),
            KeyPress::Char(digit @ '1'..='9') => return self.tab(digit as usize - '1' as usize),
            KeyPress::Left | KeyPress::Char('h') => return self.beside(-1),
            KeyPress::Right | KeyPress::Char('l') => return self.beside(1),
            KeyPress::Up | KeyPress::Char('k') => self.step(-1),
            KeyPress::Down | KeyPress::Char('j') => self.step(1),
            KeyPress::PageUp => self.step(-(self.page as isize)),
            KeyPress::PageDown => self.step(self.page as isize),
            KeyPress::Home => self.step(isize::MIN),
            KeyPress::End => self.step(isize::MAX),
            KeyPress::Enter => return self.enter(),
            KeyPress::Escape => return self.back(),
            KeyPress::Char(sign) => self.ask(sign),
            KeyPress::Backspace | KeyPress::CtrlC | KeyPress::CtrlZ => {}
        }
        None
    }

    fn hold(&mut self) {
        self.held = match self.held.take() {
            Some(_) => None,
            None => Some(Box::new(self.picture.clone())),
        };
    }

    fn sort_next(&mut self) {
        let columns = self.sheet().heads.len();
        self.sort = match self.sort {
            None if columns > 1 => Some(0),
            Some(at) if at + 1 < columns => Some(at + 1),
            _ => None,
        };
    }

    fn turn(&mut self, view: View) -> Option<WatchRequest> {
        (self.view, self.sort, self.selected, self.open) = (view, None, None, None);
        self.filter.clear();
        Some(WatchRequest::Look)
    }

    fn tab(&mut self, at: usize) -> Option<WatchRequest> {
        let (view, ..) = self.tabs().get(at)?;
        self.turn(*view)
    }

    fn beside(&mut self, by: isize) -> Option<WatchRequest> {
        let tabs = self.tabs();
        let at = tabs.iter().position(|(view, ..)| *view == self.view)?;
        self.tab(at.checked_add_signed(by)?)
    }

    fn show_all(&mut self) -> Option<WatchRequest> {
        self.sweep = None;
        self.forget_sweep();
        self.turn(View::Sweeps)
    }

    /// What belongs to the sweep that is left.
    fn forget_sweep(&mut self) {
        let Observation { sweeps, workers, pace, .. } = std::mem::take(&mut self.picture);
        self.picture = Observation { sweeps, workers, pace, ..Observation::default() };
        self.held = None;
    }

    fn step(&mut self, by: isize) {
        let sheet = self.sheet();
        let last = sheet.rows.len().saturating_sub(1);
        let at = self.place(&sheet).saturating_add_signed(by).min(last);
        self.selected = sheet.rows.get(at).map(|row| row.id.clone());
    }

    fn chosen(&self) -> Option<String> {
        let sheet = self.sheet();
        sheet.rows.get(self.place(&sheet)).map(|row| row.id.clone())
    }

    fn enter(&mut self) -> Option<WatchRequest> {
        let chosen = self.chosen().filter(|id| !id.is_empty())?;
        match self.view {
            View::Sweeps => {
                self.forget_sweep();
                self.sweep = Some(chosen);
                self.turn(View::Table)
            }
            from @ (View::Running | View::Failures | View::Curves) => {
                self.picture.fold.clear();
                let wish = self.turn(View::Fold);
                self.open = Some((chosen, from));
                wish
            }
            View::Table | View::Workers | View::History | View::Fold => None,
        }
    }

    fn back(&mut self) -> Option<WatchRequest> {
        if !self.filter.is_empty() {
            self.filter.clear();
            return None;
        }
        match self.open.take() {
            Some((_, from)) => self.turn(from),
            None if self.sweep.is_some() => self.show_all(),
            None => None,
        }
    }

    /// A letter that changes something asks first.
    fn ask(&mut self, sign: char) {
        if !matches!(sign, 'P' | 'R' | 'T' | 'C' | 'D') {
            return;
        }
        if !self.may_steer {
            self.said = "this token may look and change nothing".to_owned();
            return;
        }
        let sweep = self.sweep.clone().or_else(|| self.chosen().filter(|_| self.view == View::Sweeps));
        let worker = self.chosen().filter(|_| self.view == View::Workers);
        let deed = match (sign, sweep) {
            ('P', Some(sweep)) => Some(SteeringKey::Pause(sweep)),
            ('R', Some(sweep)) => Some(SteeringKey::Resume(sweep)),
            ('T', Some(sweep)) => Some(SteeringKey::Retry(sweep)),
            ('C', Some(sweep)) => Some(SteeringKey::Cancel(sweep)),
            ('D', _) => worker.map(SteeringKey::Drain),
            _ => None,
        };
        match deed {
            Some(deed) => self.prompt = Prompt::Ask(deed),
            None if sign == 'D' => self.said = "choose a worker first, in the view of workers".to_owned(),
            None => self.said = "choose a sweep first".to_owned(),
        }
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
pub(in crate::watch) mod tests;
