//! Workers come and go: grace, silence, goodbye, drain, and what a worker hears when it is back.

use togl_scheduler::{Abandon, Connection, Event, FoldState, Rejection};

use crate::world::{World, fold, info, submission, worker};

fn disconnect(world: &mut World, name: &str, session: u64) {
    world.tell(Event::WorkerDisconnected { worker: worker(name), session });
}

#[test]
fn a_closed_connection_costs_nothing_within_two_seconds() {
    let mut world = World::default();
    world.submit(submission("s", [0]));
    let joined = world.join("w", "h", 1);
    let lease = world.lease("w");
    disconnect(&mut world, "w", joined.session);
    assert_eq!(world.scheduler.workers()[0].connection, Connection::Grace);
    world.pass(1_999);
    assert!(matches!(world.state(fold(0)), FoldState::Running { .. }));
    let joined = world.join_with("w", "h", 1, &[&lease]);
    assert_eq!(joined.orders[0].verdict, Ok(()));
    world.pass(10_000);
    assert!(matches!(world.state(fold(0)), FoldState::Running { .. }));
}

#[test]
fn after_the_grace_the_folds_are_requeued_at_once() {
    let mut world = World::default();
    world.submit(submission("s", 0..2));
    let joined = world.join("w", "h", 2);
    world.leases("w", 2);
    disconnect(&mut world, "w", joined.session);
    world.pass(2_000);
    assert_eq!(world.view("s").counts.pending, 2);
    assert!(world.scheduler.workers().is_empty());
}

#[test]
fn a_connection_that_closes_after_the_worker_is_back_does_not_matter() {
    let mut world = World::default();
    let old = world.join("w", "h", 1);
    let new = world.join("w", "h", 1);
    assert_ne!(old.session, new.session);
    disconnect(&mut world, "w", old.session);
    assert_eq!(world.scheduler.workers()[0].connection, Connection::Connected);
    disconnect(&mut world, "w", new.session);
    assert_eq!(world.scheduler.workers()[0].connection, Connection::Grace);
}

#[test]
fn a_silent_worker_is_lost_after_a_term() {
    let mut world = World::with_sweep(1, 1);
    world.lease("w");
    world.pass(13_999);
    assert_eq!(world.scheduler.workers().len(), 1);
    world.pass(1);
    assert!(world.scheduler.workers().is_empty());
    assert_eq!(world.state(fold(0)), FoldState::Pending);
}

#[test]
fn a_goodbye_requeues_at_once_and_a_draining_worker_gets_nothing_new() {
    let mut world = World::with_sweep(2, 2);
    let lease = world.lease("w");
    world.tell(Event::Drain { worker: worker("w") });
    assert_eq!(world.leases("w", 1), []);
    assert_eq!(world.renew("w", &[&lease]), [Ok(())]);
    assert_eq!(world.scheduler.workers()[0].connection, Connection::Draining);
    world.leave("w");
    assert_eq!(world.view("s").counts.pending, 2);
}

#[test]
fn a_goodbye_to_an_old_session_does_not_end_the_new_one() {
    let mut world = World::default();
    world.submit(submission("s", 0..2));
    let old = world.join("w", "h", 1);
    let lease = world.lease("w");
    world.tell(Event::Drain { worker: worker("w") });
    world.join_with("w", "h", 1, &[&lease]);
    world.tell(Event::WorkerLeft { worker: worker("w"), session: old.session });
    assert!(matches!(world.state(fold(0)), FoldState::Running { .. }), "it is still being trained");
    assert_eq!(world.scheduler.workers()[0].connection, Connection::Draining, "and it is still to leave");
    assert_eq!(world.renew("w", &[&lease]), [Ok(())]);
    world.leave("w");
    assert!(world.scheduler.workers().is_empty(), "its own goodbye counts");
}

#[test]
fn a_lease_that_never_reached_its_worker_is_given_away_when_it_is_back() {
    let mut world = World::with_sweep(2, 2);
    let leases = world.leases("w", 2);
    world.join_with("w", "h", 2, &[&leases[0]]);
    assert!(matches!(world.state(fold(0)), FoldState::Running { .. }));
    assert_eq!(world.state(fold(1)), FoldState::Pending);
}

#[test]
fn a_worker_that_is_back_too_late_abandons_what_others_took() {
    let mut world = World::with_sweep(1, 1);
    let lease = world.lease("w");
    world.pass(15_000);
    world.join("v", "elsewhere", 1);
    world.lease("v");
    let joined = world.join_with("w", "h", 1, &[&lease]);
    assert_eq!(joined.orders[0].verdict, Err(Abandon::Superseded));
}

#[test]
fn only_the_latest_of_several_lost_attempts_may_go_on() {
    let mut world = World::with_sweep(1, 1);
    let first = world.lease("w");
    world.pass(15_000);
    world.join("v", "elsewhere", 1);
    let second = world.lease("v");
    world.pass(15_000);
    let late = world.join_with("w", "h", 1, &[&first]);
    assert_eq!(late.orders[0].verdict, Err(Abandon::Superseded));
    let latest = world.join_with("v", "elsewhere", 1, &[&second]);
    assert_eq!(latest.orders[0].verdict, Ok(()));
}

#[test]
fn a_worker_that_is_back_with_fewer_slots_abandons_the_rest() {
    let mut world = World::with_sweep(2, 2);
    let leases = world.leases("w", 2);
    let joined = world.join_with("w", "h", 1, &[&leases[0], &leases[1]]);
    let verdicts: Vec<_> = joined.orders.iter().map(|order| order.verdict).collect();
    assert_eq!(verdicts, [Ok(()), Err(Abandon::NoSlot)]);
}

#[test]
fn what_a_worker_claims_to_run_and_never_got_is_abandoned() {
    let mut world = World::with_sweep(2, 1);
    let mut lease = world.lease("w");
    lease.fold = fold(1);
    assert_eq!(world.renew("w", &[&lease]), [Err(Abandon::NeverIssued)]);
    lease.fold = fold(77);
    assert_eq!(world.renew("w", &[&lease]), [Err(Abandon::NeverIssued)]);
}

#[test]
fn workers_that_cannot_belong_here_are_rejected() {
    let mut world = World::default();
    let join = |info| Event::WorkerJoined { worker: worker("w"), info, running: vec![] };
    let greedy = world.try_tell(join(info("h", 1_000_000)));
    assert!(matches!(greedy, Err(Rejection::TooManySlots { most: 1_024, .. })));
    for (step, older) in [(1, "upgrade the coordinator:"), (-1, "upgrade the worker:")] {
        let mut other = info("h", 1);
        other.numerics = other.numerics.saturating_add_signed(step);
        let rejection = world.try_tell(join(other)).unwrap_err();
        assert!(rejection.to_string().contains(older), "{rejection}");
    }
}

#[test]
fn workers_that_never_had_a_lease_leave_no_trace() {
    let mut world = World::default();
    for round in 0..100 {
        let name = format!("w{round}");
        world.join(&name, "h", 1);
        world.leave(&name);
    }
    assert!(world.scheduler.workers().is_empty());
    assert!(world.history.is_empty());
    assert_eq!(world.scheduler.next_deadline(), None);
}
