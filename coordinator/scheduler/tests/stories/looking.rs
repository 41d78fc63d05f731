//! What people see of a sweep: bounded, in step with the folds, with the reason when nothing happens. That kept counts are
//! what a recount gives is checked after every event of every story and of the random worlds.

use togl_scheduler::{Event, FoldView, Reason, Standstill, SweepDetail};
use togl_sweeps::{Failure, FailureClass};

use crate::world::{World, fold, submission, sweep, worker};

fn detail(world: &World) -> SweepDetail {
    world.scheduler.sweep_detail(world.now, &sweep("s")).unwrap()
}

fn standstill(world: &World) -> Option<Standstill> {
    detail(world).standstill
}

/// Folds that changed after `number`, by key and state, and the number to go on with.
fn follow(world: &World, number: u64) -> (Option<Vec<(u32, &'static str)>>, u64) {
    let followed = world.scheduler.follow(&sweep("s"), Some(number), 1_000).unwrap();
    let number_of = |view: &FoldView| (0..1_000).find(|n| fold(*n) == view.fold).unwrap();
    let words =
        |folds: Vec<FoldView>| folds.iter().map(|f| (number_of(f), f.state.word().as_str())).collect();
    (followed.folds.map(words), followed.number)
}

#[test]
fn a_thousand_failures_with_long_messages_are_counted_by_class_and_listed_in_part() {
    let mut world = World::with_sweep(1_000, 1_000);
    let leases = world.leases("w", 1_000);
    assert_eq!(detail(&world).running.len(), 200, "the list is cut");
    world.checks = false;
    for (number, lease) in leases[..300].iter().enumerate() {
        let class = if number < 10 { FailureClass::Crashed } else { FailureClass::Config };
        let failure = Failure::new(class, "é".repeat(50_000));
        let (worker, fold, attempt) = (worker("w"), lease.fold, lease.attempt);
        world.tell(Event::FailureReported { worker, fold, attempt, failure });
    }
    let detail = detail(&world);
    world.scheduler.check_invariants().unwrap();
    assert_eq!(detail.summary.counts.failed, 290, "a crash is tried once more");
    assert_eq!(detail.classes, [(FailureClass::Config, 290)]);
    assert_eq!(detail.failed.len(), 100, "the list is cut");
    let message = &detail.failed[0].failure.message;
    assert!(message.len() < 3_000 && message.ends_with("... and 98000 bytes more"), "{}", message.len());
}

#[test]
fn a_trial_is_finished_with_its_last_fold_and_open_again_when_one_is_let_in() {
    let mut world = World::with_sweep(8, 8);
    let leases = world.leases("w", 8);
    let finished = |world: &World| detail(world).trials_finished;
    for lease in &leases[..3] {
        world.report("w", lease, 0.5);
    }
    assert_eq!(finished(&world), 0);
    world.report("w", &leases[3], 0.5);
    assert_eq!(finished(&world), 1);
    world.submit(submission("s", 0..3));
    assert_eq!((finished(&world), detail(&world).summary.trials), (1, 1));
    world.submit(submission("s", 0..8));
    assert_eq!((finished(&world), detail(&world).summary.trials), (1, 2));
}

#[test]
fn who_follows_hears_of_each_fold_that_changed_once_as_it_is_now() {
    let mut world = World::with_sweep(8, 8);
    let (start_over, number) = follow(&world, u64::MAX);
    assert_eq!(start_over, None, "a number that never was");
    assert_eq!(follow(&world, number), (Some(vec![]), number));
    let leases = world.leases("w", 2);
    world.report("w", &leases[0], 0.5);
    let (changed, next) = follow(&world, number);
    assert_eq!(changed, Some(vec![(0, "finished"), (1, "running")]));
    assert_eq!(follow(&world, next).0, Some(vec![]));
    world.submit(submission("t", 8..10));
    assert_eq!(follow(&world, next).0, Some(vec![]), "another sweep's folds did not change");
    world.submit(submission("s", 0..6));
    assert_eq!(follow(&world, next).0, None, "the sweep has other folds now");
}

#[test]
fn long_news_come_in_parts_and_what_is_forgotten_has_to_be_read_again() {
    let mut world = World::with_sweep(100, 100);
    let (_, number) = follow(&world, u64::MAX);
    let leases = world.leases("w", 100);
    let part = world.scheduler.follow(&sweep("s"), Some(number), 30).unwrap();
    assert_eq!((part.folds.unwrap().len(), part.more), (30, true));
    let rest = world.scheduler.follow(&sweep("s"), Some(part.number), 1_000).unwrap();
    assert_eq!((rest.folds.unwrap().len(), rest.more), (70, false));
    world.checks = false;
    world.report("w", &leases[0], 0.5);
    for lease in &leases[1..] {
        world.fail("w", lease, FailureClass::Config);
    }
    for _ in 0..250 {
        world.tell(Event::Retry { sweep: sweep("s") });
        for lease in world.leases("w", 100) {
            world.fail("w", &lease, FailureClass::Config);
        }
    }
    assert_eq!(follow(&world, number).0, None, "more than 65,536 changes ago");
}

#[test]
fn a_sweep_of_which_nothing_runs_says_why() {
    let mut world = World::default();
    world.submit(submission("s", 0..2));
    assert_eq!(standstill(&world), Some(Standstill::Blocked(Reason::NoWorkers)));
    world.join("w", "h", 2);
    assert_eq!(standstill(&world), None, "it is about to go on");
    world.tell(Event::Pause { sweep: sweep("s") });
    assert_eq!(standstill(&world), Some(Standstill::Paused { note: None }));
    world.tell(Event::Resume { sweep: sweep("s") });
    let leases = world.leases("w", 2);
    assert_eq!(standstill(&world), None, "something runs");
    world.fail("w", &leases[0], FailureClass::Crashed);
    world.pass(9_000);
    world.fail("w", &leases[1], FailureClass::Crashed);
    let said = standstill(&world).unwrap();
    let class = Some(FailureClass::Crashed);
    let expected = Standstill::AllWait { folds: 2, class, worker: worker("w"), milliseconds: 51_000 };
    assert_eq!(said, expected, "{said}");
    assert_eq!(
        said.to_string(),
        "all pending folds wait for another worker after `crashed` on w; w may try again in 51 s"
    );
    world.join("v", "g", 1);
    assert_eq!(standstill(&world), None, "another worker may try at once");
    world.cancel("s");
    assert_eq!(standstill(&world), None, "nobody wants it");
}

#[test]
fn workers_that_are_kept_out_are_named_in_order_and_not_all_of_them() {
    let workers: Vec<_> = (0..19).rev().map(|n| (worker(&format!("w{n:02}")), "it crashes".into())).collect();
    let said = Reason::Quarantined { workers }.to_string();
    assert!(
        said.contains("w00 (it crashes), w01 (it crashes), ")
            && said.ends_with("w04 (it crashes) and 14 more"),
        "{said}"
    );
}
