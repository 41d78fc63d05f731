//! What training is asked for from outside: to save, or to save and stop. Signals and the agent leave a wish here;
//! training looks at it after every epoch. Owns the signal handler and nothing else.

use std::sync::atomic::{AtomicBool, Ordering};

use togl_learning::Flow;

static SAVE: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(false);

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

/// The wish to follow now; a wish to save is followed once.
pub fn next() -> Flow {
    match (is_stopping(), SAVE.swap(false, Ordering::Relaxed)) {
        (true, _) => Flow::SaveAndStop,
        (false, true) => Flow::Save,
        (false, false) => Flow::Continue,
    }
}

/// Takes the first of each of these signals as the wish to stop; the second does what it always did.
pub fn stop_on(signals: &[libc::c_int]) {
    for signal in signals {
        // SAFETY: an all-zero `sigaction` is a valid value of that plain C struct.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = remember as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
        // SAFETY: `action` lives through the call, no old action is asked for, and the handler only stores to an
        // atomic, which a signal may interrupt at any point.
        unsafe { libc::sigaction(*signal, &raw const action, std::ptr::null_mut()) };
    }
}

extern "C" fn remember(_signal: libc::c_int) {
    stop();
}
