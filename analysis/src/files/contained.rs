//! Work on a stranger's file with a library that may panic on it. The panic becomes an answer, and nothing of it is printed.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many such works are under way: the library works on threads of its own, so a panic says not which one it was.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
static QUIET: Once = Once::new();

/// What `work` gives, or nothing if it panicked.
pub fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    QUIET.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if UNDER_WAY.load(Ordering::Relaxed) == 0 {
                usual(panic);
            }
        }));
    });
    UNDER_WAY.fetch_add(1, Ordering::Relaxed);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
    outcome.ok()
}

#[cfg(test)]
mod tests {
    use super::contained;

    #[test]
    fn a_panic_is_an_answer() {
        assert_eq!(contained(|| 1), Some(1));
        assert_eq!(contained(|| -> u8 { panic!("the library gave up") }), None);
        assert_eq!(contained(|| 2), Some(2));
    }
}
