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
    /// Finished candidates without the value that decides.
    pub without_value: usize,
    /// What a reader must know.
    pub remarks: Vec<String>,
}

/// Chooses within each split; of equal runs the last in the frame's order wins.
pub fn choose(frame: &FoldFrame, plan: &Plan, selection: &Selection) -> Result<Chosen> {
    let families = Families::of(plan, &selection.among)?;
    let rows = rows_of_folds(frame, plan)?;
    let judged = judgements(&frame.validation()?, selection.by)?;
    let (contests, without_value) = contests(plan, &families, &rows, &judged);
    if without_value > 0 && judged.iter().all(Option::is_none) {
        let group = vec![format!("best of {}", selection.among.join(", "))];
        return Err(Error::NothingToChoose { group, column: metric_column(selection.by).to_owned() });
    }
    let mut chosen = families.renamed(plan)?;
    let mut at = 0;
    let mut kept_rows = Vec::new();
    chosen.retain(|fold| {
        let contest = families.contested(fold.trial).map(|family| &contests[&(family, fold.split)]);
        let kept = contest.is_none_or(|contest| contest.stands_for() == at);
        if let (true, Some(row)) = (kept, rows[at]) {
            let decided = contest.is_none_or(|contest| contest.is_decided());
            kept_rows.extend(decided.then_some(row));
        }
        at += 1;
        kept
    });
    let places: Vec<u32> = kept_rows.into_iter().filter_map(|row| u32::try_from(row).ok()).collect();
    let remarks = remarks(selection, without_value);
    Ok(Chosen { frame: frame.rows(&places)?, plan: chosen, without_value, remarks })
}

/// The contests by family and split, and how many finished candidates have no value that decides.
fn contests(
    plan: &Plan,
    families: &Families,
    rows: &[Option<usize>],
    judged: &[Option<f64>],
) -> (HashMap<(usize, u32), Contest>, usize) {
    let mut contests: HashMap<(usize, u32), Contest> = HashMap::new();
    let mut without_value = 0;
    for (at, (fold, row)) in plan.folds().iter().zip(rows).enumerate() {
        let Some(family) = families.contested(fold.trial) else { continue };
        let value = row.and_then(|row| judged[row].map(|value| (value, row)));
        without_value += usize::from(row.is_some() && value.is_none());
        let contest = contests.entry((family, fold.split)).or_default();
        contest.enter(at, fold.trial, value);
    }
    for ((family, _), contest) in &mut contests {
        contest.open |= !contest.is_full(families.members[*family].len());
    }
    (contests, without_value)
}

fn remarks(selection: &Selection, without_value: usize) -> Vec<String> {
    let by = match selection.by {
        Metric::LastValidationAccuracy => "validation accuracy of the last epoch",
        _ => "validation accuracy of the best checkpoint",
    };
    let mut remarks = vec![format!(
        "chosen: in each split the best of {} by {by}, of equal runs the last; only where all of them have finished",
        selection.among.join(", ")
    )];
    if without_value > 0 {
        let column = metric_column(selection.by);
        remarks.push(format!(
            "no choice in splits where `{column}` is missing ({without_value} finished folds lack it)"
        ));
    }
    remarks
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
    /// How many runs each trial has here.
    runs: HashMap<usize, usize>,
    /// Value, row of the result, place in the plan.
    best: Option<(f64, usize, usize)>,
}

impl Contest {
    fn enter(&mut self, at: usize, trial: usize, value: Option<(f64, usize)>) {
        self.first.get_or_insert(at);
        *self.runs.entry(trial).or_default() += 1;
        let Some((value, row)) = value else {
            self.open = true;
            return;
        };
        // Later rows win ties; rows of a frame are in its defined order.
        if self.best.is_none_or(|(best, before, _)| value > best || (value == best && row > before)) {
            self.best = Some((value, row, at));
        }
    }

    /// Whether all members of the family are here with the same number of runs. Saved folds have no plan that would say
    /// what is missing; that one candidate has what another lacks does.
    fn is_full(&self, members: usize) -> bool {
        let most = self.runs.values().max();
        self.runs.len() == members && self.runs.values().all(|runs| Some(runs) == most)
    }

    fn is_decided(&self) -> bool {
        self.winner().is_some()
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
