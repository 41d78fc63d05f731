//! What the full-screen watch knows at a moment, and the curves of running folds since somebody looks. Pure and bounded.

use std::collections::BTreeMap;

use togl_sweeps::Scale;

use crate::live::Pace;
use crate::remote::{ListedSweep, ListedWorker, SweepStatus};

/// Everything that is known at a moment.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    pub sweeps: Vec<ListedSweep>,
    pub workers: Vec<ListedWorker>,
    pub status: Option<SweepStatus>,
    /// Seconds that it takes still, at the least and at the most; zeros if nobody knows.
    pub left: [u64; 2],
    /// How fast sweeps get on.
    pub pace: Pace,
    /// Lines of the table, as `togl table` prints them.
    pub table: Vec<String>,
    pub acts: Vec<Vec<String>>,
    /// Validation values of running folds by epoch, since somebody looks.
    pub curves: BTreeMap<String, RunningCurve>,
    /// What is known of the fold that was opened.
    pub fold: Vec<String>,
}

/// The curve of a running fold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunningCurve {
    pub title: String,
    /// What its values are.
    pub scale: Scale,
    pub points: Vec<(u32, f64)>,
}

/// Points that are kept of a curve; thinned when there are more.
const POINTS: usize = 128;

impl Observation {
    /// Takes a further point of every fold that runs; what has ended is forgotten.
    pub fn note_curves(&mut self, status: &SweepStatus) {
        let curves = &mut self.curves;
        curves.retain(|fold, _| status.in_training.iter().any(|running| running.fold == *fold));
        for running in &status.in_training {
            let Some(accuracy) = running.validation_accuracy else { continue };
            let curve = curves.entry(running.fold.clone()).or_default();
            curve.title.clone_from(&running.title);
            curve.scale.clone_from(&running.scale);
            match curve.points.last() {
                Some((epoch, _)) if *epoch == running.epoch => continue,
                Some((epoch, _)) if *epoch > running.epoch => curve.points.clear(), // another attempt
                _ => {}
            }
            curve.points.push((running.epoch, accuracy));
            if curve.points.len() > POINTS {
                let mut place = 0;
                curve.points.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
            }
        }
    }
}
