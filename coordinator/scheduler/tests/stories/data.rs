//! Which data results come from: what is expected, what happens when results disagree, and how it is settled.

use togl_scheduler::{Event, FoldState, Reason, Rejection, ResultAnswer, Submission};
use togl_sweeps::FoldResult;
use togl_sweeps::result::example;

use crate::world::{World, fold, submission, trial};

/// A sweep on one data set; four folds make a trial.
fn on(data: &str, name: &str, folds: std::ops::Range<u32>) -> Submission {
    let mut on = submission(name, folds);
    for (_, canonical) in &mut on.trials {
        *canonical = format!("{{\"canonical\":1,\"dataset\":\"{data}\",\"numerics\":1}}");
    }
    on
}

fn from(digest: &str, accuracy: f64) -> FoldResult {
    FoldResult { data_digest: digest.to_owned(), ..example(accuracy) }
}

fn report(world: &mut World, digest: &str) -> ResultAnswer {
    let lease = world.lease("w");
    world.report_result("w", lease.fold, lease.attempt, from(digest, 0.5))
}

/// Three folds finished with digest A and one with B.
fn disputed() -> World {
    let mut world = World::default();
    world.submit(on("MUTAG", "s", 0..8));
    world.submit(on("PROTEINS", "t", 8..12));
    world.join("w", "h", 2);
    let leases = world.leases("w", 2);
    world.report_result("w", leases[0].fold, leases[0].attempt, from("A", 0.5));
    world.report_result("w", leases[1].fold, leases[1].attempt, from("A", 0.5));
    for digest in ["A", "A", "B"] {
        let lease = world.lease("w");
        world.report_result("w", lease.fold, lease.attempt, from(digest, 0.5));
    }
    world
}

#[test]
fn the_first_result_says_what_the_data_are_and_a_disagreement_pauses_the_data_set_only() {
    let mut world = disputed();
    // Sweeps take turns: 0, 8, 1, 9, then 2 from other data.
    let disputes = world.scheduler.disputes();
    assert_eq!((&*disputes[0].data, &*disputes[0].expected), ("MUTAG", "A"));
    assert_eq!(disputes[0].dissent, [(fold(2), "B".into())]);
    assert!(matches!(world.state(fold(2)), FoldState::Finished { .. }), "the result is kept");
    let folds: Vec<_> = world.leases("w", 2).iter().map(|lease| lease.fold).collect();
    assert_eq!(folds, [fold(10), fold(11)], "the other data set goes on");
    let reason = world.scheduler.explain(world.now, &fold(3)).unwrap().reason;
    assert_eq!(reason, Reason::Disputed { data: "MUTAG".into(), digests: vec!["A".into(), "B".into()] });
}

#[test]
fn the_operator_settles_it_and_results_from_other_data_are_trained_again() {
    let mut world = disputed();
    assert_eq!(world.settle("MUTAG", "A"), 1);
    assert_eq!(world.scheduler.disputes(), []);
    assert_eq!(world.state(fold(2)), FoldState::Pending);
    world.join("v", "h", 8);
    let folds: Vec<_> = world.leases("v", 8).iter().map(|lease| lease.fold).collect();
    assert!(folds.contains(&fold(2)) && folds.contains(&fold(3)), "{folds:?}");
}

#[test]
fn the_newcomer_may_be_right() {
    let mut world = disputed();
    world.restart();
    assert_eq!(world.settle("MUTAG", "B"), 2, "both results from A are trained again");
    assert!(matches!(world.state(fold(2)), FoldState::Finished { .. }));
    assert_eq!(world.state(fold(0)), FoldState::Pending);
    world.restart();
    world.join("w", "h", 1);
    assert_eq!(report(&mut world, "B"), ResultAnswer::Accepted);
    assert_eq!(world.scheduler.disputes(), []);
}

#[test]
fn a_result_that_was_set_aside_is_recognised_when_it_is_reported_again() {
    let mut world = disputed();
    world.settle("MUTAG", "B");
    let again = world.report_result("w", fold(0), togl_sweeps::Attempt(1), from("A", 0.5));
    assert_eq!(again, ResultAnswer::Same);
    assert_eq!(world.state(fold(0)), FoldState::Pending);
}

#[test]
fn what_is_not_under_dispute_cannot_be_settled() {
    let mut world = disputed();
    let settle =
        |data: &str, digest: &str| Event::SettleData { data: data.to_owned(), digest: digest.to_owned() };
    assert!(matches!(world.try_tell(settle("PROTEINS", "A")), Err(Rejection::NoDispute { .. })));
    assert!(matches!(world.try_tell(settle("ENZYMES", "A")), Err(Rejection::NoDispute { .. })));
    assert!(matches!(world.try_tell(settle("MUTAG", "C")), Err(Rejection::UnknownDigest { .. })));
}

#[test]
fn the_catalogue_says_what_to_expect_and_the_first_result_may_be_the_wrong_one() {
    let mut world = World::default();
    let mut expecting = on("MUTAG", "s", 0..4);
    expecting.data_digests = vec![("MUTAG".to_owned(), "right".to_owned())];
    world.submit(expecting);
    world.join("w", "h", 1);
    assert_eq!(report(&mut world, "wrong"), ResultAnswer::Accepted);
    assert_eq!(&*world.scheduler.disputes()[0].expected, "right");
    assert_eq!(world.leases("w", 1), []);
}

#[test]
fn results_are_not_adopted_by_a_sweep_that_expects_other_data() {
    let mut world = World::default();
    world.submit(on("MUTAG", "s", 0..4));
    world.join("w", "h", 1);
    report(&mut world, "A");
    let mut other = on("MUTAG", "t", 0..4);
    other.data_digests = vec![("MUTAG".to_owned(), "B".to_owned())];
    let refused = world.try_tell(Event::Submit(Box::new(other.clone())));
    assert!(matches!(refused, Err(Rejection::OtherData { .. })), "{refused:?}");
    other.data_digests = vec![("MUTAG".to_owned(), "A".to_owned())];
    assert_eq!(world.submit(other).already_done, 1);
}

#[test]
fn generated_data_sets_of_different_seeds_are_different_data() {
    let mut world = World::default();
    let mut seeded = on("cycles", "s", 0..8);
    seeded.trials[1].1 = "{\"canonical\":1,\"data_seed\":3,\"dataset\":\"cycles\",\"numerics\":1}".to_owned();
    assert_eq!(seeded.trials[1].0, trial(1));
    world.submit(seeded);
    world.join("w", "h", 8);
    for lease in world.leases("w", 8) {
        let digest = if lease.fold.trial == trial(1) { "three" } else { "zero" };
        world.report_result("w", lease.fold, lease.attempt, from(digest, 0.5));
    }
    assert_eq!(world.scheduler.disputes(), []);
}

#[test]
fn a_result_with_other_numerics_than_its_trial_is_refused() {
    let mut world = World::default();
    world.submit(on("MUTAG", "s", 0..1));
    world.join("w", "h", 1);
    let lease = world.lease("w");
    let answer =
        world.report_result("w", lease.fold, lease.attempt, FoldResult { numerics: 2, ..from("A", 0.5) });
    assert!(matches!(answer, ResultAnswer::Refused(_)), "{answer:?}");
    assert_eq!(world.state(fold(0)), FoldState::Pending);
}
