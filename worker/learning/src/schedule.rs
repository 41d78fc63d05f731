//! The learning rate: halved when the validation loss has not improved for more than `patience` epochs, as torch's
//! ReduceLROnPlateau does it (relative threshold 1e-4, no cooldown). Pure arithmetic; knows no optimiser.

use serde::{Deserialize, Serialize};

const FACTOR: f64 = 0.5;
const THRESHOLD: f64 = 1e-4;
/// A change smaller than this is not made.
const LEAST_CHANGE: f64 = 1e-8;

/// The state of the schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plateau {
    lr: f64,
    patience: u32,
    best: f64,
    bad_epochs: u32,
}

impl Plateau {
    /// Starts at `lr`.
    pub fn new(lr: f64, patience: u32) -> Self {
        Self { lr, patience, best: f64::INFINITY, bad_epochs: 0 }
    }

    /// The learning rate to train with now.
    pub fn lr(&self) -> f64 {
        self.lr
    }

    /// Takes the validation loss of an epoch.
    pub fn observe(&mut self, loss: f64) {
        if loss < self.best * (1.0 - THRESHOLD) {
            (self.best, self.bad_epochs) = (loss, 0);
        } else {
            self.bad_epochs += 1;
        }
        if self.bad_epochs > self.patience {
            let reduced = self.lr * FACTOR;
            if self.lr - reduced > LEAST_CHANGE {
                self.lr = reduced;
            }
            self.bad_epochs = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_halved_when_bad_epochs_exceed_the_patience() {
        let mut plateau = Plateau::new(1.0, 2);
        let rates: Vec<f64> = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
            .map(|loss| {
                plateau.observe(loss);
                plateau.lr()
            })
            .to_vec();
        assert_eq!(rates, [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25]);
    }

    #[test]
    fn an_improvement_below_the_relative_threshold_does_not_count() {
        let mut plateau = Plateau::new(1.0, 0);
        plateau.observe(1.0);
        plateau.observe(0.99995);
        assert_eq!(plateau.lr(), 0.5);
        plateau.observe(0.9998);
        assert_eq!(plateau.lr(), 0.5, "a real improvement resets the count");
    }

    #[test]
    fn a_tiny_rate_stays_as_it_is() {
        let mut plateau = Plateau::new(1e-8, 0);
        plateau.observe(1.0);
        plateau.observe(1.0);
        assert_eq!(plateau.lr(), 1e-8);
    }
}
