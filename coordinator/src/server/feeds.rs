//! Feeds: what many people look at is made once and shared. A feed is one task that looks at a sweep a few times a second
//! for as long as somebody listens; listeners take the latest picture when they are ready for it, so that a slow one holds
//! up nobody and nothing is kept for him. Knows no messages.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use togl_sweeps::SweepName;
use tokio::sync::{mpsc, watch};
use tonic::Status;

use super::Shared;
use super::seats::Seat;
use crate::tasks;

/// Feeds look at most this often.
const PAUSE: Duration = Duration::from_millis(200);

/// And after a pause of so much for each listener, so that what they are told costs the same however many they are; but
/// nobody waits for longer than a second.
const PAUSE_EACH: Duration = Duration::from_millis(8);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A listener who has not taken anything for so long is let go.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is asked whether the token of a listener is still good.
const RECHECK: Duration = Duration::from_secs(1);

/// What a feed says: nothing before the first look, an error if there is nothing more to see.
pub(super) type News<T> = Option<Result<Arc<T>, Status>>;

/// The feeds of one kind, by sweep.
pub(super) struct Feeds<T>(Arc<Mutex<HashMap<SweepName, watch::Sender<News<T>>>>>);

impl<T> Default for Feeds<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: PartialEq + Send + Sync + 'static> Feeds<T> {
    /// Listens to the feed of a sweep, which begins with its first listener. `look` gives the next picture, from the last.
    pub(super) fn listen<L, F>(&self, sweep: SweepName, look: L) -> watch::Receiver<News<T>>
    where
        L: Fn(Option<Arc<T>>) -> F + Send + 'static,
        F: Future<Output = Result<T, Status>> + Send + 'static,
    {
        let mut feeds = lock(&self.0);
        if let Some(feed) = feeds.get(&sweep) {
            let mut listener = feed.subscribe();
            listener.mark_changed(); // what it says now is news to him
            return listener;
        }
        let (sender, listener) = watch::channel(None);
        feeds.insert(sweep.clone(), sender.clone());
        tasks::spawn("feed", feed(self.0.clone(), sweep, sender, look));
        listener
    }
}

async fn feed<T, L, F>(
    feeds: Arc<Mutex<HashMap<SweepName, watch::Sender<News<T>>>>>,
    sweep: SweepName,
    sender: watch::Sender<News<T>>,
    look: L,
) where
    T: PartialEq,
    L: Fn(Option<Arc<T>>) -> F,
    F: Future<Output = Result<T, Status>>,
{
    let mut last = None;
    loop {
        let (news, over) = match look(last.clone()).await {
            Ok(picture) => (Ok(Arc::new(picture)), false),
            Err(status) => (Err(status), true),
        };
        let picture = news.as_ref().ok().cloned();
        if picture.is_none() || picture != last {
            sender.send_replace(Some(news));
        }
        last = picture;
        if !over {
            tokio::time::sleep(pause(sender.receiver_count())).await;
        }
        let mut feeds = lock(&feeds); // nobody can begin to listen while it is decided whether to go on
        if over || sender.receiver_count() == 0 {
            feeds.remove(&sweep);
            return;
        }
    }
}

fn pause(listeners: usize) -> Duration {
    PAUSE_EACH.saturating_mul(u32::try_from(listeners).unwrap_or(u32::MAX)).clamp(PAUSE, LONGEST_PAUSE)
}

/// Somebody who listens to a feed and is told what it means in messages `M`.
pub(super) struct Listener<T, M> {
    pub(super) shared: Arc<Shared>,
    pub(super) seat: Seat,
    pub(super) feed: watch::Receiver<News<T>>,
    pub(super) to: mpsc::Sender<Result<M, Status>>,
}

impl<T, M> Listener<T, M> {
    /// The latest picture, once there is one that was not given before; none when it is over.
    pub(super) async fn next(&mut self) -> Option<Arc<T>> {
        loop {
            if let Err(status) = self.shared.admission.still_good(self.seat.token()) {
                return self.end(status).await;
            }
            tokio::select! {
                changed = self.feed.changed() => changed.ok()?,
                () = self.to.closed() => return None,
                () = tokio::time::sleep(RECHECK) => continue,
            }
            let news = self.feed.borrow_and_update().clone();
            match news {
                Some(Ok(picture)) => return Some(picture),
                Some(Err(status)) => return self.end(status).await,
                None => {}
            }
        }
    }

    /// Says whether there is a point in going on.
    pub(super) async fn send(&mut self, message: M) -> bool {
        let sent = tokio::time::timeout(PATIENCE, self.to.send(Ok(message))).await;
        sent.is_ok_and(|sent| sent.is_ok())
    }

    async fn end(&mut self, status: Status) -> Option<Arc<T>> {
        let _ = tokio::time::timeout(PATIENCE, self.to.send(Err(status))).await; // if he is gone, he need not know
        None
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one step, so a panic elsewhere leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thousand_listeners_cost_as_many_looks_as_one_and_none_when_they_are_gone() {
        let (feeds, looks) = (Feeds::<usize>::default(), Arc::new(AtomicUsize::new(0)));
        let sweep: SweepName = "s".parse().unwrap();
        let mut listeners = Vec::new();
        for _ in 0..1_000 {
            let looks = looks.clone();
            listeners.push(feeds.listen(sweep.clone(), move |_| {
                std::future::ready(Ok(looks.fetch_add(1, Ordering::SeqCst)))
            }));
        }
        tokio::time::sleep(LONGEST_PAUSE * 10).await;
        let while_listened = looks.load(Ordering::SeqCst);
        assert!((9..=11).contains(&while_listened), "{while_listened} looks");
        drop(listeners);
        tokio::time::sleep(LONGEST_PAUSE * 10).await;
        assert!(looks.load(Ordering::SeqCst) <= while_listened + 1, "nobody listens");
    }
}
