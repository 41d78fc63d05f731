//! Sweeps come, change and go; folds belong to no sweep.

use togl_scheduler::{
    Abandon, Change, Event, FoldChange, FoldState, Rejection, Reply, ResultAnswer, Submitted, SweepState,
};
use togl_sweeps::Attempt;

use crate::world::{World, fold, submission, sweep, worker};

#[test]
fn submitting_says_what_was_found() {
    let mut world = World::default();
    let counts = world.submit(submission("s", 0..6));
    assert_eq!(counts, Submitted { trials: 2, folds: 6, added: 6, ..Submitted::default() });
}

#[test]
fn the_same_text_again_changes_nothing() {
    let mut world = World::with_sweep(4, 1);
    let stored = world.history.len();
    let counts = world.submit(submission("s", 0..4));
    assert_eq!(counts, Submitted { trials: 1, folds: 4, ..Submitted::default() });
    assert_eq!(world.history.len(), stored);
}

#[test]
fn a_fold_named_twice_counts_once() {
    let mut world = World::default();
    assert_eq!(world.submit(submission("s", [0, 1, 0, 1])).folds, 2);
}

#[test]
fn a_sweep_of_the_same_name_is_edited_and_results_are_kept() {
    let mut world = World::with_sweep(4, 4);
    let leases = world.leases("w", 2);
    world.report("w", &leases[0], 0.5);
    let counts = world.submit(submission("s", [0, 2, 9]));
    let expected =
        Submitted { trials: 2, folds: 3, already_done: 1, added: 1, removed: 2, ..Submitted::default() };
    assert_eq!(counts, expected);
    assert_eq!(world.renew("w", &[&leases[1]]), [Err(Abandon::NotWanted)], "fold 1 is in no sweep any more");
    assert_eq!(world.report("w", &leases[1], 0.5), ResultAnswer::Accepted, "its result is kept all the same");
}

#[test]
fn a_result_that_exists_is_adopted_by_the_next_sweep() {
    let mut world = World::with_sweep(2, 1);
    let lease = world.lease("w");
    world.report("w", &lease, 0.5);
    assert_eq!(world.submit(submission("t", 0..2)).already_done, 1);
    assert_eq!(world.lease("w").fold, fold(1), "a finished fold is not trained again");
}

#[test]
fn two_sweeps_share_the_work_on_a_fold() {
    let mut world = World::with_sweep(1, 1);
    world.submit(submission("t", [0]));
    let lease = world.lease("w");
    assert_eq!((world.view("s").counts.running, world.view("t").counts.running), (1, 1));
    world.report("w", &lease, 0.5);
    assert!(world.view("s").has_ended() && world.view("t").has_ended());
}

#[test]
fn cancelling_abandons_only_what_no_other_sweep_wants() {
    let mut world = World::with_sweep(2, 2);
    world.submit(submission("t", [1]));
    let leases = world.leases("w", 2);
    assert_eq!(world.cancel("s"), Reply::Cancelled { abandoned: 1, finished: 0 });
    let verdicts = world.renew("w", &[&leases[0], &leases[1]]);
    assert_eq!(verdicts, [Err(Abandon::NotWanted), Ok(())]);
    assert!(world.view("s").has_ended());
    assert!(!world.view("t").has_ended());
}

#[test]
fn pending_folds_of_a_cancelled_sweep_are_not_leased_and_late_results_are_kept() {
    let mut world = World::with_sweep(2, 1);
    let lease = world.lease("w");
    world.cancel("s");
    assert_eq!(world.leases("w", 1), []);
    assert_eq!(world.report("w", &lease, 0.5), ResultAnswer::Accepted);
    assert_eq!(world.view("s").counts.finished, 1);
}

#[test]
fn being_abandoned_is_never_held_against_a_fold() {
    let mut world = World::default();
    let mut strict = submission("s", [0]);
    strict.limits.attempts = 1;
    world.join("w", "h", 1);
    for _ in 0..3 {
        world.submit(strict.clone());
        world.lease("w");
        world.cancel("s");
    }
    assert_eq!(world.state(fold(0)), FoldState::Pending);
}

