//! What training is asked for from outside: to save, or to save and stop. Signals and the agent leave a wish here;
//! training looks at it after every epoch, and after every batch once patience is over. Owns the signal handler and
//! how long an epoch may keep others waiting.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::flag;
use togl_learning::Flow;

static SAVE: AtomicBool = AtomicBool::new(false);
static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Asks for a checkpoint after this epoch.
pub fn save() {
    SAVE.store(true, Ordering::Relaxed);
}

/// Asks to save and stop after this epoch.
pub fn stop() {
    STOP.store(true, Ordering::Relaxed);
}

/// Whether somebody asked to stop.
pub fn is_stopping() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Seconds that an epoch may go on after somebody asked to stop; less than workers give their folds (`--grace`).
const PATIENCE: f64 = 5.0;

/// For how long somebody has been waiting for the stop.
#[derive(Debug, Default)]
struct Patience {
    since: Option<f64>,
}

impl Patience {
    /// Whether the epoch in hand must be cut short. `now` is in seconds since any fixed moment.
    fn is_over(&mut self, stopping: bool, now: f64) -> bool {
        stopping && now - *self.since.get_or_insert(now) > PATIENCE
    }
}

/// What training asks after every batch: whether patience with the epoch in hand is over, by this clock in seconds.
pub fn haste(seconds: impl Fn() -> f64) -> impl FnMut() -> bool {
    let mut patience = Patience::default();
    move || patience.is_over(is_stopping(), seconds())
}

/// The wish to follow now; a wish to save is followed once.
pub fn next() -> Flow {
    match (is_stopping(), SAVE.swap(false, Ordering::Relaxed)) {
        (true, _) => Flow::SaveAndStop,
        (false, true) => Flow::Save,
        (false, false) => Flow::Continue,
    }
}

/// Takes the first of each of these signals as the wish to stop; the second does what it always did.
pub fn stop_on(signals: &[libc::c_int]) -> io::Result<()> {
    for &signal in signals {
        let came = Arc::new(AtomicBool::new(false));
        flag::register_conditional_default(signal, Arc::clone(&came))?;
        flag::register(signal, came)?;
        flag::register(signal, Arc::clone(&STOP))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_may_end_within_a_few_seconds_of_the_stop_and_is_cut_short_afterwards() {
        let mut patience = Patience::default();
        assert!(!patience.is_over(false, 1000.0), "nobody waits");
        assert!(!patience.is_over(true, 2000.0), "the time counts from the wish");
        assert!(!patience.is_over(true, 2000.0 + PATIENCE));
        assert!(patience.is_over(true, 2000.1 + PATIENCE));
    }
}
