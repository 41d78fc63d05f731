//! Large sweeps come in parts. Nobody sees them before they are whole, others are served in between, and a restart in the
//! middle leaves nothing but folds that no sweep has.

use togl_scheduler::{Event, Part, Rejection, Reply, Submission, Submitted};

use crate::world::{World, fold, submission, sweep};

/// The next folds of sweep `s`; gives how many have come so far.
fn gather(world: &mut World, from: u64, folds: std::ops::Range<u32>) -> Result<u64, Rejection> {
    let Submission { trials, folds, .. } = submission("s", folds);
    let part = Part { sweep: sweep("s"), from, all: 8, trials, folds };
    match world.try_tell(Event::Gather(Box::new(part)))? {
        Reply::Gathered { folds } => Ok(folds),
        other => panic!("{other:?}"),
    }
}

/// That was all.
fn finish(world: &mut World, gathered: u64) -> Result<Submitted, Rejection> {
    let whole = Submission { gathered, trials: vec![], folds: vec![], ..submission("s", 0..8) };
    match world.try_tell(Event::Submit(Box::new(whole)))? {
        Reply::Submitted(submitted) => Ok(submitted),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_large_sweep_is_there_with_its_last_part_and_others_are_served_before() {
    let mut world = World::default();
    world.join("w", "h", 8);
    assert_eq!(gather(&mut world, 0, 0..3), Ok(3));
    assert_eq!(world.scheduler.sweep(&sweep("s")), None);
    assert_eq!(world.leases("w", 8), [], "nobody wants these folds yet");
    world.submit(submission("t", 100..102));
    assert_eq!(world.leases("w", 8).len(), 2);
    assert_eq!(gather(&mut world, 3, 2..8), Ok(8), "a fold that comes twice counts once");
    let submitted = finish(&mut world, 8).unwrap();
    assert_eq!((submitted.folds, submitted.added, submitted.trials), (8, 8, 2));
    assert!(world.store.sweeps[&sweep("s")].folds.iter().copied().eq((0..8).map(fold)), "in order");
    assert_eq!(world.leases("w", 8).len(), 6);
    let again = (gather(&mut world, 0, 0..8).unwrap(), finish(&mut world, 8).unwrap());
    assert_eq!((again.1.added, again.1.removed), (0, 0));
}

#[test]
fn an_edit_in_parts_changes_nothing_before_the_last() {
    let mut world = World::default();
    world.submit(submission("s", [0, 1, 20]));
    world.join("w", "h", 3);
    let leases = world.leases("w", 3);
    let before = world.view("s");
    assert_eq!(gather(&mut world, 0, 0..8), Ok(8));
    assert_eq!(world.view("s"), before);
    assert!(world.renew("w", &leases.iter().collect::<Vec<_>>()).iter().all(Result::is_ok));
    let submitted = finish(&mut world, 8).unwrap();
    assert_eq!((submitted.added, submitted.removed), (6, 1));
    let verdicts = world.renew("w", &leases.iter().collect::<Vec<_>>());
    assert_eq!(verdicts.iter().filter(|verdict| verdict.is_err()).count(), 1, "what it lost is stopped");
}

#[test]
fn a_restart_in_the_middle_forgets_the_parts_and_the_sweep_can_be_submitted_anew() {
    let mut world = World::default();
    gather(&mut world, 0, 0..4).unwrap();
    world.restart();
    assert!(world.scheduler.sweeps().is_empty());
    let missing = Err(Rejection::PartsMissing { name: sweep("s") });
    assert_eq!(gather(&mut world, 4, 4..8), missing);
    assert_eq!(finish(&mut world, 4).map(|_| 0), missing);
    gather(&mut world, 0, 0..4).unwrap();
    gather(&mut world, 4, 4..8).unwrap();
    assert_eq!(finish(&mut world, 8).unwrap().folds, 8);
}

#[test]
fn what_would_not_fit_is_refused_with_its_first_part() {
    let limits = togl_scheduler::Limits { max_folds: 7, ..Default::default() };
    let mut world = World::with_limits(limits);
    let refused = gather(&mut world, 0, 0..2);
    assert_eq!(refused, Err(Rejection::TooManyFolds { folds: 8, most: 7 }));
    assert!(world.history.is_empty());
}
