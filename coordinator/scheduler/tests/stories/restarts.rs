//! The coordinator dies and starts again from its store.

use togl_scheduler::{Event, FoldState, Lease, ResultAnswer};
use togl_sweeps::FailureClass;

use crate::world::{World, fold, submission, sweep};

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
    world.pass(14_000);
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
