//! The handle: how everybody else talks to the driver. Cheap to clone; hides the channels. Calls answer only
//! after what they led to is stored, and looks see only what is stored.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use togl_scheduler::{
    Adoption, AdoptionCounts, BrokenInvariant, By, Compared, Counts, Demand, Dispute, Event, Explanation,
    Followed, Part, Rejection, Reply, Scheduler, Submission, Submitted, SweepDetail, SweepView, Timestamp,
    Use, WorkerView,
};
use togl_sweeps::{Attempt, FoldKey, SweepName, TrialId, WorkerId};
use tokio::sync::{mpsc, oneshot, watch};

use super::looks::Look;
use crate::liveness::Liveness;
use crate::reads::Reads;
use crate::store::{LogPiece, Readers, StoreError};

/// Folds of a submission that are taken in one go: a tenth of a second's worth.
const PART: usize = 5_000;

/// What the driver can be sent.
pub(super) enum Mail {
    /// Events to decide about, together.
    Call {
        events: Vec<Event>,
        by: Option<By>,
        reply: oneshot::Sender<Result<Vec<Result<Reply, Rejection>>, CallError>>,
    },
    /// Output of a trainer.
    Log { worker: WorkerId, piece: LogPiece },
    /// Finish what is in hand and end.
    Stop(oneshot::Sender<()>),
}

/// Why a call has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// The event cannot be; it changed nothing.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The store failed. Whatever was asked may be asked again once the coordinator has restarted.
    #[error(transparent)]
    Store(Arc<StoreError>),
    /// Others read, and took too long.
    #[error("too many people read the store at once; try again in a moment")]
    TooManyReads,
    /// The driver has ended.
    #[error("the coordinator is stopping; try again in a moment")]
    Stopped,
}

impl From<StoreError> for CallError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

/// A way to talk to the driver.
#[derive(Clone)]
pub struct Handle {
    mail: mpsc::Sender<Mail>,
    looks: mpsc::Sender<Look>,
    changes: watch::Receiver<u64>,
    supply: watch::Receiver<u64>,
    reads: Reads,
    incarnation: u64,
    liveness: Arc<Liveness>,
    /// Held while a large sweep comes in parts.
    submitting: Arc<tokio::sync::Mutex<()>>,
}

impl Handle {
    pub(super) fn new(
        (mail, looks): (mpsc::Sender<Mail>, mpsc::Sender<Look>),
        changes: watch::Receiver<u64>,
        supply: watch::Receiver<u64>,
        readers: Arc<dyn Readers>,
        incarnation: u64,
        liveness: Arc<Liveness>,
    ) -> Self {
        Self {
            mail,
            looks,
            changes,
            supply,
            reads: Reads::new(readers),
            incarnation,
            liveness,
            submitting: Arc::default(),
        }
    }

    /// Tells the scheduler about one event. When it returns, what it led to is stored.
    pub async fn call(&self, event: Event) -> Result<Reply, CallError> {
        let answer = self.call_all(vec![event]).await?.pop();
        Ok(answer.ok_or(CallError::Stopped)??)
    }

    /// The same for somebody who steers; if it changes something, that it was he is stored with it.
    pub async fn steer(&self, event: Event, by: By) -> Result<Reply, CallError> {
        let answer = self.steer_all(vec![event], by).await?.pop();
        Ok(answer.ok_or(CallError::Stopped)??)
    }

    /// Submits a sweep. A large one is taken in parts, so that others are heard in between.
    pub async fn submit(&self, mut submission: Submission, by: By) -> Result<Reply, CallError> {
        if submission.folds.len() <= PART {
            return self.steer(Event::Submit(Box::new(submission)), by).await;
        }
        let _one_at_a_time = self.submitting.lock().await;
        let folds = std::mem::take(&mut submission.folds);
        let mut trials: HashMap<TrialId, String> =
            std::mem::take(&mut submission.trials).into_iter().collect();
        for folds_of_part in folds.chunks(PART) {
            let mut settings = Vec::new();
            for fold in folds_of_part {
                settings.extend(trials.remove_entry(&fold.trial));
            }
            let part = Part {
                sweep: submission.name.clone(),
                from: submission.gathered,
                all: folds.len() as u64,
                trials: settings,
                folds: folds_of_part.to_vec(),
            };
            let reply = self.call(Event::Gather(Box::new(part))).await?;
            if let Reply::Gathered { folds } = reply {
                submission.gathered = folds;
            }
        }
        self.steer(Event::Submit(Box::new(submission)), by).await
    }

