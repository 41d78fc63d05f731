//! How far each running fold has come, as last heard, and its learning curve in a few points. In memory only; it is for
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

/// Points that are kept of a running fold; every second one is let go when there are more.
pub(super) const POINTS: usize = 128;

/// A running fold with what was heard of it.
#[derive(Debug)]
struct Note {
    seen: Seen,
    curve: Vec<wire::CurvePoint>,
}

impl Note {
    /// What is heard now, after what was heard before.
    fn after(before: Option<Self>, seen: Seen) -> Self {
        let mut curve = before.map(|before| before.curve).unwrap_or_default();
        if let Some(progress) = &seen.progress
            && let Some(validation) = progress.validation
        {
            let epoch = progress.epoch;
            if curve.last().is_some_and(|point| point.epoch > epoch) {
                curve.clear(); // another attempt
            }
            if curve.last().is_none_or(|point| point.epoch < epoch) {
                curve.push(wire::CurvePoint {
                    epoch,
                    validation_loss: validation.loss,
                    validation_accuracy: validation.accuracy,
                });
            }
            if curve.len() > POINTS {
                let mut place = 0;
                curve.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
            }
        }
        Self { seen, curve }
    }
}

/// Progress by worker, because a worker tells all of its folds at once, and how long folds took since this coordinator
/// started.
#[derive(Debug, Default)]
struct Notes {
    running: HashMap<WorkerId, Vec<Note>>,
    finished: u32,
    seconds: f64,
}

/// The live progress. A plain mutex: it is held for a map access only, never across an await.
#[derive(Debug, Default)]
pub(super) struct LiveProgress(Mutex<Notes>);

impl LiveProgress {
    /// Replaces what this worker said before; of folds that go on the curve stays.
    pub(super) fn update(&self, worker: &WorkerId, running: Vec<Seen>) {
        let mut notes = self.lock();
        let mut before = notes.running.remove(worker).unwrap_or_default();
        if running.is_empty() {
            return;
        }
        let further = |seen: Seen| {
            let known = before.iter().position(|note| note.seen.fold == seen.fold);
            Note::after(known.map(|at| before.swap_remove(at)), seen)
        };
        let running = running.into_iter().map(further).collect();
        notes.running.insert(worker.clone(), running);
    }

    /// What this worker said of a fold.
    pub(super) fn get(&self, worker: &WorkerId, fold: &FoldKey) -> Option<Seen> {
        let notes = self.lock();
        Some(notes.running.get(worker)?.iter().find(|note| note.seen.fold == *fold)?.seen.clone())
    }

    /// The learning curve of a running fold, as far as was told of it.
    pub(super) fn curve(&self, fold: &FoldKey) -> Vec<wire::CurvePoint> {
        let notes = self.lock();
        let known = notes.running.values().flatten().find(|note| note.seen.fold == *fold);
        known.map(|note| note.curve.clone()).unwrap_or_default()
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

    #[test]
    fn a_running_fold_keeps_its_curve_in_few_points_until_another_attempt_begins() {
        let progress = LiveProgress::default();
        let worker: WorkerId = "w1".parse().unwrap();
        let fold = FoldKey { trial: TrialId::from_bytes([1; 16]), split: 0, seed: 0 };
        let tell = |epoch| {
            let validation = Some(wire::Metrics { loss: 1.0, accuracy: 0.5 });
            let said = wire::Progress { epoch, validation, ..Default::default() };
            progress.update(&worker, vec![Seen { fold, slot: 0, progress: Some(said) }]);
        };
        for epoch in 1..=5_000 {
            tell(epoch);
            tell(epoch); // a heartbeat says the same again
        }
        let curve = progress.curve(&fold);
        assert!(curve.len() > POINTS / 2 - 1 && curve.len() <= POINTS, "{}", curve.len());
        assert_eq!(curve.first().map(|point| point.epoch), Some(1));
        assert!(curve.is_sorted_by(|one, next| one.epoch < next.epoch));
        tell(1);
        assert_eq!(progress.curve(&fold).len(), 1);
    }
}
