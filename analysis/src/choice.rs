//! The choice of a table block (`select`): within each split, of the trials that differ only in the named settings, the
//! run with the best validation value. Owns what is chosen among and what the plan is afterwards; reads validation
//! columns only, through [`ValidationView`]. A choice is made only where all candidates have finished: with fewer it
//! would be another choice, so such a split counts as missing.

use std::collections::HashMap;

use togl_sweeps::spec::{Metric, Selection};

use crate::cells::{metric_column, rows_of_folds};
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::plan::Plan;
use crate::schema::SETTINGS;
use crate::select::ValidationView;

/// What is left after a choice.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The chosen runs, and all runs of trials without an alternative.
    pub frame: FoldFrame,
    /// One fold for each choice; cells are complete when each could be made.
    pub plan: Plan,
    /// What a reader must know.
    pub remark: String,
}

/// Chooses within each split; of equal runs the last in the frame's order wins.
pub fn choose(frame: &FoldFrame, plan: &Plan, selection: &Selection) -> Result<Chosen> {
    let families = Families::of(plan, &selection.among)?;
    let rows = rows_of_folds(frame, plan)?;
    let judged = judgements(&frame.validation()?, selection.by)?;
    let mut contests: HashMap<(usize, u32), Contest> = HashMap::new();
    for (at, (fold, row)) in plan.folds().iter().zip(&rows).enumerate() {
        if let Some(family) = families.contested(fold.trial) {
            let value = row.and_then(|row| judged[row].map(|value| (value, row)));
            contests.entry((family, fold.split)).or_default().enter(at, value);
        }
    }
    let mut chosen = families.renamed(plan)?;
    let mut at = 0;
    let mut kept_rows = Vec::new();
    chosen.retain(|fold| {
        let contest = families.contested(fold.trial).map(|family| &contests[&(family, fold.split)]);
        let kept = contest.is_none_or(|contest| contest.stands_for() == at);
        if let (true, Some(row)) = (kept, rows[at]) {
            let decided = contest.is_none_or(|contest| contest.winner().is_some());
            kept_rows.extend(decided.then_some(row));
        }
        at += 1;
        kept
    });
    let places: Vec<u32> = kept_rows.into_iter().filter_map(|row| u32::try_from(row).ok()).collect();
    Ok(Chosen { frame: frame.rows(&places)?, plan: chosen, remark: remark(selection) })
}

fn remark(selection: &Selection) -> String {
    let by = match selection.by {
        Metric::LastValidationAccuracy => "validation accuracy of the last epoch",
        _ => "validation accuracy of the best checkpoint",
    };
    format!(
        "chosen: in each split the best of {} by {by}, of equal runs the last; only where all of them have finished",
        selection.among.join(", ")
    )
}

fn judgements(view: &ValidationView<'_>, by: Metric) -> Result<Vec<Option<f64>>> {
    let name = metric_column(by);
    let hidden = |_| Error::UnknownChoice {
        what: "what decides a choice",
        name: name.to_owned(),
        hint: "use a validation metric".to_owned(),
    };
    let values = view.data().column(name).map_err(hidden)?.f64()?;
    Ok(values.iter().map(|value| value.filter(|value| !value.is_nan())).collect())
}

/// The candidates of one split.
#[derive(Default)]
struct Contest {
    first: Option<usize>,
    open: bool,
    /// Value, row of the result, place in the plan.
    best: Option<(f64, usize, usize)>,
}

impl Contest {
    fn enter(&mut self, at: usize, value: Option<(f64, usize)>) {
        self.first.get_or_insert(at);
        let Some((value, row)) = value else {
            self.open = true;
            return;
        };
        // Later rows win ties; rows of a frame are in its defined order.
        if self.best.is_none_or(|(best, before, _)| value > best || (value == best && row > before)) {
            self.best = Some((value, row, at));
        }
    }

    fn winner(&self) -> Option<usize> {
        self.best.filter(|_| !self.open).map(|(_, _, at)| at)
    }

    /// The planned fold that stands for this choice: its winner, or the first candidate while it is open.
    fn stands_for(&self) -> usize {
        self.winner().or(self.first).unwrap_or_default()
    }
}

/// Trials that differ only in what is chosen among.
struct Families {
    of_trial: Vec<usize>,
    members: Vec<Vec<usize>>,
    among: Vec<String>,
}

impl Families {
    fn of(plan: &Plan, among: &[String]) -> Result<Self> {
        let others: Vec<&str> = SETTINGS
            .iter()
            .map(|spec| spec.name)
            .filter(|name| !among.iter().any(|chosen| chosen == name))
            .collect();
        let mut known: HashMap<Vec<String>, usize> = HashMap::new();
        let (mut of_trial, mut members) = (Vec::new(), Vec::<Vec<usize>>::new());
        for trial in 0..plan.trials() {
            let settings = others.iter().map(|name| plan.label(trial, name)).collect::<Result<_>>()?;
            let family = *known.entry(settings).or_insert_with(|| {
                members.push(Vec::new());
                members.len() - 1
            });
            members[family].push(trial);
            of_trial.push(family);
        }
        Ok(Self { of_trial, members, among: among.to_vec() })
    }

    /// The family of a trial that has rivals in it.
    fn contested(&self, trial: usize) -> Option<usize> {
        Some(self.of_trial[trial]).filter(|family| self.members[*family].len() > 1)
    }

    /// One name for all members: the shortest, and that it is a choice.
    fn name(&self, plan: &Plan, family: usize) -> Result<String> {
        let names: Result<Vec<String>> =
            self.members[family].iter().map(|trial| plan.label(*trial, "method")).collect();
        let shortest = names?.into_iter().min_by_key(String::len).unwrap_or_default();
        Ok(format!("{shortest} [best of {}]", self.among.join(", ")))
    }

    fn renamed(&self, plan: &Plan) -> Result<Plan> {
        let mut renamed = plan.clone();
        for trial in 0..plan.trials() {
            if let Some(family) = self.contested(trial) {
                renamed.rename(trial, self.name(plan, family)?);
            }
        }
        Ok(renamed)
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
