//! Hosts whose workers die again and again: kept out for a moment, then for longer, and nobody else pays for it. Whoever was
//! only cut off is not blamed.

use togl_scheduler::{Connection, Event, Lease};

use crate::world::{World, submission, worker};

/// How a worker of the bad host ends.
#[derive(Clone, Copy, PartialEq)]
enum Death {
    Crash,
    Goodbye,
}

/// A bad host whose worker dies half a second after it came, and is started again at once.
struct BadHost {
    death: Death,
    lives: u32,
    session: u64,
    leases: usize,
}

impl BadHost {
    fn name(&self) -> String {
        format!("bad-{}", self.lives)
    }

    fn live_and_die(&mut self, world: &mut World) {
        let name = self.name();
        if self.session > 0 {
            match self.death {
                Death::Crash => {
                    let (worker, session) = (worker(&name), self.session);
                    world.tell(Event::WorkerDisconnected { worker, session });
                }
                Death::Goodbye => world.leave(&name),
            }
        }
        self.lives += 1;
        let name = self.name();
        self.session = world.join(&name, "bad", 8).session;
        self.leases += world.leases(&name, 8).len();
    }
}

/// A sweep of 400 folds on four good hosts and a bad one. Says how many folds failed, and how many leases the bad one got.
fn suffer(death: Death) -> (u64, usize) {
    let mut world = World::default();
    world.checks = false; // they are slow with so many folds, and once is enough
    world.submit(submission("s", 0..400));
    let good = ["a", "b", "c", "d"];
    good.iter().for_each(|name| _ = world.join(name, name, 1));
    let mut bad = BadHost { death, lives: 0, session: 0, leases: 0 };
    let mut running: Vec<Option<Lease>> = vec![None; good.len()];
    for _ in 0..400 {
        for (name, lease) in good.iter().zip(&mut running) {
            if let Some(lease) = lease.take() {
                world.report(name, &lease, 0.5);
            }
            *lease = world.leases(name, 1).pop();
        }
        bad.live_and_die(&mut world);
        world.pass(500);
    }
    world.scheduler.check_invariants().unwrap();
    assert_eq!(world.view("s").counts.pending + world.view("s").counts.running, 0, "it has ended");
    (world.view("s").counts.failed, bad.leases)
}

#[test]
fn a_host_whose_workers_crash_again_and_again_fails_no_fold() {
    let (failed, leases) = suffer(Death::Crash);
    assert!(failed == 0 && leases < 120, "{failed} failed, {leases} leases");
}

#[test]
fn a_host_whose_workers_leave_again_and_again_fails_no_fold() {
    let (failed, leases) = suffer(Death::Goodbye);
    assert!(failed == 0 && leases <= 5 * 8, "{failed} failed, {leases} leases");
}

/// A worker of host `bad` takes a fold and is gone with it.
fn die(world: &mut World, name: &str) -> usize {
    world.join(name, "bad", 1);
    let leases = world.leases(name, 1).len();
    world.leave(name);
    leases
}

/// The same without a word.
fn crash(world: &mut World, name: &str) -> usize {
    let joined = world.join(name, "bad", 1);
    let leases = world.leases(name, 1).len();
    world.tell(Event::WorkerDisconnected { worker: worker(name), session: joined.session });
    world.pass(2_000);
    leases
}

fn with_a_good_host() -> World {
    let mut world = World::default();
    world.submit(submission("s", 0..40));
    world.join("good", "good", 1);
    world
}

/// Time passes, and the good host is heard of.
fn wait(world: &mut World, milliseconds: u64) {
    for _ in 0..milliseconds / 1_000 {
        world.pass(1_000);
        world.renew("good", &[]);
    }
}

#[test]
fn the_pauses_double_and_end_in_a_quarantine_that_says_why() {
    let mut world = with_a_good_host();
    assert_eq!((die(&mut world, "b1"), die(&mut world, "b2")), (1, 1), "one may have bad luck");
    for (life, seconds) in [(3, 10), (4, 20), (5, 40)] {
        let name = format!("b{life}");
        world.join(&name, "bad", 1);
        assert_eq!(world.leases(&name, 1), []);
        let seen = world.scheduler.workers().into_iter().find(|view| view.worker == worker(&name)).unwrap();
        let said = format!(
            "{} workers died here one after the other, without a result in between; it waits for {seconds} s",
            life - 1
        );
        assert_eq!((seen.connection, seen.note.as_deref()), (Connection::Quarantined, Some(said.as_str())));
        let supply = world.scheduler.supply();
        for _ in 0..seconds {
            world.renew(&name, &[]);
            wait(&mut world, 1_000);
        }
        assert!(world.scheduler.supply() > supply, "who asked in vain should ask again");
        assert_eq!(world.leases(&name, 1).len(), 1);
        assert!(world.store.quarantines.is_empty());
        world.leave(&name);
    }
    assert_eq!(die(&mut world, "b6"), 0);
    let reasons: Vec<_> = world.store.quarantines.values().collect();
    assert_eq!(
        &*reasons[0].to_string(),
        "5 workers died here one after the other, without a result in between"
    );
    wait(&mut world, 600_000);
    assert_eq!(die(&mut world, "b7"), 1, "ten minutes later it gets another chance");
}

