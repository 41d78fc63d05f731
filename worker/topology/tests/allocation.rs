//! After a first call has grown the scratch memory, computing a batch of the same size allocates nothing.
//! Counts every allocation of this test program, so the file holds a single test.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like the tests themselves")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
};

use togl_topology::{IndexTables, RandomGraphs};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on unchanged to the system allocator; counting touches no memory but its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above, hence from the system allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as for `dealloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of three calls after a first one.
fn later_allocations(workload: RandomGraphs) -> usize {
    let (batch, values) = workload.random().unwrap();
    let mut tables = IndexTables::default();
    let mut compute = || tables.compute(&batch, &values, workload.filtrations).unwrap();
    compute();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    (0..3).for_each(|_| compute());
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn a_warm_workspace_allocates_nothing() {
    for (vertices, edges) in [(33, 62), (284, 716), (5, 0)] {
        let workload = RandomGraphs { vertices, edges, filtrations: 8, graphs: 20, repeats: 1 };
        assert_eq!(later_allocations(workload), 0, "{workload:?}");
    }
}