    /// Tells the scheduler about several events, in order, in one transaction. One answer for each.
    pub async fn call_all(&self, events: Vec<Event>) -> Result<Vec<Result<Reply, Rejection>>, CallError> {
        self.tell(events, None).await
    }

    /// The same for somebody who steers.
    pub async fn steer_all(
        &self,
        events: Vec<Event>,
        by: By,
    ) -> Result<Vec<Result<Reply, Rejection>>, CallError> {
        self.tell(events, Some(by)).await
    }

    async fn tell(
        &self,
        events: Vec<Event>,
        by: Option<By>,
    ) -> Result<Vec<Result<Reply, Rejection>>, CallError> {
        let (reply, answer) = oneshot::channel();
        self.send(Mail::Call { events, by, reply }).await?;
        answer.await.map_err(|_| CallError::Stopped)?
    }

    /// Adds output of a trainer. Not waited for, and dropped if the worker never had the attempt.
    pub async fn append_log(
        &self,
        worker: WorkerId,
        fold: FoldKey,
        attempt: Attempt,
        text: String,
    ) -> Result<(), CallError> {
        self.send(Mail::Log { worker, piece: LogPiece { fold, attempt, text } }).await
    }

    /// Changes whenever something that can be seen has changed and is stored.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Changes whenever there may be something new to lease: who asked in vain should ask again.
    pub fn supply(&self) -> watch::Receiver<u64> {
        self.supply.clone()
    }

    /// The number of the store; reports for another one do not belong here.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Whether the coordinator can be relied on.
    pub fn liveness(&self) -> &Arc<Liveness> {
        &self.liveness
    }

    /// All sweeps but the archived ones, in the order of their first submission.
    pub async fn sweeps(&self) -> Result<Vec<SweepView>, CallError> {
        self.look(|scheduler, _| scheduler.sweeps()).await
    }

    /// The archived sweeps, in the order of their first submission.
    pub async fn archived(&self) -> Result<Vec<SweepView>, CallError> {
        self.look(|scheduler, _| scheduler.archived()).await
    }

    /// Data sets about which results disagree.
    pub async fn disputes(&self) -> Result<Vec<Dispute>, CallError> {
        self.look(|scheduler, _| scheduler.disputes()).await
    }

    /// Checks that that all parts of the scheduler's state agree with each other. Slow: for tests and for finding faults.
    pub async fn check_invariants(&self) -> Result<Result<(), BrokenInvariant>, CallError> {
        self.look(|scheduler, _| scheduler.check_invariants()).await
    }

    /// Folds of all sweeps by state; each fold counts once.
    pub async fn totals(&self) -> Result<Counts, CallError> {
        self.look(|scheduler, _| scheduler.totals()).await
    }

    /// What a submission would change; none if there is no sweep of its name yet. Taken in parts, so that others are heard in
    /// between; if the sweep gets other folds meanwhile, it is looked at again.
    pub async fn preview(&self, submission: Submission) -> Result<Option<Submitted>, CallError> {
        let Submission { name, folds, .. } = submission;
        let distinct = tokio::task::spawn_blocking(move || {
            let folds: HashSet<FoldKey> = folds.into_iter().collect();
            let trials = folds.iter().map(|fold| fold.trial).collect::<HashSet<_>>().len() as u64;
            (folds.into_iter().collect::<Vec<_>>(), trials)
        });
        let (folds, trials) = distinct.await.map_err(|_| CallError::Stopped)?;
        let mut compared: Option<Compared> = None;
        let mut parts = folds.chunks(PART);
        loop {
            let (name, part) = (name.clone(), parts.next().unwrap_or_default().to_vec());
            let Some(next) = self.look(move |scheduler, _| scheduler.compare(&name, &part)).await? else {
                return Ok(None);
            };
            let sum = compared.map_or(Some(next), |before| before.and(next));
            if sum.is_none() {
                parts = folds.chunks(PART); // from the beginning
            }
            compared = sum;
            if let Some(Compared { of, has, finished: already_done, .. }) =
                compared.filter(|_| parts.len() == 0)
            {
                let folds = folds.len() as u64;
                let (added, removed) = (folds.saturating_sub(has), of.saturating_sub(has));
                return Ok(Some(Submitted { trials, folds, already_done, added, removed, failed: 0 }));
            }
        }
    }

