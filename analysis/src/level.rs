//! What saved folds should have been. They have no plan, so a cell is measured against the fullest one of the same data
//! set: what another has and it has not is missing. Owns which cells are compared and what they lack; counts folds only,
//! and leaves the cells of a sweep, whose plan is known, as they are.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::error::Result;
use crate::plan::Plan;

/// Settings that must agree before two cells can be expected to have the same splits.
pub(crate) const SAME_SPLITS: [&str; 3] = ["dataset", "data_seed", "outer_folds"];

/// The word under a table in which a cell was measured against others.
pub const REMARK: &str =
    "saved folds have no plan: planned is what the fullest cell of the same data set has in each split";

/// How many folds each cell lacks, for cells that lack some. `cell_of_trial` is `usize::MAX` for a trial without a cell.
/// After a choice a split counts once, however many runs it was chosen from.
pub fn missing(plan: &Plan, cell_of_trial: &[usize], chosen: bool) -> Result<BTreeMap<usize, usize>> {
    if !(0..plan.trials()).any(|trial| plan.is_saved(trial)) {
        return Ok(BTreeMap::new());
    }
    let counts = Counts::of(plan, cell_of_trial, chosen)?;
    let mut fullest: HashMap<&[String], BTreeMap<u32, usize>> = HashMap::new();
    for ((cell, split), count) in &counts.runs {
        let most = fullest.entry(counts.data_set(*cell)).or_default().entry(*split).or_default();
        *most = (*most).max(*count);
    }
    let lacks = |cell: usize| {
        let has = |split: u32| counts.runs.get(&(cell, split)).copied().unwrap_or_default();
        let splits = fullest.get(counts.data_set(cell)).into_iter().flatten();
        splits.map(|(split, most)| most - has(*split)).sum::<usize>()
    };
    Ok(counts.saved.iter().map(|cell| (*cell, lacks(*cell))).filter(|(_, folds)| *folds > 0).collect())
}

/// The folds of all cells.
struct Counts {
    /// By cell and split.
    runs: HashMap<(usize, u32), usize>,
    /// What each cell is compared within.
    data_sets: BTreeMap<usize, Vec<String>>,
    /// Cells whose folds were saved.
    saved: BTreeSet<usize>,
}

impl Counts {
    fn of(plan: &Plan, cell_of_trial: &[usize], chosen: bool) -> Result<Self> {
        let mut counts = Self { runs: HashMap::new(), data_sets: BTreeMap::new(), saved: BTreeSet::new() };
        for (trial, cell) in cell_of_trial.iter().enumerate().filter(|(_, cell)| **cell != usize::MAX) {
            let data_set = plan.labels(trial, &SAME_SPLITS)?;
            counts.data_sets.entry(*cell).or_insert(data_set);
            if plan.is_saved(trial) {
                counts.saved.insert(*cell);
            }
        }
        for fold in plan.folds() {
            let count = counts.runs.entry((cell_of_trial[fold.trial], fold.split)).or_default();
            *count = if chosen { 1 } else { *count + 1 };
        }
        Ok(counts)
    }

    fn data_set(&self, cell: usize) -> &[String] {
        self.data_sets.get(&cell).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
#[path = "level_tests.rs"]
mod tests;
