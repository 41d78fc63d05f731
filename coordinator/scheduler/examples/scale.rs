//! How the scheduler scales: bytes a fold, time and steps a lease, time to start from a store, for growing numbers
//! of folds. Prints one line each; asserts nothing, because times depend on the machine.
//!
//! `cargo run -p togl-scheduler --example scale -- 1000000`

#![expect(clippy::unwrap_used, reason = "a program for people who measure")]
#![expect(clippy::print_stdout, reason = "printing is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use togl_scheduler::{Event, Limits, Reply, Scheduler, Snapshot, Submission, Timestamp, WorkerInfo};
use togl_sweeps::result::example;
use togl_sweeps::trial::NUMERICS;
use togl_sweeps::{FoldKey, TrialId, WorkerId};

/// The system's allocator, with a count of what is in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are the system's conditions.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const FOLDS_A_TRIAL: u64 = 10;
const SLOTS: u32 = 64;

fn trial(number: u64) -> TrialId {
    let digest = blake3::hash(&number.to_le_bytes());
    TrialId::from_bytes(digest.as_bytes()[..16].try_into().unwrap())
}

fn submission(folds: u64) -> Submission {
    let trials = folds.div_ceil(FOLDS_A_TRIAL);
    let canonical = |n: u64| {
        format!(
            "{{\"canonical\":1,\"dataset\":\"PROTEINS_full\",\"depth\":4,\"hidden_dim\":{n},\"lr\":0.0007,\
             \"numerics\":{NUMERICS},\"togl\":true,\"togl_position\":1}}"
        )
    };
    let folds = (0..folds).map(|n| FoldKey {
        trial: trial(n / FOLDS_A_TRIAL),
        split: u32::try_from(n % FOLDS_A_TRIAL).unwrap(),
        seed: 0,
    });
    Submission {
        name: "scale".parse().unwrap(),
        yaml: "scale".to_owned(),
        priority: 0,
        limits: togl_sweeps::spec::SweepLimits { max_folds: u64::MAX, ..Default::default() },
        resources: Default::default(),
        race: None,
        data_digests: vec![],
        trials: (0..trials).map(|n| (trial(n), canonical(n))).collect(),
        folds: folds.collect(),
        gathered: 0,
    }
}

/// Leases everything, slot by slot, and reports it. Says how many steps that took.
fn finish(scheduler: &mut Scheduler, worker: &WorkerId) -> u64 {
    let before = scheduler.steps();
    loop {
        let ask = Event::LeasesAsked { worker: worker.clone(), count: SLOTS };
        let Reply::Leases(leases) = scheduler.handle(Timestamp(0), ask).unwrap().reply else { panic!() };
        if leases.is_empty() {
            return scheduler.steps() - before;
        }
        for lease in leases {
            let (fold, attempt, result) =
                (lease.fold, lease.attempt, Box::new(example(0.5).check().expect("an example")));
            let report = Event::ResultReported { worker: worker.clone(), fold, attempt, result };
            scheduler.handle(Timestamp(0), report).unwrap();
        }
    }
}

fn measure(folds: u64) {
    let sent = Event::Submit(Box::new(submission(folds)));
    let empty = IN_USE.load(Ordering::Relaxed);
    let mut scheduler = Scheduler::restore(Limits::default(), Snapshot::default(), Timestamp(0));
    let start = Instant::now();
    drop(scheduler.handle(Timestamp(0), sent).unwrap());
    let submitted = start.elapsed();
    // The submission itself was counted before and is gone now: what is left is the scheduler and its texts.
    let pending = IN_USE.load(Ordering::Relaxed);
    let worker: WorkerId = "worker".parse().unwrap();
    let info =
        WorkerInfo { host: "host".to_owned(), slots: SLOTS, numerics: NUMERICS, ..WorkerInfo::default() };
    scheduler
        .handle(Timestamp(0), Event::WorkerJoined { worker: worker.clone(), info, running: vec![] })
        .unwrap();
    let start = Instant::now();
    let steps = finish(&mut scheduler, &worker);
    let finished = start.elapsed();
    let snapshot = scheduler.snapshot();
    drop(scheduler);
    let start = Instant::now();
    let scheduler = Scheduler::restore(Limits::default(), snapshot, Timestamp(0));
    let restored = start.elapsed();
    let after = IN_USE.load(Ordering::Relaxed);
    let each = |bytes: usize| bytes as f64 / folds as f64;
    println!(
        "{folds} folds: submit {submitted:.1?}, lease and report {:.2} µs and {:.2} steps a fold, start with all \
         finished {restored:.1?}, {:.0} bytes a finished fold with settings ({:.0} held before the start, {:.0} while \
         pending)",
        finished.as_secs_f64() * 1e6 / folds as f64,
        steps as f64 / folds as f64,
        each(after),
        each(empty),
        each(pending),
    );
    drop(scheduler);
}

fn main() {
    let largest: u64 = std::env::args().nth(1).map_or(1_000_000, |text| text.parse().unwrap());
    for folds in [largest / 100, largest / 10, largest] {
        measure(folds);
    }
}
