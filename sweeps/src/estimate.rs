//! How long a sweep will take and how much memory a fold of it needs: what an epoch costs, from finished folds that cost
//! the same or from a measured epoch, times how many epochs there will be. Pure arithmetic: who measured, and what is
//! printed, is the caller's business.

use std::collections::HashMap;

use serde::Serialize;

use crate::identity::defaults;
use crate::ids::TrialId;
use crate::trial::TrialConfig;

/// How far the length of a single finished fold is trusted for the next one.
const ONE_FOLD: f64 = 1.5;

/// All that the cost of one epoch depends on: data, network and batch size, not how long it is trained.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Workload(String);

impl Workload {
    /// Of this trial.
    pub fn of(trial: &TrialConfig) -> Self {
        let usual = defaults();
        let same_cost = TrialConfig {
            data_seed: usual.data_seed,
            dropout_p: usual.dropout_p,
            lr: usual.lr,
            lr_patience: usual.lr_patience,
            lr_min: usual.lr_min,
            weight_decay: usual.weight_decay,
            max_epochs: usual.max_epochs,
            last_epoch: usual.last_epoch,
            ..trial.clone()
        };
        Self(same_cost.canonical())
    }
}

/// What decides how many epochs there are, but for the network: the data set and the schedule of the learning rate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Schedule {
    dataset: String,
    rates: [u64; 2],
    patience: u32,
    max_epochs: u32,
}

impl Schedule {
    fn of(trial: &TrialConfig) -> Self {
        Self {
            dataset: trial.dataset.clone(),
            rates: [trial.lr, trial.lr_min].map(f64::to_bits),
            patience: trial.lr_patience,
            max_epochs: trial.max_epochs,
        }
    }
}

/// One finished fold, as far as it teaches what others will cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Past {
    /// Seconds of training.
    pub seconds: f64,
    /// Epochs trained.
    pub epochs: u32,
    /// Most memory taken; 0 if unknown.
    pub peak_memory: u64,
}

/// One measured epoch of a workload of which nothing has finished yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Seconds of an epoch.
    pub epoch_seconds: f64,
    /// Largest resident memory in bytes.
    pub peak_memory: u64,
}

/// What finished folds of one workload cost.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    epochs: f64,
    seconds: f64,
    peak_memory: u64,
}

/// How many epochs finished folds took.
#[derive(Debug, Clone, Copy, Default)]
struct Lengths {
    folds: f64,
    sum: f64,
    squares: f64,
    shortest: f64,
    longest: f64,
}

impl Lengths {
    fn add(&mut self, epochs: f64) {
        self.shortest = if self.folds == 0.0 { epochs } else { self.shortest.min(epochs) };
        self.longest = self.longest.max(epochs);
        self.folds += 1.0;
        self.sum += epochs;
        self.squares += epochs * epochs;
    }

    /// Where the mean of further folds of the same trial lies: two standard errors around the mean so far.
    fn mean(&self) -> [f64; 2] {
        let mean = self.sum / self.folds;
        if self.folds < 2.0 {
            return [mean / ONE_FOLD, mean * ONE_FOLD];
        }
        let variance = (self.squares - self.sum * mean).max(0.0) / (self.folds - 1.0);
        let error = 2.0 * (variance / self.folds).sqrt();
        [mean - error, mean + error]
    }

    /// Where folds of other networks with the same schedule may lie.
    fn span(&self) -> [f64; 2] {
        if self.folds < 2.0 { self.mean() } else { [self.shortest, self.longest] }
    }
}

/// What is known before anything is trained.
#[derive(Debug, Clone, Default)]
pub struct Experience {
    costs: HashMap<Workload, Cost>,
    calibrations: HashMap<Workload, Calibration>,
    of_trial: HashMap<TrialId, Lengths>,
    of_schedule: HashMap<Schedule, Lengths>,
}

impl Experience {
    /// Takes note of finished folds of a trial.
    pub fn learn(&mut self, trial: &TrialConfig, folds: &[Past]) {
        let cost = self.costs.entry(Workload::of(trial)).or_default();
        let of_trial = self.of_trial.entry(trial.id()).or_default();
        let of_schedule = self.of_schedule.entry(Schedule::of(trial)).or_default();
        for past in folds {
            let epochs = length(trial, past.epochs);
            cost.epochs += epochs;
            cost.seconds += past.seconds;
            cost.peak_memory = cost.peak_memory.max(past.peak_memory);
            of_trial.add(epochs);
            of_schedule.add(epochs);
        }
    }

