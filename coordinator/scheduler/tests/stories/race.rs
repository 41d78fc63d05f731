//! Races: which trials a sweep stops, that this is a function of stored results in whatever order they come and whatever happens
//! meanwhile, and what becomes of the folds of a stopped trial.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use togl_scheduler::{
    Abandon, Event, FoldState, Lease, Reason, ResultAnswer, Submission, TrialStop, WorkerInfo,
};
use togl_sweeps::race::{self, Alpha, Criterion, FoldStanding, Race, RaceGroup, Score, Terms};
use togl_sweeps::result::example;
use togl_sweeps::spec::Metric;
use togl_sweeps::{Attempt, Capability, FailureClass, FoldKey, FoldResult};

use crate::world::{World, info, submission, sweep, trial, worker};

const SPLITS: u32 = 8;

fn group(trials: u32, splits: u32, seeds: u64) -> RaceGroup {
    let splits = (0..splits).rev().map(|split| (split, (0..seeds).collect())).collect(); // written from the last on
    RaceGroup { trials: (0..trials).map(trial).collect(), splits, rungs: vec![] }
}

fn race_of(group: RaceGroup) -> Race {
    let terms = Terms { after: 4, criterion: Criterion::Test(Alpha::Fortieth) };
    Race { by: Metric::ValidationAccuracy, terms, groups: vec![group], rungs: None }
}

/// A sweep whose trials race, in the order of the race: all first splits, then all second ones.
fn racing(name: &str, group: RaceGroup) -> Submission {
    submitted(name, race_of(group))
}

/// A sweep with a race of one group.
pub fn submitted(name: &str, race: Race) -> Submission {
    let group = &race.groups[0];
    let folds = (0..group.stages())
        .flat_map(|stage| (0..group.trials.len()).flat_map(move |trial| group.folds(trial, stage)));
    let canonical =
        |n: usize| format!("{{\"canonical\":1,\"dataset\":\"MUTAG\",\"depth\":{n},\"numerics\":1}}");
    Submission {
        trials: group.all().enumerate().map(|(n, (_, _, trial))| (trial, canonical(n))).collect(),
        folds: folds.collect(),
        race: Some(Arc::new(race)),
        ..submission(name, [0])
    }
}

/// A result whose test part says the opposite of its validation part.
pub fn result(value: f64) -> FoldResult {
    let mut result = FoldResult { confusion: vec![], ..example(1.0 - value) };
    result.validation.accuracy = value;
    result
}

/// A good trial and a bad one, on eight splits of one seed.
fn two() -> World {
    let mut world = World::default();
    world.submit(racing("s", group(2, SPLITS, 1)));
    world.join("w", "h", 20);
    world
}

fn value(fold: &FoldKey) -> f64 {
    let noise = f64::from(fold.split) / 1000.0;
    if fold.trial == trial(0) { 0.5 + noise } else { 0.9 - noise }
}

fn report(world: &mut World, lease: &Lease) -> ResultAnswer {
    world.report_result("w", lease.fold, lease.attempt, result(value(&lease.fold)))
}

fn stopped(world: &World) -> Vec<TrialStop> {
    world.scheduler.stopped(&sweep("s"))
}

#[test]
fn folds_are_handed_out_split_by_split_in_the_order_written() {
    let mut world = two();
    let splits: Vec<u32> = world.leases("w", 6).iter().map(|lease| lease.fold.split).collect();
    assert_eq!(splits, [7, 7, 6, 6, 5, 5]);
}

#[test]
fn a_clearly_worse_trial_is_stopped_and_its_other_folds_are_not_trained() {
    let mut world = two();
    for _ in 0..8 {
        assert!(stopped(&world).is_empty());
        let lease = world.lease("w");
        report(&mut world, &lease);
    }
    let stop = TrialStop { trial: trial(0), look: 4, of: SPLITS, leader: Some(trial(1)), halving: false };
    assert_eq!(stopped(&world), [stop]);
    let left = world.leases("w", 20);
    assert_eq!(left.iter().map(|lease| lease.fold.trial).collect::<Vec<_>>(), [trial(1); 4]);
    let reason =
        world.scheduler.explain(world.now, &FoldKey { trial: trial(0), split: 0, seed: 0 }).unwrap().reason;
    assert_eq!(reason, Reason::Stopped { sweep: sweep("s"), stopped: stop });
    assert!(reason.to_string().contains("after 4 of 8 splits"), "{reason}");
    left.iter().for_each(|lease| drop(report(&mut world, lease)));
    let view = world.view("s");
    assert!(view.has_ended() && view.counts.pending == 0 && view.counts.finished == 12, "{view:?}");
}

