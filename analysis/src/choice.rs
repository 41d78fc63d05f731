//! The choice of a table block (`select`): of the trials that differ only in the named settings, the one with the best
//! validation value, within each split or once for all of them. Owns what is chosen among and what the plan is
//! afterwards; reads validation columns only, through [`ValidationView`]. Within a split a choice is made only where all
//! candidates have finished: with fewer it would be another choice, so such a split counts as missing. A configuration
//! is chosen among those that have finished, because a search seldom finishes whole, and its cell says so.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use togl_sweeps::spec::{Metric, Per, Selection, TableSpec};
use togl_sweeps::{FoldKey, Scale, TrialId};

use crate::cells::rows_of_folds;
use crate::distinct::Distinct;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::level::SAME_SPLITS;
use crate::plan::Plan;
use crate::scales;
use crate::statistics::Summary;
#[cfg(doc)]
use crate::validation::ValidationView;

/// What is left after a choice.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The chosen runs, and all runs of trials without an alternative.
    pub frame: FoldFrame,
    /// One fold for each choice; cells are complete when each could be made.
    pub plan: Plan,
    /// Finished candidates without the value that decides, or choices that cannot be made yet.
    pub without_value: usize,
    /// What a reader must know.
    pub remarks: Vec<String>,
    /// The settings that were chosen among, in the order of the schema.
    pub among: Vec<String>,
    /// Chosen trials with rivals that have not finished.
    pub of_fewer: HashSet<TrialId>,
}

/// Makes the choice for a table with these rows and columns; of equal ones the last in the frame's order wins.
pub fn choose(frame: &FoldFrame, plan: &Plan, selection: &Selection, spec: &TableSpec) -> Result<Chosen> {
    let labels: Vec<&str> =
        spec.rows.iter().chain([&spec.columns]).chain(&spec.group).map(String::as_str).collect();
    let mut among = match &selection.among {
        Some(among) => among.clone(),
        None => searched(plan, &labels)?,
    };
    // Who was stopped on a lower rung is a rival of those who went on, and has lost.
    among.extend(plan.grows().filter(|over| !among.iter().any(|name| name == over)).map(str::to_owned));
    match selection.per {
        Per::Split => in_each_split(frame, plan, selection.by, among),
        Per::Config => one_config(frame, plan, selection.by, among, &labels),
    }
}

/// The settings in which trials differ and that no row or column names. What the data are is never searched.
fn searched(plan: &Plan, labels: &[&str]) -> Result<Vec<String>> {
    let trials: Vec<usize> = plan.trials_with_folds().into_iter().collect();
    let mut searched = plan.varied(&trials)?;
    searched.retain(|name| !labels.contains(&name.as_str()) && !SAME_SPLITS.contains(&name.as_str()));
    Ok(searched)
}

/// Chooses one trial of each family by the mean of all its folds.
fn one_config(
    frame: &FoldFrame,
    plan: &Plan,
    by: Metric,
    among: Vec<String>,
    labels: &[&str],
) -> Result<Chosen> {
    let scale = scales::of_table(frame, plan, by)?;
    let families = Families::of(plan, &among, labels)?;
    let trials = candidates(frame, plan, by)?;
    let stopped = plan.stopped();
    let (mut lost, mut open, mut of_fewer) =
        (vec![false; plan.trials()], vec![false; plan.trials()], HashSet::new());
    for members in families.members.iter().filter(|members| members.len() > 1) {
        // Saved folds have no plan: what one candidate has and another lacks is missing.
        let planned = members.iter().map(|trial| trials[*trial].planned).max().unwrap_or_default();
        // Who was stopped by a race has lost it.
        let is_stopped = |trial: usize| stopped.contains(plan.id(trial));
        let finished =
            |trial: &&usize| planned > 0 && trials[**trial].values.len() == planned && !is_stopped(**trial);
        let best = members.iter().filter(finished).copied().max_by(|a, b| trials[*a].compare(&trials[*b]));
        let stands_for = best.or(members.first().copied());
        members.iter().filter(|trial| Some(**trial) != stands_for).for_each(|trial| lost[*trial] = true);
        let is_over = |trial: &usize| finished(&trial) || is_stopped(*trial);
        if let Some(best) = best.filter(|_| !members.iter().all(is_over)) {
            of_fewer.insert(plan.id(best));
        }
        // Nothing can be chosen yet: the cell is there, and none of the results is shown.
        stands_for.filter(|_| best.is_none()).into_iter().for_each(|trial| open[trial] = true);
    }
    let mut chosen = plan.clone();
    chosen.retain(|fold| !lost[fold.trial]);
    let shown = chosen.folds().iter().filter(|fold| !open[fold.trial]);
    let all = frame;
    let frame = frame.only(&shown.map(|fold| chosen.key(fold)).collect::<Vec<FoldKey>>())?;
    let without_value = open.iter().filter(|open| **open).count();
    if without_value > 0 && !all.is_empty() && trials.iter().all(|trial| trial.values.is_empty()) {
        return Err(nothing_to_choose(by, &among));
    }
    let remarks = match among.as_slice() {
        [] => {
            vec!["nothing was chosen: rows and columns name all settings in which trials differ".to_owned()]
        }
        among => vec![format!(
            "chosen: for each cell one configuration, the best of {} by the mean {} over all its folds",
            among.join(", "),
            validation_words(by, &scale)
        )],
    };
    Ok(Chosen { frame, plan: chosen, without_value, remarks, among, of_fewer })
}

