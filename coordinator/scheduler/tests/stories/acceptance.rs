//! Which message counts: one test per row of the acceptance table.

use togl_scheduler::{
    Abandon, Change, Connection, FailureAnswer, FoldChange, FoldState, Refusal, ResultAnswer,
};
use togl_sweeps::result::example;
use togl_sweeps::{Attempt, FailureClass, FoldResult};

use crate::world::{World, fold, submission, worker};

/// A fold whose first attempt (worker `w`) is presumed lost and whose second runs on `v`.
fn with_two_attempts() -> (World, togl_scheduler::Lease, togl_scheduler::Lease) {
    let mut world = World::with_sweep(1, 1);
    let first = world.lease("w");
    world.pass(16_000);
    world.join("v", "elsewhere", 1);
    let second = world.lease("v");
    assert_eq!((first.attempt, second.attempt), (Attempt(1), Attempt(2)));
    (world, first, second)
}

#[test]
fn the_first_result_of_the_current_attempt_is_accepted() {
    let mut world = World::with_sweep(1, 1);
    let lease = world.lease("w");
    assert_eq!(world.report("w", &lease, 0.5), ResultAnswer::Accepted);
    assert_eq!(world.state(lease.fold), FoldState::Finished { attempt: Attempt(1), worker: worker("w") });
    assert!(world.view("s").has_ended());
}

#[test]
fn a_late_result_of_a_presumed_dead_worker_fills_the_fold_and_the_newer_attempt_is_told_to_abandon() {
    let (mut world, first, second) = with_two_attempts();
    assert_eq!(world.report("w", &first, 0.5), ResultAnswer::Accepted);
    assert_eq!(world.state(fold(0)), FoldState::Finished { attempt: Attempt(1), worker: worker("w") });
    assert_eq!(world.renew("v", &[&second]), [Err(Abandon::Finished)]);
}

#[test]
fn a_result_for_a_pending_fold_whose_attempt_was_lost_is_accepted() {
    let mut world = World::with_sweep(1, 1);
    let lease = world.lease("w");
    world.pass(16_000);
    assert_eq!(world.state(fold(0)), FoldState::Pending);
    assert_eq!(world.report("w", &lease, 0.5), ResultAnswer::Accepted);
}

#[test]
fn a_result_for_a_failed_fold_is_accepted() {
    let mut world = World::with_sweep(1, 1);
    let lease = world.lease("w");
    assert_eq!(world.fail("w", &lease, FailureClass::Config), FailureAnswer::Failed);
    assert_eq!(world.report("w", &lease, 0.5), ResultAnswer::Accepted);
    assert_eq!(world.view("s").counts.failed, 0);
}

#[test]
fn the_same_report_again_is_acknowledged_as_the_same_and_stores_nothing() {
    let mut world = World::with_sweep(1, 1);
    let lease = world.lease("w");
    world.report("w", &lease, 0.5);
    let stored = world.history.len();
    assert_eq!(world.report("w", &lease, 0.5), ResultAnswer::Same);
    assert_eq!(world.history.len(), stored);
}

#[test]
fn the_same_attempt_with_other_numbers_is_a_logged_conflict_and_the_first_stays() {
    let mut world = World::with_sweep(1, 1);
    let lease = world.lease("w");
    world.report("w", &lease, 0.5);
    let before = world.store.clone();
    assert_eq!(world.report("w", &lease, 0.75), ResultAnswer::Conflict);
    assert_eq!(world.store, before);
    assert!(matches!(world.history.last(), Some(Change::Fold(_, FoldChange::Conflict { .. }))));
}

#[test]
fn the_result_of_another_attempt_is_kept_once_as_a_replicate_and_compared() {
    let (mut world, first, second) = with_two_attempts();
    assert_eq!(world.report("v", &second, 0.5), ResultAnswer::Accepted);
    assert_eq!(world.report("w", &first, 0.5), ResultAnswer::Replicate { agrees: true });
    assert_eq!(world.report("w", &first, 0.5), ResultAnswer::Same);
    assert_eq!(world.report("w", &first, 0.25), ResultAnswer::Conflict);
    assert_eq!(world.state(fold(0)), FoldState::Finished { attempt: Attempt(2), worker: worker("v") });
}

#[test]
fn a_replicate_with_other_numbers_is_kept_and_said_to_disagree() {
    let (mut world, first, second) = with_two_attempts();
    world.report("v", &second, 0.5);
    assert_eq!(world.report("w", &first, 0.75), ResultAnswer::Replicate { agrees: false });
    let last = world.history.last();
    assert!(matches!(last, Some(Change::Fold(_, FoldChange::Replicate { agrees: false, .. }))));
}

#[test]
fn what_was_never_issued_is_refused_for_good() {
    let mut world = World::with_sweep(2, 1);
    let lease = world.lease("w");
    let stored = world.history.len();
    let refused = [
        ("w", lease.fold, Attempt(2)),
        ("w", lease.fold, Attempt(0)),
        ("w", lease.fold, Attempt(u32::MAX)),
        ("w", fold(1), Attempt(1)),
        ("w", fold(99), Attempt(1)),
        ("stranger", lease.fold, Attempt(1)),
    ];
    for (name, fold, attempt) in refused {
        let answer = world.report_result(name, fold, attempt, example(0.5));
        let worker = worker(name);
        assert_eq!(answer, ResultAnswer::Refused(Refusal::NeverIssued { fold, attempt, worker }));
    }
    assert_eq!(world.history.len(), stored);
}

