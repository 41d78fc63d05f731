//! How many folds could start now if there were slots: what counts, what does not, what it costs to ask, and that a worker
//! that will not live long is given only what it can end. That the counts are what one finds by asking fold by fold is
//! checked by the world after every event of every story.

use togl_scheduler::{Event, FailureAnswer, FoldShape, Reason};
use togl_sweeps::FailureClass;
use togl_sweeps::result::example;
use togl_sweeps::spec::{DeviceKind, Resources};

use crate::world::{World, fold, info, submission, sweep, worker};

const GIB: u64 = 1 << 30;

fn shape(folds: u64, free_slots: u64) -> FoldShape {
    FoldShape { device: DeviceKind::Any, memory: 0, resumable: true, p90_seconds: None, folds, free_slots }
}

fn shapes(world: &World) -> Vec<FoldShape> {
    world.scheduler.demand(world.now).shapes
}

/// A sweep of kernels, which begin anew wherever they go.
fn kernels(name: &str, folds: std::ops::Range<u32>) -> togl_scheduler::Submission {
    let mut kernels = submission(name, folds);
    for (_, canonical) in &mut kernels.trials {
        *canonical = "{\"canonical\":1,\"dataset\":\"MUTAG\",\"model\":\"wl\",\"numerics\":1}".to_owned();
    }
    kernels
}

/// A worker that says how long it will live and whether others can go on from its checkpoints.
fn join_for(world: &mut World, name: &str, slots: u32, seconds: u64, moves: bool) {
    let mut info = info(name, slots);
    (info.seconds_left, info.moves_checkpoints) = (Some(seconds), moves);
    world.tell(Event::WorkerJoined { worker: worker(name), info, running: vec![] });
}

/// Finishes one fold that took so long.
fn finish(world: &mut World, name: &str, seconds: f64) {
    let lease = world.lease(name);
    let result = togl_sweeps::FoldResult { seconds, ..example(0.5) };
    world.report_result(name, lease.fold, lease.attempt, result);
}

#[test]
fn demand_is_what_waits_less_the_slots_that_are_free_for_it() {
    let mut world = World::default();
    assert_eq!(shapes(&world), []);
    world.submit(submission("s", 0..10));
    assert_eq!(shapes(&world), [shape(10, 0)]);
    world.join("w", "h", 3);
    assert_eq!(shapes(&world), [shape(10, 3)]);
    assert_eq!(world.scheduler.demand(world.now).slots_wanted(), 7);
    world.leases("w", 2);
    assert_eq!(shapes(&world), [shape(8, 1)]);
    world.leave("w");
    assert_eq!(shapes(&world), [shape(10, 0)]);
}

#[test]
fn a_fold_of_several_sweeps_counts_once_and_a_pause_takes_out_what_no_other_sweep_has() {
    let mut world = World::default();
    world.submit(submission("s", 0..6));
    world.submit(submission("t", 4..9));
    assert_eq!(shapes(&world), [shape(9, 0)]);
    world.tell(Event::Pause { sweep: sweep("s") });
    assert_eq!(shapes(&world), [shape(5, 0)]);
    world.cancel("t");
    assert_eq!(shapes(&world), []);
    world.tell(Event::Resume { sweep: sweep("s") });
    assert_eq!(shapes(&world), [shape(6, 0)]);
}

#[test]
fn shapes_tell_device_and_memory_with_what_was_learnt_and_no_slot_counts_twice() {
    let mut world = World::default();
    let mut wants = submission("gpu", 0..4);
    wants.resources = Resources { device: DeviceKind::Cuda, memory: Some(8 * GIB) };
    world.submit(wants);
    world.submit(submission("any", 4..8));
    world.join_devices("w", "h", &[("cuda:0", 8 * GIB), ("cpu", 0)]);
    let gpu = FoldShape { device: DeviceKind::Cuda, memory: 8 * GIB, ..shape(4, 1) };
    assert_eq!(shapes(&world), [gpu.clone(), shape(4, 1)]);
    world.tell(Event::Pause { sweep: sweep("any") });
    world.join_devices("larger", "i", &[("cuda:0", 80 * GIB)]);
    let lease = world.lease("w");
    world.fail("w", &lease, FailureClass::OutOfMemory);
    let learnt = FoldShape { memory: 8 * GIB + 1, folds: 4, free_slots: 1, ..gpu };
    assert_eq!(shapes(&world), [learnt], "the floor is the trial's, and only one slot is above it");
}

