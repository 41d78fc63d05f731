//! Failures end: one test per rule about what a failure leads to.

use togl_scheduler::{Event, FailureAnswer, FoldState, Reply};
use togl_sweeps::FailureClass;

use crate::world::{World, fold, submission, sweep, worker};

/// Leases fold 0 on a fresh worker of `host` and loses that worker.
fn lose(world: &mut World, name: &str, host: &str) {
    let joined = world.join(name, host, 1);
    world.lease(name);
    world.tell(Event::WorkerDisconnected { worker: worker(name), session: joined.session });
    world.pass(2_000);
}

#[test]
fn a_fold_of_a_lost_worker_is_tried_again() {
    let mut world = World::default();
    world.submit(submission("s", [0]));
    lose(&mut world, "a", "one");
    assert_eq!(world.state(fold(0)), FoldState::Pending);
}

#[test]
fn three_distinct_hosts_lost_under_a_fold_put_the_blame_on_it() {
    let mut world = World::default();
    world.submit(submission("s", [0]));
    for (name, host) in [("a", "one"), ("b", "two"), ("c", "two"), ("d", "three")] {
        assert_eq!(world.state(fold(0)), FoldState::Pending, "before {name}");
        lose(&mut world, name, host);
    }
    let failure = world.failure(fold(0));
    assert_eq!(failure.class, FailureClass::KillsItsWorker);
    assert_eq!(failure.message, "3 hosts were lost while they trained it: one, three, two");
}

#[test]
fn losses_on_one_host_are_free_ten_times() {
    let mut world = World::default();
    let mut patient = submission("s", [0]);
    patient.limits.attempts = 100;
    world.submit(patient);
    for round in 0..10 {
        assert_eq!(world.state(fold(0)), FoldState::Pending, "round {round}");
        lose(&mut world, &format!("w{round}"), "one");
    }
    let failure = world.failure(fold(0));
    assert_eq!(failure.class, FailureClass::WorkerLost);
    assert!(failure.message.ends_with("its workers were lost 10 times, which is the limit"), "{failure}");
}

#[test]
fn preemptions_do_not_count_as_lost_hosts() {
    let mut world = World::default();
    world.submit(submission("s", [0]));
    for name in ["a", "b", "c", "d"] {
        world.join(name, name, 1);
        world.lease(name);
        world.leave(name);
    }
    assert_eq!(world.state(fold(0)), FoldState::Pending);
}

#[test]
fn settings_that_cannot_be_trained_fail_at_once() {
    let mut world = World::with_sweep(1, 1);
    let lease = world.lease("w");
    assert_eq!(world.fail("w", &lease, FailureClass::Config), FailureAnswer::Failed);
    assert_eq!(world.failure(fold(0)).message, "a config on purpose");
}

#[test]
fn running_out_of_memory_twice_is_final_and_comes_with_a_hint() {
    let mut world = World::with_sweep(1, 1);
    world.join("v", "elsewhere", 1);
    let lease = world.lease("w");
    assert_eq!(world.fail("w", &lease, FailureClass::OutOfMemory), FailureAnswer::Retried);
    let lease = world.lease("v");
    assert_eq!(world.fail("v", &lease, FailureClass::OutOfMemory), FailureAnswer::Failed);
    let failure = world.failure(fold(0));
    assert_eq!(failure.class, FailureClass::OutOfMemory);
    assert!(failure.message.contains("hint: lower `batch_size`"), "{failure}");
}

#[test]
fn deterministic_errors_are_tried_once_more_and_then_final() {
    use FailureClass::{Crashed, Data, Error, NotFinite, TimeLimit};
    for class in [NotFinite, Error, Crashed, Data, TimeLimit] {
        let mut world = World::with_sweep(1, 1);
        world.join("v", "elsewhere", 1);
        let lease = world.lease("w");
        assert_eq!(world.fail("w", &lease, class), FailureAnswer::Retried);
        let lease = world.lease("v");
        assert_eq!(world.fail("v", &lease, class), FailureAnswer::Failed);
        assert_eq!(world.failure(fold(0)).class, class);
    }
}

#[test]
fn data_that_every_host_lacks_is_not_looked_for_again_after_a_pause() {
    let mut world = World::with_sweep(1, 1);
    world.join("again", "h", 1);
    let lease = world.lease("w");
    assert_eq!(
        world.fail("w", &lease, FailureClass::Data),
        FailureAnswer::Failed,
        "both workers share a host"
    );
    let failure = world.failure(fold(0));
    assert_eq!(failure.class, FailureClass::Data);
    assert!(failure.message.ends_with("; every host that is here has tried"), "{failure}");
}

#[test]
fn a_fold_that_failed_on_a_worker_waits_a_minute_before_the_same_one_gets_it_again() {
    let mut world = World::with_sweep(2, 1);
    let lease = world.lease("w");
    world.fail("w", &lease, FailureClass::NotFinite);
    let other = world.lease("w");
    assert_eq!(other.fold, fold(1), "the failed fold is left for others");
    world.report("w", &other, 0.5);
    assert_eq!(world.leases("w", 1), []);
    for _ in 0..6 {
        world.pass(10_000);
        world.renew("w", &[]);
    }
    assert_eq!(world.lease("w").fold, fold(0));
}

#[test]
fn a_fold_that_failed_on_a_worker_goes_to_another_one_at_once() {
    let mut world = World::with_sweep(3, 1);
    let lease = world.lease("w");
    world.fail("w", &lease, FailureClass::NotFinite);
    world.join("v", "elsewhere", 1);
    assert_eq!(world.lease("v").fold, fold(0));
}

#[test]
fn a_sweep_can_limit_all_attempts() {
    let mut world = World::default();
    let mut strict = submission("s", [0]);
    strict.limits.attempts = 1;
    world.submit(strict);
    lose(&mut world, "a", "one");
    let failure = world.failure(fold(0));
    assert_eq!(failure.class, FailureClass::WorkerLost);
    assert!(failure.message.ends_with("`limits.attempts` of its sweep allows no more than 1"), "{failure}");
}

#[test]
fn the_loosest_limits_of_the_sweeps_that_want_a_fold_count() {
    let mut world = World::default();
    for (name, attempts) in [("strict", 1), ("patient", 2)] {
        let mut submission = submission(name, [0]);
        submission.limits.attempts = attempts;
        world.submit(submission);
    }
    lose(&mut world, "a", "one");
    assert_eq!(world.state(fold(0)), FoldState::Pending);
    lose(&mut world, "b", "one");
    assert_eq!(world.failure(fold(0)).class, FailureClass::WorkerLost);
}

#[test]
fn retry_gives_failed_folds_a_clean_slate_and_submitting_does_not() {
    let mut world = World::with_sweep(2, 1);
    let lease = world.lease("w");
    world.fail("w", &lease, FailureClass::Config);
    let submitted = world.submit(submission("t", [0, 1]));
    assert_eq!((submitted.failed, submitted.already_done), (1, 0));
    assert_eq!(world.view("t").counts.failed, 1);

    assert_eq!(world.tell(Event::Retry { sweep: sweep("s") }), Reply::Retried { folds: 1 });
    let again = world.lease("w");
    assert_eq!(again.fold, lease.fold);
    assert_eq!(world.fail("w", &again, FailureClass::NotFinite), FailureAnswer::Retried, "counts anew");
}
