//! Learning curves. Of one trial: loss and accuracy against epochs, training and validation, one thin line per fold and
//! the mean over the folds that are still training. Of many: one line per method, never a mean over methods. Takes
//! histories as results carry them; frames do not have them.

use std::collections::BTreeMap;

use togl_sweeps::result::{EpochRecord, Metrics};

use super::Figure;
use super::against::MOST_LINES;
use super::lines::{Line, Panel, Plot, Point, Weight};
use crate::error::{Error, Result};

/// The history of one fold.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What the fold is called, such as `split 3, seed 0`.
    pub label: String,
    /// Its epochs, in order.
    pub history: Vec<EpochRecord>,
}

type Part = fn(&EpochRecord) -> Metrics;

const PARTS: [(&str, Weight, Part); 2] = [
    ("training", Weight::Dashed, |epoch| epoch.train),
    ("validation", Weight::Thick, |epoch| epoch.validation),
];

/// Draws the curves of a trial's folds.
pub fn learning_curves(title: &str, curves: &[Curve]) -> Result<Figure> {
    let known: Vec<&Curve> = curves.iter().filter(|curve| !curve.history.is_empty()).collect();
    if known.is_empty() {
        return Err(Error::Empty { origin: format!("the learning curves of {title}") });
    }
    let note = match known.as_slice() {
        [only] => format!("One fold: {}.", only.label),
        several => format!(
            "Thin: each of {} folds. Thick: mean over the folds that trained this long.",
            several.len()
        ),
    };
    let plot = Plot {
        title: title.to_owned(),
        note,
        x_label: "epoch".to_owned(),
        x_names: Vec::new(),
        across: None,
        panels: vec![
            panel("Loss", "loss", &known, |metrics| metrics.loss),
            panel("Accuracy", "accuracy (%)", &known, |metrics| 100.0 * metrics.accuracy),
        ],
    };
    plot.draw()
}

/// The histories of all folds of one method on one data set.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodCurves {
    /// The data set: each has panels of its own.
    pub dataset: String,
    /// The method: each has a line of its own.
    pub method: String,
    /// The epochs of each fold.
    pub histories: Vec<Vec<EpochRecord>>,
}

/// Draws validation loss and accuracy by epoch, one line per method: the mean over its folds that trained this long.
pub fn method_curves(title: &str, curves: &[MethodCurves]) -> Result<Figure> {
    let mut panels: Vec<Panel> = Vec::new();
    for (name, y_label, value) in VALUES {
        for curve in curves {
            let title = format!("{}: {name}", curve.dataset);
            let folds = curve.histories.iter().map(|history| values(history, PARTS[1].2, value));
            let mean = line(&curve.method, means(folds), Weight::Thick);
            if mean.points.is_empty() {
                continue;
            }
            match panels.iter_mut().find(|panel| panel.title == title) {
                Some(panel) => panel.lines.push(mean),
                None => panels.push(Panel { title, y_label: y_label.to_owned(), lines: vec![mean] }),
            }
        }
    }
    if panels.is_empty() {
        return Err(Error::Empty { origin: format!("the learning curves of {title}") });
    }
    // Loss and accuracy of one data set stand side by side.
    let half = panels.len() / 2;
    let panels: Vec<Panel> = (0..half).flat_map(|at| [at, at + half]).map(|at| panels[at].clone()).collect();
    let plot = Plot {
        title: title.to_owned(),
        note:
            "On the validation part. Each line is the mean over the folds of a method that trained this long."
                .to_owned(),
        x_label: "epoch".to_owned(),
        x_names: Vec::new(),
        across: Some(2),
        panels,
    };
    match plot.labels().len() {
        lines if lines > MOST_LINES => Err(Error::TooManyLines { lines, most: MOST_LINES }),
        _ => plot.draw(),
    }
}

type Value = fn(&Metrics) -> f64;

const VALUES: [(&str, &str, Value); 2] = [
    ("validation loss", "loss", |metrics| metrics.loss),
    ("validation accuracy", "accuracy (%)", |metrics| 100.0 * metrics.accuracy),
];

/// What is finite of one curve, by epoch.
fn values(history: &[EpochRecord], part: Part, value: Value) -> Vec<(u32, f64)> {
    let values = history.iter().map(|epoch| (epoch.epoch, value(&part(epoch))));
    values.filter(|(_, value)| value.is_finite()).collect()
}

/// The mean of several curves at each epoch that any of them has.
fn means(curves: impl Iterator<Item = Vec<(u32, f64)>>) -> impl Iterator<Item = (u32, f64)> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (epoch, value) in curves.flatten() {
        let sum = sums.entry(epoch).or_default();
        *sum = (sum.0 + value, sum.1 + 1.0);
    }
    sums.into_iter().map(|(epoch, (sum, count))| (epoch, sum / count))
}

fn panel(title: &str, y_label: &str, curves: &[&Curve], value: Value) -> Panel {
    let mut lines = Vec::new();
    for (label, weight, part) in PARTS {
        let folds: Vec<Vec<(u32, f64)>> =
            curves.iter().map(|curve| values(&curve.history, part, value)).collect();
        lines.extend(folds.iter().map(|fold| line(label, fold.iter().copied(), Weight::Thin)));
        lines.push(line(label, means(folds.into_iter()), weight));
    }
    Panel { title: title.to_owned(), y_label: y_label.to_owned(), lines }
}

fn line(label: &str, values: impl Iterator<Item = (u32, f64)>, weight: Weight) -> Line {
    let points = values.map(|(epoch, y)| Point { x: f64::from(epoch), y, error: None });
    Line { label: label.to_owned(), points: points.collect(), weight }
}
