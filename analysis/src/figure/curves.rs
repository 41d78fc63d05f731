//! Learning curves of one trial: loss and accuracy against epochs, training and validation, one thin line per
//! fold and the mean over the folds that are still training. Takes histories as results carry them; frames do
//! not have them.

use std::collections::BTreeMap;

use togl_sweeps::result::{EpochRecord, Metrics};

use super::Figure;
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
        panels: vec![
            panel("Loss", "loss", &known, |metrics| metrics.loss),
            panel("Accuracy", "accuracy (%)", &known, |metrics| 100.0 * metrics.accuracy),
        ],
    };
    plot.draw()
}

fn panel(title: &str, y_label: &str, curves: &[&Curve], value: fn(&Metrics) -> f64) -> Panel {
    let mut lines = Vec::new();
    for (label, weight, part) in PARTS {
        let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for curve in curves {
            let values = curve.history.iter().map(|epoch| (epoch.epoch, value(&part(epoch))));
            let finite: Vec<(u32, f64)> = values.filter(|(_, value)| value.is_finite()).collect();
            for (epoch, value) in &finite {
                let sum = sums.entry(*epoch).or_default();
                *sum = (sum.0 + value, sum.1 + 1.0);
            }
            lines.push(line(label, finite.into_iter(), Weight::Thin));
        }
        let means = sums.into_iter().map(|(epoch, (sum, count))| (epoch, sum / count));
        lines.push(line(label, means, weight));
    }
    Panel { title: title.to_owned(), y_label: y_label.to_owned(), lines }
}

fn line(label: &str, values: impl Iterator<Item = (u32, f64)>, weight: Weight) -> Line {
    let points = values.map(|(epoch, y)| Point { x: f64::from(epoch), y, error: None });
    Line { label: label.to_owned(), points: points.collect(), weight }
}
