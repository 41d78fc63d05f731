//! The decision core of the coordinator: who trains which fold, what counts as its result, when a failure is
//! final. A synchronous state machine: events and the time go in, facts to store and a reply come out.
//!
//! It owns no clock, no file, no thread and no socket, and nothing that a peer sent can make it panic. The
//! driver of the coordinator is its only caller; it stores the facts of an [`Outcome`] before it lets anybody
//! hear the reply.
//!
//! Where to look: [`Event`] and [`Reply`] for the conversation, [`Change`] for what is stored, [`Snapshot`]
//! for what is started from. Each event family is decided in the file of its name: `submit`, `adopt`, `lease`,
//! `report`, `worker`, `drain`, `data`, `restore`. `steered` is who asked for something. `verdict` says when a failure is final, `fit` which slot can train
//! what, `host` which hosts are kept out, `early_warning` when a sweep pauses itself, `race` which trials a sweep stops. `state` (with `fold`, `queue` and `standing`)
//! holds the state and the one function that changes a fold's state; `views`, `follow`, `explain`, `standstill` and
//! `demand` let people look.

mod adopt;
mod change;
mod checkpoint;
mod data;
mod demand;
mod drain;
mod early_warning;
mod event;
mod explain;
mod fit;
mod fold;
mod follow;
mod host;
mod invariants;
mod lease;
mod limits;
mod place;
mod queue;
mod race;
mod reply;
mod report;
mod restore;
mod standing;
mod standstill;
mod state;
mod steered;
mod submit;
mod verdict;
mod views;
mod words;
mod worker;

pub use adopt::{Adoption, AdoptionCounts, AllUnadoptable, FromElsewhere, Unadoptable};
pub use change::{
    Change, DataChange, FleetChange, FoldChange, SavedAttempt, SavedData, SavedFold, SavedState, Snapshot,
    SweepChange, TrialChange,
};
pub use checkpoint::Use;
pub use data::Dispute;
pub use demand::{Demand, FoldShape};
pub use event::{Event, Part, Submission, WorkerInfo};
pub use explain::{Explanation, Reason};
pub use follow::Followed;
pub use invariants::BrokenInvariant;
pub use limits::{Limits, Timestamp};
pub use race::TrialStop;
pub use reply::{
    Abandon, FailureAnswer, Joined, Lease, Order, Outcome, Refusal, Rejection, Reply, ResultAnswer, Submitted,
};
pub use standstill::Standstill;
pub use state::Scheduler;
pub use steered::{About, Act, By, Steered};
pub use submit::Compared;
pub use views::{
    Connection, Counts, FailedFold, FoldState, FoldView, RunningFold, SweepDetail, SweepView, WorkerView,
};
pub use words::{Digest, Ending, SweepSaved, SweepState, UnknownState};

impl Scheduler {
    /// Decides about one event. A [`Rejection`] changed nothing. `now` must not run backwards.
    pub fn handle(&mut self, now: Timestamp, event: Event) -> Result<Outcome, Rejection> {
        let mut changes = Vec::new();
        self.notice_standstill(now);
        let reply = match event {
            Event::Submit(submission) => self.submit(now, *submission, &mut changes)?,
            Event::Gather(part) => self.gather(*part, &mut changes)?,
            Event::Cancel { sweep } => self.give_up(now, &sweep, SweepState::Cancelled, &mut changes)?,
            Event::Archive { sweep } => self.give_up(now, &sweep, SweepState::Archived, &mut changes)?,
            Event::Pause { sweep } => self.pause(&sweep, &mut changes)?,
            Event::Resume { sweep } => self.resume(&sweep, &mut changes)?,
            Event::Prioritise { sweep, priority } => self.prioritise(&sweep, priority, &mut changes)?,
            Event::SettleData { data, digest } => self.settle_data(&data, &digest, &mut changes)?,
            Event::Retry { sweep } => self.retry(&sweep, &mut changes)?,
            Event::Adopt(adoption) => self.adopt(*adoption, &mut changes)?,
            Event::WorkerJoined { worker, info, running } => {
                self.worker_joined(now, &worker, info, &running, &mut changes)?
            }
            Event::WorkerDisconnected { worker, session } => self.worker_disconnected(now, &worker, session),
            Event::WorkerLeft { worker, session } => self.worker_left(now, &worker, session, &mut changes),
            Event::Drain { worker } => self.drain(&worker, &mut changes)?,
            Event::Undrain { worker } => self.undrain(&worker, &mut changes)?,
            Event::LeasesAsked { worker, count } => self.leases_asked(now, &worker, count, &mut changes)?,
            Event::Renewed { worker, running } => self.renewed(now, &worker, &running, &mut changes)?,
            Event::ResultReported { worker, fold, attempt, result } => {
                self.result_reported(now, worker, fold, attempt, result, &mut changes)
            }
            Event::FailureReported { worker, fold, attempt, failure } => {
                self.failure_reported(now, worker, fold, attempt, &failure, &mut changes)
            }
            Event::Tick => self.tick(now, &mut changes),
        };
        self.settle_races(now, &mut changes);
        Ok(Outcome { changes, reply })
    }
}
