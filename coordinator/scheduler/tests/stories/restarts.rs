//! The coordinator dies and starts again from its store.

use togl_scheduler::{Connection, Event, FailureAnswer, FoldState, Lease, ResultAnswer};
use togl_sweeps::FailureClass;

use crate::world::{World, fold, submission, sweep, worker};

#[test]
fn nothing_finished_is_trained_again() {
    let mut world = World::with_sweep(2, 1);
    let lease = world.lease("w");
    world.report("w", &lease, 0.5);
    world.restart();
    world.join("w", "h", 2);
    let folds: Vec<_> = world.leases("w", 2).into_iter().map(|lease| lease.fold).collect();
    assert_eq!(folds, [fold(1)]);
}

#[test]
fn running_folds_get_one_fresh_term_and_their_workers_go_on() {
    let mut world = World::with_sweep(2, 2);
    let leases = world.leases("w", 2);
    world.restart();
    world.join("v", "elsewhere", 2);
    assert_eq!(world.leases("v", 2), [], "nothing is requeued before a term has passed");
    world.pass(13_000);
    let joined = world.join_with("w", "h", 2, &leases.iter().collect::<Vec<&Lease>>());
    assert!(joined.orders.iter().all(|order| order.verdict.is_ok()));
    world.pass(5_000);
    assert_eq!(world.view("s").counts.running, 2);
}

#[test]
fn folds_of_workers_that_do_not_come_back_are_requeued_after_a_term() {
    let mut world = World::with_sweep(1, 1);
    world.lease("w");
    world.restart();
    world.pass(15_000);
    assert_eq!(world.state(fold(0)), FoldState::Pending);
}

#[test]
fn results_and_replicates_are_recognised_after_a_restart() {
    let mut world = World::with_sweep(1, 1);
    let first = world.lease("w");
    world.pass(15_000);
    world.join("v", "elsewhere", 1);
    let second = world.lease("v");
    world.restart();
    assert_eq!(world.report("v", &second, 0.5), ResultAnswer::Accepted);
    world.restart();
    assert_eq!(world.report("v", &second, 0.5), ResultAnswer::Same);
    assert_eq!(world.report("w", &first, 0.25), ResultAnswer::Replicate { agrees: false });
    world.restart();
    assert_eq!(world.report("w", &first, 0.25), ResultAnswer::Same);
    assert_eq!(world.report("w", &first, 0.5), ResultAnswer::Conflict);
}

#[test]
fn failures_so_far_still_count() {
    let mut world = World::with_sweep(1, 1);
    let lease = world.lease("w");
    world.fail("w", &lease, FailureClass::NotFinite);
    world.restart();
    world.join("w", "h", 1);
    assert_eq!(world.leases("w", 1), [], "it still waits for another worker");
    world.join("v", "elsewhere", 1);
    let lease = world.lease("v");
    world.fail("v", &lease, FailureClass::NotFinite);
    world.restart();
    assert_eq!(world.failure(fold(0)).class, FailureClass::NotFinite);
}

#[test]
fn paused_and_cancelled_sweeps_stay_so_and_the_order_of_sweeps_too() {
    let mut world = World::default();
    for name in ["z", "a", "m"] {
        world.submit(submission(name, 0..2));
    }
    world.tell(Event::Pause { sweep: sweep("z") });
    world.cancel("a");
    let before = world.scheduler.sweeps();
    world.restart();
    assert_eq!(world.scheduler.sweeps(), before);
}

fn connections(world: &World) -> Vec<(String, Connection)> {
    let workers = world.scheduler.workers().into_iter();
    workers.map(|view| (view.worker.to_string(), view.connection)).collect()
}

#[test]
fn a_drained_worker_is_still_draining_when_it_is_back() {
    let mut world = World::with_sweep(2, 2);
    let lease = world.lease("w");
    world.join("idle", "elsewhere", 1);
    for name in ["w", "idle"] {
        world.tell(Event::Drain { worker: worker(name) });
    }
    world.restart();
    world.pass(1_000);
    world.join_with("w", "h", 2, &[&lease]);
    world.join("idle", "elsewhere", 1);
    assert!(connections(&world).iter().all(|(_, connection)| *connection == Connection::Draining));
    assert_eq!(world.leases("w", 1), []);
    world.tell(Event::Undrain { worker: worker("w") });
    assert_eq!(world.leases("w", 1).len(), 1);
    world.restart();
    world.join("w", "h", 2);
    world.join("idle", "elsewhere", 1);
    let expected = [("idle", Connection::Draining), ("w", Connection::Connected)];
    assert_eq!(connections(&world), expected.map(|(name, connection)| (name.to_owned(), connection)));
}

