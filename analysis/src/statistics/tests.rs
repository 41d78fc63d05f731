//! Agreement with SciPy, scikit-posthocs and statsmodels (the script beside the fixture made it), and refusals.

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Fixture {
    summaries: Vec<SummaryCase>,
    corrected_t: Vec<CorrectedCase>,
    wilcoxon: Vec<WilcoxonCase>,
    friedman: Vec<FriedmanCase>,
    studentized_range: Vec<RangeCase>,
    holm: HolmCase,
}

#[derive(Deserialize)]
struct SummaryCase {
    values: Vec<f64>,
    mean: f64,
    sample_std: f64,
    population_std: f64,
    standard_error: f64,
    ci95_half: f64,
    quartiles: [f64; 3],
}

#[derive(Deserialize)]
struct CorrectedCase {
    first: Vec<f64>,
    second: Vec<f64>,
    train: f64,
    test: f64,
    t: f64,
    p: f64,
    uncorrected_p: f64,
}

#[derive(Deserialize)]
struct WilcoxonCase {
    first: Vec<f64>,
    second: Vec<f64>,
    method: String,
    w: f64,
    p: f64,
}

#[derive(Deserialize)]
struct FriedmanCase {
    scores: Vec<Vec<f64>>,
    ranks: Vec<f64>,
    chi_square: f64,
    p: f64,
    q05: f64,
    critical_difference: f64,
}

#[derive(Deserialize)]
struct RangeCase {
    k: usize,
    q: f64,
    sf: f64,
}

#[derive(Deserialize)]
struct HolmCase {
    raw: Vec<f64>,
    adjusted: Vec<f64>,
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("../../tests/fixtures/statistics.json")).unwrap()
}

#[track_caller]
fn same(ours: f64, theirs: f64) {
    let error = (ours - theirs).abs();
    assert!(error <= 1e-9 * theirs.abs().max(1.0), "{ours}, but SciPy says {theirs}");
}

fn on_splits(values: &[f64]) -> Vec<FoldValue> {
    (0..).zip(values).map(|(split, value)| FoldValue { split, seed: 0, value: *value }).collect()
}

const SIZES: Option<PartSizes> = Some(PartSizes { train: 480.0, test: 60.0 });

#[test]
fn summaries_agree_with_scipy() {
    for case in fixture().summaries {
        let summary = Summary::of(&case.values);
        same(summary.mean.unwrap(), case.mean);
        same(summary.std.unwrap(), case.sample_std);
        same(summary.standard_error().unwrap(), case.standard_error);
        same(population_std(&case.values).unwrap(), case.population_std);
        same(confidence_half_width(&case.values, 0.95).unwrap(), case.ci95_half);
        let quarters = quartiles(&case.values).unwrap();
        let ours = [quarters.lower, quarters.median, quarters.upper];
        ours.into_iter().zip(case.quartiles).for_each(|(ours, theirs)| same(ours, theirs));
    }
}

#[test]
fn the_corrected_t_test_agrees_with_scipy_and_is_more_careful_than_the_plain_one() {
    for case in fixture().corrected_t {
        let sizes = Some(PartSizes { train: case.train, test: case.test });
        let ours = corrected_paired_t(&on_splits(&case.first), &on_splits(&case.second), sizes).unwrap();
        same(ours.t, case.t);
        same(ours.p, case.p);
        assert!(ours.p > case.uncorrected_p);
        assert_eq!(ours.degrees, case.first.len() - 1);
    }
}

#[test]
fn the_signed_rank_test_agrees_with_scipy_exactly_and_approximately() {
    for case in fixture().wilcoxon {
        let pairs = case.first.iter().zip(&case.second);
        let ours = signed_rank(&pairs.map(|(a, b)| a - b).collect::<Vec<_>>()).unwrap();
        assert_eq!(ours.exact, case.method == "exact");
        same(ours.w, case.w);
        same(ours.p, case.p);
    }
}

#[test]
fn friedman_and_nemenyi_agree_with_scipy_and_scikit_posthocs() {
    for case in fixture().friedman {
        let ours = friedman(&case.scores).unwrap();
        ours.ranks.iter().zip(&case.ranks).for_each(|(ours, theirs)| same(*ours, *theirs));
        same(ours.chi_square, case.chi_square);
        same(ours.p, case.p);
        same(ours.critical_difference(0.05), case.critical_difference);
        same(range_quantile(0.05, case.scores.len()) / 2.0_f64.sqrt(), case.q05);
    }
}

