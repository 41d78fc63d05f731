//! Racing over folds: which trials of a group are clearly worse than its leader after the first k splits, so that their other
//! splits need not be trained. Owns the rule and nothing else: given the same results it says the same, whatever order they came
//! in, and no value beyond a look has a say in it. A look sees validation values; there is no way to show it a test value.
//!
//! The test is the corrected paired one of the tables (Nadeau and Bengio), one-sided, in additions, subtractions, multiplications
//! and divisions of a fixed order, so that all machines agree to the bit. A stop is a decision about the budget, no claim.

use std::fmt;
use std::str::FromStr;

use crate::halve::{Rungs, Share, survivors};
use crate::ids::{FoldKey, TrialId};
use crate::result::FoldResult;
use crate::spec::{Metric, SweepSpec};
use crate::words::words;

/// Splits that are compared before the first stop, unless a file says otherwise.
pub const AFTER: u32 = 4;

/// The fewest splits that can be compared: a variance needs two.
pub const LEAST: u32 = 2;

words!(
    /// How often a trial that is as good as the leader may be stopped, by one look. Looking again and again adds up.
    #[derive(Default)]
    Alpha {
        /// The boldest.
        Tenth = "0.1",
        /// Bold.
        Twentieth = "0.05",
        /// Half of what is usual, because looks are many.
        #[default]
        Fortieth = "0.025",
        /// Careful.
        Hundredth = "0.01",
        /// The most careful.
        TwoHundredth = "0.005",
    }
);

/// One-sided quantiles of Student's t by SciPy 1.17, for 1 to 30 degrees of freedom, in the order of [`Alpha`].
const QUANTILES: [[f64; 30]; 5] = [
    // 0.1
    [
        3.0777, 1.8856, 1.6377, 1.5332, 1.4759, 1.4398, 1.4149, 1.3968, 1.3830, 1.3722, 1.3634, 1.3562,
        1.3502, 1.3450, 1.3406, 1.3368, 1.3334, 1.3304, 1.3277, 1.3253, 1.3232, 1.3212, 1.3195, 1.3178,
        1.3163, 1.3150, 1.3137, 1.3125, 1.3114, 1.3104,
    ],
    // 0.05
    [
        6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331, 1.8125, 1.7959, 1.7823,
        1.7709, 1.7613, 1.7531, 1.7459, 1.7396, 1.7341, 1.7291, 1.7247, 1.7207, 1.7171, 1.7139, 1.7109,
        1.7081, 1.7056, 1.7033, 1.7011, 1.6991, 1.6973,
    ],
    // 0.025
    [
        12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788,
        2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639,
        2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
    ],
    // 0.01
    [
        31.8205, 6.9646, 4.5407, 3.7469, 3.3649, 3.1427, 2.9980, 2.8965, 2.8214, 2.7638, 2.7181, 2.6810,
        2.6503, 2.6245, 2.6025, 2.5835, 2.5669, 2.5524, 2.5395, 2.5280, 2.5176, 2.5083, 2.4999, 2.4922,
        2.4851, 2.4786, 2.4727, 2.4671, 2.4620, 2.4573,
    ],
    // 0.005
    [
        63.6567, 9.9248, 5.8409, 4.6041, 4.0321, 3.7074, 3.4995, 3.3554, 3.2498, 3.1693, 3.1058, 3.0545,
        3.0123, 2.9768, 2.9467, 2.9208, 2.8982, 2.8784, 2.8609, 2.8453, 2.8314, 2.8188, 2.8073, 2.7969,
        2.7874, 2.7787, 2.7707, 2.7633, 2.7564, 2.7500,
    ],
];

impl Alpha {
    /// The quantile for so many degrees of freedom; beyond the table its last one, which is larger.
    fn quantile(self, degrees: usize) -> f64 {
        let row = match self {
            Self::Tenth => 0,
            Self::Twentieth => 1,
            Self::Fortieth => 2,
            Self::Hundredth => 3,
            Self::TwoHundredth => 4,
        };
        QUANTILES[row][degrees.clamp(1, 30) - 1]
    }
}

/// What makes a trial clearly worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Criterion {
    /// The corrected paired test.
    Test(Alpha),
    /// Its mean is below the worst split of the leader. For comparison; no sweep uses it.
    WorstSplit,
    /// It is not among the best of its rung: no race over splits, but a halving (`halve`).
    Best(Share),
}

