//! What operators say: archive, priority, drain and undrain; and sweeps that pause themselves.

use togl_scheduler::{Connection, Event, FailureAnswer, Reason, Rejection, Reply, SweepState};
use togl_sweeps::spec::DeviceKind;
use togl_sweeps::{Failure, FailureClass};

use crate::world::{World, fold, submission, sweep, worker};

#[test]
fn an_archived_sweep_is_hidden_and_stopped_and_keeps_what_it_has() {
    let mut world = World::with_sweep(3, 2);
    let leases = world.leases("w", 2);
    world.report("w", &leases[0], 0.5);
    let reply = world.tell(Event::Archive { sweep: sweep("s") });
    assert_eq!(reply, Reply::Cancelled { abandoned: 1, finished: 1 });
    assert_eq!(world.scheduler.sweeps(), []);
    assert_eq!(world.scheduler.archived()[0].counts.finished, 1);
    assert_eq!(world.leases("w", 2), []);
    assert_eq!(world.scheduler.explain(world.now, &fold(2)).unwrap().reason, Reason::NotWanted);
    world.restart();
    assert_eq!(world.scheduler.sweeps(), []);
    let submitted = world.submit(submission("s", 0..3));
    assert_eq!(
        (submitted.already_done, world.view("s").state),
        (1, SweepState::Active),
        "submitting revives"
    );
}

#[test]
fn an_archived_sweep_is_neither_paused_nor_cancelled() {
    let mut world = World::with_sweep(1, 1);
    world.tell(Event::Archive { sweep: sweep("s") });
    let refused = Err(Rejection::CancelledSweep { name: sweep("s") });
    assert_eq!(world.try_tell(Event::Pause { sweep: sweep("s") }), refused);
    assert_eq!(world.try_tell(Event::Cancel { sweep: sweep("s") }), refused);
    assert_eq!(world.try_tell(Event::Prioritise { sweep: sweep("s"), priority: 1 }), refused);
}

#[test]
fn another_priority_counts_from_the_next_lease_on_and_after_a_restart() {
    let mut world = World::default();
    world.submit(submission("a", 0..4));
    world.submit(submission("b", 4..8));
    world.tell(Event::Prioritise { sweep: sweep("b"), priority: 7 });
    world.join("w", "h", 8);
    assert_eq!(world.lease("w").fold, fold(4));
    world.restart();
    assert_eq!(world.view("b").priority, 7);
    world.join("v", "h", 1);
    assert_eq!(world.lease("v").fold, fold(5));
}

#[test]
fn submitting_again_keeps_the_priority_that_an_operator_gave_unless_the_file_says_another() {
    let file = |priority: i32, folds: std::ops::Range<u32>| {
        let mut file = submission("s", folds);
        (file.priority, file.yaml) = (priority, format!("version: 1\nname: s\npriority: {priority}\n"));
        file
    };
    let mut world = World::default();
    world.submit(file(2, 0..4));
    world.tell(Event::Prioritise { sweep: sweep("s"), priority: 7 });
    world.submit(file(2, 0..8));
    assert_eq!(world.view("s").priority, 7, "the file says what it said");
    world.submit(file(3, 0..8));
    assert_eq!(world.view("s").priority, 3, "the file says something new");
}

#[test]
fn sweeps_of_equal_priority_share_the_slots_however_long_their_folds_take() {
    let mut world = World::default();
    world.submit(submission("long", 0..20));
    world.submit(submission("short", 20..60));
    world.join("w", "h", 4);
    let mut running = world.leases("w", 4);
    for _ in 0..10 {
        // The short ones end at once, the long ones never: the long sweep must not end up with all slots.
        let (short, long): (Vec<_>, Vec<_>) =
            running.into_iter().partition(|lease| lease.fold.trial > fold(19).trial);
        assert_eq!((short.len(), long.len()), (2, 2));
        short.iter().for_each(|lease| _ = world.report("w", lease, 0.5));
        running = long;
        running.extend(world.leases("w", 4));
    }
}

#[test]
fn a_drained_worker_hears_that_it_may_leave_once_it_has_nothing_in_hand() {
    let mut world = World::with_sweep(3, 2);
    let lease = world.lease("w");
    let supply = world.scheduler.supply();
    world.tell(Event::Drain { worker: worker("w") });
    assert!(world.scheduler.supply() > supply, "whoever waits for leases asks again");
    let ask = || Event::LeasesAsked { worker: worker("w"), count: 1 };
    assert_eq!(world.tell(ask()), Reply::Leases(vec![]), "it still has a fold");
    world.report("w", &lease, 0.5);
    assert_eq!(world.tell(ask()), Reply::Leave);
    world.tell(Event::Undrain { worker: worker("w") });
    assert!(matches!(world.tell(ask()), Reply::Leases(leases) if leases.len() == 1));
}

fn fail_with(world: &mut World, message: &str) {
    let lease = world.lease("w");
    let failure = Failure::new(FailureClass::Config, message);
    let (fold, attempt) = (lease.fold, lease.attempt);
    let answer = world.tell(Event::FailureReported { worker: worker("w"), fold, attempt, failure });
    assert_eq!(answer, Reply::Failure(FailureAnswer::Failed));
}

