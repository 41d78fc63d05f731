//! Checkpoints that move with their folds: which of them is brought to the coordinator and when, and what is fetched before a
//! fold begins. Carries nothing itself, which the courier of `togl-agent` does, and knows no tensors. Trouble costs time and
//! never a result, so it is a warning in the log of the fold.

use std::time::Duration;

use togl_agent::courier::{Brought, Courier};
use togl_agent::tasks;
use togl_proto::checkpoint::Held;
use togl_sweeps::{Attempt, FoldKey};
use tokio::sync::oneshot;
use tokio::time::{Interval, MissedTickBehavior};

use crate::checkpoints::Checkpoints;
use crate::slot::Reporter;

/// "Each that is written" means: as often as one is written.
const LEAST_PAUSE: Duration = Duration::from_millis(20);

/// How checkpoints move to and from the coordinator.
#[derive(Clone)]
pub struct Moving {
    /// Who carries them.
    pub courier: Courier,
    /// Where they are on this machine.
    pub checkpoints: Checkpoints,
    /// How long the coordinator may go without a new one of a fold in training.
    pub every: Duration,
}

impl std::fmt::Debug for Moving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "checkpoints move every {:?}", self.every)
    }
}

impl Moving {
    /// Fetches what the coordinator holds, unless what is here is as far.
    pub async fn fetch(&self, fold: FoldKey, attempt: Attempt, held: Held, say: &(dyn Fn(String) + Sync)) {
        let here = self.checkpoints.clone();
        let own = apart(move || here.furthest(fold)).await.flatten();
        if own.is_some_and(|(epochs, _)| epochs >= held.epochs) {
            return;
        }
        let (held, bytes) = match self.courier.fetch(fold, attempt).await {
            Ok(Some(came)) => came,
            Ok(None) => return say("the checkpoint that the coordinator held is gone".to_owned()),
            Err(error) => {
                return say(format!("warning: the checkpoint of the coordinator is not fetched: {error}"));
            }
        };
        let here = self.checkpoints.clone();
        match apart(move || here.receive(fold, &bytes)).await {
            Some(Ok(())) => {
                say(format!("fetched the checkpoint of epoch {} from the coordinator", held.epochs))
            }
            Some(Err(error)) => say(format!("warning: the fetched checkpoint is not written: {error}")),
            None => {}
        }
    }

    /// Brings the furthest checkpoint that is here of a fold, and waits until it has arrived or there is no hope.
    pub async fn bring(&self, fold: FoldKey, attempt: Attempt, say: &(dyn Fn(String) + Sync)) {
        let here = self.checkpoints.clone();
        // There may be none: stopped before the first, or it could not be written, of which the fold has warned.
        let Some((epochs, bytes)) = apart(move || here.furthest(fold)).await.flatten() else { return };
        let size = bytes.len();
        match self.courier.bring(fold, attempt, epochs, bytes).await {
            Ok(Brought::Kept) => tracing::debug!(%fold, %attempt, epochs, size, "brought a checkpoint"),
            Ok(Brought::Declined(reason)) => {
                tracing::debug!(%fold, %attempt, epochs, %reason, "no use for a checkpoint")
            }
            Ok(Brought::NobodyHolds) => {}
            Err(error) => {
                tracing::warn!(%fold, %attempt, epochs, %error, "a checkpoint is not brought; training goes on");
                say(format!(
                    "warning: the checkpoint of epoch {epochs} is not brought to the coordinator: {error}"
                ));
            }
        }
    }

    /// Begins to look after the checkpoints of one attempt.
    pub fn begin(&self, reporter: &Reporter) -> Bringer {
        let mut due = tokio::time::interval(self.every.max(LEAST_PAUSE));
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        due.reset(); // the first one is due after the pause, not at once
        Bringer {
            moving: self.clone(),
            reporter: reporter.clone(),
            due,
            wanted: self.every.is_zero(),
            carrying: None,
        }
    }
}

/// Brings the checkpoints of one attempt while it is in training, one at a time.
pub struct Bringer {
    moving: Moving,
    reporter: Reporter,
    due: Interval,
    /// The next one that is written is brought.
    wanted: bool,
    /// Closed once it has arrived; dropped, it is not carried any further.
    carrying: Option<oneshot::Sender<()>>,
}

impl Bringer {
    /// Another coordinator serves: the next one that is written is brought, and what is on its way to the one before is let go.
    pub fn want_anew(&mut self) {
        self.wanted = true;
        self.carrying = None;
    }

    /// A checkpoint was written.
    pub fn saved(&mut self) {
        let is_busy = self.carrying.as_ref().is_some_and(|carrying| !carrying.is_closed());
        if !self.wanted || is_busy {
            return; // the next one is brought
        }
        self.wanted = self.moving.every.is_zero();
        let (carrying, ended) = oneshot::channel();
        self.carrying = Some(carrying);
        let (moving, reporter) = (self.moving.clone(), self.reporter.clone());
        tasks::spawn("checkpoint", async move {
            let say = |line| reporter.log(line);
            tokio::select! {
                () = moving.bring(reporter.fold, reporter.attempt, &say) => {}
                _ = ended => {} // the last one of the attempt is brought by whoever ended it, or is of no use
            }
        });
    }
}

/// Comes back when a checkpoint should be written, to be brought.
pub async fn due(bringer: &mut Option<Bringer>) {
    match bringer {
        Some(bringer) if !bringer.moving.every.is_zero() => {
            bringer.due.tick().await;
            bringer.wanted = true;
        }
        _ => std::future::pending().await, // each that is written is brought, or none
    }
}

/// Does something with files on a thread where it may take its time; nothing only if the program ends.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