/// How a group races.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Splits that are compared at the first look that may stop anybody.
    pub after: u32,
    /// What makes a trial clearly worse.
    pub criterion: Criterion,
}

/// The race of a sweep, as its file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaceSpec {
    /// Trials that differ in nothing else are a group.
    pub among: Vec<String>,
    /// What is compared; a validation metric.
    pub by: Metric,
    /// Splits that are compared at the first look that may stop anybody.
    pub after: u32,
    /// How bold it is.
    pub alpha: Alpha,
}

/// The race of a sweep, as it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Race {
    /// What is compared.
    pub by: Metric,
    /// How.
    pub terms: Terms,
    /// Who races with whom.
    pub groups: Vec<RaceGroup>,
    /// What is looked at one after the other: the rungs of a halving, or none for a race over splits.
    pub rungs: Option<Rungs>,
}

/// Trials that race with each other: they differ only in what is raced among, and have the same folds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaceGroup {
    /// In the order of the sweep, which decides between equals; of a halving those of the first rung.
    pub trials: Vec<TrialId>,
    /// The splits in the order written, each with its seeds.
    pub splits: Vec<(u32, Vec<u64>)>,
    /// The same on each further rung of a halving, in the same order; nothing for a race over splits.
    pub rungs: Vec<Vec<TrialId>>,
}

impl RaceGroup {
    /// The folds of one of its trials that one look compares: those of a split, or of a whole rung.
    pub fn folds(&self, place: usize, stage: usize) -> impl Iterator<Item = FoldKey> + '_ {
        let (rung, splits) = match self.is_halving() {
            true => (stage, &self.splits[..]),
            false => (0, &self.splits[stage..=stage]),
        };
        let trial = self.on_rung(place, rung);
        splits.iter().flat_map(move |(split, seeds)| {
            seeds.iter().map(move |seed| FoldKey { trial, split: *split, seed: *seed })
        })
    }
}

impl RaceSpec {
    /// The race of a sweep with these trials.
    pub fn of(&self, sweep: &SweepSpec) -> Race {
        let terms = Terms { after: self.after, criterion: Criterion::Test(self.alpha) };
        Race { by: self.by, terms, groups: groups(sweep, &self.among), rungs: None }
    }
}

/// The trials of a sweep that differ in nothing but these settings, group by group. A trial without another one races with
/// nobody and is in no group.
pub fn groups(sweep: &SweepSpec, among: &[String]) -> Vec<RaceGroup> {
    let mut others = crate::settings::names_of(sweep.trials.iter().map(|trial| &trial.config));
    others.retain(|name| !among.contains(name));
    let mut found: std::collections::HashMap<_, usize> = std::collections::HashMap::new();
    let mut groups: Vec<RaceGroup> = Vec::new();
    for trial in &sweep.trials {
        let settings: Vec<Option<String>> = others.iter().map(|name| trial.config.show(name)).collect();
        let splits = splits_of(sweep, trial.id);
        let next = groups.len();
        let at = *found.entry((settings, splits.clone())).or_insert(next);
        if at == next {
            groups.push(RaceGroup { trials: Vec::new(), splits, rungs: Vec::new() });
        }
        groups[at].trials.push(trial.id);
    }
    groups.retain(|group| group.trials.len() > 1 && group.splits.len() > 1);
    groups
}

/// The splits of a trial in the order written, each with its seeds.
pub(crate) fn splits_of(sweep: &SweepSpec, trial: TrialId) -> Vec<(u32, Vec<u64>)> {
    let mut splits: Vec<(u32, Vec<u64>)> = Vec::new();
    for fold in sweep.folds_of(trial) {
        match splits.iter_mut().find(|(split, _)| *split == fold.split) {
            Some((_, seeds)) => seeds.push(fold.seed),
            None => splits.push((fold.split, vec![fold.seed])),
        }
    }
    splits
}

/// What a race knows of a result. In single precision, because the coordinator has one of each finished fold in memory; everybody
/// who judges takes the values from here, so that all of them judge alike.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Score {
    /// Validation value of the best checkpoint, turned so that higher is better.
    pub validation: f32,
    /// Validation value of the last epoch, turned likewise.
    pub last_validation: f32,
    /// Sizes of the training and the validation part; 0 if unknown.
    pub sizes: [u32; 2],
}

