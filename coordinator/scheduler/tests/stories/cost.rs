//! What a lease decision costs: places looked at, counted by the scheduler itself. Each costs the depth of a
//! tree, so a bounded number of them is O(log n). And what it costs to look: folds that are looked at.

use togl_scheduler::{Event, Submission};
use togl_sweeps::{FailureClass, FoldKey, TrialId};

use crate::world::{World, info, submission, sweep, worker};

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

/// Folds that are looked at by each look at a sweep of so many trials, a few folds of which run or have failed.
fn looked_at(trials: u64) -> Vec<(&'static str, u64)> {
    let mut world = World::default();
    world.checks = false;
    world.submit(large("s", trials, 10));
    world.join("w", "h", 8);
    let leases = world.leases("w", 8);
    for lease in &leases[..3] {
        world.fail("w", lease, FailureClass::Config);
    }
    let (scheduler, now, name) = (&world.scheduler, world.now, sweep("s"));
    let number = scheduler.follow(&name, None, 10).unwrap().number;
    let cost = |look: &dyn Fn()| {
        let before = scheduler.looked_at();
        look();
        scheduler.looked_at() - before
    };
    vec![
        ("sweep", cost(&|| drop(scheduler.sweep(&name)))),
        ("sweeps", cost(&|| drop(scheduler.sweeps()))),
        ("detail", cost(&|| drop(scheduler.sweep_detail(now, &name)))),
        ("follow", cost(&|| drop(scheduler.follow(&name, Some(number), 10)))),
        ("explain", cost(&|| drop(scheduler.explain(now, &leases[4].fold)))),
        ("workers", cost(&|| drop(scheduler.workers()))),
        ("totals", cost(&|| _ = scheduler.totals())),
        ("disputes", cost(&|| drop(scheduler.disputes()))),
        ("compare", cost(&|| _ = scheduler.compare(&name, &[leases[0].fold]))),
    ]
}

#[test]
fn a_look_costs_what_it_shows_however_many_folds_there_are() {
    let (few, many) = (looked_at(10), looked_at(1_000));
    assert_eq!(few, many, "folds looked at, in a sweep of 100 and of 10,000");
    let most = many.iter().map(|(_, folds)| *folds).max();
    assert!(most < Some(30), "{many:?}");
}
