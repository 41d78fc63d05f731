//! Learning curves. Of one trial: loss and accuracy against epochs, training and validation, one thin line per fold and
//! the mean over the folds that are still training. Of many: one line with its band for each group of folds, which
//! [`crate::curves`] makes and names. Takes histories as results carry them; frames do not have them.

use std::collections::BTreeMap;

use togl_sweeps::Scale;
use togl_sweeps::result::{EpochRecord, Metrics};

use super::Figure;
use super::axis::XAxis;
use super::lines::{Line, LinePlot, Panel, Point, Weight};
use crate::curves::CurveGroups;
use crate::distinct::Distinct;
use crate::error::{Error, Result};
use crate::statistics::Summary;
use crate::wording::capital;

/// Epochs of a line that are drawn; longer ones are thinned evenly.
const MOST_EPOCHS: usize = 150;

/// The history of one fold.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What the fold is called, such as `split 3, seed 0`.
    pub label: String,
    /// Its epochs, in order.
    pub history: Vec<EpochRecord>,
    /// What its values are.
    pub scale: Scale,
}

type Part = fn(&EpochRecord) -> Metrics;

const PARTS: [(&str, Weight, Part); 2] = [
    ("training", Weight::Dashed, |epoch| epoch.train),
    ("validation", Weight::Thick, |epoch| epoch.validation),
];

/// What is drawn of an epoch: the loss, or the value on a scale.
#[derive(Clone, Copy)]
enum Value {
    Loss,
    Scaled { factor: f64 },
}

impl Value {
    fn of(self, metrics: &Metrics) -> f64 {
        match self {
            Self::Loss => metrics.loss,
            Self::Scaled { factor } => factor * metrics.accuracy,
        }
    }
}

/// Name, label of the axis, and value.
fn drawn(scale: &Scale) -> [(String, String, Value); 2] {
    let loss = ("loss".to_owned(), "loss".to_owned(), Value::Loss);
    [loss, (scale.name.to_string(), scale.axis(), Value::Scaled { factor: scale.factor() })]
}

/// Draws the curves of a trial's folds.
pub fn learning_curves(title: &str, curves: &[Curve]) -> Result<Figure> {
    let known: Vec<&Curve> = curves.iter().filter(|curve| !curve.history.is_empty()).collect();
    let note = match known.as_slice() {
        [only] => format!("One fold: {}.", only.label),
        several => format!(
            "Thin: each of {} folds. Thick: mean over the folds that trained this long.",
            several.len()
        ),
    };
    let panel = |(name, y_label, value): (String, String, Value)| {
        let lines = PARTS.into_iter().flat_map(|(label, weight, part)| {
            let folds: Vec<Vec<(u32, f64)>> =
                known.iter().map(|curve| values(&curve.history, part, value)).collect();
            let mean = line(label, weight, means(&folds).map(|(epoch, mean)| point(epoch, mean.mean, None)));
            let thin = |fold: &Vec<(u32, f64)>| {
                line(label, Weight::Thin, fold.iter().map(|(epoch, value)| point(*epoch, Some(*value), None)))
            };
            folds.iter().map(thin).chain([mean]).collect::<Vec<Line>>()
        });
        Panel { title: capital(&name), y_label, lines: lines.collect() }
    };
    let scale = known.first().map(|curve| curve.scale.clone()).unwrap_or_default();
    draw(title, note, drawn(&scale).map(panel).to_vec(), None)
}

