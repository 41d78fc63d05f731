//! An allocator that refuses what no small file needs, for tests of readers: whoever believes a length dies here.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Far below what a believed length or label could cost, far above what honest small files do.
const MOST_BYTES: usize = 600 << 20;

/// Refuses what no small file needs, so that a reader which asks for it dies here and not on a user's machine.
struct Bounded;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

// SAFETY: memory comes from the system's allocator unchanged; only the count is added.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if TAKEN.fetch_add(layout.size(), Ordering::Relaxed) + layout.size() > MOST_BYTES {
            TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;
