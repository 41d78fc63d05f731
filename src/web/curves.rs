//! Figures as numbers, for pictures that a reader can move about in: learning curves of some folds with their mean, of folds in
//! training, and accuracy against a setting. Bounded whatever the sweep is; computes nothing but means of what is drawn.

use std::collections::BTreeMap;

use togl_analysis::curves::CurveGroups;
use togl_analysis::figure::family_table;
use togl_analysis::{Error, Table, render};
use togl_proto::wire;
use togl_sweeps::Scale;
use togl_sweeps::result::EpochRecord;
use togl_web::view;

use super::views::score;
use crate::live::Made;
use crate::remote::{fold_text, fold_title};

/// Points of one fold, and of a mean.
const POINTS: usize = 48;
const MEAN_POINTS: usize = 128;

/// Folds in training that are drawn.
const RUNNING: usize = 40;

/// Cells of a figure against a setting.
const CELLS: usize = 1_200;

/// A value with four significant digits, whatever its size.
fn short(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn thinned<T: Copy>(all: &[T], points: usize) -> Vec<T> {
    let (step, last) =
        (all.len().div_ceil(points.saturating_sub(1).max(1)).max(1), all.len().saturating_sub(1));
    all.iter().enumerate().filter(|(at, _)| at % step == 0 || *at == last).map(|(_, one)| *one).collect()
}

fn along(history: &[EpochRecord]) -> Vec<view::Along> {
    let finite = history.iter().filter(|record| record.validation.accuracy.is_finite());
    finite.map(|record| [f64::from(record.epoch), short(record.validation.accuracy)]).collect()
}

/// The mean at each epoch of the folds that are that far.
fn mean(histories: &[Vec<EpochRecord>]) -> Vec<view::Along> {
    let mut sums: BTreeMap<u32, (f64, u32)> = BTreeMap::new();
    for record in histories.iter().flatten().filter(|record| record.validation.accuracy.is_finite()) {
        let (sum, folds) = sums.entry(record.epoch).or_default();
        *sum += record.validation.accuracy;
        *folds += 1;
    }
    let points: Vec<view::Along> = sums
        .into_iter()
        .map(|(epoch, (sum, folds))| [f64::from(epoch), short(sum / f64::from(folds))])
        .collect();
    thinned(&points, MEAN_POINTS)
}

/// The groups of a figure with those that run.
pub fn curves(
    scale: &Scale,
    groups: CurveGroups,
    drawn: usize,
    total: usize,
    running: wire::CurvesReply,
) -> view::CurvesNow {
    let group = |group: togl_analysis::curves::CurveGroup| view::CurveLine {
        mean: mean(&group.histories),
        folds: group.histories.iter().map(|history| thinned(&along(history), POINTS)).collect(),
        dataset: group.dataset,
        label: group.label,
    };
    let thin = |curve: wire::RunningCurve| view::ThinCurve {
        title: match &curve.fold {
            Some(fold) if !curve.config.is_empty() => fold_title(&curve.config, fold.split, fold.seed),
            _ => String::new(),
        },
        fold: fold_text(curve.fold.as_ref()),
        points: thinned(&growing(&curve.points), POINTS),
    };
    view::CurvesNow {
        total: total as u64,
        drawn: drawn as u64,
        score: score(scale),
        groups: groups.groups.into_iter().map(group).collect(),
        running: running.running.into_iter().take(RUNNING).map(thin).collect(),
    }
}

/// A fold in training.
pub fn growing(points: &[wire::CurvePoint]) -> Vec<view::Along> {
    let finite = points.iter().filter(|point| point.validation_accuracy.is_finite());
    finite.map(|point| [f64::from(point.epoch), short(point.validation_accuracy)]).collect()
}

/// The table behind the figure against a setting, panel by panel.
pub fn against(made: &Made, setting: &str) -> Result<view::Against, Error> {
    let metric = made.planned.spec.table.metric;
    let table = family_table(&made.frame, &made.planned.plan, setting, metric)?;
    let caption = render::grid(&table, "▲", "△").below.into_iter().next().unwrap_or_default();
    let score = score(&table.scale);
    Ok(view::Against { setting: setting.to_owned(), caption, score, panels: panels(&table, setting) })
}

fn panels(table: &Table, setting: &str) -> Vec<view::AgainstPanel> {
    let mut panels: Vec<view::AgainstPanel> = Vec::new();
    let names = table.settings();
    let place = |name: &str| names.iter().position(|known| *known == name);
    let (of_x, of_panel) = (place(setting), place("dataset"));
    let cells = table.cells().filter(|(_, _, cell)| cell.mean.is_some()).take(CELLS);
    for (row, column, cell) in cells {
        let labels = table.labels(row, column);
        let at = |place: Option<usize>| place.and_then(|place| labels.get(place)).map_or("", |label| *label);
        let (x, title) = (at(of_x).to_owned(), at(of_panel).to_owned());
        let others =
            labels.iter().enumerate().filter(|(place, _)| Some(*place) != of_x && Some(*place) != of_panel);
        let label = others.map(|(_, label)| *label).collect::<Vec<_>>().join(", ");
        let (Some(y), spread) = (cell.mean, cell.std) else { continue };
        let bar = view::AgainstPoint { x, y, spread, n: cell.n as u64, planned: cell.planned as u64 };
        let panel = match panels.iter().position(|panel| panel.title == title) {
            Some(known) => &mut panels[known],
            None => {
                panels.push(view::AgainstPanel { title, lines: Vec::new() });
                let last = panels.len() - 1;
                &mut panels[last]
            }
        };
        match panel.lines.iter_mut().find(|line| line.label == label) {
            Some(line) => line.points.push(bar),
            None => panel.lines.push(view::AgainstLine { label, points: vec![bar] }),
        }
    }
    panels
}

#[cfg(test)]
mod tests {
    use togl_sweeps::result::example;

    use super::*;

    #[test]
    fn a_curve_keeps_its_ends_and_a_mean_is_over_those_who_are_that_far() {
        let result = example(0.5);
        let record = |epoch: u32, accuracy: f64| {
            let mut validation = result.validation;
            validation.accuracy = accuracy;
            EpochRecord { epoch, lr: 0.1, train: result.train, validation }
        };
        let long: Vec<EpochRecord> = (0..1_000).map(|epoch| record(epoch, 0.25)).collect();
        let thin = thinned(&along(&long), POINTS);
        assert!(thin.len() <= POINTS && thin[0][0] == 0.0 && thin[thin.len() - 1][0] == 999.0);
        let short = vec![record(0, 0.75)];
        assert_eq!(mean(&[long[..2].to_vec(), short]), [[0.0, 0.5], [1.0, 0.25]]);
    }
}
