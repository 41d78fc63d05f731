//! How far each running fold has come, as last heard. In memory only, latest wins; it is for
//! people who watch and decides nothing.

use std::collections::HashMap;
use std::sync::Mutex;

use togl_proto::wire;
use togl_sweeps::{FoldKey, WorkerId};

/// What is known of one running fold.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) fold: FoldKey,
    pub(super) slot: u32,
    pub(super) progress: Option<wire::Progress>,
}

/// Progress by worker, because a worker tells all of its folds at once, and how long folds took since this coordinator
/// started.
#[derive(Debug, Default)]
struct Notes {
    running: HashMap<WorkerId, Vec<Seen>>,
    finished: u32,
    seconds: f64,
}

/// The live progress. A plain mutex: it is held for a map access only, never across an await.
#[derive(Debug, Default)]
pub(super) struct LiveProgress(Mutex<Notes>);

impl LiveProgress {
    /// Replaces what this worker said before.
    pub(super) fn update(&self, worker: &WorkerId, running: Vec<Seen>) {
        let mut notes = self.lock();
        if running.is_empty() {
            notes.running.remove(worker);
        } else if let Some(before) = notes.running.get_mut(worker) {
            *before = running;
        } else {
            notes.running.insert(worker.clone(), running);
        }
    }

    /// What this worker said of a fold.
    pub(super) fn get(&self, worker: &WorkerId, fold: &FoldKey) -> Option<Seen> {
        self.lock().running.get(worker)?.iter().find(|seen| seen.fold == *fold).cloned()
    }

    /// A fold took this long.
    pub(super) fn note_seconds(&self, seconds: f64) {
        let mut notes = self.lock();
        notes.finished += 1;
        notes.seconds += seconds;
    }

    /// Mean time of the folds that finished since the start; none if none did.
    pub(super) fn mean_seconds(&self) -> Option<f64> {
        let notes = self.lock();
        (notes.finished > 0).then(|| notes.seconds / f64::from(notes.finished))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Notes> {
        // A panic while holding it cannot leave a map half-written that would matter for watching.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use togl_sweeps::TrialId;

    use super::*;

    #[test]
    fn the_latest_word_of_a_worker_replaces_its_earlier_ones() {
        let progress = LiveProgress::default();
        let worker: WorkerId = "w1".parse().unwrap();
        let fold = |n| FoldKey { trial: TrialId::from_bytes([n; 16]), split: 0, seed: 0 };
        let seen = |n| Seen { fold: fold(n), slot: 0, progress: None };
        progress.update(&worker, vec![seen(1)]);
        progress.update(&worker, vec![seen(2)]);
        assert!(progress.get(&worker, &fold(1)).is_none());
        assert!(progress.get(&worker, &fold(2)).is_some());
        progress.update(&worker, Vec::new());
        assert!(progress.get(&worker, &fold(2)).is_none());
    }
}