#[test]
fn submitting_a_cancelled_sweep_revives_it_and_a_paused_one_stays_paused() {
    let mut world = World::with_sweep(1, 1);
    world.cancel("s");
    let resume = Event::Resume { sweep: sweep("s") };
    assert_eq!(world.try_tell(resume), Err(Rejection::CancelledSweep { name: sweep("s") }));
    world.submit(submission("s", 0..1));
    assert_eq!(world.view("s").state, SweepState::Active);
    world.tell(Event::Pause { sweep: sweep("s") });
    world.submit(submission("s", 0..2));
    assert_eq!(world.view("s").state, SweepState::Paused);
}

#[test]
fn a_sweep_that_is_not_there_is_named_with_the_nearest_one() {
    let mut world = World::default();
    world.submit(submission("necklaces", [0]));
    let rejection = world.try_tell(Event::Cancel { sweep: sweep("neklaces") }).unwrap_err();
    assert_eq!(rejection.to_string(), "there is no sweep `neklaces`; did you mean `necklaces`?");
}

#[test]
fn what_cannot_be_a_sweep_is_rejected_and_changes_nothing() {
    let mut world = World::default();
    let empty = Event::Submit(Box::new(submission("s", [])));
    assert!(matches!(world.try_tell(empty), Err(Rejection::EmptySweep { .. })));
    let mut large = submission("s", 0..5);
    large.limits.max_folds = 4;
    let rejected = world.try_tell(Event::Submit(Box::new(large)));
    assert_eq!(rejected, Err(Rejection::TooManyFolds { folds: 5, most: 4 }));
    let mut nameless = submission("s", 0..5);
    nameless.trials.pop();
    let rejected = world.try_tell(Event::Submit(Box::new(nameless)));
    assert_eq!(rejected, Err(Rejection::UnknownTrial { fold: fold(4) }));
    assert!(world.history.is_empty());
}

#[test]
fn the_detail_of_a_sweep_shows_what_runs_and_what_failed() {
    let mut world = World::with_sweep(8, 8);
    let leases = world.leases("w", 6);
    for lease in &leases[..4] {
        world.report("w", lease, 0.5);
    }
    world.fail("w", &leases[4], togl_sweeps::FailureClass::Config);
    let detail = world.scheduler.sweep_detail(world.now, &sweep("s")).unwrap();
    assert_eq!((detail.summary.trials, detail.trials_finished), (2, 1));
    assert_eq!((detail.running[0].fold, &detail.running[0].worker), (fold(5), &worker("w")));
    assert_eq!((detail.failed[0].fold, &*detail.failed[0].trial), (fold(4), "{\"trial\":1}"));
}

#[test]
fn every_lease_is_a_stored_fact_with_worker_and_host() {
    let mut world = World::with_sweep(1, 1);
    world.lease("w");
    let issued = FoldChange::Issued { attempt: Attempt(1), worker: worker("w"), host: "h".to_owned() };
    let expected = Change::Fold(fold(0), issued);
    assert_eq!(world.history.last(), Some(&expected));
}

#[test]
fn a_sweep_is_compared_with_a_submission_in_parts_unless_it_changes_in_between() {
    let mut world = World::with_sweep(6, 1);
    let lease = world.lease("w");
    world.report("w", &lease, 0.5);
    let before = world.store.clone();
    let edited = submission("s", 0..9);
    let compare = |world: &World, folds| world.scheduler.compare(&sweep("s"), folds).unwrap();
    let first = compare(&world, &edited.folds[..4]);
    let both = first.and(compare(&world, &edited.folds[4..])).unwrap();
    assert_eq!((both.of, both.has, both.finished), (6, 6, 1));
    assert_eq!(world.scheduler.compare(&sweep("other"), &edited.folds), None);
    assert_eq!(world.scheduler.snapshot(), before);
    world.submit(edited.clone());
    let later = compare(&world, &edited.folds[4..]);
    assert_eq!((later.of, later.has, first.and(later)), (9, 5, None), "these do not belong together");
}
