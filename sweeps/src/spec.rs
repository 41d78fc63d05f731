//! A checked sweep: what it trains, on which folds, within which limits, and what is drawn from it. The blocks of the
//! file are in `blocks`, reading and the wording of errors in `read`. Reads no files itself.

use std::collections::{BTreeSet, HashMap};

use crate::halve::HalveSpec;
use crate::ids::{FoldKey, SweepName, TrialId};
use crate::program::Program;
use crate::race::{Race, RaceSpec};
use crate::scale::Scale;
use crate::settings::{SETTINGS, Setting};
use crate::trial::TrialConfig;
use crate::union::Union;

pub use crate::blocks::{
    DeviceKind, FigureSpec, Labels, MOST_DECIMALS, Metric, Per, Published, PublishedCell, Resources,
    Selection, SweepLimits, TableSpec,
};

/// The version of the sweep language.
pub const SPEC_VERSION: u32 = 1;

/// Folds a sweep may have unless its `limits` say otherwise: a guard against accidents.
pub const DEFAULT_MAX_FOLDS: u64 = 100_000;

/// Folds that no sweep may have, whatever its `limits` say: the coordinator holds them in memory.
pub const MOST_FOLDS: u64 = 10_000_000;

/// A sweep file that was understood and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepSpec {
    /// What people call it.
    pub name: SweepName,
    /// A sentence for people.
    pub description: String,
    /// Settings and axes: one grid, or several in order.
    pub grid: Union,
    /// Which splits of the data set, for grids that do not say otherwise.
    pub splits: Vec<u32>,
    /// Training seeds, for grids that do not say otherwise.
    pub seeds: Vec<u64>,
    /// How many folds it may have, and how often and how long one may be tried.
    pub limits: SweepLimits,
    /// What a fold needs.
    pub resources: Resources,
    /// Which trials race with each other over folds, if any do.
    pub race: Option<RaceSpec>,
    /// Which trials are trained for more epochs only if they are among the best, if any are.
    pub halve: Option<HalveSpec>,
    /// Higher runs first.
    pub priority: i32,
    /// The table at the end.
    pub table: TableSpec,
    /// A choice among trials before the table is made.
    pub selection: Option<Selection>,
    /// The figures at the end.
    pub figures: Vec<FigureSpec>,
    /// Numbers from print, for comparison.
    pub published: Vec<Published>,
    /// The program that it trains; none if it trains our networks.
    pub program: Option<Program>,
    /// The distinct trials, in the order of the grid.
    pub trials: Vec<PlannedTrial>,
    /// Which parts hold a trial; only where the parts differ in splits or seeds.
    pub(crate) parts_of: Option<HashMap<TrialId, Vec<usize>>>,
}

/// What is wrong with a sweep file. Shown as `line:column: message`; the caller puts the file name in front.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}{}", place(*.at), below(.further))]
pub struct SpecError {
    /// Line and column, from 1, where known.
    pub at: Option<(u64, u64)>,
    /// What is wrong and what would be right.
    pub message: String,
    /// What else is wrong, further down; each on a line of its own.
    pub further: Vec<SpecError>,
}

impl SpecError {
    pub(crate) fn new(at: Option<(u64, u64)>, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), further: Vec::new() }
    }
}

fn below(further: &[SpecError]) -> String {
    further.iter().map(|error| format!("\n{error}")).collect()
}

fn place(at: Option<(u64, u64)>) -> String {
    at.map_or_else(String::new, |(line, column)| format!("{line}:{column}: "))
}

/// A trial of a sweep at its place in the order of the grid.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTrial {
    /// Place in the grid's order; points that are the same trial share the first one's.
    pub position: u64,
    /// The settings as written.
    pub config: TrialConfig,
    /// Its identity.
    pub id: TrialId,
}

impl SweepSpec {
    /// What the values of its results are.
    pub fn scale(&self) -> &Scale {
        let own = self.program.as_ref().and_then(|program| program.score.as_ref());
        own.unwrap_or(Scale::share())
    }

    /// Reads and checks the text of a sweep file.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        crate::read::sweep(text)
    }

    /// The priority that the text of a sweep file gives, whatever else it says; 0 if it gives none.
    pub fn priority_of(text: &str) -> i32 {
        crate::read::priority(text).unwrap_or(0)
    }

    /// Its race, if it has one, over splits or over the rungs of a halving: who races with whom.
    pub fn race(&self) -> Option<Race> {
        let halving = || self.halve.as_ref().map(|halve| halve.of(self));
        self.race.as_ref().map(|race| race.of(self)).or_else(halving)
    }

    /// All folds, in the order in which they are to run: trial by trial, but split by split, or rung by rung, where trials race.
    pub fn folds(&self) -> Vec<FoldKey> {
        let folds = || self.trials.iter().flat_map(|trial| self.folds_of(trial.id));
        let Some(race) = self.race() else { return folds().collect() };
        let place = race.groups.iter().flat_map(|group| {
            (0..group.stages())
                .flat_map(move |split| (0..group.trials.len()).map(move |trial| (trial, split)))
                .flat_map(move |(trial, split)| group.folds(trial, split).map(move |fold| (fold, split + 1)))
        });
        let place: HashMap<FoldKey, usize> = place.collect();
        let mut folds: Vec<FoldKey> = folds().collect();
        folds.sort_by_key(|fold| place.get(fold).copied().unwrap_or(0)); // stable; who races with nobody comes first
        folds
    }

    /// Folds that the grid's points would make, on all rungs and before equal trials are merged; saturates.
    pub fn count_folds(&self) -> u128 {
        let rungs = self.halve.as_ref().map_or(1, |halve| halve.rungs.len());
        self.grid.count_folds().saturating_mul(rungs as u128)
    }

    /// The settings that are not the same in all trials, in the order of the table of settings.
    pub fn varying(&self) -> Vec<&'static Setting> {
        let Some((first, rest)) = self.trials.split_first() else { return Vec::new() };
        let varies = |setting: &&Setting| rest.iter().any(|t| !setting.same(&first.config, &t.config));
        let declared = self.program.iter().flat_map(|program| program.settings.iter().copied());
        SETTINGS.iter().chain(declared).filter(varies).collect()
    }

    /// The data sets of all trials.
    pub fn datasets(&self) -> BTreeSet<&str> {
        self.trials.iter().map(|trial| trial.config.dataset.as_str()).collect()
    }

    /// The folds of one trial, in order: splits, then seeds. A trial that several grids hold has the folds of all.
    pub fn folds_of(&self, trial: TrialId) -> impl Iterator<Item = FoldKey> + '_ {
        let everywhere = [0];
        let parts: &[usize] = match &self.parts_of {
            None => &everywhere,
            Some(parts_of) => parts_of.get(&trial).map_or(&[], Vec::as_slice),
        };
        let pairs: Vec<(u32, u64)> = match parts {
            [one] => self.pairs(*one).collect(),
            several => {
                let mut seen = BTreeSet::new();
                several.iter().flat_map(|part| self.pairs(*part)).filter(|pair| seen.insert(*pair)).collect()
            }
        };
        pairs.into_iter().map(move |(split, seed)| FoldKey { trial, split, seed })
    }

    fn pairs(&self, part: usize) -> impl Iterator<Item = (u32, u64)> + '_ {
        let part = self.grid.parts.get(part).into_iter();
        part.flat_map(|part| {
            part.splits.iter().flat_map(|split| part.seeds.iter().map(|seed| (*split, *seed)))
        })
    }
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
