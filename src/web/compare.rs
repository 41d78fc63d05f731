//! Two trials beside each other: what differs, folds in pairs, and what can be said of the difference. The test is
//! `togl_analysis::statistics`'; this reads the folds and words the outcome.

use togl_analysis::statistics::{FoldValue, PartSizes, corrected_paired_t, differences};
use togl_coordinator::store::{ResultRow, trials_beginning};
use togl_sweeps::{Scale, SweepName, SweepSpec, TrialId, settings};
use togl_web::view;

use super::views;
use crate::facts::{Remote, title};
use crate::live::{Made, results_of};
use crate::problem::Problem;

/// Level of an interval.
const LEVEL: f64 = 0.95;

/// The one trial of the sweep whose id begins like this.
fn trial_like(spec: &SweepSpec, beginning: &str) -> Result<TrialId, Problem> {
    let [least, greatest] = trials_beginning(beginning)
        .ok_or_else(|| Problem::usage(format!("`{beginning}` is not the beginning of a trial's id")))?;
    let mut found = spec.trials.iter().map(|trial| trial.id).filter(|id| (least..=greatest).contains(id));
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(Problem::usage(format!("several trials begin with `{beginning}`"))),
        (None, _) => Err(Problem::negative(format!("no trial of {} begins with `{beginning}`", spec.name))),
    }
}

pub async fn compare(
    remote: &mut Remote,
    name: &SweepName,
    made: &Made,
    asked: [&str; 2],
) -> Result<view::ComparisonOnPage, Problem> {
    let spec = &made.planned.spec;
    let scale = spec.scale();
    let (mut sides, mut configs, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for beginning in asked {
        let id = trial_like(spec, beginning)?;
        let planned = made.planned.place(id).ok_or_else(|| Problem::ours("a trial without a place"))?;
        configs.push(planned.config.clone());
        let rows = results_of(remote, name, spec.folds_of(id).take(1_000).collect(), false).await?;
        sizes.extend(rows.iter().map(|row| row.result.part_sizes));
        let measured = |row: &ResultRow| FoldValue {
            split: row.fold.split,
            seed: row.fold.seed,
            value: scale.factor() * row.result.test.accuracy,
        };
        sides.push(rows.iter().map(measured).collect::<Vec<_>>());
    }
    let [a, b] = [&sides[0], &sides[1]];
    let pair = |one: &FoldValue| {
        let other = b.iter().find(|other| (other.split, other.seed) == (one.split, one.seed))?;
        Some(view::PairOnPage { split: one.split, seed: one.seed, a: one.value, b: other.value })
    };
    let differ = |name: String| {
        let [one, other] = [&configs[0], &configs[1]].map(|config| config.show(&name).unwrap_or_default());
        (one != other).then_some([name, one, other])
    };
    let names = [title(&configs[0]), title(&configs[1])];
    let settings = settings::names_of(&configs).into_iter().filter_map(differ).collect();
    Ok(view::ComparisonOnPage {
        names,
        settings,
        pairs: a.iter().filter_map(pair).collect(),
        verdict: verdict(a, b, &sizes, scale),
        score: views::score(scale),
        difference: difference(a, b, &sizes),
    })
}

/// Mean sizes of the parts.
fn parts(sizes: &[[u64; 3]]) -> Option<PartSizes> {
    let mean =
        |part: usize| sizes.iter().map(|sizes| sizes[part] as f64).sum::<f64>() / sizes.len().max(1) as f64;
    Some(PartSizes { train: mean(0), test: mean(2) }).filter(|_| !sizes.is_empty())
}

/// The mean difference with the interval of the corrected test, where that can be made.
fn difference(a: &[FoldValue], b: &[FoldValue], sizes: &[[u64; 3]]) -> Option<view::MeanDifference> {
    let test = corrected_paired_t(a, b, parts(sizes)).ok()?;
    let (mean, half) = (test.mean_difference, test.half_width(LEVEL)?);
    let level = (100.0 * LEVEL).round() as u64;
    Some(view::MeanDifference { mean, low: mean - half, high: mean + half, level })
}

/// What can be said of the difference, or why nothing can.
fn verdict(a: &[FoldValue], b: &[FoldValue], sizes: &[[u64; 3]], scale: &Scale) -> String {
    let digits = scale.decimals() + 1;
    let points = if scale.is_share() { "percentage points " } else { "" };
    match (differences(a, b), corrected_paired_t(a, b, parts(sizes))) {
        (Err(refusal), _) => format!("no test is made: {refusal}"),
        (Ok(_), Err(refusal)) => format!("no test is made: {refusal}"),
        (Ok(by_split), Ok(test)) => format!(
            "A is {:+.digits$} {points}from B on the test part, over {} splits; corrected paired t test (Nadeau and \
             Bengio): t = {:.2}, p = {:.3}",
            test.mean_difference,
            by_split.len(),
            test.t,
            test.p
        ),
    }
}
