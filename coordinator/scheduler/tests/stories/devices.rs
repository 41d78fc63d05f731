//! Which slot trains what: kinds of devices, memory, versions of the worker program.

use togl_scheduler::{Event, FailureAnswer, FoldState, Reason};
use togl_sweeps::FailureClass;
use togl_sweeps::spec::{DeviceKind, Resources};

use crate::world::{World, fold, info, submission, worker};

const GIB: u64 = 1 << 30;

fn wanting(name: &str, folds: std::ops::Range<u32>, device: DeviceKind, memory: Option<u64>) -> World {
    let mut world = World::default();
    let mut wants = submission(name, folds);
    wants.resources = Resources { device, memory };
    world.submit(wants);
    world
}

fn reason(world: &World, n: u32) -> Reason {
    world.scheduler.explain(world.now, &fold(n)).unwrap().reason
}

#[test]
fn a_sweep_that_asks_for_a_kind_of_device_runs_on_no_other() {
    let mut world = wanting("s", 0..2, DeviceKind::Cuda, None);
    world.join_devices("cpus", "a", &[("cpu", 0), ("cpu", 0)]);
    assert_eq!(world.leases("cpus", 2), []);
    assert_eq!(reason(&world, 0), Reason::NoSuchDevice { device: DeviceKind::Cuda, memory: 0 });
    assert_eq!(reason(&world, 0).to_string(), "no connected worker has a cuda slot");
    world.join_devices("both", "b", &[("cpu", 0), ("cuda:0", 0)]);
    let leases = world.leases("both", 2);
    assert_eq!(leases.iter().map(|lease| lease.slot).collect::<Vec<_>>(), [1], "the one slot that fits");
    assert_eq!(reason(&world, 1), Reason::AllBusy { slots: 4 });
}

#[test]
fn a_sweep_that_asks_for_memory_runs_where_there_is_enough_or_nobody_knows() {
    let mut world = wanting("s", 0..3, DeviceKind::Any, Some(8 * GIB));
    world.join_devices("w", "a", &[("cuda:0", 4 * GIB), ("cuda:1", 8 * GIB), ("cuda:2", 0)]);
    let slots: Vec<u32> = world.leases("w", 3).iter().map(|lease| lease.slot).collect();
    assert_eq!(slots, [1, 2]);
}

#[test]
fn a_sweep_that_cannot_run_here_does_not_hold_up_the_others() {
    let mut world = wanting("gpu", 0..2, DeviceKind::Cuda, None);
    world.submit(submission("any", 4..6));
    world.join_devices("cpu", "a", &[("cpu", 0)]);
    assert_eq!(world.lease("cpu").fold, fold(4));
}

#[test]
fn a_shared_fold_runs_wherever_one_of_its_sweeps_lets_it() {
    let mut world = wanting("gpu", 0..1, DeviceKind::Cuda, None);
    world.submit(submission("any", 0..1));
    world.join_devices("cpu", "a", &[("cpu", 0)]);
    assert_eq!(world.lease("cpu").fold, fold(0));
}

#[test]
fn running_out_of_memory_raises_the_floor_of_the_trial_and_goes_to_a_larger_device() {
    let mut world = World::default();
    world.submit(submission("s", 0..8)); // two trials of four folds
    world.join_devices("small", "a", &[("cuda:0", 8 * GIB)]);
    world.join_devices("large", "b", &[("cuda:0", 16 * GIB)]);
    let lease = world.lease("small");
    assert_eq!(world.fail("small", &lease, FailureClass::OutOfMemory), FailureAnswer::Retried);
    assert_eq!(world.lease("small").fold, fold(4), "no fold of that trial goes to the small one again");
    assert_eq!(world.lease("large").fold, fold(0));
    world.restart();
    world.join_devices("small", "a", &[("cuda:0", 8 * GIB)]);
    assert_eq!(world.lease("small").fold, fold(4), "the floor survives a restart");
}

