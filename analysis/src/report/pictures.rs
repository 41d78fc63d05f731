//! The pictures of a report: those figures that the sweep has data for, and the learning curves of every trial.
//! A figure that cannot be drawn honestly is left out with its reason.

use std::collections::BTreeMap;

use togl_sweeps::SweepSpec;

use super::page::{folded, paragraph};
use crate::curves::{self, grouped};
use crate::error::{Error, Result};
use crate::figure::{self, Curve, Figure, Work};
use crate::frame::{FoldFrame, FoldRow};
use crate::plan::Plan;
use crate::table::Table;

/// Settings against which accuracy is drawn if the sweep varies them.
const DRAWN_AGAINST: [&str; 2] = ["depth", "togl_position"];
/// The level of the critical difference.
const LEVEL: f64 = 0.05;
/// Trials whose curves are drawn; a page with more would be too large to open.
const MOST_TRIALS: usize = 200;
/// Pages of the heat map that are drawn, for the same reason.
const MOST_MAPS: usize = 4;

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
    let maps = figure::fold_heat_maps(table);
    let left_out = maps.as_ref().map_or(0, |maps| maps.len().saturating_sub(MOST_MAPS));
    match maps {
        Ok(maps) => drawn.extend(maps.into_iter().take(MOST_MAPS).map(|map| ("folds", Ok(map)))),
        Err(error) => drawn.push(("folds", Err(error))),
    }
    let ranks = figure::ranking(table);
    drawn.push(("ranks", ranks.and_then(|ranking| figure::critical_difference(&ranking, LEVEL))));
    let shown = drawn.into_iter().map(|(what, figure)| shown(what, figure));
    let mut text = shown.collect::<Result<Vec<String>>>()?.concat();
    if left_out > 0 {
        let more = format!(
            "{left_out} more figures of folds are not drawn here; `togl plot --figure heat-map` draws all."
        );
        text.push_str(&paragraph(&more));
    }
    Ok(text)
}

/// The figure, or why there is none.
fn shown(what: &str, figure: Result<Figure>) -> Result<String> {
    match figure {
        Ok(figure) => Ok(inline(&figure)),
        Err(
            error @ (Error::Refused(_)
            | Error::TooManyLines { .. }
            | Error::ConstantAxis { .. }
            | Error::Empty { .. }),
        ) => Ok(paragraph(&format!("No figure of {what}: {error}."))),
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
    let mut text = shown("all trials", figure::method_curves("All trials", &grouped(rows)))?;
    let differ = curves::settings_that_differ(&rows.iter().collect::<Vec<_>>());
    for ((_, trial), mut folds) in trials.into_iter().take(MOST_TRIALS) {
        folds.sort_by_key(|row| (row.fold.split, row.fold.seed));
        let config = &folds[0].config;
        let name = format!("{} on {}", curves::name(config, &differ), config.dataset);
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

fn curve(row: &FoldRow) -> Curve {
    let label = format!("split {}, seed {}", row.fold.split, row.fold.seed);
    Curve { label, history: row.result.history.clone(), scale: row.result.scale().clone() }
}
