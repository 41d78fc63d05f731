//! What a lease decision costs: places looked at, counted by the scheduler itself. Each costs the depth of a
//! tree, so a bounded number of them is O(log n).

use togl_scheduler::{Event, Submission};
use togl_sweeps::{FailureClass, FoldKey, TrialId};

use crate::world::{World, info, submission, worker};

fn large(name: &str, trials: u64, folds: u32) -> Submission {
    let id = |n: u64| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&n.to_be_bytes());
        TrialId::from_bytes(bytes)
    };
    Submission {
        trials: (0..trials).map(|n| (id(n), "{}".to_owned())).collect(),
        folds: (0..trials)
            .flat_map(|n| (0..folds).map(move |split| FoldKey { trial: id(n), split, seed: 0 }))
            .collect(),
        ..submission(name, [0])
    }
}

/// Steps per lease of 400 leases in a world of `trials` trials where everything that holds folds up happens.
fn steps(trials: u64) -> u64 {
    let mut world = World::default();
    world.checks = false;
    world.submit(large("s", trials, 10));
    for (name, memory, version) in [("small", 8, "old"), ("large", 16, "new")] {
        let mut info = info(name, 64);
        (info.memories, info.code_version) = (vec![memory; 64], version.to_owned());
        world.tell(Event::WorkerJoined { worker: worker(name), info, running: vec![] });
    }
    let mut classes =
        [FailureClass::OutOfMemory, FailureClass::Unreadable, FailureClass::Crashed].iter().cycle();
    for _ in 0..30 {
        let lease = world.lease("small");
        world.fail("small", &lease, *classes.next().unwrap());
    }
    let before = world.scheduler.steps();
    for round in 0..400 {
        let name = if round % 2 == 0 { "small" } else { "large" };
        let lease = world.lease(name);
        world.report(name, &lease, 0.5);
    }
    world.scheduler.steps() - before
}

#[test]
fn a_lease_costs_the_same_number_of_steps_however_many_folds_there_are() {
    let (few, many) = (steps(100), steps(10_000));
    assert!(many <= few, "{few} steps with 1,000 folds, {many} with 100,000");
    assert!(many < 400 * 8, "{many} steps for 400 leases");
}
