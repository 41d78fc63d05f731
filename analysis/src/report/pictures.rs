//! The pictures of a report: those figures that the sweep has data for, and the learning curves of every trial.
//! A figure that cannot be drawn honestly is left out with its reason.

use std::collections::BTreeMap;

use togl_sweeps::SweepSpec;
use togl_sweeps::result::EpochRecord;

use super::page::{folded, paragraph};
use crate::error::{Error, Result};
use crate::figure::{self, Curve, Figure, MethodCurves, Work};
use crate::frame::{FoldFrame, FoldRow};
use crate::plan::Plan;
use crate::table::Table;

/// Settings against which accuracy is drawn if the sweep varies them.
const DRAWN_AGAINST: [&str; 2] = ["depth", "togl_position"];
/// The level of the critical difference.
const LEVEL: f64 = 0.05;
/// Trials whose curves are drawn; a page with more would be too large to open.
const MOST_TRIALS: usize = 200;
/// Epochs of a curve that are drawn; longer ones are thinned evenly.
const MOST_EPOCHS: usize = 150;

/// The figures that these results allow.
pub fn figures(frame: &FoldFrame, plan: &Plan, table: &Table, sweep: &SweepSpec) -> Result<String> {
    if frame.is_empty() {
        return Ok(paragraph("Nothing has finished."));
    }
    let mut drawn: Vec<(&str, Result<Figure>)> = Vec::new();
    for spec in &sweep.figures {
        drawn.push(("the sweep file", figure::of_block(frame, plan, spec, sweep.selection.as_ref())));
    }
    let varied = super::account::varied(sweep)?;
    for setting in DRAWN_AGAINST {
        let asked_for = sweep.figures.iter().any(|spec| spec.x == setting);
        if !asked_for && varied.iter().any(|(name, _)| name == setting) {
            let made = figure::family_table(frame, plan, setting, table.metric);
            drawn.push((setting, made.and_then(|table| figure::against(&table, setting))));
        }
    }
    drawn.push(("folds", figure::fold_heat_map(table)));
    let ranks = figure::ranking(table);
    drawn.push(("ranks", ranks.and_then(|ranking| figure::critical_difference(&ranking, LEVEL))));
    let shown = drawn.into_iter().map(|(what, figure)| shown(what, figure));
    Ok(shown.collect::<Result<Vec<String>>>()?.concat())
}

/// The figure, or why there is none.
fn shown(what: &str, figure: Result<Figure>) -> Result<String> {
    match figure {
        Ok(figure) => Ok(inline(&figure)),
        Err(error @ (Error::Refused(_) | Error::TooManyLines { .. } | Error::Empty { .. })) => {
            Ok(paragraph(&format!("No figure of {what}: {error}.")))
        }
        Err(error) => Err(error),
    }
}

fn inline(figure: &Figure) -> String {
    format!("<figure>\n{}\n</figure>\n", figure.svg().trim())
}

/// The learning curves of each trial, to be opened one by one.
pub fn curves(rows: &[FoldRow]) -> Result<String> {
    let mut trials: BTreeMap<(u64, String), Vec<&FoldRow>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.result.history.is_empty()) {
        trials.entry((row.position, row.fold.trial.to_string())).or_default().push(row);
    }
    if trials.is_empty() {
        return Ok(paragraph("No fold has a learning curve."));
    }
    let left_out = trials.len().saturating_sub(MOST_TRIALS);
    let mut text = shown("all methods", figure::method_curves("All methods", &by_method(rows)))?;
    for ((_, trial), mut folds) in trials.into_iter().take(MOST_TRIALS) {
        folds.sort_by_key(|row| (row.fold.split, row.fold.seed));
        let config = &folds[0].config;
        let name = format!("{} on {}", config.method(), config.dataset);
        let curves: Vec<Curve> = folds.iter().map(|row| curve(row)).collect();
        let figure = figure::learning_curves(&name, &curves)?;
        text.push_str(&folded(&format!("{name} ({} folds, trial {trial})", folds.len()), &inline(&figure)));
    }
    if left_out > 0 {
        text.push_str(&paragraph(&format!("The curves of {left_out} more trials are not drawn here.")));
    }
    Ok(text)
}

/// The work of each worker.
pub fn work(frame: &FoldFrame, sweep: &SweepSpec) -> Result<String> {
    if frame.is_empty() {
        return Ok(String::new());
    }
    shown("work", figure::timeline(sweep.name.as_str(), &Work::of_frame(frame)?))
}

/// The curves of all folds of each method on each data set, in the order of the sweep.
pub fn by_method(rows: &[FoldRow]) -> Vec<MethodCurves> {
    let mut ordered: Vec<&FoldRow> = rows.iter().filter(|row| !row.result.history.is_empty()).collect();
    ordered.sort_by_key(|row| (row.position, row.fold.split, row.fold.seed));
    let mut curves: Vec<MethodCurves> = Vec::new();
    for row in ordered {
        let (dataset, method) = (&row.config.dataset, row.config.method());
        let history = thinned(&row.result.history);
        match curves.iter_mut().find(|curve| curve.dataset == *dataset && curve.method == method) {
            Some(curve) => curve.histories.push(history),
            None => {
                curves.push(MethodCurves { dataset: dataset.clone(), method, histories: vec![history] });
            }
        }
    }
    curves
}

fn curve(row: &FoldRow) -> Curve {
    let label = format!("split {}, seed {}", row.fold.split, row.fold.seed);
    Curve { label, history: thinned(&row.result.history) }
}

/// Every n-th epoch, and always the last. Curves of unequal length are thinned by steps that share a multiple of two,
/// so that means over folds meet at the same epochs.
fn thinned(history: &[EpochRecord]) -> Vec<EpochRecord> {
    let step = history.len().div_ceil(MOST_EPOCHS).max(1).next_power_of_two();
    let last = history.len().saturating_sub(1);
    let kept = history.iter().enumerate().filter(|(at, _)| at % step == 0 || *at == last);
    kept.map(|(_, epoch)| *epoch).collect()
}

#[cfg(test)]
mod tests {
    use togl_sweeps::result::{self, Metrics};

    use super::*;

    #[test]
    fn a_long_curve_is_thinned_but_keeps_its_end() {
        let metrics = Metrics { loss: 0.5, accuracy: 0.5 };
        let epoch = |epoch| EpochRecord { epoch, lr: 1e-3, train: metrics, validation: metrics };
        let kept = thinned(&(0..1000).map(epoch).collect::<Vec<_>>());
        assert!(kept.len() <= MOST_EPOCHS + 1 && kept.last().unwrap().epoch == 999);
        assert_eq!(thinned(&result::example(0.5).history).len(), 1);
    }
}
