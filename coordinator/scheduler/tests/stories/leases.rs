//! Who gets which fold, and how long: order, turns, slots, terms.

use togl_scheduler::{Abandon, Event, FoldState, Rejection};

use crate::world::{World, fold, submission, sweep, worker};

#[test]
fn folds_are_leased_in_the_order_of_the_sweep() {
    let mut world = World::default();
    world.submit(submission("s", [3, 1, 2]));
    world.join("w", "h", 3);
    let folds: Vec<_> = world.leases("w", 3).into_iter().map(|lease| lease.fold).collect();
    assert_eq!(folds, [fold(3), fold(1), fold(2)]);
}

#[test]
fn a_lease_carries_the_settings_the_term_and_the_time_limit() {
    let mut world = World::default();
    let mut limited = submission("s", [5]);
    limited.limits.fold_seconds = Some(60);
    world.submit(limited);
    world.join("w", "h", 1);
    let lease = world.lease("w");
    assert_eq!(&*lease.trial, "{\"trial\":1}");
    assert_eq!((lease.term, lease.fold_seconds), (14_000, Some(60)));
}

#[test]
fn higher_priority_goes_first_and_equals_take_turns() {
    let mut world = World::default();
    world.submit(submission("a", 0..4));
    world.submit(submission("b", 4..8));
    let mut urgent = submission("urgent", 8..10);
    urgent.priority = 1;
    world.submit(urgent);
    world.join("w", "h", 8);
    let folds: Vec<_> = world.leases("w", 6).into_iter().map(|lease| lease.fold).collect();
    assert_eq!(folds, [8, 9, 0, 4, 1, 5].map(fold));
}

#[test]
fn a_shared_fold_takes_the_highest_priority_of_its_sweeps() {
    let mut world = World::default();
    world.submit(submission("slow", 0..3));
    let mut urgent = submission("urgent", [2]);
    urgent.priority = 5;
    world.submit(urgent);
    world.join("w", "h", 1);
    assert_eq!(world.lease("w").fold, fold(2));
}

#[test]
fn a_worker_never_has_more_leases_than_slots_however_much_it_asks() {
    let mut world = World::with_sweep(8, 3);
    assert_eq!(world.leases("w", u32::MAX).len(), 3);
    assert_eq!(world.leases("w", u32::MAX), []);
    world.join("idle", "h", 0);
    assert_eq!(world.leases("idle", 1), []);
}

#[test]
fn a_fold_is_leased_to_one_worker_at_a_time() {
    let mut world = World::with_sweep(1, 1);
    world.join("v", "elsewhere", 1);
    world.lease("w");
    assert_eq!(world.leases("v", 1), []);
}

#[test]
fn a_lease_lasts_as_long_as_it_is_renewed() {
    let mut world = World::with_sweep(1, 1);
    let lease = world.lease("w");
    for _ in 0..10 {
        world.pass(13_000);
        assert_eq!(world.renew("w", &[&lease]), [Ok(())]);
    }
    world.pass(13_999);
    assert!(matches!(world.state(fold(0)), FoldState::Running { .. }));
    world.pass(1);
    assert_eq!(world.state(fold(0)), FoldState::Pending);
}

#[test]
fn a_fold_that_heartbeats_no_longer_name_is_requeued_after_a_term() {
    let mut world = World::with_sweep(2, 2);
    let leases = world.leases("w", 2);
    for _ in 0..3 {
        world.pass(5_000);
        world.renew("w", &[&leases[0]]);
    }
    assert!(matches!(world.state(fold(0)), FoldState::Running { .. }));
    assert_eq!(world.state(fold(1)), FoldState::Pending);
}

#[test]
fn a_worker_that_was_silent_too_long_goes_on_if_nobody_took_its_fold() {
    let mut world = World::with_sweep(1, 1);
    let lease = world.lease("w");
    world.pass(20_000);
    assert_eq!(world.state(fold(0)), FoldState::Pending);
    let joined = world.join_with("w", "h", 1, &[&lease]);
    assert_eq!(joined.orders[0].verdict, Ok(()));
    assert!(matches!(world.state(fold(0)), FoldState::Running { .. }));
}

#[test]
fn whoever_is_not_connected_gets_no_lease_and_renews_nothing() {
    let mut world = World::with_sweep(1, 1);
    let unknown = Err(Rejection::UnknownWorker { worker: worker("x") });
    assert_eq!(world.try_tell(Event::LeasesAsked { worker: worker("x"), count: 1 }), unknown);
    assert_eq!(world.try_tell(Event::Renewed { worker: worker("x"), running: vec![] }), unknown);
    assert_eq!(world.try_tell(Event::Drain { worker: worker("x") }), unknown);
}

#[test]
fn paused_sweeps_are_not_served_but_what_runs_goes_on() {
    let mut world = World::with_sweep(2, 2);
    let lease = world.lease("w");
    world.tell(Event::Pause { sweep: sweep("s") });
    assert_eq!(world.leases("w", 1), []);
    assert_eq!(world.renew("w", &[&lease]), [Ok(())]);
    let supply = world.scheduler.supply();
    world.tell(Event::Resume { sweep: sweep("s") });
    assert!(world.scheduler.supply() > supply, "who asked in vain should ask again");
    assert_eq!(world.lease("w").fold, fold(1));
}

#[test]
fn what_nobody_wants_is_abandoned_and_goes_on_if_it_is_wanted_again_in_time() {
    let mut world = World::with_sweep(1, 1);
    let lease = world.lease("w");
    world.cancel("s");
    assert_eq!(world.renew("w", &[&lease]), [Err(Abandon::NotWanted)]);
    world.submit(submission("s", [0]));
    assert_eq!(world.renew("w", &[&lease]), [Ok(())]);
    assert!(matches!(world.state(fold(0)), FoldState::Running { .. }));
}