impl Score {
    /// Of a result.
    pub fn of(result: &FoldResult) -> Self {
        let size = |part: usize| u32::try_from(result.part_sizes[part]).unwrap_or(u32::MAX);
        let sign = result.scale().sign();
        Self {
            validation: (sign * result.validation.accuracy) as f32,
            last_validation: (sign * result.last_validation.accuracy) as f32,
            sizes: [size(0), size(1)],
        }
    }

    fn value(&self, by: Metric) -> f64 {
        f64::from(match by {
            Metric::LastValidationAccuracy => self.last_validation,
            Metric::ValidationAccuracy => self.validation,
            // The reader refuses to race by these, and there is nothing of them here.
            Metric::TestAccuracy | Metric::TrainAccuracy | Metric::TestF1 | Metric::TestRocAuc => {
                self.validation
            }
        })
    }
}

/// As stores keep it: four numbers, which come back to the bit.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [train, validation] = self.sizes;
        write!(f, "{} {} {train} {validation}", self.validation, self.last_validation)
    }
}

impl FromStr for Score {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refusal = || format!("`{text}` is no score");
        let words: Vec<&str> = text.split(' ').collect();
        let [validation, last, train, size] = words.as_slice() else { return Err(refusal()) };
        let number = |word: &str| word.parse::<f32>().ok().filter(|number| number.is_finite());
        let [validation, last_validation] = [validation, last].map(|word| number(word));
        let [train, size] = [train, size].map(|word| word.parse().ok());
        Ok(Self {
            validation: validation.ok_or_else(refusal)?,
            last_validation: last_validation.ok_or_else(refusal)?,
            sizes: [train.ok_or_else(refusal)?, size.ok_or_else(refusal)?],
        })
    }
}

/// How a fold stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FoldStanding {
    /// It has no result yet.
    Open,
    /// It will not have one by itself.
    Failed,
    /// It has one.
    Scored(Score),
}

/// How a trial did on one split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SplitScores {
    /// One of its folds failed.
    Failed,
    /// The mean over its seeds, and the sizes of the training and the validation part.
    Scored {
        /// The mean.
        mean: f64,
        /// The sizes.
        sizes: [u64; 2],
    },
}

impl SplitScores {
    /// Of the folds of a split; none while one of them is open.
    pub fn of(by: Metric, folds: impl Iterator<Item = FoldStanding>) -> Option<Self> {
        let (mut sum, mut count, mut sizes, mut failed) = (0.0, 0.0, [0, 0], false);
        for fold in folds {
            match fold {
                FoldStanding::Open => return None,
                FoldStanding::Failed => failed = true,
                FoldStanding::Scored(score) => {
                    sum += score.value(by);
                    count += 1.0;
                    sizes = score.sizes.map(u64::from);
                }
            }
        }
        Some(if failed { Self::Failed } else { Self::Scored { mean: sum / count, sizes } })
    }
}

/// That a trial is stopped, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// The look that stopped it, which is the number of splits, or of rungs, that it saw.
    pub look: u32,
    /// Who was better; none if a fold failed.
    pub leader: Option<usize>,
}

/// A group on its way: who is stopped after how many looks. A function of the results it was shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    terms: Terms,
    splits: u32,
    looks: u32,
    /// Of each trial, for each look that it took part in.
    means: Vec<Vec<f64>>,
    sizes: Vec<[u64; 2]>,
    stops: Vec<Option<Stop>>,
}

impl Heat {
    /// Before the first look at so many splits, or rungs.
    pub fn new(terms: Terms, trials: usize, stages: usize) -> Self {
        let splits = u32::try_from(stages).unwrap_or(u32::MAX);
        Self {
            terms,
            splits,
            looks: 0,
            means: vec![Vec::new(); trials],
            sizes: vec![[0, 0]; trials],
            stops: vec![None; trials],
        }
    }

    /// Looks so far.
    pub fn looks(&self) -> u32 {
        self.looks
    }

    /// Whether no look can save anything any more.
    pub fn is_over(&self) -> bool {
        self.looks + 1 >= self.splits
    }

    /// Why a trial is stopped, if it is.
    pub fn stop(&self, trial: usize) -> Option<Stop> {
        self.stops[trial]
    }

