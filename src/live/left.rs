//! How long the folds that are left may take, by kind of fold, as `togl plan` reckons it: from finished folds of the sweep that
//! is looked at. Pure; who trains how many at once is the caller's business.

use std::collections::HashMap;

use togl_analysis::FoldFrame;
use togl_sweeps::estimate::{Estimate, Experience, Past};
use togl_sweeps::{SweepSpec, TrialId};

use crate::cli::explained;
use crate::problem::Problem;

/// What is left costs on one device, in seconds a fold: at the least and at the most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Left {
    a_fold: [f64; 2],
    longest: [f64; 2],
}

impl Left {
    /// By the finished folds of a sweep; none while there is nothing to reckon from or nothing left.
    pub fn of(spec: &SweepSpec, frame: &FoldFrame) -> Result<Option<Self>, Problem> {
        let past = past(frame)?;
        let (mut experience, mut estimate) = (Experience::default(), Estimate::default());
        for trial in &spec.trials {
            if let Some(past) = past.get(&trial.id) {
                experience.learn(&trial.config, past);
            }
        }
        for trial in &spec.trials {
            let done = past.get(&trial.id).map_or(0, Vec::len);
            let left = spec.folds_of(trial.id).count().saturating_sub(done);
            estimate.add(&trial.config, left as u64, &experience);
        }
        let folds = estimate.from_past_folds as f64;
        let each = |seconds: f64| seconds / folds;
        Ok((folds > 0.0).then(|| Self {
            a_fold: [estimate.device_seconds, estimate.device_seconds_at_most].map(each),
            longest: [estimate.longest_fold_seconds, estimate.longest_fold_seconds_at_most],
        }))
    }

    /// Seconds until so many folds are done, so many at a time: at the least and at the most; zeros if nothing is trained.
    pub fn seconds(&self, folds: u64, at_once: u64) -> [u64; 2] {
        if at_once == 0 || folds == 0 {
            return [0, 0];
        }
        let all = self.a_fold.map(|seconds| seconds * folds as f64 / at_once as f64);
        // The last fold alone takes its time, however many slots there are; it may be half done.
        [all[0], all[1].max(self.longest[1])].map(|seconds| seconds.ceil() as u64)
    }
}

fn past(frame: &FoldFrame) -> Result<HashMap<TrialId, Vec<Past>>, Problem> {
    let keys = frame.keys().map_err(explained)?;
    let cost = frame.costs().map_err(explained)?;
    let mut past: HashMap<TrialId, Vec<Past>> = HashMap::new();
    for (key, (seconds, epochs)) in keys.iter().zip(cost) {
        past.entry(key.trial).or_default().push(Past { seconds, epochs, peak_memory: 0 });
    }
    Ok(past)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_shared_by_those_who_train_and_the_last_fold_takes_its_time() {
        let left = Left { a_fold: [10.0, 20.0], longest: [15.0, 50.0] };
        assert_eq!(left.seconds(100, 10), [100, 200]);
        assert_eq!(left.seconds(1, 10), [1, 50]);
        assert_eq!(left.seconds(100, 0), [0, 0]);
        assert_eq!(left.seconds(0, 4), [0, 0]);
    }
}
