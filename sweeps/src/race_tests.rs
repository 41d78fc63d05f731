//! Requirements of the race over folds: the rule against numbers of SciPy, and what may have a say in a look.

use proptest::prelude::*;

use super::*;
use crate::result::example;

const TEST: Terms = Terms { after: 4, criterion: Criterion::Test(Alpha::Fortieth) };

/// A race of these trials, whose values are those of splits 0, 1, ... with one seed.
fn raced(terms: Terms, values: &[&[f64]]) -> Heat {
    let sized: Vec<Vec<Option<f64>>> =
        values.iter().map(|row| row.iter().copied().map(Some).collect()).collect();
    with_failures(terms, &sized)
}

/// The same; what is none has failed.
fn with_failures(terms: Terms, values: &[Vec<Option<f64>>]) -> Heat {
    let mut heat = Heat::new(terms, values.len(), values[0].len());
    while !heat.is_over() {
        let at = heat.looks() as usize;
        heat.look(|trial| match values[trial][at] {
            Some(mean) => SplitScores::Scored { mean, sizes: [80, 10] },
            None => SplitScores::Failed,
        });
    }
    heat
}

fn stops(heat: &Heat, trials: usize) -> Vec<Option<u32>> {
    (0..trials).map(|trial| heat.stop(trial).map(|stop| stop.look)).collect()
}

#[test]
fn a_trial_is_stopped_at_the_look_that_the_corrected_test_of_scipy_says() {
    // By numpy, `d.mean() / sqrt((1 / k + 10 / 80) * d.var(ddof=1))` after 4, 5 and 6 splits is 2.9200, 3.6829 and 4.3944; the
    // one-sided quantiles of scipy.stats.t are 3.1824, 2.7764 and 2.5706.
    let leader = [0.80, 0.82, 0.79, 0.83, 0.81, 0.82, 0.80, 0.80];
    let behind = [0.76, 0.80, 0.71, 0.79, 0.76, 0.77, 0.90, 0.95];
    let heat = raced(TEST, &[&behind, &leader]);
    assert_eq!(stops(&heat, 2), [Some(5), None]);
    assert_eq!(heat.stop(0).and_then(|stop| stop.leader), Some(1));
}

#[test]
fn nobody_is_stopped_before_it_is_time_and_nobody_by_the_last_split() {
    let (good, bad) = ([0.9, 0.91, 0.92, 0.9, 0.91], [0.1, 0.12, 0.11, 0.1, 0.1]);
    for (after, look) in [(1, 2), (2, 2), (3, 3), (4, 4)] {
        assert_eq!(stops(&raced(Terms { after, ..TEST }, &[&good, &bad]), 2), [None, Some(look)]);
    }
    assert_eq!(
        stops(&raced(Terms { after: 5, ..TEST }, &[&good, &bad]), 2),
        [None, None],
        "nothing is saved"
    );
}

#[test]
fn equals_race_to_the_end_and_the_first_of_them_leads() {
    let same = [0.5, 0.6, 0.7, 0.5, 0.6];
    let heat = raced(TEST, &[&same, &same, &same]);
    assert_eq!((stops(&heat, 3), heat.leader()), (vec![None; 3], Some(0)));
}

#[test]
fn a_failed_fold_stops_its_trial_at_its_own_look_and_no_earlier() {
    let fine = vec![Some(0.5); 6];
    let mut failed = fine.clone();
    failed[2] = None;
    assert_eq!(stops(&with_failures(TEST, &[fine.clone(), failed.clone()]), 2), [None, Some(3)]);
    assert_eq!(with_failures(TEST, &[fine, failed]).stop(1).and_then(|stop| stop.leader), None);
}

#[test]
fn without_sizes_of_the_parts_the_test_refuses_and_stops_nobody() {
    let mut heat = Heat::new(TEST, 2, 10);
    while !heat.is_over() {
        heat.look(|trial| SplitScores::Scored { mean: 0.9 - trial as f64 / 2.0, sizes: [0, 0] });
    }
    assert_eq!(stops(&heat, 2), [None, None]);
}

#[test]
fn a_split_is_the_mean_of_its_seeds_and_is_open_while_one_of_them_is() {
    let score = |accuracy| FoldStanding::Scored(Score::of(&example(accuracy)));
    let of = |folds: &[FoldStanding]| SplitScores::of(Metric::ValidationAccuracy, folds.iter().copied());
    assert_eq!(of(&[score(0.25), score(0.75)]), Some(SplitScores::Scored { mean: 0.5, sizes: [80, 9] }));
    assert_eq!(of(&[score(0.25), FoldStanding::Open]), None);
    assert_eq!(of(&[FoldStanding::Failed, score(0.25)]), Some(SplitScores::Failed));
}

#[test]
fn what_a_race_knows_of_a_result_says_nothing_of_its_test_part() {
    let (mut one, mut other) = (example(0.5), example(0.5));
    (one.test.accuracy, other.test.accuracy) = (0.0, 1.0);
    (one.part_sizes[2], other.part_sizes[2]) = (1, 2);
    assert_eq!(Score::of(&one), Score::of(&other));
}

