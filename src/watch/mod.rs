//! `togl watch` full screen: joins keys, pictures and the terminal. `model` decides what keys do, each view is a file, `draw`
//! puts them on a buffer, `screen` is the terminal, `look` asks the coordinator.

mod acts;
mod curves;
mod draw;
mod failures;
mod fold;
mod look;
mod model;
mod picture;
mod running;
mod screen;
mod sheet;
mod sweeps;
mod table;
mod workers;

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};

use self::look::Interest;
use self::model::{Update, WatchModel, WatchRequest};
use self::screen::Screen;
use crate::clock;
use crate::problem::Problem;
use crate::remote::{Client, CoordinatorTarget, SweepStatus};

pub use self::screen::is_there;

/// How it ended.
pub enum WatchEnd {
    /// The sweep that was to be watched has ended.
    Over(Box<SweepStatus>),
    /// Somebody left.
    Left,
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

/// At most so often is something drawn.
const FRAME: Duration = Duration::from_millis(100);

/// Shows one sweep until it has ended, or everything until somebody leaves.
pub async fn full_screen(
    target: &CoordinatorTarget,
    client: Client,
    sweep: Option<String>,
) -> Result<WatchEnd, Problem> {
    let mut model = WatchModel::new(target.address()?, target.may_steer(), sweep.clone());
    let (wants, wanted) = watch::channel(wanted(&model));
    let (sender, updates) = mpsc::channel(64);
    let mut tasks = JoinSet::new();
    tasks.spawn(look::look(target.clone(), client, wanted, sender.clone()));
    let mut show = Show {
        screen: Screen::enter()?,
        keys: screen::keys()?,
        signals: Signals::new()?,
        updates,
        sender,
        wants,
        tasks,
        target: target.clone(),
        until_over: sweep,
    };
    let ending = show.run(&mut model).await;
    drop(show); // the terminal is as before
    ending
}

fn wanted(model: &WatchModel) -> Interest {
    let fold = model.open.as_ref().map(|(fold, _)| fold.clone());
    Interest { sweep: model.sweep.clone(), view: Some(model.view), fold }
}

/// What the system says.
struct Signals {
    resized: Signal,
    terminated: Signal,
    hung_up: Signal,
    stopped: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            resized: signal(SignalKind::window_change())?,
            terminated: signal(SignalKind::terminate())?,
            hung_up: signal(SignalKind::hangup())?,
            stopped: signal(SignalKind::from_raw(signal_hook::consts::SIGTSTP))?,
        })
    }
}

struct Show {
    screen: Screen,
    keys: mpsc::Receiver<model::KeyPress>,
    signals: Signals,
    updates: mpsc::Receiver<Update>,
    sender: mpsc::Sender<Update>,
    wants: watch::Sender<Interest>,
    /// What looks, and what was asked for and is being done.
    tasks: JoinSet<Result<(), Problem>>,
    target: CoordinatorTarget,
    /// The sweep whose end is the end of this.
    until_over: Option<String>,
}

/// Why something is to be done.
enum Happened {
    Key(model::KeyPress),
    Update(Update),
    Resized,
    Stopped,
    Terminated(i32),
    Tick,
    TaskEnded(Result<Result<(), Problem>, JoinError>),
}

impl Show {
    async fn run(&mut self, model: &mut WatchModel) -> Result<WatchEnd, Problem> {
        let mut frames = tokio::time::interval(FRAME);
        frames.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_new = true;
        loop {
            match self.next(&mut frames).await {
                Happened::Tick => {
                    let now = clock::time_of_day();
                    is_new |= now != model.now;
                    model.take(Update::Now(now));
                    if std::mem::take(&mut is_new) {
                        self.screen.draw(model)?;
                    }
                    continue;
                }
                Happened::TaskEnded(ended) => ended.map_err(Problem::ours)??,
                Happened::Resized => {}
                Happened::Stopped => self.screen.suspend()?,
                Happened::Terminated(signal) => return Err(terminated(signal)),
                Happened::Update(update) => {
                    if let Some(last) = self.over(&update) {
                        return Ok(WatchEnd::Over(last));
                    }
                    model.take(update);
                }
                Happened::Key(key) => {
                    if let Some(ending) = self.pressed(model, key)? {
                        return Ok(ending);
                    }
                }
            }
            is_new = true;
        }
    }

    async fn next(&mut self, frames: &mut tokio::time::Interval) -> Happened {
        tokio::select! {
            Some(key) = self.keys.recv() => Happened::Key(key),
            Some(update) = self.updates.recv() => Happened::Update(update),
            _ = self.signals.resized.recv() => Happened::Resized,
            _ = self.signals.stopped.recv() => Happened::Stopped,
            _ = self.signals.terminated.recv() => Happened::Terminated(signal_hook::consts::SIGTERM),
            _ = self.signals.hung_up.recv() => Happened::Terminated(signal_hook::consts::SIGHUP),
            Some(ended) = self.tasks.join_next() => Happened::TaskEnded(ended),
            _ = frames.tick() => Happened::Tick,
        }
    }

    /// The last state of the sweep that was to be watched.
    fn over(&self, update: &Update) -> Option<Box<SweepStatus>> {
        let Update::Status(status, _) = update else { return None };
        (self.until_over.as_ref() == Some(&status.sweep.name) && status.sweep.ended()).then(|| status.clone())
    }

    fn pressed(&mut self, model: &mut WatchModel, key: model::KeyPress) -> Result<Option<WatchEnd>, Problem> {
        // Tests ask for a panic while the screen is taken.
        #[cfg(debug_assertions)]
        assert!(
            key != model::KeyPress::Char('!') || std::env::var_os("TOGL_CRASH").is_none(),
            "told to panic"
        );
        match model.key(key) {
            None => {}
            Some(WatchRequest::Look) => _ = self.wants.send(wanted(model)),
            Some(WatchRequest::Leave) => return Ok(Some(WatchEnd::Left)),
            Some(WatchRequest::Interrupt) => return Ok(Some(WatchEnd::Interrupted)),
            Some(WatchRequest::Suspend) => self.screen.suspend()?,
            Some(WatchRequest::Do(deed, reason)) => {
                let (target, sender) = (self.target.clone(), self.sender.clone());
                self.tasks.spawn(async move {
                    let said = look::carry_out(target, deed, reason).await;
                    _ = sender.send(Update::Said(said)).await; // whoever left does not mind
                    Ok(())
                });
            }
        }
        Ok(None)
    }
}

/// As the signal would have done, once the terminal is as before.
fn terminated(signal: i32) -> Problem {
    Screen::leave();
    match signal_hook::low_level::emulate_default_handler(signal) {
        Ok(()) => Problem::interrupted("told to stop"),
        Err(error) => Problem::interrupted(format!("told to stop: {error}")),
    }
}