#[test]
fn a_fold_that_runs_when_its_trial_is_stopped_is_let_go_and_its_result_is_kept_without_a_say() {
    let mut world = two();
    let leases = world.leases("w", 10);
    for lease in &leases[..8] {
        report(&mut world, lease);
    }
    let late = leases[8..].iter().find(|lease| lease.fold.trial == trial(0)).unwrap().clone();
    assert_eq!(world.renew("w", &[&late]), [Err(Abandon::NotWanted)]);
    let perfect = world.report_result("w", late.fold, late.attempt, result(1.0));
    assert_eq!(perfect, ResultAnswer::Accepted);
    assert!(matches!(world.state(late.fold), FoldState::Finished { .. }));
    assert_eq!(stopped(&world).len(), 1, "it was not asked at look 4");
}

#[test]
fn a_program_s_trials_race_only_with_those_that_differ_in_what_is_raced_among() {
    let text = "version: 1\nname: s\nprogram: {run: [t], version: 1, settings: {rate: number, width: whole}}\n\
                base: {dataset: own}\ngrid: {rate: [0.1, 0.2], width: [8, 16]}\nsplits: {from: 0, to: 7}\nrace: {among: [rate]}\n";
    let spec = togl_sweeps::SweepSpec::parse(text).unwrap();
    let trials = spec.trials.iter().map(|trial| (trial.id, trial.config.canonical())).collect();
    let mut world = World::default();
    let race = spec.race().map(Arc::new);
    world.submit(Submission { trials, folds: spec.folds(), race, ..submission("s", [0]) });
    let offers = BTreeSet::from([Capability::Programs]);
    let info = WorkerInfo { offers, ..info("h", 40) };
    world.tell(Event::WorkerJoined { worker: worker("w"), info, running: vec![] });
    let of = |fold: &FoldKey| spec.trials.iter().find(|trial| trial.id == fold.trial).unwrap();
    let shown = |fold: &FoldKey, name| of(fold).config.show(name).unwrap();
    for lease in world.leases("w", 32) {
        let noise = f64::from(lease.fold.split) / 1000.0;
        // The narrow ones are far better, and the rate decides among equally wide ones.
        let width = if shown(&lease.fold, "width") == "8" { 0.5 } else { 0.1 };
        let value = if shown(&lease.fold, "rate") == "0.2" { width + 0.3 - noise } else { width + noise };
        world.report_result("w", lease.fold, lease.attempt, FoldResult { numerics: 0, ..result(value) });
    }
    let stopped: Vec<String> = stopped(&world)
        .iter()
        .map(|stop| shown(&FoldKey { trial: stop.trial, split: 0, seed: 0 }, "rate"))
        .collect();
    assert_eq!(stopped, ["0.1", "0.1"], "one of each width");
}

#[test]
fn another_sweep_still_gets_the_folds_of_a_trial_that_one_has_stopped() {
    let mut world = two();
    for _ in 0..8 {
        let lease = world.lease("w");
        report(&mut world, &lease);
    }
    let mut other = racing("t", group(1, SPLITS, 1));
    other.race = None;
    world.submit(other);
    let of_stopped = world.leases("w", 20).iter().filter(|lease| lease.fold.trial == trial(0)).count();
    assert_eq!(of_stopped, 4);
    world.cancel("t");
    assert_eq!(world.scheduler.totals().running, 4, "and lets them go when only the race is left");
}

