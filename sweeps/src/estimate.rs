//! How long a sweep will take and how much memory a fold of it needs, from folds of the same kind that have finished,
//! or from a measured epoch where none has. Pure arithmetic: who measured, and what is printed, is the caller's business.

use std::collections::HashMap;

use serde::Serialize;

use crate::trial::TrialConfig;

/// What finished folds of one kind (the same network on the same data set) needed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Precedent {
    folds: u64,
    seconds: f64,
    longest: f64,
    peak_memory: u64,
}

impl Precedent {
    /// Takes note of one finished fold.
    pub fn add(&mut self, seconds: f64, peak_memory: u64) {
        self.folds += 1;
        self.seconds += seconds;
        self.longest = self.longest.max(seconds);
        self.peak_memory = self.peak_memory.max(peak_memory);
    }
}

/// One measured epoch of a kind of which nothing has finished yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Seconds of an epoch.
    pub epoch_seconds: f64,
    /// Largest resident memory in bytes.
    pub peak_memory: u64,
}

/// What is known about each kind of fold, by its title.
#[derive(Debug, Clone, Default)]
pub struct Experience {
    /// From finished folds; preferred.
    pub precedents: HashMap<String, Precedent>,
    /// From measured epochs.
    pub calibrations: HashMap<String, Calibration>,
}

/// What the folds to do will cost, together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// Seconds on one device, as far as anything is known.
    pub device_seconds: f64,
    /// The same if every calibrated fold uses all the epochs it may.
    pub device_seconds_at_most: f64,
    /// Seconds of the longest fold to do.
    pub longest_fold_seconds: f64,
    /// Bytes that the largest fold to do needs; 0 if unknown.
    pub memory_bytes: u64,
    /// Folds to do that are like finished ones.
    pub from_past_folds: u64,
    /// Folds to do of which an epoch was measured.
    pub from_calibration: u64,
    /// Folds to do of which nothing is known; they are not part of the sums.
    pub without_precedent: u64,
}

impl Estimate {
    /// Adds `folds` folds of a trial.
    pub fn add(&mut self, title: &str, trial: &TrialConfig, folds: u64, experience: &Experience) {
        if folds == 0 {
            return;
        }
        if let Some(past) = experience.precedents.get(title) {
            let each = past.seconds / past.folds as f64;
            self.count(folds, [each, each], past.longest, past.peak_memory);
            self.from_past_folds += folds;
        } else if let Some(measured) = experience.calibrations.get(title) {
            let [least, most] = epochs(trial).map(|epochs| f64::from(epochs) * measured.epoch_seconds);
            self.count(folds, [least, most], most, measured.peak_memory);
            self.from_calibration += folds;
        } else {
            self.without_precedent += folds;
        }
    }

    fn count(&mut self, folds: u64, [least, most]: [f64; 2], longest: f64, memory: u64) {
        self.device_seconds += folds as f64 * least;
        self.device_seconds_at_most += folds as f64 * most;
        self.longest_fold_seconds = self.longest_fold_seconds.max(longest);
        self.memory_bytes = self.memory_bytes.max(memory);
    }

    /// Seconds until all of it is done on so many slots; none if some folds are unknown or there is no slot.
    pub fn finish_seconds(&self, slots: u64) -> Option<f64> {
        let shared = self.device_seconds / slots as f64;
        (slots > 0 && self.without_precedent == 0)
            .then(|| shared.max(self.longest_fold_seconds.min(self.device_seconds)))
    }
}

/// The fewest and the most epochs that training may take: the learning rate must be halved until it is below its
/// minimum, and each halving needs more epochs without improvement than the patience.
pub fn epochs(trial: &TrialConfig) -> [u32; 2] {
    let mut rate = trial.lr;
    let mut needed = 1u32;
    while rate >= trial.lr_min && needed < trial.max_epochs {
        rate *= 0.5;
        needed = needed.saturating_add(trial.lr_patience.saturating_add(1));
    }
    [needed.min(trial.max_epochs), trial.max_epochs]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial() -> TrialConfig {
        TrialConfig { lr: 7e-4, lr_min: 1e-6, lr_patience: 25, max_epochs: 1000, ..TrialConfig::default() }
    }

    #[test]
    fn ten_halvings_with_a_patience_of_25_take_261_epochs_at_the_least() {
        assert_eq!(epochs(&trial()), [261, 1000]);
        assert_eq!(epochs(&TrialConfig { max_epochs: 200, ..trial() }), [200, 200]);
        assert_eq!(epochs(&TrialConfig { lr_min: 0.0, ..trial() }), [1000, 1000]);
        assert_eq!(epochs(&TrialConfig { max_epochs: 1, ..trial() }), [1, 1]);
    }

    #[test]
    fn finished_folds_of_the_same_kind_count_before_a_measured_epoch() {
        let mut past = Precedent::default();
        past.add(10.0, 500);
        past.add(20.0, 700);
        let mut experience = Experience::default();
        experience.calibrations.insert("a".to_owned(), Calibration { epoch_seconds: 9.0, peak_memory: 9000 });
        experience.calibrations.insert("b".to_owned(), Calibration { epoch_seconds: 0.5, peak_memory: 800 });
        experience.precedents.insert("a".to_owned(), past);
        let mut estimate = Estimate::default();
        estimate.add("a", &trial(), 4, &experience);
        estimate.add("b", &trial(), 2, &experience);
        estimate.add("b", &trial(), 0, &experience);
        let expected = Estimate {
            device_seconds: 60.0 + 261.0,
            device_seconds_at_most: 60.0 + 1000.0,
            longest_fold_seconds: 500.0,
            memory_bytes: 800,
            from_past_folds: 4,
            from_calibration: 2,
            without_precedent: 0,
        };
        assert_eq!(estimate, expected);
    }

    #[test]
    fn more_slots_than_folds_do_not_end_a_sweep_before_its_longest_fold() {
        let mut past = Precedent::default();
        past.add(100.0, 0);
        let experience =
            Experience { precedents: HashMap::from([("a".to_owned(), past)]), ..Experience::default() };
        let mut estimate = Estimate::default();
        estimate.add("a", &trial(), 4, &experience);
        assert_eq!(estimate.finish_seconds(2), Some(200.0));
        assert_eq!(estimate.finish_seconds(64), Some(100.0));
        assert_eq!(estimate.finish_seconds(0), None);
        estimate.add("unheard of", &trial(), 1, &experience);
        assert_eq!((estimate.finish_seconds(2), estimate.without_precedent), (None, 1));
    }
}