#[test]
fn a_larger_slot_of_the_same_worker_is_large_enough() {
    let mut world = World::default();
    world.submit(submission("s", 0..1));
    world.join_devices("w", "a", &[("cuda:0", 8 * GIB), ("cuda:1", 16 * GIB)]);
    let lease = world.lease("w");
    assert_eq!(lease.slot, 0);
    world.fail("w", &lease, FailureClass::OutOfMemory);
    assert_eq!(world.lease("w").slot, 1);
}

#[test]
fn out_of_memory_on_the_largest_device_ever_seen_is_final_and_comes_with_a_hint() {
    let mut world = World::default();
    world.submit(submission("s", 0..1));
    world.join_devices("w", "a", &[("cuda:0", 8 * GIB)]);
    let lease = world.lease("w");
    assert_eq!(world.fail("w", &lease, FailureClass::OutOfMemory), FailureAnswer::Failed);
    let failure = world.failure(fold(0));
    assert!(failure.message.contains("no device with more than 8.0 GiB was seen; hint: lower"), "{failure}");
}

#[test]
fn a_larger_device_of_a_kind_that_the_sweep_does_not_take_does_not_count_as_seen() {
    let mut world = wanting("s", 0..1, DeviceKind::Cuda, None);
    world.join_devices("w", "a", &[("cuda:0", 8 * GIB), ("cpu", 64 * GIB)]);
    let lease = world.lease("w");
    assert_eq!(world.fail("w", &lease, FailureClass::OutOfMemory), FailureAnswer::Failed);
}

#[test]
fn a_fold_that_waits_for_a_larger_device_says_so() {
    let mut world = World::default();
    world.submit(submission("s", 0..1));
    world.join_devices("small", "a", &[("cuda:0", 8 * GIB)]);
    world.join_devices("large", "b", &[("cuda:0", 16 * GIB)]);
    let lease = world.lease("small");
    world.fail("small", &lease, FailureClass::OutOfMemory);
    world.leave("large");
    assert_eq!(world.leases("small", 1), []);
    assert_eq!(
        reason(&world, 0).to_string(),
        "no connected worker has a device slot with 8.0 GiB of memory",
        "the floor is one byte more than the small one has"
    );
}

#[test]
fn a_trial_that_an_old_worker_cannot_read_is_given_to_nobody_of_that_version() {
    let mut world = World::default();
    world.submit(submission("s", [0, 1, 4]));
    for (name, version) in [("old", "0.1"), ("old2", "0.1"), ("new", "0.2")] {
        let mut info = info(name, 2);
        info.code_version = version.to_owned();
        world.tell(Event::WorkerJoined { worker: worker(name), info, running: vec![] });
    }
    let lease = world.lease("old");
    assert_eq!(world.fail("old", &lease, FailureClass::Unreadable), FailureAnswer::Retried);
    assert_eq!(world.lease("old").fold, fold(4), "the other trial is readable");
    assert_eq!(world.leases("old2", 2), [], "same version, same trial");
    let folds: Vec<_> = world.leases("new", 2).iter().map(|lease| lease.fold).collect();
    assert_eq!(folds, [fold(0), fold(1)]);
}

#[test]
fn a_trial_that_nobody_can_read_waits_and_says_so_and_is_never_failed_for_it() {
    let mut world = World::default();
    world.submit(submission("s", [0]));
    for version in 0..12 {
        let name = format!("w{version}");
        let mut info = info("h", 1);
        info.code_version = format!("0.{version}");
        world.tell(Event::WorkerJoined { worker: worker(&name), info, running: vec![] });
        let lease = world.lease(&name);
        world.fail(&name, &lease, FailureClass::Unreadable);
        assert_eq!(world.leases(&name, 1), []);
    }
    assert_eq!(world.state(fold(0)), FoldState::Pending);
    let reason = reason(&world, 0).to_string();
    assert!(reason.starts_with("no connected worker can read its settings (tried: 0.0, 0.1,"), "{reason}");
}