#[test]
fn a_drain_outlives_silence_but_neither_a_goodbye_nor_an_hour() {
    let mut world = World::with_sweep(2, 1);
    world.tell(Event::Drain { worker: worker("w") });
    world.pass(20_000);
    assert_eq!(connections(&world), [], "it was silent for too long");
    world.join("w", "h", 1);
    assert_eq!(world.leases("w", 1), [], "and is draining all the same");
    world.pass(20_000);
    world.tell(Event::Undrain { worker: worker("w") });
    world.join("w", "h", 1);
    assert_eq!(world.leases("w", 1).len(), 1, "it can be taken back while the worker is away");

    for restarts in [false, true] {
        let mut world = World::with_sweep(2, 1);
        world.tell(Event::Drain { worker: worker("w") });
        world.leave("w");
        world.join("w", "h", 1);
        assert_eq!(world.leases("w", 1).len(), 1, "a goodbye ends it");
        world.tell(Event::Drain { worker: worker("w") });
        if restarts {
            world.restart();
        }
        world.pass(3_700_000);
        assert!(world.store.drains.is_empty());
    }
}

/// What fails on `bad` succeeds on `good`.
fn with_a_bad_host() -> World {
    let mut world = World::default();
    world.submit(submission("s", 0..40));
    world.join("bad", "bad", 1);
    world.join("good", "good", 1);
    for _ in 0..3 {
        let lease = world.lease("bad");
        world.fail("bad", &lease, FailureClass::Crashed);
        let again = world.lease("good");
        world.report("good", &again, 0.5);
    }
    world
}

#[test]
fn a_quarantined_host_stays_out_and_the_reason_is_still_known() {
    let mut world = with_a_bad_host();
    world.pass(5_000);
    world.restart();
    world.join("another", "bad", 1);
    world.join("good", "good", 1);
    let bad = &world.scheduler.workers()[0];
    assert_eq!(bad.connection, Connection::Quarantined);
    assert_eq!(bad.note.as_deref(), Some("3 folds failed here and succeeded elsewhere, 0 succeeded here"));
    let bad = bad.worker.clone();
    assert_eq!(world.leases(bad.as_str(), 1), []);
    world.tell(Event::Undrain { worker: bad.clone() });
    world.restart();
    world.join(bad.as_str(), "bad", 1);
    world.join("good", "good", 1);
    assert_eq!(world.leases(bad.as_str(), 1).len(), 1, "the pardon is remembered too");
}

#[test]
fn a_quarantine_starts_anew_and_ends() {
    let mut world = with_a_bad_host();
    world.restart();
    world.pass(599_999);
    assert_eq!(world.store.quarantines.len(), 1);
    world.pass(1);
    assert!(world.store.quarantines.is_empty());
}

#[test]
fn running_out_of_memory_is_not_final_while_a_larger_device_may_be_on_its_way_back() {
    let mut world = World::default();
    world.submit(submission("s", 0..1));
    world.join_devices("small", "small", &[("cuda:0", 8 << 30)]);
    world.join_devices("large", "large", &[("cuda:0", 80 << 30)]);
    let lease = world.lease("small");
    world.restart();
    world.pass(500);
    let mut info = crate::world::info("small", 1);
    (info.devices, info.memories) = (vec!["cuda:0".to_owned()], vec![8 << 30]);
    let running = vec![(lease.fold, lease.attempt)];
    world.tell(Event::WorkerJoined { worker: worker("small"), info, running });
    assert_eq!(world.fail("small", &lease, FailureClass::OutOfMemory), FailureAnswer::Retried);
    world.pass(500);
    world.join_devices("large", "large", &[("cuda:0", 80 << 30)]);
    assert_eq!(world.lease("large").fold, lease.fold);
}