    /// The trials that are not stopped.
    pub fn live(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.stops.len()).filter(|trial| self.stops[*trial].is_none())
    }

    /// Whether nobody wants folds of a trial on a rung: it is stopped, or the looks have not come so far. A race over splits has
    /// one rung.
    pub fn holds(&self, trial: usize, rung: usize) -> bool {
        match (self.terms.criterion, self.stops[trial]) {
            (Criterion::Best(_), Some(stop)) => rung >= stop.look as usize,
            (Criterion::Best(_), None) => rung > self.looks as usize,
            (Criterion::Test(_) | Criterion::WorstSplit, stop) => stop.is_some(),
        }
    }

    /// Looks at the next split, or rung, of every live trial; they must all have come to an end. Nobody is judged by a later one.
    pub fn look(&mut self, split: impl Fn(usize) -> SplitScores) {
        self.looks += 1;
        let (look, entered) = (self.looks, self.live().count());
        for trial in self.live().collect::<Vec<_>>() {
            match split(trial) {
                SplitScores::Failed => self.stops[trial] = Some(Stop { look, leader: None }),
                SplitScores::Scored { mean, sizes } => {
                    self.means[trial].push(mean);
                    self.sizes[trial] = [self.sizes[trial][0] + sizes[0], self.sizes[trial][1] + sizes[1]];
                }
            }
        }
        if let Criterion::Best(share) = self.terms.criterion {
            return self.keep_best(share, entered);
        }
        if look < self.terms.after.max(LEAST) {
            return;
        }
        let Some(leader) = self.leader() else { return };
        for trial in self.live().collect::<Vec<_>>() {
            if trial != leader && self.is_clearly_worse(trial, leader) {
                self.stops[trial] = Some(Stop { look, leader: Some(leader) });
            }
        }
    }

    /// Ends a rung that so many trials entered.
    fn keep_best(&mut self, share: Share, entered: usize) {
        let last = |trial: usize| self.means[trial].last().copied().unwrap_or(f64::NEG_INFINITY);
        let scores: Vec<(usize, f64)> = self.live().map(|trial| (trial, last(trial))).collect();
        let kept = survivors(&scores, entered, share);
        let stop = Stop { look: self.looks, leader: kept.first().copied() };
        for (trial, _) in scores.into_iter().filter(|(trial, _)| !kept.contains(trial)) {
            self.stops[trial] = Some(stop);
        }
    }

    /// The live trial with the best mean so far; of equals the first.
    pub fn leader(&self) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for trial in self.live() {
            let sum = sum(&self.means[trial]);
            if best.is_none_or(|(_, most)| sum > most) {
                best = Some((trial, sum));
            }
        }
        best.map(|(trial, _)| trial)
    }

    fn is_clearly_worse(&self, trial: usize, leader: usize) -> bool {
        let (others, mine) = (&self.means[leader], &self.means[trial]);
        let count = f64::from(self.looks);
        match self.terms.criterion {
            Criterion::Best(_) => false, // nobody asks: whole rungs are ranked
            Criterion::WorstSplit => {
                let worst = others.iter().copied().fold(f64::INFINITY, f64::min);
                sum(mine) / count < worst
            }
            Criterion::Test(alpha) => {
                let [train, validation] = self.sizes[trial];
                if train == 0 || validation == 0 {
                    return false; // the correction is unknown
                }
                let ratio = validation as f64 / train as f64;
                let differences: Vec<f64> =
                    others.iter().zip(mine).map(|(other, mine)| other - mine).collect();
                let mean = sum(&differences) / count;
                let squares: Vec<f64> = differences.iter().map(|d| (d - mean) * (d - mean)).collect();
                let variance = sum(&squares) / (count - 1.0);
                let c = alpha.quantile(differences.len() - 1);
                mean > 0.0 && mean * mean > c * c * (1.0 / count + ratio) * variance
            }
        }
    }
}

/// From the first to the last, so that it has the same bits everywhere.
pub(crate) fn sum(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |sum, value| sum + value)
}

/// The race of a group, as far as these results take it.
pub fn run(race: &Race, group: &RaceGroup, outcome: impl Fn(&FoldKey) -> FoldStanding) -> Heat {
    let mut heat = Heat::new(race.terms, group.trials.len(), group.stages());
    while !heat.is_over() {
        let at = heat.looks() as usize;
        let of = |trial: usize| group.ended(race.by, trial, at, &outcome);
        let splits: Option<Vec<(usize, SplitScores)>> =
            heat.live().map(|trial| Some((trial, of(trial)?))).collect();
        let Some(splits) = splits.filter(|splits| !splits.is_empty()) else { break };
        let found: std::collections::HashMap<usize, SplitScores> = splits.into_iter().collect();
        heat.look(|trial| found[&trial]);
    }
    heat
}

#[cfg(test)]
#[path = "race_tests.rs"]
mod tests;