#[test]
fn slots_of_workers_that_are_given_nothing_are_not_free() {
    let mut world = World::with_sweep(6, 2);
    world.join("x", "i", 1);
    world.tell(Event::Drain { worker: worker("x") });
    assert_eq!(shapes(&world), [shape(6, 2)], "one drains");
    let session = world.session("w");
    world.tell(Event::WorkerDisconnected { worker: worker("w"), session });
    assert_eq!(shapes(&world), [shape(6, 0)], "the other one is not here at the moment");
}

#[test]
fn a_look_at_the_demand_costs_no_fold_however_many_there_are() {
    let mut world = World::default();
    world.checks = false;
    world.submit(submission("s", 0..1_000));
    world.join("w", "h", 8);
    world.leases("w", 4);
    let before = world.scheduler.looked_at();
    assert_eq!(shapes(&world), [shape(996, 4)]);
    assert_eq!(world.scheduler.looked_at(), before);
}

#[test]
fn a_worker_gets_no_kernel_that_it_cannot_end_and_gets_the_networks_beside_them() {
    let mut world = World::default();
    world.submit(kernels("slow", 0..4));
    world.join("w", "h", 1);
    finish(&mut world, "w", 1_000.0);
    let p90 = shapes(&world)[0].p90_seconds.unwrap();
    assert!((1_000..=1_250).contains(&p90), "{p90}");
    assert!(!shapes(&world)[0].resumable);
    world.leave("w");
    join_for(&mut world, "short", 1, p90 * 3 / 2 + 119, true);
    assert_eq!(world.leases("short", 1), [], "half as much again and two minutes more are asked for");
    assert_eq!(shapes(&world)[0].free_slots, 0, "its slot is free for others only");
    let reason = world.scheduler.explain(world.now, &fold(1)).unwrap().reason;
    assert_eq!(reason, Reason::NoTime { seconds: p90 });
    world.submit(submission("networks", 4..8));
    assert_eq!(world.lease("short").fold, fold(4));
    join_for(&mut world, "long", 1, p90 * 3 / 2 + 121, true);
    assert_eq!(world.lease("long").fold, fold(1), "what was put aside for one is there for another");
}

#[test]
fn a_network_goes_to_a_short_lived_worker_exactly_if_its_checkpoints_move() {
    let mut world = World::default();
    world.submit(submission("s", 0..8));
    world.join("w", "h", 1);
    finish(&mut world, "w", 1_000.0);
    world.leave("w");
    join_for(&mut world, "keeps", 1, 600, false);
    assert_eq!(world.leases("keeps", 1), []);
    join_for(&mut world, "moves", 1, 600, true);
    world.lease("moves");
    world.pass(590_000 - world.now.0);
    join_for(&mut world, "late", 1, 0, true);
    assert_eq!(world.leases("late", 1), [], "its time is over");
}

#[test]
fn a_fold_that_takes_days_gets_through_on_jobs_of_a_few_hours() {
    let mut world = World::with_sweep(1, 1);
    for _ in 0..50 {
        let lease = world.lease("w");
        assert_eq!(world.fail("w", &lease, FailureClass::Preempted), FailureAnswer::Retried);
        world.leave("w");
        world.pass(3_600_000);
        world.join("w", "h", 1);
    }
    let lease = world.lease("w");
    world.report("w", &lease, 0.5);
}

#[test]
fn what_no_version_can_read_is_no_reason_to_start_workers() {
    let mut world = World::with_sweep(4, 1);
    let lease = world.lease("w");
    world.fail("w", &lease, FailureClass::Unreadable);
    assert_eq!(shapes(&world), []);
    let mut newer = info("new", 1);
    newer.code_version = "newer".to_owned();
    world.tell(Event::WorkerJoined { worker: worker("new"), info: newer, running: vec![] });
    assert_eq!(shapes(&world), [shape(4, 1)], "the newer one may be able to");
}