#[test]
fn a_result_in_between_clears_a_host() {
    let mut world = with_a_good_host();
    for round in 0..8 {
        assert_eq!(die(&mut world, &format!("b{round}")), 1);
        let name = format!("c{round}");
        world.join(&name, "bad", 1);
        let lease = world.lease(&name);
        world.report(&name, &lease, 0.5);
        world.leave(&name);
    }
}

#[test]
fn workers_that_are_stopped_after_a_while_are_no_sign_of_a_bad_host() {
    let mut world = with_a_good_host();
    for round in 0..8 {
        let name = format!("b{round}");
        world.join(&name, "bad", 1);
        let lease = world.lease(&name);
        for _ in 0..60 {
            world.pass(10_000);
            world.renew("good", &[]);
            world.renew(&name, &[&lease]);
        }
        world.leave(&name);
    }
}

#[test]
fn workers_that_leave_with_nothing_in_hand_are_no_sign_of_a_bad_host() {
    let mut world = with_a_good_host();
    for round in 0..8 {
        let name = format!("b{round}");
        world.join(&name, "bad", 1);
        world.leave(&name);
    }
    assert_eq!(die(&mut world, "last"), 1);
    assert_eq!(die(&mut world, "very-last"), 1);
}

/// All are cut off for longer than a lease, again and again, and come back with what they have; in between others took it.
#[test]
fn a_network_that_fails_for_everybody_is_no_hosts_fault() {
    let mut world = with_a_good_host();
    let mut held: Vec<(&str, Vec<Lease>)> = vec![];
    for name in ["x", "y"] {
        world.join(name, "shared", 2);
        held.push((name, world.leases(name, 2)));
    }
    for _ in 0..8 {
        wait(&mut world, 15_000);
        assert_eq!(world.scheduler.workers().len(), 1, "both were lost");
        let taken = world.leases("good", 1);
        for (name, leases) in &mut held {
            world.join_with(name, "shared", 2, &leases.iter().collect::<Vec<_>>());
            leases.extend(world.leases(name, 2));
        }
        for lease in taken {
            world.report("good", &lease, 0.5);
        }
        let states: Vec<_> = world.scheduler.workers().into_iter().map(|view| view.connection).collect();
        assert_eq!(states, [Connection::Connected; 3]);
    }
}

#[test]
fn the_only_host_is_not_kept_out_and_undrain_pardons_one() {
    let mut world = World::default();
    world.submit(submission("s", 0..40));
    for round in 0..3 {
        assert_eq!(die(&mut world, &format!("b{round}")), 1, "nobody else would train");
    }
    world.join("good", "good", 1);
    world.join("b", "bad", 1);
    assert_eq!(world.leases("b", 1), []);
    world.tell(Event::Undrain { worker: worker("b") });
    assert_eq!(world.leases("b", 1).len(), 1);
}

/// The bad host takes the only fold that is free and is gone with it, as often as it may. Says how often that was.
fn lose_again_and_again(world: &mut World, wish: usize, elsewhere: &[&Lease]) -> usize {
    let mut lost = 0;
    for life in 0..200 {
        lost += crash(world, &format!("b{life}"));
        if lost >= wish || world.view("s").counts.failed > 0 {
            break;
        }
        for _ in 0..60 {
            world.pass(1_000);
            if !elsewhere.is_empty() {
                world.renew("good", elsewhere);
            }
        }
    }
    lost
}

#[test]
fn a_fold_that_one_host_lost_ten_times_waits_for_another_that_is_here() {
    let mut world = World::default();
    world.submit(submission("s", 0..2));
    world.join("good", "good", 1);
    let long = world.leases("good", 1).pop().unwrap();
    assert_eq!(lose_again_and_again(&mut world, 12, &[&long]), 12, "more than `limits.attempts`, too");
    assert_eq!(world.view("s").counts.failed, 0);
    world.report("good", &long, 0.5);
    let last = world.leases("good", 1).pop().expect("the good host gets it");
    world.report("good", &last, 0.5);
    assert_eq!(world.view("s").counts.finished, 2);
}

#[test]
fn a_fold_that_the_only_host_lost_ten_times_has_failed() {
    let mut world = World::default();
    world.submit(submission("s", 0..1));
    assert_eq!(lose_again_and_again(&mut world, 12, &[]), 10);
    assert_eq!(world.view("s").counts.failed, 1);
}
