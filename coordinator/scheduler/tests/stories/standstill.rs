//! The coordinator stands still for longer than a lease: a stopped process, a frozen machine, a slow disk. Nobody is blamed
//! for what it did not hear.

use togl_scheduler::{Change, Ending, Event, FoldChange, FoldState};
use togl_sweeps::FailureClass;

use crate::world::{World, fold, submission, worker};

fn losses(world: &World) -> usize {
    let lost = |change: &&Change| {
        let ending = Ending::Failed(FailureClass::WorkerLost);
        matches!(change, Change::Fold(_, FoldChange::Ended { ending: how, .. }) if *how == ending)
    };
    world.history.iter().filter(lost).count()
}

#[test]
fn a_pause_longer_than_a_lease_ends_no_lease_however_often_it_happens() {
    let mut world = World::with_sweep(4, 4);
    let leases = world.leases("w", 4);
    let all: Vec<_> = leases.iter().collect();
    for _ in 0..20 {
        world.stand_still(16_500);
        world.tell(Event::Tick); // the first thing after it woke up, before any mail
        world.pass(13_000);
        assert_eq!(world.renew("w", &all), [Ok(()); 4]);
    }
    assert_eq!(losses(&world), 0);
}

#[test]
fn after_a_pause_a_lease_lasts_one_fresh_term_and_no_longer() {
    let mut world = World::with_sweep(1, 1);
    world.lease("w");
    world.pass(10_000);
    world.stand_still(100_000);
    world.tell(Event::Tick);
    world.pass(13_999);
    assert!(matches!(world.state(fold(0)), FoldState::Running { .. }));
    world.pass(1);
    assert_eq!(world.state(fold(0)), FoldState::Pending);
    assert!(world.scheduler.workers().is_empty());
}

#[test]
fn whoever_gave_up_on_a_coordinator_that_stood_still_has_a_term_to_come_back() {
    let mut world = World::default();
    world.submit(submission("s", [0]));
    let joined = world.join("w", "h", 1);
    let lease = world.lease("w");
    world.stand_still(60_000);
    // The connections broke while nobody looked, and workers try again every few seconds.
    world.tell(Event::WorkerDisconnected { worker: worker("w"), session: joined.session });
    world.pass(10_000);
    let joined = world.join_with("w", "h", 1, &[&lease]);
    assert_eq!(joined.orders[0].verdict, Ok(()));
    assert_eq!(losses(&world), 0);
}

#[test]
fn a_slow_second_is_no_pause() {
    let mut world = World::with_sweep(1, 1);
    world.lease("w");
    for _ in 0..4 {
        world.stand_still(3_000);
        world.tell(Event::Tick);
    }
    world.pass(2_000);
    assert_eq!(world.state(fold(0)), FoldState::Pending, "silent for a term while the coordinator listened");
}

#[test]
fn an_idle_coordinator_does_not_take_its_leisure_for_a_pause() {
    let mut world = World::default();
    assert_eq!(world.scheduler.next_deadline(), None, "nobody could be judged, so it asks for nothing");
    world.stand_still(3_600_000);
    world.submit(submission("s", [0]));
    let joined = world.join("w", "h", 1);
    world.lease("w");
    world.tell(Event::WorkerDisconnected { worker: worker("w"), session: joined.session });
    world.pass(2_000);
    assert_eq!(world.state(fold(0)), FoldState::Pending, "the usual grace");
}