fn nothing_to_choose(by: Metric, among: &[String]) -> Error {
    Error::nothing_to_choose(&[format!("best of {}", among.join(", "))], by.as_str())
}

/// A trial among its rivals.
#[derive(Clone, Default)]
pub(crate) struct Candidate {
    /// Folds that it is to have.
    pub planned: usize,
    /// The validation values of those that have finished.
    pub values: Vec<f64>,
    last_row: usize,
}

/// What is known of each trial of a plan.
pub(crate) fn candidates(frame: &FoldFrame, plan: &Plan, by: Metric) -> Result<Vec<Candidate>> {
    let judged = frame.validation()?.values(by)?;
    let mut trials: Vec<Candidate> = vec![Candidate::default(); plan.trials()];
    for (fold, row) in plan.folds().iter().zip(rows_of_folds(frame, plan)?) {
        let trial = &mut trials[fold.trial];
        trial.planned += 1;
        if let Some((value, row)) = row.and_then(|row| judged[row].map(|value| (value, row))) {
            trial.values.push(value);
            trial.last_row = trial.last_row.max(row);
        }
    }
    Ok(trials)
}

impl Candidate {
    /// By the mean; of equal ones the later row is the better.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let mean = |candidate: &Self| Summary::of(&candidate.values).mean.unwrap_or(f64::NEG_INFINITY);
        mean(self).total_cmp(&mean(other)).then(self.last_row.cmp(&other.last_row))
    }
}

/// Chooses within each split.
fn in_each_split(frame: &FoldFrame, plan: &Plan, by: Metric, among: Vec<String>) -> Result<Chosen> {
    let mut plan = plan.clone();
    if plan.grows().is_some() {
        let stopped = plan.stopped().clone();
        let ids: Vec<TrialId> = (0..plan.trials()).map(|trial| plan.id(trial)).collect();
        plan.retain(|fold| !stopped.contains(ids[fold.trial]));
    }
    let plan = &plan;
    let families = Families::of(plan, &among, &[])?;
    let rows = rows_of_folds(frame, plan)?;
    let judged = frame.validation()?.values(by)?;
    let (contests, without_value) = contests(plan, &families, &rows, &judged);
    if without_value > 0 && judged.iter().all(Option::is_none) {
        return Err(nothing_to_choose(by, &among));
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
    let remarks = remarks(by, &scales::of_table(frame, plan, by)?, &among, without_value);
    let of_fewer = HashSet::new();
    Ok(Chosen { frame: frame.rows(&places)?, plan: chosen, without_value, remarks, among, of_fewer })
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

pub(crate) fn validation_words(by: Metric, scale: &Scale) -> String {
    let when = match by {
        Metric::LastValidationAccuracy => "the last epoch",
        _ => "the best checkpoint",
    };
    format!("validation {} of {when}", scale.name)
}

fn remarks(by: Metric, scale: &Scale, among: &[String], without_value: usize) -> Vec<String> {
    let mut remarks = vec![format!(
        "chosen: in each split the best of {} by {}, of equal runs the last; only where all of them have finished",
        among.join(", "),
        validation_words(by, scale)
    )];
    if without_value > 0 {
        remarks.push(format!(
            "no choice in splits where `{}` is missing ({without_value} finished folds lack it)",
            by.as_str()
        ));
    }
    remarks
}

/// The candidates of one split.
#[derive(Default)]
pub(crate) struct Contest {
    first: Option<usize>,
    open: bool,
    /// How many runs each trial has here.
    runs: HashMap<usize, usize>,
    /// Value, row of the result, place of the candidate.
    best: Option<(f64, usize, usize)>,
}

impl Contest {
    /// Enters the run of a trial by its place, with its value and the row that it stands in, if it has one.
    pub(crate) fn enter(&mut self, at: usize, trial: usize, value: Option<(f64, usize)>) {
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
    pub(crate) fn is_full(&self, members: usize) -> bool {
        let most = self.runs.values().max();
        self.runs.len() == members && self.runs.values().all(|runs| Some(runs) == most)
    }

    /// The best of those that have a value, whoever else is missing.
    pub(crate) fn best(&self) -> Option<usize> {
        self.best.map(|(_, _, at)| at)
    }

    fn winner(&self) -> Option<usize> {
        self.best().filter(|_| !self.open)
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
    /// Trials that share a family also share the labels of a table.
    fn of(plan: &Plan, among: &[String], labels: &[&str]) -> Result<Self> {
        let others: Vec<String> = plan
            .settings()
            .into_iter()
            .filter(|name| !among.contains(name))
            .chain(labels.iter().map(|label| (*label).to_owned()))
            .collect();
        let mut families: Distinct<Vec<String>> = Distinct::default();
        let family = |trial: usize| Ok(families.place(plan.labels(trial, &others)?));
        let of_trial: Vec<usize> = (0..plan.trials()).map(family).collect::<Result<_>>()?;
        let mut members = vec![Vec::new(); families.in_order.len()];
        // A filter leaves trials without folds behind.
        for trial in plan.trials_with_folds() {
            members[of_trial[trial]].push(trial);
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