    /// Takes note of a measured epoch.
    pub fn calibrate(&mut self, workload: Workload, measured: Calibration) {
        self.calibrations.insert(workload, measured);
    }

    /// Whether folds that cost the same have finished.
    pub fn knows(&self, workload: &Workload) -> bool {
        self.costs.contains_key(workload)
    }

    /// How many epochs a fold of this trial may take: as folds of the trial did, or folds of the same schedule, and
    /// never fewer or more than the schedule allows.
    fn epochs(&self, trial: &TrialConfig) -> [f64; 2] {
        let [fewest, most] = epochs(trial).map(f64::from);
        let seen = self.of_trial.get(&trial.id()).map(Lengths::mean);
        let seen = seen.or_else(|| self.of_schedule.get(&Schedule::of(trial)).map(Lengths::span));
        seen.unwrap_or([fewest, most]).map(|epochs| epochs.clamp(fewest.min(most), most))
    }
}

/// What the folds to do will cost, together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// Seconds on one device at the least, as far as anything is known.
    pub device_seconds: f64,
    /// The same at the most.
    pub device_seconds_at_most: f64,
    /// Seconds of the longest fold to do, at the least.
    pub longest_fold_seconds: f64,
    /// The same at the most.
    pub longest_fold_seconds_at_most: f64,
    /// Bytes that the largest fold to do needs; 0 if unknown.
    pub memory_bytes: u64,
    /// Folds to do that cost the same as finished ones.
    pub from_past_folds: u64,
    /// Folds to do of which an epoch was measured.
    pub from_calibration: u64,
    /// Folds to do of which nothing is known; they are not part of the sums.
    pub without_precedent: u64,
}

impl Estimate {
    /// Adds `folds` folds of a trial.
    pub fn add(&mut self, trial: &TrialConfig, folds: u64, experience: &Experience) {
        if folds == 0 {
            return;
        }
        let workload = Workload::of(trial);
        let (epoch_seconds, memory) = if let Some(cost) = experience.costs.get(&workload) {
            self.from_past_folds += folds;
            (cost.seconds / cost.epochs, cost.peak_memory)
        } else if let Some(measured) = experience.calibrations.get(&workload) {
            self.from_calibration += folds;
            (measured.epoch_seconds, measured.peak_memory)
        } else {
            self.without_precedent += folds;
            return;
        };
        let [least, most] = experience.epochs(trial).map(|epochs| epochs * epoch_seconds);
        self.device_seconds += folds as f64 * least;
        self.device_seconds_at_most += folds as f64 * most;
        self.longest_fold_seconds = self.longest_fold_seconds.max(least);
        self.longest_fold_seconds_at_most = self.longest_fold_seconds_at_most.max(most);
        self.memory_bytes = self.memory_bytes.max(memory);
    }

    /// Seconds until all of it is done on so many slots, at the least and at the most; none if some folds are unknown
    /// or there is no slot.
    pub fn finish_seconds(&self, slots: u64) -> Option<[f64; 2]> {
        let least = (self.device_seconds / slots as f64).max(self.longest_fold_seconds);
        let most = (self.device_seconds_at_most / slots as f64).max(self.longest_fold_seconds_at_most);
        (slots > 0 && self.without_precedent == 0).then_some([least, most])
    }
}

/// A kernel is fitted once, whatever it counts as its epochs; how long a program trains is its own business.
fn is_one_piece(trial: &TrialConfig) -> bool {
    trial.model.is_kernel() || trial.program.is_some()
}

fn length(trial: &TrialConfig, epochs: u32) -> f64 {
    if is_one_piece(trial) { 1.0 } else { f64::from(epochs.max(1)) }
}

