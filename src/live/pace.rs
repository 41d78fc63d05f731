//! How fast sweeps get on, as far as somebody has looked: finished folds at moments of the last ten minutes, in a bounded list
//! a sweep. Pure: time comes in.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::remote::ListedSweep;

/// So long is remembered.
const MEMORY: Duration = Duration::from_secs(600);

/// From so many moments.
const MOMENTS: usize = 128;

/// Before so much time is over, nothing is said.
const LEAST: Duration = Duration::from_secs(60);

/// Finished folds of sweeps at moments.
#[derive(Debug, Clone, Default)]
pub struct Pace(BTreeMap<String, VecDeque<(Duration, u64)>>);

impl Pace {
    /// How far sweeps are at a moment of a clock that begins anywhere; those that are not there any more are forgotten.
    pub fn note(&mut self, at: Duration, sweeps: &[ListedSweep]) {
        self.0.retain(|name, _| sweeps.iter().any(|sweep| sweep.name == *name));
        for sweep in sweeps {
            let seen = self.0.entry(sweep.name.clone()).or_default();
            // The last moment moves until it is far enough from the one before.
            let before = seen.len().checked_sub(2).and_then(|place| seen.get(place));
            if before.is_some_and(|(time, _)| at.saturating_sub(*time) < MEMORY / MOMENTS as u32) {
                seen.pop_back();
            }
            seen.push_back((at, sweep.finished));
            while seen.front().is_some_and(|(time, _)| at.saturating_sub(*time) > MEMORY)
                || seen.len() > MOMENTS
            {
                seen.pop_front();
            }
        }
    }

    /// Folds an hour of a sweep; none before a minute is over.
    pub fn an_hour(&self, sweep: &str) -> Option<u64> {
        let seen = self.0.get(sweep)?;
        let ((began, before), (at, now)) = (seen.front()?, seen.back()?);
        let time = at.checked_sub(*began).filter(|time| *time >= LEAST)?;
        Some((now.saturating_sub(*before) as f64 * 3600.0 / time.as_secs_f64()).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(finished: u64) -> ListedSweep {
        ListedSweep {
            name: "a".to_owned(),
            state: "active".to_owned(),
            trials: 1,
            folds: 1_000_000,
            pending: 1_000_000 - finished,
            running: 0,
            finished,
            failed: 0,
            priority: 0,
            note: String::new(),
        }
    }

    #[test]
    fn folds_an_hour_are_those_of_the_last_ten_minutes_and_little_is_kept() {
        let mut pace = Pace::default();
        assert_eq!(pace.an_hour("a"), None);
        for half in 0..=7_200_u64 {
            pace.note(Duration::from_millis(500 * half), &[sweep(half / 2)]);
            assert_eq!(pace.an_hour("a").is_some(), half >= 120, "{half}");
            assert!(pace.0["a"].len() <= MOMENTS);
        }
        assert!((3_580..=3_620).contains(&pace.an_hour("a").unwrap()), "{:?}", pace.an_hour("a"));
        // Nothing more finishes: ten minutes later nothing has.
        for second in 3_600..=4_260 {
            pace.note(Duration::from_secs(second), &[sweep(3_600)]);
        }
        assert_eq!(pace.an_hour("a"), Some(0));
        pace.note(Duration::from_secs(5_000), &[]);
        assert_eq!(pace.an_hour("a"), None);
    }
}