#[test]
fn a_process_that_took_over_a_spool_may_report_what_its_predecessor_trained() {
    let mut world = World::with_sweep(1, 1);
    let lease = world.lease("w");
    let mut result = example(0.5);
    result.provenance.worker = "w".to_owned();
    let answer = world.report_result("successor", lease.fold, lease.attempt, result);
    assert_eq!(answer, ResultAnswer::Accepted);
    assert_eq!(world.state(fold(0)), FoldState::Finished { attempt: Attempt(1), worker: worker("w") });
}

#[test]
fn renewals_and_failures_of_a_superseded_attempt_change_nothing() {
    let (mut world, first, second) = with_two_attempts();
    world.join("w", "h", 1);
    let stored = world.history.len();
    assert_eq!(world.renew("w", &[&first]), [Err(Abandon::Superseded)]);
    assert_eq!(world.fail("w", &first, FailureClass::Config), FailureAnswer::Superseded);
    assert_eq!(world.renew("v", &[&second]), [Ok(())]);
    assert_eq!(world.history.len(), stored, "renewals are not stored");
}

#[test]
fn failures_of_attempts_that_were_never_issued_are_refused() {
    let mut world = World::with_sweep(1, 1);
    let mut lease = world.lease("w");
    world.join("v", "elsewhere", 1);
    assert!(matches!(world.fail("v", &lease, FailureClass::Config), FailureAnswer::Refused(_)));
    lease.attempt = Attempt(7);
    assert!(matches!(world.fail("w", &lease, FailureClass::Config), FailureAnswer::Refused(_)));
    assert_eq!(world.view("s").counts.running, 1);
}

#[test]
fn an_attempt_that_contradicts_itself_again_and_again_is_stored_once() {
    let (mut world, first, second) = with_two_attempts();
    world.report("v", &second, 0.5);
    world.report("w", &first, 0.5);
    for (name, lease) in [("w", &first), ("v", &second)] {
        assert_eq!(world.report(name, lease, 0.75), ResultAnswer::Conflict);
        let stored = world.history.len();
        for accuracy in [0.75, 0.25, 0.125] {
            assert_eq!(world.report(name, lease, accuracy), ResultAnswer::Conflict);
        }
        assert_eq!(world.history.len(), stored);
    }
}

/// Eight graphs of a data set that is scored by accuracy, which the confusion matrix does not agree with.
fn contradictory() -> FoldResult {
    FoldResult { confusion: example(0.25).confusion, ..example(0.5) }
}

fn with_a_data_set() -> World {
    let mut world = World::default();
    let mut submission = submission("s", 0..8);
    submission.trials.iter_mut().for_each(|(_, canonical)| *canonical = r#"{"dataset":"MUTAG"}"#.to_owned());
    world.submit(submission);
    world
}

#[test]
fn a_result_that_contradicts_itself_is_refused_twice_and_then_the_fold_has_failed() {
    let mut world = with_a_data_set();
    for name in ["w", "v"] {
        world.join(name, name, 1);
        let lease = world.lease(name);
        assert_eq!(lease.fold, fold(0));
        let answer = world.report_result(name, lease.fold, lease.attempt, contradictory());
        let ResultAnswer::Refused(Refusal::Invalid { reason }) = answer else { panic!("{answer:?}") };
        assert!(reason.starts_with("result has test accuracy = 0.5, which contradicts"), "{reason}");
    }
    assert_eq!(world.failure(fold(0)).class, FailureClass::ReportRefused);
}

#[test]
fn a_refused_result_of_a_superseded_attempt_does_not_end_the_current_one() {
    let mut world = with_a_data_set();
    world.join("w", "w", 1);
    let first = world.lease("w");
    world.pass(16_000);
    world.join("v", "v", 1);
    let second = world.lease("v");
    let answer = world.report_result("w", first.fold, first.attempt, contradictory());
    assert!(matches!(answer, ResultAnswer::Refused(Refusal::Invalid { .. })));
    assert_eq!(world.fail("w", &first, FailureClass::ReportRefused), FailureAnswer::Superseded);
    assert_eq!(world.renew("v", &[&second]), [Ok(())]);
}

#[test]
fn no_host_is_blamed_for_reports_that_were_refused() {
    let mut world = with_a_data_set();
    world.join("a", "a", 1);
    world.join("b", "b", 1);
    for _ in 0..4 {
        let lease = world.lease("a");
        world.fail("a", &lease, FailureClass::ReportRefused);
        let again = world.lease("b");
        assert_eq!(again.fold, lease.fold);
        world.report("b", &again, 0.5);
    }
    assert!(world.scheduler.workers().iter().all(|view| view.connection == Connection::Connected));
}

#[test]
fn a_result_that_waits_for_an_upgrade_is_not_trained_again_and_counts_when_it_can_be_read() {
    let mut world = World::with_sweep(3, 1);
    let lease = world.lease("w");
    assert_eq!(world.fail("w", &lease, FailureClass::NeedsUpgrade), FailureAnswer::Failed);
    assert_eq!(world.leases("w", 1), [], "nobody could read what else it trains");
    let said = |world: &World, n| world.scheduler.explain(world.now, &fold(n)).unwrap().reason.to_string();
    assert!(said(&world, 0).starts_with("it failed: needs-upgrade: "), "{}", said(&world, 0));
    assert!(said(&world, 1).ends_with("upgrade the coordinator)"), "{}", said(&world, 1));
    let seen = &world.scheduler.workers()[0];
    assert!(seen.connection == Connection::Quarantined && seen.note.is_some());

    world.join("older", "elsewhere", 1);
    assert_eq!(world.lease("older").fold, fold(1), "it does not wait for the finished one either");
    world.restart();
    world.join("w", "h", 1);
    assert_eq!(world.report("w", &lease, 0.5), ResultAnswer::Accepted);
    assert_eq!(world.leases("w", 1).len(), 1);
}
