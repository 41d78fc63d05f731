//! Counts the points of a grid without making them. Choices of an axis that no condition tells apart are one kind
//! and are counted together, so a grid without conditions is a product and one with conditions costs a walk over
//! kinds, not over points.

use super::{Axis, Choice, Grid};
use crate::condition::Condition;
use crate::trial::TrialConfig;

/// Choices of one axis that no condition tells apart: one of them, and how many they are.
struct Alike<'a> {
    one: &'a Choice,
    many: u128,
}

pub(super) fn count(grid: &Grid) -> u128 {
    let kinds = kinds(grid);
    let decided: Vec<usize> = grid.exclude.iter().map(|condition| grid.decided_after(condition)).collect();
    Walk { grid, kinds, decided }.from(0, &grid.base)
}

/// Steps that [`count`] takes at most.
pub(super) fn steps(grid: &Grid) -> u128 {
    let sizes = kinds(grid).into_iter().map(|axis| axis.len().max(1) as u128);
    sizes.fold(conditions(grid).len().max(1) as u128, u128::saturating_mul)
}

fn conditions(grid: &Grid) -> Vec<&Condition> {
    grid.axes.iter().flat_map(Axis::conditions).chain(&grid.exclude).collect()
}

fn kinds(grid: &Grid) -> Vec<Vec<Alike<'_>>> {
    let conditions = conditions(grid);
    grid.axes.iter().map(|axis| kinds_of(axis, &grid.base, &conditions)).collect()
}

fn kinds_of<'a>(axis: &'a Axis, base: &TrialConfig, conditions: &[&Condition]) -> Vec<Alike<'a>> {
    let mut kinds: Vec<Alike<'_>> = Vec::new();
    let names: Vec<&str> = axis.given();
    let mut marks_of: std::collections::HashMap<Vec<bool>, usize> = std::collections::HashMap::new();
    for choice in &axis.choices {
        if choice.when.is_some() {
            kinds.push(Alike { one: choice, many: 1 });
            continue;
        }
        let mut trial = base.clone();
        choice.apply(&mut trial);
        let gives = |name: &&str| choice.settings.iter().any(|(setting, _)| setting.name == *name);
        let given = names.iter().map(gives);
        let marks =
            conditions.iter().flat_map(|condition| condition.marks(&names, &trial)).chain(given).collect();
        let at = *marks_of.entry(marks).or_insert_with(|| {
            kinds.push(Alike { one: choice, many: 0 });
            kinds.len() - 1
        });
        kinds[at].many += 1;
    }
    kinds
}

struct Walk<'a> {
    grid: &'a Grid,
    kinds: Vec<Vec<Alike<'a>>>,
    /// For each exclusion, after how many axes it is decided.
    decided: Vec<usize>,
}

impl Walk<'_> {
    fn from(&self, applied: usize, trial: &TrialConfig) -> u128 {
        let mut decided = self.grid.exclude.iter().zip(&self.decided);
        if decided.any(|(condition, at)| *at == applied && condition.holds(trial)) {
            return 0;
        }
        let Some(axis) = self.grid.axes.get(applied) else { return 1 };
        if !axis.exists(trial) {
            return self.from(applied + 1, trial);
        }
        let here = self.kinds[applied].iter().filter(|kind| kind.one.exists(trial));
        here.fold(0, |sum: u128, kind| {
            let mut next = trial.clone();
            kind.one.apply(&mut next);
            sum.saturating_add(kind.many.saturating_mul(self.from(applied + 1, &next)))
        })
    }
}