#[test]
fn results_that_were_there_before_count_in_a_sweep_that_is_submitted_later() {
    let mut world = World::default();
    world.submit(Submission { race: None, ..racing("before", group(2, SPLITS, 1)) });
    world.join("w", "h", 20);
    for lease in world.leases("w", 20) {
        report(&mut world, &lease);
    }
    world.submit(racing("s", group(2, SPLITS, 1)));
    assert_eq!(stopped(&world).len(), 1);
    world.submit(Submission { race: None, yaml: "without".to_owned(), ..racing("s", group(2, SPLITS, 1)) });
    assert!(stopped(&world).is_empty(), "an edit without a race wants everything again");
}

#[test]
fn a_failed_fold_stops_its_trial_and_a_retry_brings_it_back() {
    let mut world = two();
    for lease in world.leases("w", 2) {
        match lease.fold.trial == trial(1) {
            true => drop(world.fail("w", &lease, FailureClass::Config)),
            false => drop(report(&mut world, &lease)),
        }
    }
    assert_eq!(
        stopped(&world),
        [TrialStop { trial: trial(1), look: 1, of: SPLITS, leader: None, halving: false }]
    );
    world.tell(Event::Retry { sweep: sweep("s") });
    assert!(stopped(&world).is_empty());
}

#[test]
fn a_result_that_is_set_aside_revives_who_was_stopped_by_it() {
    let mut world = two();
    for _ in 0..7 {
        let lease = world.lease("w");
        report(&mut world, &lease);
    }
    let last = world.lease("w");
    let other = FoldResult { data_digest: "other".to_owned(), ..result(value(&last.fold)) };
    world.report_result("w", last.fold, last.attempt, other);
    assert_eq!(stopped(&world).len(), 1);
    world.settle("MUTAG", "data");
    assert!(stopped(&world).is_empty(), "the look has to be made again");
    let again = world.lease("w");
    assert_eq!(again.fold, last.fold);
    report(&mut world, &again);
    assert_eq!(stopped(&world).len(), 1);
}

/// What happens next: 0..16 chooses among workers, leases and mishaps.
pub type Luck = Vec<(u8, u8)>;