#[test]
fn a_sweep_whose_first_folds_all_fail_for_one_reason_pauses_itself_and_says_so() {
    let mut world = World::with_sweep(9, 1);
    for n in 0..5 {
        assert_eq!(world.view("s").state, SweepState::Active);
        fail_with(&mut world, &format!("no such column in fold {n}"));
    }
    let view = world.view("s");
    assert_eq!(view.state, SweepState::Paused);
    let note = view.note.unwrap();
    assert!(
        note.starts_with("it paused itself: its first 5 folds all failed for one reason (config:"),
        "{note}"
    );
    world.restart();
    let reason = world.scheduler.explain(world.now, &fold(8)).unwrap().reason.to_string();
    assert!(reason.starts_with("its sweep is paused: it paused itself"), "{reason}");
    world.join("w", "h", 1);
    world.tell(Event::Resume { sweep: sweep("s") });
    assert_eq!(world.view("s").note, None);
    (0..4).for_each(|_| fail_with(&mut world, "no such column"));
    assert_eq!(world.view("s").state, SweepState::Active, "the operator wanted to go on");
}

#[test]
fn one_result_or_another_reason_keeps_a_sweep_going() {
    let mut world = World::with_sweep(9, 1);
    let lease = world.lease("w");
    world.report("w", &lease, 0.5);
    (0..7).for_each(|_| fail_with(&mut world, "no such column"));
    assert_eq!(world.view("s").state, SweepState::Active);
    let mut world = World::with_sweep(9, 1);
    (0..3).for_each(|_| fail_with(&mut world, "no such column"));
    (0..5).for_each(|_| fail_with(&mut world, "no such file"));
    assert_eq!(world.view("s").state, SweepState::Active);
}

#[test]
fn a_host_whose_failures_succeed_elsewhere_is_quarantined_for_a_while() {
    let mut world = World::default();
    world.submit(submission("s", 0..40));
    world.join("bad", "bad", 1);
    world.join("good", "good", 1);
    for round in 0..3 {
        assert_eq!(world.scheduler.workers()[0].connection, Connection::Connected, "round {round}");
        let lease = world.lease("bad");
        world.fail("bad", &lease, FailureClass::Crashed);
        let again = world.lease("good");
        assert_eq!(again.fold, lease.fold);
        world.report("good", &again, 0.5);
    }
    assert_eq!(world.scheduler.workers()[0].connection, Connection::Quarantined);
    assert_eq!(world.leases("bad", 1), []);
    for _ in 0..60 {
        world.pass(10_000);
        world.renew("bad", &[]);
        world.renew("good", &[]);
    }
    assert_eq!(world.leases("bad", 1).len(), 1, "ten minutes later it gets another chance");
}

#[test]
fn failures_that_happen_everywhere_are_nobodys_fault() {
    let mut world = World::default();
    world.submit(submission("s", 0..40));
    world.join("a", "a", 1);
    world.join("b", "b", 1);
    for _ in 0..4 {
        for name in ["a", "b"] {
            let lease = world.lease(name);
            world.fail(name, &lease, FailureClass::NotFinite);
        }
    }
    assert!(world.scheduler.workers().iter().all(|view| view.connection == Connection::Connected));
}

#[test]
fn the_last_worker_is_not_kept_out_and_undrain_pardons_its_host() {
    let mut world = World::default();
    world.submit(submission("s", 0..40));
    world.join("bad", "bad", 1);
    world.join("good", "good", 1);
    for _ in 0..3 {
        let lease = world.lease("bad");
        world.fail("bad", &lease, FailureClass::Error);
        let again = world.lease("good");
        world.report("good", &again, 0.5);
    }
    assert_eq!(world.leases("bad", 1), []);
    world.tell(Event::Drain { worker: worker("good") });
    let explained = world.scheduler.explain(world.now, &fold(39)).unwrap().reason;
    assert!(matches!(explained, Reason::Queued { .. }), "{explained:?}");
    let lease = world.lease("bad");
    world.tell(Event::Undrain { worker: worker("good") });
    world.report("bad", &lease, 0.5);
    assert_eq!(world.leases("bad", 1), []);
    world.tell(Event::Undrain { worker: worker("bad") });
    assert_eq!(world.leases("bad", 1).len(), 1);
}

#[test]
fn a_fold_that_only_a_quarantined_worker_could_train_says_so() {
    let mut world = World::default();
    world.submit(submission("s", 0..40));
    world.join_devices("bad", "bad", &[("cuda:0", 0)]);
    world.join_devices("good", "good", &[("cpu", 0)]);
    for _ in 0..3 {
        let lease = world.lease("bad");
        world.fail("bad", &lease, FailureClass::Error);
        let again = world.lease("good");
        world.report("good", &again, 0.5);
    }
    let mut gpu = submission("gpu", 40..41);
    gpu.resources.device = DeviceKind::Cuda;
    world.submit(gpu);
    let reason = world.scheduler.explain(world.now, &fold(40)).unwrap().reason;
    let said =
        "who could train it is kept out: bad (3 folds failed here and succeeded elsewhere, 0 succeeded here)";
    assert_eq!(reason.to_string(), said);
}
