//! Results from elsewhere: folds that have none get theirs, what is known is told to be the same, other numbers are kept
//! beside, and what this store could never have led to is named before anything changes.

use togl_scheduler::{
    Abandon, Adoption, AdoptionCounts, Event, FailureAnswer, FoldState, FromElsewhere, Rejection, Reply,
    ResultAnswer, Unadoptable, WorkerInfo,
};
use togl_sweeps::result::example;
use togl_sweeps::{Attempt, FailureClass, FoldResult};

use crate::world::{World, fold, info, submission, sweep, worker};

fn from_elsewhere(n: u32, result: FoldResult) -> FromElsewhere {
    let mut result = result;
    result.provenance.host = "far".to_owned();
    FromElsewhere { fold: fold(n), worker: worker("far-1"), result: Box::new(result.check().unwrap()) }
}

fn adoption(results: Vec<FromElsewhere>) -> Adoption {
    Adoption { sweep: sweep("s"), results }
}

fn adopt(world: &mut World, results: Vec<FromElsewhere>) -> AdoptionCounts {
    let adoption = adoption(results);
    let expected = world.scheduler.check_adoption(&adoption).unwrap();
    let Reply::Adopted(counts) = world.tell(Event::Adopt(Box::new(adoption))) else { panic!() };
    assert_eq!(counts, expected, "looking ahead says what happens");
    counts
}

fn counts(taken: u64, same: u64, replicates: u64) -> AdoptionCounts {
    AdoptionCounts { taken, same, replicates }
}

#[test]
fn folds_without_a_result_get_theirs_wherever_they_stand_and_nobody_trains_them() {
    let mut world = World::with_sweep(4, 2);
    let (failed, running) = (world.lease("w"), world.lease("w"));
    assert_eq!(world.fail("w", &failed, FailureClass::Config), FailureAnswer::Failed);
    let all = (0..4).map(|n| from_elsewhere(n, example(0.5))).collect();
    assert_eq!(adopt(&mut world, all), counts(4, 0, 0));
    let far = |attempt| FoldState::Finished { attempt: Attempt(attempt), worker: worker("far-1") };
    assert_eq!((world.state(fold(3)), world.state(running.fold)), (far(1), far(2)));
    assert!(world.view("s").has_ended() && world.leases("w", 2).is_empty());
    assert_eq!(world.renew("w", &[&running]), [Err(Abandon::Finished)]);
    assert_eq!(world.report("w", &running, 0.75), ResultAnswer::Replicate { agrees: false });
    world.restart();
    assert_eq!(world.state(fold(0)), far(2));
}

#[test]
fn taking_the_same_results_in_again_changes_nothing_and_other_numbers_are_kept_once_beside() {
    let mut world = World::with_sweep(2, 1);
    let lease = world.lease("w");
    world.report("w", &lease, 0.5);
    let all = || vec![from_elsewhere(0, example(0.75)), from_elsewhere(1, example(0.75))];
    assert_eq!(adopt(&mut world, all()), counts(1, 0, 1));
    assert_eq!(world.state(fold(0)), FoldState::Finished { attempt: Attempt(1), worker: worker("w") });
    let stored = world.history.len();
    assert_eq!(adopt(&mut world, all()), counts(0, 2, 0));
    assert_eq!(world.history.len(), stored);
    world.restart();
    assert_eq!(adopt(&mut world, all()), counts(0, 2, 0), "also after a restart");
}

#[test]
fn one_result_that_cannot_be_keeps_all_of_them_out_and_each_is_named() {
    let mut world = World::default();
    let numerics = togl_sweeps::trial::NUMERICS;
    let mut s = submission("s", 0..2);
    let text = format!(r#"{{"canonical":1,"dataset":"DD","numerics":{numerics}}}"#);
    s.trials.iter_mut().for_each(|(_, canonical)| canonical.clone_from(&text));
    world.submit(s);
    world.submit(submission("other", 4..8));
    let stored = world.history.len();
    let older = FoldResult { numerics: numerics + 1, ..example(0.5) };
    let all = vec![
        from_elsewhere(0, example(0.5)),
        from_elsewhere(1, older),
        from_elsewhere(4, example(0.5)),
        from_elsewhere(99, example(0.5)),
    ];
    let rejection = world.try_tell(Event::Adopt(Box::new(adoption(all)))).unwrap_err();
    let Rejection::Unadoptable { refused, .. } = &rejection else { panic!("{rejection}") };
    let [Unadoptable::Invalid { fold: first, reason }, rest @ ..] = refused.0.as_slice() else { panic!() };
    assert!(*first == fold(1) && reason.contains("of the numbers"), "{reason}");
    assert_eq!(rest, [fold(4), fold(99)].map(Unadoptable::NotInSweep));
    assert!(rejection.to_string().lines().count() == 4, "{rejection}");
    assert_eq!(world.history.len(), stored);
    let unknown = Adoption { sweep: sweep("t"), results: Vec::new() };
    let rejection = world.try_tell(Event::Adopt(Box::new(unknown))).unwrap_err();
    assert!(matches!(rejection, Rejection::UnknownSweep { .. }), "{rejection}");
}

#[test]
fn what_was_trained_elsewhere_says_nothing_about_the_pace_or_the_hosts_here() {
    let mut world = World::with_sweep(40, 1);
    let slow = FoldResult { seconds: 1e6, ..example(0.5) };
    let all = (0..39).map(|n| from_elsewhere(n, slow.clone())).collect();
    assert_eq!(adopt(&mut world, all), counts(39, 0, 0));
    let brief = WorkerInfo { seconds_left: Some(3_600), ..info("h", 1) };
    world.tell(Event::WorkerJoined { worker: worker("brief"), info: brief, running: vec![] });
    assert_eq!(world.leases("brief", 1).len(), 1, "nobody knows here that a fold takes longer than it has");
    assert!(world.store.quarantines.is_empty());
}

#[test]
fn a_result_from_other_data_disputes_the_data_set_as_any_other_does() {
    let mut world = World::default();
    let mut s = submission("s", 0..3);
    let numerics = togl_sweeps::trial::NUMERICS;
    let text = format!(r#"{{"canonical":1,"dataset":"DD","numerics":{numerics}}}"#);
    s.trials.iter_mut().for_each(|(_, canonical)| canonical.clone_from(&text));
    world.submit(s);
    let other = FoldResult { data_digest: "other".to_owned(), ..example(0.5) };
    adopt(&mut world, vec![from_elsewhere(0, example(0.5)), from_elsewhere(1, other)]);
    assert_eq!(world.scheduler.disputes().len(), 1);
}
