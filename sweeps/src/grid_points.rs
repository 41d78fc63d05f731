//! Walks a grid point by point: depth first over its axes, the last one fastest, in memory that depends on the
//! number of axes and not on the number of points. Exclusions cut a branch as soon as they are decided.

use super::{Grid, PointError};
use crate::condition::Condition;
use crate::trial::TrialConfig;

/// What is still to be walked at one axis.
struct Frame {
    /// The settings before this axis.
    trial: TrialConfig,
    /// The next choice to look at.
    next: usize,
    /// Whether the axis exists for these settings; if not, it is passed once.
    exists: bool,
}

/// The points of a grid, in order.
pub struct Points<'a> {
    grid: &'a Grid,
    /// For each number of applied axes, the exclusions that are then decided.
    exclude: Vec<Vec<&'a Condition>>,
    frames: Vec<Frame>,
    /// The one point of a grid without axes.
    single: Option<TrialConfig>,
}

impl<'a> Points<'a> {
    /// The points of a grid, with this in place of its base.
    pub(crate) fn from_base(grid: &'a Grid, base: TrialConfig) -> Self {
        let mut exclude = vec![Vec::new(); grid.axes.len() + 1];
        for condition in &grid.exclude {
            exclude[grid.decided_after(condition)].push(condition);
        }
        let mut points = Self { grid, exclude, frames: Vec::new(), single: None };
        if !points.excluded(0, &base) {
            points.enter(base);
        }
        points
    }

    fn excluded(&self, applied: usize, trial: &TrialConfig) -> bool {
        self.exclude[applied].iter().any(|condition| condition.holds(trial))
    }

    fn enter(&mut self, trial: TrialConfig) {
        match self.grid.axes.get(self.frames.len()) {
            Some(axis) => {
                let exists = axis.exists(&trial);
                self.frames.push(Frame { trial, next: 0, exists });
            }
            None => self.single = Some(trial),
        }
    }

    /// The settings after the next choice of the innermost axis, or none if it is walked to its end.
    fn step(&mut self) -> Option<TrialConfig> {
        let axis = &self.grid.axes[self.frames.len() - 1];
        let frame = self.frames.last_mut()?;
        if !frame.exists {
            frame.next += 1;
            return (frame.next == 1).then(|| frame.trial.clone());
        }
        while let Some(choice) = axis.choices.get(frame.next) {
            frame.next += 1;
            if choice.exists(&frame.trial) {
                let mut trial = frame.trial.clone();
                choice.apply(&mut trial);
                return Some(trial);
            }
        }
        None
    }

    fn next_trial(&mut self) -> Option<TrialConfig> {
        if let Some(single) = self.single.take() {
            return Some(single);
        }
        while !self.frames.is_empty() {
            let applied = self.frames.len();
            match self.step() {
                None => drop(self.frames.pop()),
                Some(trial) if self.excluded(applied, &trial) => {}
                Some(trial) if applied == self.grid.axes.len() => return Some(trial),
                Some(trial) => self.enter(trial),
            }
        }
        None
    }
}

impl Iterator for Points<'_> {
    type Item = Result<TrialConfig, PointError>;

    fn next(&mut self) -> Option<Self::Item> {
        let trial = self.next_trial()?;
        Some(self.grid.checked(trial))
    }
}
