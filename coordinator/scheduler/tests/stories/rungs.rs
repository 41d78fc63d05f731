//! Halving: who goes on from a rung, what becomes of later rungs before their turn, and that this is a function of stored results
//! in whatever order they come and whatever happens meanwhile.

use proptest::prelude::*;
use togl_scheduler::{Event, FoldState, Reason, ResultAnswer, TrialStop};
use togl_sweeps::halve::Rungs;
use togl_sweeps::race::{Criterion, FoldStanding, Race, RaceGroup, Score, Terms, run};
use togl_sweeps::spec::Metric;
use togl_sweeps::{FailureClass, FoldKey, TrialId};

use crate::race::{Luck, played, result, submitted};
use crate::world::{World, sweep, trial};

/// So many places on three rungs, with two splits of these seeds. Trials of later rungs have later numbers.
fn group(places: u32, seeds: u64) -> RaceGroup {
    let on = |rung: u32| (0..places).map(|place| trial(rung * places + place)).collect::<Vec<TrialId>>();
    let splits = [1, 0].map(|split| (split, (0..seeds).collect()));
    RaceGroup { trials: on(0), splits: splits.to_vec(), rungs: vec![on(1), on(2)] }
}

fn halving(group: RaceGroup) -> Race {
    let terms = Terms { after: 1, criterion: Criterion::Best("1/2".parse().unwrap()) };
    let rungs = Rungs { over: "max_epochs", values: vec![20, 40, 60] };
    Race { by: Metric::ValidationAccuracy, terms, groups: vec![group], rungs: Some(rungs) }
}

/// Four places: two go on to the second rung, one to the third. Places 0 to 3 are the better the later.
fn four() -> World {
    let mut world = World::default();
    world.submit(submitted("s", halving(group(4, 1))));
    world.join("w", "h", 40);
    world
}

fn place(fold: &FoldKey) -> (u32, u32) {
    let number = u32::from(fold.trial.as_bytes()[0]);
    (number % 4, number / 4)
}

/// Trains what there is to be had; gives the folds.
fn train_all(world: &mut World) -> Vec<(u32, u32)> {
    let leases = world.leases("w", 40);
    for lease in &leases {
        let value = 0.2 + f64::from(place(&lease.fold).0) / 10.0;
        world.report_result("w", lease.fold, lease.attempt, result(value));
    }
    leases.iter().map(|lease| place(&lease.fold)).collect()
}

fn fold(number: u32) -> FoldKey {
    FoldKey { trial: trial(number), split: 0, seed: 0 }
}

fn reason(world: &World, number: u32) -> Reason {
    world.scheduler.explain(world.now, &fold(number)).unwrap().reason
}

#[test]
fn a_rung_is_trained_when_the_one_before_has_ended_and_only_by_the_best_of_it() {
    let mut world = four();
    assert_eq!(train_all(&mut world), [(0, 0), (0, 0), (1, 0), (1, 0), (2, 0), (2, 0), (3, 0), (3, 0)]);
    assert!(!world.view("s").has_ended());
    assert_eq!(train_all(&mut world), [(2, 1), (2, 1), (3, 1), (3, 1)]);
    assert_eq!(train_all(&mut world), [(3, 2), (3, 2)]);
    let view = world.view("s");
    assert!(view.has_ended() && view.counts.finished == 14 && view.counts.pending == 0, "{view:?}");
    let stopped = world.scheduler.stopped(&sweep("s"));
    let told: Vec<_> = stopped.iter().map(|stop| (stop.trial, stop.look, stop.of, stop.halving)).collect();
    assert_eq!(told, [(trial(4), 1, 3, true), (trial(5), 1, 3, true), (trial(10), 2, 3, true)]);
    assert_eq!(stopped[2].leader, Some(trial(7)));
}

