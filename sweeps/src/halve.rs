//! Halving over epochs: every trial is trained for a few epochs, and only the best share of its group for more. A rung is a trial
//! of its own, which differs in nothing but the number of epochs, so that what a rung says is the ordinary result of an ordinary
//! fold. Owns what a sweep file says of it, the rungs of a group and who goes on; how looks follow each other is `race`, whose
//! rule it is: the same results say the same, whatever order they came in. Sees validation values only.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::ids::{FoldKey, TrialId};
use crate::race::{Criterion, FoldStanding, Race, RaceGroup, SplitScores, Terms, splits_of, sum};
use crate::settings::{self, Setting};
use crate::spec::{Metric, SweepSpec};
use crate::trial::{SettingError, TrialConfig};

/// Rungs that a halving may have.
pub const MOST_RUNGS: usize = 20;

/// The largest denominator of a share.
const LARGEST: u32 = 1_000;

/// A part of a whole, such as `1/3`, without any rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    part: u32,
    of: u32,
}

impl Share {
    /// So many of this number, rounded up.
    pub fn of(self, number: usize) -> usize {
        let part = number as u128 * u128::from(self.part);
        usize::try_from(part.div_ceil(self.of.into())).unwrap_or(number)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers =
            text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((part, of)) if 0 < part && part < of && of <= LARGEST => Ok(Self { part, of }),
            _ => Err(format!("`{text}` is no share below one; write it as `1/3`")),
        }
    }
}

/// The halving of a sweep, as its file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HalveSpec {
    /// The setting that grows from rung to rung.
    pub over: &'static str,
    /// Its values, one for each rung, growing.
    pub rungs: Vec<u64>,
    /// How many go on from each rung.
    pub keep: Share,
    /// Trials that differ in nothing else are a group.
    pub among: Vec<String>,
    /// What is compared; a validation metric.
    pub by: Metric,
}

/// The rungs of a halving as it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rungs {
    /// The setting that grows from rung to rung.
    pub over: &'static str,
    /// Its values, one for each rung.
    pub values: Vec<u64>,
}

impl HalveSpec {
    /// The halving of a sweep with these trials, which stand rung after rung for each point of its grid.
    pub fn of(&self, sweep: &SweepSpec) -> Race {
        let terms = Terms { after: 1, criterion: Criterion::Best(self.keep) };
        let rungs = Rungs { over: self.over, values: self.rungs.clone() };
        Race { by: self.by, terms, groups: self.groups(sweep), rungs: Some(rungs) }
    }

    /// The same trial on each rung. The last one is what is meant in the end.
    pub(crate) fn trials(
        &self,
        setting: &Setting,
        config: &TrialConfig,
    ) -> Result<Vec<TrialConfig>, SettingError> {
        let on = |rung: &u64| {
            let mut config = config.clone();
            setting.apply(&mut config, &Value::from(*rung)).map(|()| config)
        };
        self.rungs.iter().map(on).collect()
    }

    /// Trials that differ in nothing but what is named, and in how far they are trained.
    fn groups(&self, sweep: &SweepSpec) -> Vec<RaceGroup> {
        let mut others = settings::names_of(sweep.trials.iter().map(|trial| &trial.config));
        others.retain(|name| name != self.over && !self.among.contains(name));
        let mut found: std::collections::HashMap<_, usize> = std::collections::HashMap::new();
        let mut groups: Vec<RaceGroup> = Vec::new();
        for rungs in sweep.trials.chunks_exact(self.rungs.len()) {
            let [first, further @ ..] = rungs else { continue };
            let settings: Vec<Option<String>> = others.iter().map(|name| first.config.show(name)).collect();
            let splits = splits_of(sweep, first.id);
            let next = groups.len();
            let at = *found.entry((settings, splits.clone())).or_insert(next);
            if at == next {
                groups.push(RaceGroup { trials: Vec::new(), splits, rungs: vec![Vec::new(); further.len()] });
            }
            groups[at].trials.push(first.id);
            groups[at].rungs.iter_mut().zip(further).for_each(|(rung, trial)| rung.push(trial.id));
        }
        groups
    }

    /// Trials that are trained on each rung if no fold fails, of so many that begin.
    pub fn entering(&self, trials: usize) -> Vec<usize> {
        let next = |before: &mut usize, _: &u64| {
            let now = *before;
            *before = self.keep.of(now);
            Some(now)
        };
        self.rungs.iter().scan(trials, next).collect()
    }
}

/// Who goes on from a rung that so many trials entered: the best share of them by these means, of equals the earlier. Who is not
/// listed has failed and is out.
pub fn survivors(means: &[(usize, f64)], entered: usize, share: Share) -> Vec<usize> {
    let mut ranked = means.to_vec();
    ranked.sort_by(|(a, mine), (b, other)| other.total_cmp(mine).then(a.cmp(b)));
    ranked.truncate(share.of(entered));
    ranked.into_iter().map(|(trial, _)| trial).collect()
}

impl RaceGroup {
    /// Whether it is one of a halving.
    pub fn is_halving(&self) -> bool {
        !self.rungs.is_empty()
    }

    /// What can be looked at: splits, or rungs.
    pub fn stages(&self) -> usize {
        if self.is_halving() { self.rungs.len() + 1 } else { self.splits.len() }
    }

    /// How many trials each of its places has: one, or one a rung.
    pub fn steps(&self) -> usize {
        self.rungs.len() + 1
    }

    /// The trial of a place on a rung, counted from 0.
    pub fn on_rung(&self, place: usize, rung: usize) -> TrialId {
        match rung {
            0 => self.trials[place],
            rung => self.rungs[rung - 1][place],
        }
    }

    /// All its trials, each with its place and its rung.
    pub fn all(&self) -> impl Iterator<Item = (usize, usize, TrialId)> + '_ {
        (0..self.trials.len()).flat_map(move |place| {
            (0..self.steps()).map(move |rung| (place, rung, self.on_rung(place, rung)))
        })
    }

    /// How a trial did at one look: on a split, or on all splits of a rung with the seeds of each averaged. None while a fold of it
    /// is open.
    pub fn ended(
        &self,
        by: Metric,
        place: usize,
        stage: usize,
        outcome: impl Fn(&FoldKey) -> FoldStanding,
    ) -> Option<SplitScores> {
        if !self.is_halving() {
            return SplitScores::of(by, self.folds(place, stage).map(|fold| outcome(&fold)));
        }
        let trial = self.on_rung(place, stage);
        let of = |(split, seeds): &(u32, Vec<u64>)| {
            SplitScores::of(
                by,
                seeds.iter().map(|seed| outcome(&FoldKey { trial, split: *split, seed: *seed })),
            )
        };
        let splits: Vec<SplitScores> = self.splits.iter().map(of).collect::<Option<_>>()?;
        let (mut means, mut all) = (Vec::with_capacity(splits.len()), [0, 0]);
        for split in splits {
            match split {
                SplitScores::Failed => return Some(SplitScores::Failed),
                SplitScores::Scored { mean, sizes } => {
                    means.push(mean);
                    all = [all[0] + sizes[0], all[1] + sizes[1]];
                }
            }
        }
        Some(SplitScores::Scored { mean: sum(&means) / means.len() as f64, sizes: all })
    }
}

#[cfg(test)]
#[path = "halve_tests.rs"]
mod tests;