/// The fewest and the most epochs that training may take: the learning rate must be halved until it is below its
/// minimum, and each halving needs more epochs without improvement than the patience.
pub fn epochs(trial: &TrialConfig) -> [u32; 2] {
    if is_one_piece(trial) {
        return [1, 1];
    }
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
    use crate::words::Backbone;

    fn trial() -> TrialConfig {
        TrialConfig {
            dataset: "necklaces".to_owned(),
            lr: 7e-4,
            lr_min: 1e-6,
            lr_patience: 25,
            max_epochs: 1000,
            ..TrialConfig::default()
        }
    }

    fn past(seconds: f64, epochs: u32) -> Past {
        Past { seconds, epochs, peak_memory: 700 }
    }

    fn estimate(trial: &TrialConfig, folds: u64, experience: &Experience) -> Estimate {
        let mut estimate = Estimate::default();
        estimate.add(trial, folds, experience);
        estimate
    }

    #[test]
    fn ten_halvings_with_a_patience_of_25_take_261_epochs_at_the_least() {
        assert_eq!(epochs(&trial()), [261, 1000]);
        assert_eq!(epochs(&TrialConfig { max_epochs: 200, ..trial() }), [200, 200]);
        assert_eq!(epochs(&TrialConfig { lr_min: 0.0, ..trial() }), [1000, 1000]);
        assert_eq!(epochs(&TrialConfig { max_epochs: 1, ..trial() }), [1, 1]);
    }

    #[test]
    fn short_and_narrow_folds_say_nothing_about_wide_ones() {
        let mut experience = Experience::default();
        experience.learn(&TrialConfig { hidden_dim: 32, max_epochs: 20, ..trial() }, &[past(2.0, 20)]);
        let wide = TrialConfig { hidden_dim: 2048, ..trial() };
        assert_eq!(estimate(&wide, 18, &experience).without_precedent, 18);
        for other in [
            TrialConfig { batch_size: 8, ..trial() },
            TrialConfig { depth: 5, ..trial() },
            TrialConfig { dataset: "cycles".to_owned(), ..trial() },
            TrialConfig { togl: true, num_filtrations: 64, ..trial() },
        ] {
            assert_ne!(Workload::of(&other), Workload::of(&trial()), "{other:?}");
        }
        experience.calibrate(Workload::of(&wide), Calibration { epoch_seconds: 5.0, peak_memory: 519 });
        let measured = estimate(&wide, 18, &experience);
        assert_eq!((measured.from_calibration, measured.memory_bytes), (18, 519));
        assert_eq!(measured.device_seconds, 18.0 * 261.0 * 5.0);
        assert_eq!(measured.device_seconds_at_most, 18.0 * 1000.0 * 5.0);
    }

    #[test]
    fn a_fold_trained_longer_costs_as_much_more_as_it_has_more_epochs() {
        let mut experience = Experience::default();
        experience.learn(&TrialConfig { max_epochs: 20, ..trial() }, &[past(2.0, 20)]);
        let long = estimate(&trial(), 1, &experience);
        assert_eq!((long.from_past_folds, long.memory_bytes), (1, 700));
        assert!(
            (long.device_seconds - 26.1).abs() < 1e-9 && (long.device_seconds_at_most - 100.0).abs() < 1e-9
        );
    }

    #[test]
    fn folds_of_the_same_trial_narrow_the_range_to_what_they_took() {
        let mut experience = Experience::default();
        experience.learn(&trial(), &[380, 400, 420, 400].map(|epochs| past(f64::from(epochs), epochs)));
        let [least, most] = experience.epochs(&trial());
        assert!((350.0..400.0).contains(&least) && (400.0..450.0).contains(&most), "{least} to {most}");
        // Another network with the same schedule: as long as the shortest, or as the longest of those seen.
        assert_eq!(experience.epochs(&TrialConfig { depth: 8, ..trial() }), [380.0, 420.0]);
        assert_eq!(
            experience.epochs(&TrialConfig { lr: 1e-3, ..trial() }),
            [261.0, 1000.0],
            "another schedule"
        );
    }

    #[test]
    fn one_fold_is_trusted_within_what_the_schedule_allows() {
        let mut experience = Experience::default();
        experience.learn(&trial(), &[past(300.0, 300)]);
        assert_eq!(experience.epochs(&trial()), [261.0, 450.0]);
    }

    #[test]
    fn a_kernel_costs_what_its_fold_took_whatever_it_counts() {
        let kernel = TrialConfig { model: Backbone::Wl, ..trial() };
        let mut experience = Experience::default();
        experience.learn(&kernel, &[past(30.0, 7), past(10.0, 7)]);
        let both = estimate(&kernel, 2, &experience);
        assert_eq!((both.device_seconds, both.device_seconds_at_most), (40.0, 40.0));
    }

    #[test]
    fn more_slots_than_folds_do_not_end_a_sweep_before_its_longest_fold() {
        let kernel = TrialConfig { model: Backbone::Wl, ..trial() };
        let mut experience = Experience::default();
        experience.learn(&kernel, &[past(100.0, 1)]);
        let mut estimate = estimate(&kernel, 4, &experience);
        assert_eq!(estimate.finish_seconds(2), Some([200.0, 200.0]));
        assert_eq!(estimate.finish_seconds(64), Some([100.0, 100.0]));
        assert_eq!(estimate.finish_seconds(0), None);
        estimate.add(&trial(), 1, &experience);
        assert_eq!((estimate.finish_seconds(2), estimate.without_precedent), (None, 1));
    }
}
