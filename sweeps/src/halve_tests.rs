//! Requirements of halving: who goes on, what a rung is, and what has no say in it.

use proptest::prelude::*;

use super::*;
use crate::race::{Heat, Score, run};
use crate::result::example;

const SWEEP: &str = "version: 1\nname: x\nbase: {dataset: DD, max_epochs: 7}\ngrid: {model: [gcn, gin], lr: [0.1, 0.2, 0.3]}\n\
                     splits: [3, 1]\nseeds: [0, 1]\nhalve: {over: max_epochs, rungs: [20, 40, 60], keep: 1/2, among: [lr]}\n";

fn third() -> Share {
    "1/3".parse().expect("a share")
}

/// The heat of one group whose places have these values on each rung; none has failed.
fn halved(share: Share, values: &[Vec<Option<f64>>]) -> Heat {
    let terms = Terms { after: 1, criterion: Criterion::Best(share) };
    let mut heat = Heat::new(terms, values.len(), values[0].len());
    while !heat.is_over() && heat.live().next().is_some() {
        let at = heat.looks() as usize;
        heat.look(|place| match values[place][at] {
            Some(mean) => SplitScores::Scored { mean, sizes: [0, 0] },
            None => SplitScores::Failed,
        });
    }
    heat
}

#[test]
fn the_best_share_goes_on_rounded_up_and_of_equals_the_earlier() {
    assert_eq!(survivors(&[(0, 0.5), (1, 0.7), (2, 0.5), (3, 0.1)], 4, third()), [1, 0]);
    assert_eq!(survivors(&[(0, 0.5), (2, 0.6)], 4, third()), [2, 0], "a failed one has entered and is out");
    assert_eq!(survivors(&[(5, 0.5)], 1, third()), [5]);
    assert!(survivors(&[], 3, third()).is_empty());
    assert_eq!((third().of(3), third().of(4), third().of(30)), (1, 2, 10));
}

#[test]
fn a_share_is_a_fraction_below_one() {
    for text in ["1/3", "2/3", "999/1000"] {
        assert_eq!(text.parse::<Share>().expect("a share").to_string(), text);
    }
    for text in ["", "1", "0.5", "0/3", "3/3", "1/1001", "-1/3", "1/3/4", "a/b"] {
        assert!(text.parse::<Share>().is_err(), "{text}");
    }
}

#[test]
fn a_rung_is_a_trial_that_differs_in_its_epochs_only_and_the_last_one_is_meant_in_the_end() {
    let spec = SweepSpec::parse(SWEEP).expect("a sweep");
    let epochs: Vec<u32> = spec.trials.iter().map(|trial| trial.config.max_epochs).collect();
    assert_eq!(epochs, [20, 40, 60].repeat(6));
    assert_eq!(spec.count_folds(), 6 * 3 * 4);
    let race = spec.race().expect("a halving");
    assert_eq!(
        race.groups.iter().map(|group| (group.trials.len(), group.stages())).collect::<Vec<_>>(),
        [(3, 3); 2]
    );
    let plain = SWEEP.replace("halve: {over: max_epochs, rungs: [20, 40, 60], keep: 1/2, among: [lr]}", "");
    let plain = SweepSpec::parse(&plain.replace("max_epochs: 7", "max_epochs: 60")).expect("a sweep");
    let last: Vec<TrialId> = spec.trials.iter().skip(2).step_by(3).map(|trial| trial.id).collect();
    assert_eq!(
        last,
        plain.trials.iter().map(|trial| trial.id).collect::<Vec<_>>(),
        "the very trials of a plain sweep"
    );
    let rungs: Vec<u32> = spec
        .folds()
        .iter()
        .map(|fold| {
            spec.trials.iter().find(|trial| trial.id == fold.trial).map_or(0, |trial| trial.config.max_epochs)
        })
        .collect();
    assert!(rungs.is_sorted(), "first rungs come first");
}

#[test]
fn a_rung_of_a_program_is_any_whole_number_that_it_declares() {
    let sweep = "version: 1\nname: x\nprogram: {run: [t], version: 1, settings: {rate: number, rounds: whole}}\n\
                 base: {dataset: own}\ngrid: {rate: [0.1, 0.2, 0.3]}\n\
                 halve: {over: rounds, rungs: [1, 9], keep: 1/3, among: [rate]}\n";
    let spec = SweepSpec::parse(sweep).expect("a sweep");
    let shown: Vec<Option<String>> = spec.trials.iter().map(|trial| trial.config.show("rounds")).collect();
    assert_eq!(shown[..2], [Some("1".to_owned()), Some("9".to_owned())]);
    assert_eq!(spec.race().expect("a halving").groups[0].trials.len(), 3);
}