#[test]
fn trials_race_with_those_that_differ_only_in_what_is_raced_among() {
    let sweep = "version: 1\nname: x\nbase: {dataset: DD}\ngrid: {model: [gcn, gin], lr: [0.1, 0.2, 0.3], depth: [2, 3]}\n\
                 splits: [3, 1, 2]\nseeds: [0, 1]\n";
    let spec = SweepSpec::parse(sweep).expect("a sweep");
    let of = |among: &[&str]| groups(&spec, &among.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let (by_rate, by_all) = (of(&["lr"]), of(&["lr", "depth", "model"]));
    assert_eq!(by_rate.iter().map(|group| group.trials.len()).collect::<Vec<_>>(), [3; 4]);
    assert_eq!(by_all.iter().map(|group| group.trials.len()).collect::<Vec<_>>(), [12]);
    assert_eq!(by_all[0].splits, [(3, vec![0, 1]), (1, vec![0, 1]), (2, vec![0, 1])], "in the order written");
    assert!(of(&["hidden_dim"]).is_empty(), "nobody has anybody to race with");
}

#[test]
fn settings_that_a_program_declares_tell_who_races_with_whom() {
    let sweep = "version: 1\nname: x\nprogram: {run: [python3, t.py], version: 1, settings: {rate: number, width: whole}}\n\
                 base: {dataset: own}\ngrid: {rate: [0.1, 0.2, 0.3], width: [8, 16]}\nsplits: {from: 0, to: 4}\n";
    let spec = SweepSpec::parse(sweep).expect("a sweep");
    let of = |among: &[&str]| groups(&spec, &among.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let sizes = |groups: Vec<RaceGroup>| groups.iter().map(|group| group.trials.len()).collect::<Vec<_>>();
    assert_eq!(sizes(of(&["rate"])), [3, 3], "trials of different width do not race");
    assert_eq!(sizes(of(&["rate", "width"])), [6]);
    assert_eq!(sizes(of(&["lr"])), [] as [usize; 0], "a setting of ours is none of the program");
}

/// The rule once more, in other words: t by two passes and powers, live trials by looking back over all looks.
fn again(values: &[Vec<Option<f64>>], after: u32) -> Vec<Option<u32>> {
    let splits = values[0].len();
    let mut stopped: Vec<Option<u32>> = vec![None; values.len()];
    for look in 1..splits {
        for (trial, row) in values.iter().enumerate() {
            if stopped[trial].is_none() && row[look - 1].is_none() {
                stopped[trial] = Some(look as u32);
            }
        }
        if look < after.max(2) as usize {
            continue;
        }
        let mean = |trial: usize| values[trial][..look].iter().flatten().sum::<f64>();
        let live: Vec<usize> = (0..values.len()).filter(|trial| stopped[*trial].is_none()).collect();
        let Some(leader) = live.iter().copied().rev().max_by(|a, b| mean(*a).total_cmp(&mean(*b))) else {
            break;
        };
        for trial in live.into_iter().filter(|trial| *trial != leader) {
            let pairs = values[leader][..look].iter().flatten().zip(values[trial][..look].iter().flatten());
            let differences: Vec<f64> = pairs.map(|(leader, trial)| leader - trial).collect();
            let count = look as f64;
            let mean = differences.iter().sum::<f64>() / count;
            let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (count - 1.0);
            let error = ((1.0 / count + 10.0 / 80.0) * variance).sqrt();
            let certain = mean > 0.0 && (error == 0.0 || mean / error > QUANTILES[2][look - 2]);
            stopped[trial] = certain.then_some(look as u32);
        }
    }
    stopped
}

proptest! {
    #[test]
    fn the_rule_is_the_one_that_is_written_down(
        values in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.97, 0u32..1000), 8), 1..8),
        after in 1u32..9,
    ) {
        // Trials are of different quality, so that some are stopped.
        let values: Vec<Vec<Option<f64>>> = (0u32..).zip(&values).map(|(trial, row)| {
            row.iter().map(|value| value.map(|value| f64::from(value + trial * 400) / 4000.0)).collect()
        }).collect();
        let terms = Terms { after, ..TEST };
        prop_assert_eq!(stops(&with_failures(terms, &values), values.len()), again(&values, after));
    }

    #[test]
    fn what_was_decided_by_a_look_does_not_depend_on_later_splits(
        values in prop::collection::vec(prop::collection::vec(0u32..1000, 10), 2..6),
        later in prop::collection::vec(prop::collection::vec(0u32..1000, 10), 6),
        from in 4usize..10,
    ) {
        let row = |trial: usize, at: usize| match at < from {
            true => f64::from(values[trial][at]) / 1000.0,
            false => f64::from(later[trial][at]) / 1000.0,
        };
        let changed: Vec<Vec<f64>> = (0..values.len()).map(|trial| (0..10).map(|at| row(trial, at)).collect()).collect();
        let plain: Vec<Vec<f64>> = values.iter().map(|row| row.iter().map(|v| f64::from(*v) / 1000.0).collect()).collect();
        let until = |rows: &[Vec<f64>]| {
            let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
            let stops = stops(&raced(TEST, &rows), rows.len());
            stops.into_iter().map(|stop| stop.filter(|look| *look as usize <= from)).collect::<Vec<_>>()
        };
        prop_assert_eq!(until(&plain), until(&changed));
    }
}
