//! Changes of one sweep for those who follow it: read from the driver once for all of them, kept for a while, and handed out
//! from where each one stopped. Who is further behind asks the driver once more, and starts over if that has forgotten, too.

use std::sync::Arc;

use togl_proto::wire;
use togl_scheduler::{FoldState, FoldView, Followed, SweepView};
use togl_sweeps::SweepName;
use tokio::sync::mpsc;
use tonic::Status;

use super::feeds::Listener;
use super::seats::Seat;
use super::{Shared, status, views, watching};

/// Folds of one message.
const PAGE: usize = 1_000;

/// Folds that are kept for those who are slow.
const KEPT: usize = 65_536;

/// Changes from one number to another.
struct Part {
    from: u64,
    to: u64,
    folds: Vec<wire::FoldSummary>,
}

/// What happened lately.
pub(super) struct Recent {
    summary: SweepView,
    trials_finished: u64,
    /// Of the last change that was looked at.
    number: u64,
    /// Without gaps, up to `number`.
    parts: Vec<Arc<Part>>,
}

impl PartialEq for Recent {
    fn eq(&self, other: &Self) -> bool {
        (self.number, self.trials_finished, &self.summary)
            == (other.number, other.trials_finished, &other.summary)
    }
}

impl Recent {
    /// From where on nothing is missing.
    fn oldest(&self) -> u64 {
        self.parts.first().map_or(self.number, |part| part.from)
    }

    /// One look further.
    fn advance(before: Option<&Self>, followed: Followed) -> Self {
        let Followed { summary, trials_finished, number, folds, more: _ } = followed;
        let mut parts = match (before, folds) {
            (Some(before), Some(folds)) => {
                let mut parts = before.parts.clone();
                if number > before.number {
                    let folds = folds.into_iter().map(changed).collect();
                    parts.push(Arc::new(Part { from: before.number, to: number, folds }));
                }
                parts
            }
            _ => Vec::new(), // there is a gap
        };
        let mut kept: usize = parts.iter().map(|part| part.folds.len()).sum();
        while kept > KEPT {
            kept -= parts.remove(0).folds.len();
        }
        Self { summary, trials_finished, number, parts }
    }
}

fn changed(view: FoldView) -> wire::FoldSummary {
    let state = view.state.word().as_str().to_owned();
    let (worker, attempt, failure) = match view.state {
        FoldState::Running { worker, attempt } | FoldState::Finished { worker, attempt } => {
            (worker.to_string(), attempt.0, None)
        }
        FoldState::Failed(failure) => (String::new(), 0, Some(failure.into())),
        FoldState::Pending => (String::new(), 0, None),
    };
    let (fold, attempts) = (Some(view.fold.into()), view.attempts);
    wire::FoldSummary { fold, state, attempts, worker, failure, attempt, ..Default::default() }
}

async fn look(shared: &Shared, sweep: &SweepName, number: Option<u64>) -> Result<Followed, Status> {
    let followed = shared.handle.follow(sweep.clone(), number, PAGE).await.map_err(status)?;
    match followed {
        Some(followed) => Ok(followed),
        None => Err(watching::unknown_sweep(shared, sweep).await?),
    }
}

/// Everything that happened since the last look.
async fn look_further(
    shared: &Shared,
    sweep: &SweepName,
    last: Option<Arc<Recent>>,
) -> Result<Recent, Status> {
    let mut followed = look(shared, sweep, last.as_ref().map(|last| last.number)).await?;
    let mut more = followed.more;
    let mut recent = Recent::advance(last.as_deref(), followed);
    while more {
        followed = look(shared, sweep, Some(recent.number)).await?;
        more = followed.more;
        recent = Recent::advance(Some(&recent), followed);
    }
    Ok(recent)
}

/// Begins to send what changes, from the cursor on if it is of this store and this start of the coordinator.
pub(super) fn follow(
    shared: &Arc<Shared>,
    seat: Seat,
    sweep: SweepName,
    cursor: Option<wire::Cursor>,
    to: mpsc::Sender<Result<wire::Following, Status>>,
) -> impl Future<Output = ()> + Send + 'static {
    let (looking, name) = (shared.clone(), sweep.clone());
    let feed = shared.followed.listen(sweep.clone(), move |last: Option<Arc<Recent>>| {
        let (shared, sweep) = (looking.clone(), name.clone());
        async move { look_further(&shared, &sweep, last).await }
    });
    let ours =
        |cursor: &wire::Cursor| cursor.incarnation == shared.incarnation && cursor.start == shared.start;
    let number = cursor.filter(ours).map(|cursor| cursor.number);
    let listener = Listener { shared: shared.clone(), seat, feed, to };
    Follower { listener, sweep, number }.run()
}

struct Follower {
    listener: Listener<Recent, wire::Following>,
    sweep: SweepName,
    /// Up to where he knows; none if nothing.
    number: Option<u64>,
}

impl Follower {
    /// Whether nothing more will happen. The feed may have looked before the sweep was submitted again.
    async fn has_ended(&self, recent: &Recent) -> bool {
        if !recent.summary.has_ended() {
            return false;
        }
        let now = look(&self.listener.shared, &self.sweep, Some(recent.number)).await;
        now.is_ok_and(|now| now.summary.has_ended())
    }

    async fn run(mut self) {
        while let Some(recent) = self.listener.next().await {
            if !self.tell(&recent).await || self.has_ended(&recent).await {
                return;
            }
        }
    }

    /// Says whether there is a point in going on.
    async fn tell(&mut self, recent: &Recent) -> bool {
        while self.number.is_none_or(|number| number < recent.oldest()) {
            let Ok(followed) = look(&self.listener.shared, &self.sweep, self.number).await else {
                return true; // the feed says why, in a moment
            };
            if !self.catch_up(followed).await {
                return false;
            }
        }
        let known = self.number.unwrap_or(recent.number);
        let first = recent.parts.partition_point(|part| part.to <= known);
        if first == recent.parts.len() {
            return self.send(recent.summary.clone(), recent.trials_finished, known, Vec::new(), false).await;
        }
        for part in &recent.parts[first..] {
            let folds = part.folds.clone();
            if !self.send(recent.summary.clone(), recent.trials_finished, part.to, folds, false).await {
                return false;
            }
        }
        true
    }

    /// What only the driver still knows.
    async fn catch_up(&mut self, followed: Followed) -> bool {
        let Followed { summary, trials_finished, number, folds, more: _ } = followed;
        let start_over = folds.is_none();
        let folds = folds.unwrap_or_default().into_iter().map(changed).collect();
        self.send(summary, trials_finished, number, folds, start_over).await
    }

    async fn send(
        &mut self,
        summary: SweepView,
        trials_finished: u64,
        number: u64,
        folds: Vec<wire::FoldSummary>,
        start_over: bool,
    ) -> bool {
        self.number = Some(number);
        let Shared { incarnation, start, .. } = &*self.listener.shared;
        let cursor = wire::Cursor { incarnation: incarnation.clone(), start: *start, number };
        let summary = Some(views::summary(summary));
        let following = wire::Following { cursor: Some(cursor), summary, trials_finished, folds, start_over };
        self.listener.send(following).await
    }
}