#[test]
fn a_rung_waits_for_all_its_folds_and_counts_splits_alike_whatever_seeds_they_have() {
    let trial = |n| TrialId::from_bytes([n; 16]);
    let group = RaceGroup {
        trials: vec![trial(1)],
        splits: vec![(0, vec![0, 1]), (1, vec![0])],
        rungs: vec![vec![trial(2)]],
    };
    let score = |value| FoldStanding::Scored(Score::of(&example(value)));
    let ended = |open: bool| {
        group.ended(Metric::ValidationAccuracy, 0, 0, |fold| match (fold.split, fold.seed) {
            (0, 0) => score(0.25),
            (0, _) => score(0.75),
            (_, _) if open => FoldStanding::Open,
            (_, _) => score(1.0),
        })
    };
    assert_eq!(ended(true), None);
    let Some(SplitScores::Scored { mean, .. }) = ended(false) else { panic!("ended") };
    assert!((mean - 0.75).abs() < 1e-12, "{mean}");
    assert!(group.folds(0, 1).all(|fold| fold.trial == trial(2)));
}

#[test]
fn later_rungs_are_held_until_their_turn_and_those_of_the_stopped_for_ever() {
    let terms = Terms { after: 1, criterion: Criterion::Best(third()) };
    let mut heat = Heat::new(terms, 3, 3);
    let held = |heat: &Heat| -> Vec<bool> {
        (0..3)
            .flat_map(|place| (0..3).map(move |rung| (place, rung)))
            .map(|(place, rung)| heat.holds(place, rung))
            .collect()
    };
    assert_eq!(held(&heat), [false, true, true].repeat(3));
    heat.look(|place| SplitScores::Scored { mean: place as f64, sizes: [0, 0] });
    assert_eq!(held(&heat), [false, true, true, false, true, true, false, false, true]);
    assert_eq!(heat.stop(0).and_then(|stop| stop.leader), Some(2));
}

#[test]
fn results_beyond_the_rung_that_is_looked_at_have_no_say() {
    let spec = SweepSpec::parse(SWEEP).expect("a sweep");
    let race = spec.race().expect("a halving");
    let group = &race.groups[0];
    let judged = |late: f64| {
        run(&race, group, |fold| match group.trials.iter().position(|trial| *trial == fold.trial) {
            Some(place) => FoldStanding::Scored(Score::of(&example(0.2 + place as f64 / 10.0))),
            // The worst of the first rung was quick to finish the last one, which nobody waited for.
            None if fold.trial == group.rungs[1][0] => FoldStanding::Scored(Score::of(&example(late))),
            None => FoldStanding::Open,
        })
    };
    assert_eq!(judged(0.0), judged(1.0));
    assert_eq!(judged(1.0).stop(0).map(|stop| stop.look), Some(1));
}

proptest! {
    #[test]
    fn who_goes_on_is_who_has_the_best_mean_as_it_is_written_down(
        values in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.9, 0u32..50), 4), 1..12),
        part in 1u32..4, of in 4u32..8,
    ) {
        let share: Share = format!("{part}/{of}").parse().expect("a share");
        let values: Vec<Vec<Option<f64>>> =
            values.iter().map(|row| row.iter().map(|value| value.map(f64::from)).collect()).collect();
        let heat = halved(share, &values);
        let mut live: Vec<usize> = (0..values.len()).collect();
        for look in 1..=3_u32 {
            let at = |place: usize| values[place][look as usize - 1];
            let most = (live.len() * part as usize).div_ceil(of as usize);
            let mut fine: Vec<(usize, f64)> =
                live.iter().filter_map(|place| Some((*place, at(*place)?))).collect();
            // Better, or as good and earlier.
            let all = fine.clone();
            fine.retain(|(place, value)| {
                all.iter().filter(|(other, best)| best > value || (best == value && other < place)).count() < most
            });
            let next: Vec<usize> = fine.into_iter().map(|(place, _)| place).collect();
            for place in live.iter().filter(|place| !next.contains(place)) {
                prop_assert_eq!(heat.stop(*place).map(|stop| stop.look), Some(look));
            }
            live = next;
        }
        prop_assert_eq!(heat.live().collect::<Vec<_>>(), live);
    }
}