/// Draws validation loss and accuracy by epoch, one line for each group of folds: the mean over those that trained this
/// long, in a band of one standard deviation.
pub fn method_curves(title: &str, curves: &CurveGroups) -> Result<Figure> {
    let datasets = Distinct::of(curves.groups.iter().map(|group| group.dataset.as_str()));
    let mut panels: Vec<Panel> = Vec::new();
    for dataset in datasets {
        let groups = || curves.groups.iter().filter(|group| group.dataset == dataset);
        let scale = groups().next().map(|group| group.scale.clone()).unwrap_or_default();
        panels.extend(drawn(&scale).map(|(name, y_label, value)| {
            let lines = groups().map(|group| {
                let folds: Vec<Vec<(u32, f64)>> =
                    group.histories.iter().map(|history| values(history, PARTS[1].2, value)).collect();
                let points = means(&folds).map(|(epoch, mean)| point(epoch, mean.mean, mean.std));
                line(&group.label, Weight::Thick, points)
            });
            let title = format!("{dataset}: validation {name}");
            Panel { title, y_label, lines: lines.collect() }
        }));
    }
    let line = match curves.mixed.as_slice() {
        [] => "one trial".to_owned(),
        mixed => format!("all trials of a method, which differ in {}", mixed.join(", ")),
    };
    let note = format!(
        "On the validation part. A line is the mean over the n folds of {line}; its band is ± sample standard \
         deviation. Folds that ended earlier count as long as they trained."
    );
    // Loss and accuracy of one data set stand side by side.
    draw(title, note, panels, Some(2))
}

fn draw(title: &str, note: String, panels: Vec<Panel>, across: Option<usize>) -> Result<Figure> {
    let points = panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
    let ends = points.map(|point| (point.x, point.x)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let Some((first, last)) = ends else {
        return Err(Error::Empty { origin: format!("the learning curves of {title}") });
    };
    let axis = XAxis::round(first, last);
    LinePlot { title: title.to_owned(), note, x_label: "epoch".to_owned(), axis, across, panels }.draw()
}

/// What is finite of one curve, by epoch.
fn values(history: &[EpochRecord], part: Part, value: Value) -> Vec<(u32, f64)> {
    let values = history.iter().map(|epoch| (epoch.epoch, value.of(&part(epoch))));
    values.filter(|(_, value)| value.is_finite()).collect()
}

/// Mean and spread of several curves at each epoch that any of them has.
fn means(curves: &[Vec<(u32, f64)>]) -> impl Iterator<Item = (u32, Summary)> {
    let mut by_epoch: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (epoch, value) in curves.iter().flatten() {
        by_epoch.entry(*epoch).or_default().push(*value);
    }
    by_epoch.into_iter().map(|(epoch, values)| (epoch, Summary::of(&values)))
}

fn point(epoch: u32, y: Option<f64>, error: Option<f64>) -> Point {
    Point { x: f64::from(epoch), y: y.unwrap_or_default(), error }
}

fn line(label: &str, weight: Weight, points: impl Iterator<Item = Point>) -> Line {
    Line { label: label.to_owned(), points: thinned(points.collect()), weight }
}

/// Every n-th point, and always the last. Means are taken before: folds of unequal length have other epochs left.
fn thinned(points: Vec<Point>) -> Vec<Point> {
    let (step, last) = (points.len().div_ceil(MOST_EPOCHS).max(1), points.len().saturating_sub(1));
    let kept = points.into_iter().enumerate().filter(|(at, _)| at % step == 0 || *at == last);
    kept.map(|(_, point)| point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_curve_is_thinned_but_keeps_its_end() {
        let kept = thinned((0..1000).map(|epoch| point(epoch, Some(0.5), None)).collect());
        assert!(kept.len() <= MOST_EPOCHS + 1 && kept.last().unwrap().x == 999.0);
        assert_eq!(thinned(vec![point(0, Some(0.5), None)]).len(), 1);
    }

    #[test]
    fn the_mean_of_folds_that_trained_unequally_long_takes_all_that_trained_that_long() {
        let fold = |epochs: u32, value: f64| (0..epochs).map(|epoch| (epoch, value)).collect::<Vec<_>>();
        let means: Vec<(u32, Summary)> = means(&[fold(400, 1.0), fold(100, 3.0)]).collect();
        assert!(means[..100].iter().all(|(_, mean)| (mean.mean, mean.n) == (Some(2.0), 2)));
        assert!(means[100..].iter().all(|(_, mean)| (mean.mean, mean.n) == (Some(1.0), 1)));
    }
}