#[test]
fn the_studentized_range_agrees_with_scipy() {
    for case in fixture().studentized_range {
        same(range_tail(case.q, case.k), case.sf);
    }
}

#[test]
fn holm_agrees_with_statsmodels() {
    let case = fixture().holm;
    holm(&case.raw).into_iter().zip(case.adjusted).for_each(|(ours, theirs)| same(ours, theirs));
    assert_eq!(holm(&[]), [0.0_f64; 0]);
}

#[test]
fn training_seeds_on_one_split_are_refused_with_an_explanation() {
    let seeds = |values: &[f64]| -> Vec<FoldValue> {
        (0..).zip(values).map(|(seed, value)| FoldValue { split: 0, seed, value: *value }).collect()
    };
    let refusal = corrected_paired_t(&seeds(&[0.7, 0.8, 0.9]), &seeds(&[0.6, 0.7, 0.7]), SIZES).unwrap_err();
    assert_eq!(refusal, TestRefusal::OneSplit { seeds: 3 });
    insta::assert_snapshot!(refusal, @"all 3 values come from one split and differ only by training seed: their spread says how much training varies, not how much the data do, so no test can tell whether the difference holds beyond this split; train on several splits");
}

#[test]
fn seeds_are_averaged_within_splits_before_testing() {
    let of = |values: [(u32, u64, f64); 4]| {
        values.map(|(split, seed, value)| FoldValue { split, seed, value }).to_vec()
    };
    let first = of([(0, 0, 0.5), (0, 1, 0.75), (1, 0, 0.5), (1, 1, 0.5)]);
    let second = of([(1, 1, 0.25), (1, 0, 0.25), (0, 1, 0.5), (0, 0, 0.5)]);
    assert_eq!(differences(&first, &second).unwrap(), [0.125, 0.25]);
    assert_eq!(corrected_paired_t(&first, &second, SIZES).unwrap().degrees, 1);
}

#[test]
fn folds_without_a_partner_and_unknown_sizes_are_refused() {
    let (three, two) = (on_splits(&[0.1, 0.2, 0.3]), on_splits(&[0.1, 0.2]));
    assert_eq!(differences(&three, &two), Err(TestRefusal::NotPaired { missing: 1, extra: 0 }));
    assert_eq!(corrected_paired_t(&three, &three, None), Err(TestRefusal::UnknownSizes));
    assert_eq!(
        differences(&two[..1], &two[..1]).unwrap_err().to_string(),
        "1 fold, but the test needs at least 2"
    );
    assert_eq!(differences(&on_splits(&[f64::NAN, 1.0]), &two), Err(TestRefusal::NotFinite));
}

#[test]
fn equal_and_constantly_different_values_have_the_p_that_they_must() {
    let test = |first: &[f64], second: &[f64]| {
        corrected_paired_t(&on_splits(first), &on_splits(second), SIZES).unwrap().p
    };
    assert_eq!(test(&[0.5, 0.6], &[0.5, 0.6]), 1.0);
    assert_eq!(test(&[0.5, 0.75], &[0.25, 0.5]), 0.0);
    assert!(matches!(signed_rank(&[0.0, 0.0]), Err(TestRefusal::TooFew { .. })));
}

#[test]
fn methods_that_all_tie_do_not_differ_and_ragged_scores_are_refused() {
    let equal = friedman(&[vec![0.5, 0.6], vec![0.5, 0.6], vec![0.5, 0.6]]).unwrap();
    assert_eq!((equal.ranks.clone(), equal.p), (vec![2.0; 3], 1.0));
    assert_eq!(equal.groups(0.05), (vec![0, 1, 2], vec![(0, 2)]));
    let ragged = [vec![0.5, 0.6], vec![0.5], vec![0.5, 0.6]];
    assert_eq!(friedman(&ragged), Err(TestRefusal::Ragged { shortest: 1, longest: 2 }));
    assert_eq!(friedman(&ragged[..2]).unwrap_err().to_string(), "2 methods, but the test needs at least 3");
}

#[test]
fn only_the_largest_groups_of_equal_methods_get_a_bar() {
    let result = Friedman { ranks: vec![4.0, 1.0, 2.5, 3.6], datasets: 8, chi_square: 9.0, p: 0.03 };
    // The critical difference of four methods over eight data sets is 1.658.
    assert_eq!(result.groups(0.05), (vec![1, 2, 3, 0], vec![(0, 1), (1, 3)]));
}