#[test]
fn a_fold_of_a_later_rung_says_what_it_waits_for_and_one_of_a_stopped_trial_why() {
    let mut world = four();
    assert_eq!(reason(&world, 6), Reason::WaitsForRung { sweep: sweep("s"), rung: 1, of: 3 });
    assert!(reason(&world, 6).to_string().contains("waits for rung 1 of its group"));
    train_all(&mut world);
    assert_eq!(reason(&world, 10), Reason::WaitsForRung { sweep: sweep("s"), rung: 2, of: 3 });
    assert!(matches!(reason(&world, 4), Reason::Stopped { .. }));
    assert!(reason(&world, 4).to_string().contains("after rung 1 of 3"), "{}", reason(&world, 4));
}

#[test]
fn a_failed_fold_takes_its_trial_out_of_the_rung_and_a_retry_brings_it_back() {
    let mut world = four();
    let leases = world.leases("w", 40);
    for lease in &leases {
        match place(&lease.fold).0 {
            3 => drop(world.fail("w", lease, FailureClass::Config)),
            place => _ = world.report_result("w", lease.fold, lease.attempt, result(f64::from(place) / 10.0)),
        }
    }
    assert_eq!(train_all(&mut world), [(1, 1), (1, 1), (2, 1), (2, 1)], "half of the four that entered");
    world.tell(Event::Retry { sweep: sweep("s") });
    assert!(matches!(reason(&world, 6), Reason::Finished { .. } | Reason::WaitsForRung { .. }));
    assert_eq!(train_all(&mut world), [(3, 0), (3, 0)]);
    assert_eq!(train_all(&mut world), [(3, 1), (3, 1)], "what another one has on this rung it has already");
    assert!(matches!(world.state(fold(5)), FoldState::Finished { .. }), "a result is kept");
}

#[test]
fn a_later_rung_that_has_results_already_is_asked_when_its_turn_has_come() {
    let mut world = World::default();
    let mut plain = submitted("before", halving(group(4, 1)));
    plain.race = None;
    world.submit(plain);
    world.join("w", "h", 40);
    train_all(&mut world);
    world.submit(submitted("s", halving(group(4, 1))));
    assert!(world.view("s").has_ended());
    assert_eq!(world.scheduler.stopped(&sweep("s")).len(), 3);
}

#[test]
fn an_attempt_of_a_later_rung_that_was_never_issued_is_refused() {
    let mut world = four();
    let answer = world.report_result("w", fold(4), togl_sweeps::Attempt(1), result(1.0));
    assert!(matches!(answer, ResultAnswer::Refused(_)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn who_goes_on_is_the_same_whatever_order_results_come_in_and_whatever_happens_meanwhile(
        values in prop::collection::vec(0u16..30, 7 * 3 * 2 * 2),
        luck in prop::collection::vec((0u8..16, any::<u8>()), 200..300),
        seeds in 1u64..3,
    ) {
        let group = group(7, seeds);
        let values = |fold: &FoldKey| {
            let number = usize::from(fold.trial.as_bytes()[0]);
            f64::from(values[number * 4 + fold.split as usize * 2 + fold.seed as usize]) / 40.0
        };
        let race = halving(group.clone());
        let heat = run(&race, &group, |fold| FoldStanding::Scored(Score::of(&result(values(fold)))));
        let expected: Vec<_> = (0..7).filter_map(|place| {
            let stop = heat.stop(place)?;
            let leader = stop.leader.map(|leader| group.on_rung(leader, stop.look as usize - 1));
            let trial = group.on_rung(place, stop.look as usize);
            Some(TrialStop { trial, look: stop.look, of: 3, leader, halving: true })
        }).collect();
        // Whoever pins the data first is right: results of other data are nonsense, so nobody may report them first.
        let calm: Luck = (0..8).flat_map(|n| [(0, n), (4, n)]).chain(luck.iter().copied()).collect();
        let world = played(submitted("s", race), &values, &calm);
        prop_assert_eq!(world.scheduler.stopped(&sweep("s")), expected);
    }
}