/// A world in which the values are these, played as luck wants until the sweep has ended; every fold that the race wants has its
/// value in the end.
#[expect(clippy::too_many_lines, reason = "one arm for each thing that may happen")]
pub fn played(submission: Submission, values: &dyn Fn(&FoldKey) -> f64, luck: &Luck) -> World {
    let mut world = World::default();
    world.submit(submission);
    let (names, mut held) = (["a", "b", "c"], vec![Vec::<Lease>::new(); 3]);
    let mut old: Vec<(usize, Lease)> = Vec::new();
    for name in names {
        world.join(name, name, 3);
    }
    let mut luck = luck.iter().copied().cycle();
    for step in 0.. {
        assert!(step < 5_000, "it does not end");
        let (what, which) = luck.next().unwrap();
        // In the end nothing goes wrong any more.
        let what = if step > 400 { what % 8 } else { what };
        let at = usize::from(which) % 3;
        match what {
            0..4 => held[at].extend(world.leases(names[at], 1 + u32::from(which) % 3)),
            4..10 if !held[at].is_empty() => {
                let place = usize::from(which) % held[at].len();
                let lease = held[at].swap_remove(place);
                world.report_result(names[at], lease.fold, lease.attempt, result(values(&lease.fold)));
                old.push((at, lease));
            }
            // A worker goes and comes back; what it had may be reported by it later, or by nobody.
            10 => {
                old.extend(held[at].drain(..).map(|lease| (at, lease)));
                world.leave(names[at]);
                world.join(names[at], names[at], 3);
            }
            11 if !old.is_empty() => {
                let (at, lease) = old[usize::from(which) % old.len()].clone();
                let nonsense = match world.state(lease.fold) {
                    FoldState::Finished { attempt, .. } if attempt != lease.attempt => 0.3, // a replicate
                    _ => values(&lease.fold),
                };
                world.report_result(names[at], lease.fold, lease.attempt, result(nonsense));
            }
            12 => {
                world.restart();
                for (at, name) in names.iter().enumerate() {
                    world.join_with(name, name, 3, &held[at].iter().collect::<Vec<_>>());
                }
            }
            13 if !held[at].is_empty() => {
                let lease = held[at].pop().unwrap();
                world.fail(names[at], &lease, FailureClass::Config);
            }
            14 => drop(world.tell(Event::Retry { sweep: sweep("s") })),
            15 if !held[at].is_empty() && world.scheduler.disputes().is_empty() => {
                let lease = held[at].pop().unwrap();
                let other = FoldResult { data_digest: "other".to_owned(), ..result(0.1) };
                world.report_result(names[at], lease.fold, lease.attempt, other);
                if !world.scheduler.disputes().is_empty() {
                    let expected = world.scheduler.disputes()[0].expected.to_string();
                    let right = if expected == "other" { "other" } else { "data" };
                    world.settle("MUTAG", right);
                }
            }
            _ => {}
        }
        if world.view("s").has_ended() {
            if world.view("s").counts.failed == 0 {
                return world;
            }
            world.tell(Event::Retry { sweep: sweep("s") });
        }
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stops_are_the_same_whatever_order_results_come_in_and_whatever_happens_meanwhile(
        noise in prop::collection::vec(0u16..1000, 6 * 6 * 2),
        luck in prop::collection::vec((0u8..16, any::<u8>()), 200..300),
        seeds in 1u64..3,
    ) {
        let group = group(5, 6, seeds);
        let values = |fold: &FoldKey| {
            let place = group.trials.iter().position(|trial| *trial == fold.trial).unwrap();
            let noise = noise[place * 12 + fold.split as usize * 2 + fold.seed as usize];
            0.2 + place as f64 / 10.0 + f64::from(noise) / 8000.0
        };
        let race = race_of(group.clone());
        let score = |fold: &FoldKey| FoldStanding::Scored(Score::of(&result(values(fold))));
        let heat = race::run(&race, &group, score);
        let expected: Vec<_> = (0..5).filter_map(|place| {
            let stop = heat.stop(place)?;
            let leader = stop.leader.map(|leader| group.trials[leader]);
            Some(TrialStop { trial: group.trials[place], look: stop.look, of: 6, leader, halving: false })
        }).collect();
        // Whoever pins the data first is right: results of other data are nonsense, so nobody may report them first.
        let calm: Luck = (0..8).flat_map(|n| [(0, n), (4, n)]).chain(luck.iter().copied()).collect();
        let world = played(racing("s", group.clone()), &values, &calm);
        prop_assert_eq!(stopped(&world), expected);
    }
}

/// Folds looked at by the last of the results of a race of so many trials before each look.
fn looked_at(trials: u32) -> Vec<u64> {
    let mut world = World::default();
    world.checks = false;
    world.submit(racing("s", group(trials, SPLITS, 1)));
    world.join("w", "h", 500);
    let leases = world.leases("w", trials * SPLITS);
    let mut costs = Vec::new();
    for lease in &leases {
        let before = world.scheduler.looked_at();
        world.report_result("w", lease.fold, lease.attempt, result(0.5));
        costs.push(world.scheduler.looked_at() - before);
    }
    costs.sort_unstable();
    costs
}

#[test]
fn a_result_costs_the_same_however_many_trials_race_but_for_one_look_a_split() {
    let (few, many) = (looked_at(5), looked_at(50));
    let looks = SPLITS as usize;
    let (few, usual) = (few[few.len() - looks - 1], many[many.len() - looks - 1]);
    assert!(
        usual < few + 4,
        "{few} and {usual} for results that no look waits for; keys may meet in a table"
    );
    let most = *many.last().unwrap();
    assert!(most < 50 * 8, "a look costs its trials: {most}");
}

#[test]
fn an_attempt_that_was_never_issued_has_no_say() {
    let mut world = two();
    let never = FoldKey { trial: trial(0), split: 7, seed: 0 };
    assert!(matches!(world.report_result("w", never, Attempt(1), result(1.0)), ResultAnswer::Refused(_)));
    assert!(stopped(&world).is_empty());
}