    /// What adopting results from elsewhere would do.
    pub async fn check_adoption(&self, adoption: Adoption) -> Result<AdoptionCounts, CallError> {
        Ok(self.look(move |scheduler, _| scheduler.check_adoption(&adoption)).await??)
    }

    /// One sweep in one line; none if there is none of that name.
    pub async fn sweep(&self, name: SweepName) -> Result<Option<SweepView>, CallError> {
        self.look(move |scheduler, _| scheduler.sweep(&name)).await
    }

    /// One sweep with what runs and what failed, in part.
    pub async fn sweep_detail(&self, name: SweepName) -> Result<Option<SweepDetail>, CallError> {
        self.look(move |scheduler, now| scheduler.sweep_detail(now, &name)).await
    }

    /// What changed in a sweep after `number`, at most `limit` folds; none if there is none of that name.
    pub async fn follow(
        &self,
        name: SweepName,
        number: Option<u64>,
        limit: usize,
    ) -> Result<Option<Followed>, CallError> {
        self.look(move |scheduler, _| scheduler.follow(&name, number, limit)).await
    }

    /// Workers that are connected, or were a moment ago.
    pub async fn workers(&self) -> Result<Vec<WorkerView>, CallError> {
        self.look(|scheduler, _| scheduler.workers()).await
    }

    /// How many folds could start now if there were slots for them.
    pub async fn demand(&self) -> Result<Demand, CallError> {
        self.look(|scheduler, now| scheduler.demand(now)).await
    }

    /// What time it is for the driver.
    pub async fn now(&self) -> Result<Timestamp, CallError> {
        self.look(|_, now| now).await
    }

    /// Why a fold is not running; none if there is no such fold.
    pub async fn explain(&self, fold: FoldKey) -> Result<Option<Explanation>, CallError> {
        self.look(move |scheduler, now| scheduler.explain(now, &fold)).await
    }

    /// Whether an attempt was given to this worker, ever, and what a checkpoint of its fold is good for.
    pub async fn checkpoint_of(
        &self,
        worker: WorkerId,
        fold: FoldKey,
        attempt: Attempt,
    ) -> Result<(bool, Use), CallError> {
        self.look(move |scheduler, _| {
            (scheduler.has_issued(&fold, attempt, &worker), scheduler.use_of_checkpoint(&fold))
        })
        .await
    }

    /// What checkpoints of these folds are good for, and when that was so.
    pub async fn uses_of_checkpoints(
        &self,
        folds: Vec<FoldKey>,
    ) -> Result<(Timestamp, Vec<(FoldKey, Use)>), CallError> {
        let uses = |scheduler: &Scheduler, now| {
            (now, folds.into_iter().map(|fold| (fold, scheduler.use_of_checkpoint(&fold))).collect())
        };
        self.look(uses).await
    }

    /// What is stored, beside the driver.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Stops the driver: mail that arrived before is dealt with, later calls hear that it is stopping.
    pub async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        if self.send(Mail::Stop(done)).await.is_ok() {
            _ = stopped.await; // an error means that it has ended, which is what was asked for
        }
    }

    async fn send(&self, mail: Mail) -> Result<(), CallError> {
        self.mail.send(mail).await.map_err(|_| CallError::Stopped)
    }

    /// Looks at the state: everything that was answered before is in it.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Scheduler, Timestamp) -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let (reply, answer) = oneshot::channel();
        let look = move |scheduler: &Scheduler, now| _ = reply.send(look(scheduler, now));
        self.looks.send(Box::new(look)).await.map_err(|_| CallError::Stopped)?;
        answer.await.map_err(|_| CallError::Stopped)
    }
}
