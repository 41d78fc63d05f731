//! What a table expects: every planned fold with its trial, finished or not. The plan gives a table its rows, its
//! columns and their order, and tells an incomplete cell from a complete one. Settings are kept once a trial, not once
//! a fold, because there may be a million folds. Holds no results.

use std::collections::{BTreeSet, HashMap, HashSet};

use polars::prelude::DataFrame;
use togl_sweeps::race::Race;
use togl_sweeps::{FoldKey, Scale, SweepSpec, TrialConfig, TrialId, settings};

use crate::columns::{self, is_among};
use crate::distinct::Distinct;
use crate::error::{Error, Result, listed};
use crate::frame::FoldFrame;
use crate::schema::{self, KEYS, SETTINGS};
use crate::stopped::StoppedTrials;

/// All planned folds, in the order of the sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    title: String,
    trials: Vec<Trial>,
    /// In the order of (position, split, seed, trial).
    folds: Vec<PlannedFold>,
    /// Frames that settings are looked up in, for trials whose sweep is not known.
    sources: Vec<DataFrame>,
    /// Who races with whom, if anybody does.
    race: Option<Race>,
    /// Whom that has stopped; nobody before [`Plan::judged`].
    stopped: StoppedTrials,
}

/// One trial of a plan.
#[derive(Debug, Clone, PartialEq)]
struct Trial {
    id: TrialId,
    settings: Settings,
    /// What it is called, where that is not what its settings say.
    method: Option<String>,
}

/// Where the settings of a trial are.
#[derive(Debug, Clone, PartialEq)]
enum Settings {
    /// As the sweep wrote them.
    Written(Box<TrialConfig>),
    /// In a row of one of the plan's sources.
    Row { source: usize, row: usize },
}

/// One fold of a plan; `trial` is the place of its trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlannedFold {
    pub position: u64,
    pub trial: usize,
    pub split: u32,
    pub seed: u64,
}

impl Plan {
    /// What a sweep plans.
    pub fn of_sweep(sweep: &SweepSpec) -> Self {
        let mut plan = Self::empty(sweep.name.as_str());
        for trial in &sweep.trials {
            plan.add(trial.position, trial.id, trial.config.clone(), sweep.folds_of(trial.id));
        }
        plan.race = sweep.race();
        plan.sort();
        plan
    }

    /// What the values of its results are, as its sweep says; none if that is not known.
    pub(crate) fn scale(&self) -> Option<&Scale> {
        self.trials.iter().find_map(|trial| match &trial.settings {
            Settings::Written(config) => Some(config.scale()),
            Settings::Row { .. } => None,
        })
    }

    /// The race of its sweep.
    pub(crate) fn race(&self) -> Option<&Race> {
        self.race.as_ref()
    }

    /// The same plan, which knows whom its race has stopped by the results of a whole frame. To be asked before anything is
    /// filtered or chosen, because the rivals of a trial decide.
    pub(crate) fn judged(&self, frame: &FoldFrame) -> Result<Self> {
        let mut judged = Self { stopped: StoppedTrials::of(frame, self)?, ..self.clone() };
        judged.folds.retain(|fold| !judged.stopped.hides(judged.trials[fold.trial].id));
        Ok(judged)
    }

    /// The setting that grows from rung to rung, if its sweep has a halving.
    pub(crate) fn grows(&self) -> Option<&'static str> {
        self.race.as_ref()?.rungs.as_ref().map(|rungs| rungs.over)
    }

    /// The results of a frame but those of rungs that no table shows.
    pub(crate) fn visible(&self, frame: &FoldFrame) -> Result<FoldFrame> {
        if self.grows().is_none() {
            return Ok(frame.clone());
        }
        let keys = frame.keys()?;
        frame.only(&keys.into_iter().filter(|key| !self.stopped.hides(key.trial)).collect::<Vec<_>>())
    }

    /// Whom the race has stopped.
    pub(crate) fn stopped(&self) -> &StoppedTrials {
        &self.stopped
    }

    /// The plan of a frame whose sweep is not known: exactly the folds that are there.
    pub fn of_frame(title: &str, frame: &FoldFrame) -> Result<Self> {
        Self::empty(title).with_frame(frame)
    }

    /// This plan, and after it the folds of a frame that it does not have.
    pub fn with_frame(mut self, frame: &FoldFrame) -> Result<Self> {
        let others = frame.data().columns().iter().map(|column| column.name().as_str());
        let others = others.filter(|name| !schema::columns().any(|spec| spec.name == *name));
        let names = KEYS.iter().chain(&SETTINGS).map(|spec| spec.name).chain(others);
        self.sources.push(frame.data().select(names)?);
        let source = self.sources.len() - 1;
        let next = self.folds.last().map_or(0, |last| last.position + 1);
        let known: HashSet<(usize, u32, u64)> =
            self.folds.iter().map(|fold| (fold.trial, fold.split, fold.seed)).collect();
        let mut places = self.places();
        let positions = columns::positions(frame.data())?;
        for (row, (position, key)) in positions.into_iter().zip(frame.keys()?).enumerate() {
            let trial = *places.entry(key.trial).or_insert_with(|| {
                self.trials.push(Trial {
                    id: key.trial,
                    settings: Settings::Row { source, row },
                    method: None,
                });
                self.trials.len() - 1
            });
            if !known.contains(&(trial, key.split, key.seed)) {
                let position = next + position;
                self.folds.push(PlannedFold { position, trial, split: key.split, seed: key.seed });
            }
        }
        self.sort();
        Ok(self)
    }

    /// Only the folds whose trials have one of the given values in each of the given settings. A condition that leaves
    /// nothing of a plan is refused: it is misspelt, or about another sweep.
    pub fn filtered(&self, filter: &[(String, Vec<String>)]) -> Result<Self> {
        let mut plan = self.clone();
        for (name, values) in filter {
            self.check_label(name)?;
            let labels: Vec<String> =
                (0..self.trials.len()).map(|trial| self.label(trial, name)).collect::<Result<_>>()?;
            let kept: Vec<bool> = labels.iter().map(|label| is_among(label, values)).collect();
            let before = plan.folds.clone();
            plan.folds.retain(|fold| kept[fold.trial]);
            if plan.folds.is_empty() && !before.is_empty() {
                let there = Distinct::of(before.iter().map(|fold| labels[fold.trial].clone()));
                let (asked, there) = (listed(values), listed(&there));
                return Err(Error::Unfit(format!(
                    "no trial is left where `{name}` is {asked}; here it is {there}"
                )));
            }
        }
        Ok(plan)
    }

    /// What the table is called: the sweep's name.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Number of planned folds.
    pub fn len(&self) -> usize {
        self.folds.len()
    }

    /// Whether nothing is planned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn empty(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            trials: Vec::new(),
            folds: Vec::new(),
            sources: Vec::new(),
            race: None,
            stopped: StoppedTrials::default(),
        }
    }

    /// Adds a trial and its folds; whoever adds sorts in the end.
    pub(crate) fn add(
        &mut self,
        position: u64,
        id: TrialId,
        config: TrialConfig,
        folds: impl Iterator<Item = FoldKey>,
    ) {
        let trial = self.trials.len();
        self.trials.push(Trial { id, settings: Settings::Written(Box::new(config)), method: None });
        let planned = |fold: FoldKey| PlannedFold { position, trial, split: fold.split, seed: fold.seed };
        self.folds.extend(folds.map(planned));
    }

    /// Puts the folds in their defined order.
    pub(crate) fn sort(&mut self) {
        let ids: Vec<TrialId> = self.trials.iter().map(|trial| trial.id).collect();
        self.folds.sort_by_key(|fold| (fold.position, fold.split, fold.seed, ids[fold.trial]));
    }

    /// The same plan with other names of methods.
    pub(crate) fn with_methods(&self, name: impl Fn(&str) -> String) -> Result<Self> {
        let mut plan = self.clone();
        for (at, trial) in plan.trials.iter_mut().enumerate() {
            trial.method = Some(name(&self.label(at, "method")?));
        }
        Ok(plan)
    }

    /// Gives one trial another name.
    pub(crate) fn rename(&mut self, trial: usize, method: String) {
        self.trials[trial].method = Some(method);
    }

    /// Only the folds for which `keep` holds.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&PlannedFold) -> bool) {
        self.folds.retain(keep);
    }

    /// The planned folds, in order.
    pub(crate) fn folds(&self) -> &[PlannedFold] {
        &self.folds
    }

    /// How many trials there are; a trial is named by its place.
    pub(crate) fn trials(&self) -> usize {
        self.trials.len()
    }

    /// Whether a trial is known from its saved folds only, so that nobody knows what was planned for it.
    pub(crate) fn is_saved(&self, trial: usize) -> bool {
        matches!(self.trials[trial].settings, Settings::Row { .. })
    }

    /// The key of a fold.
    pub(crate) fn key(&self, fold: &PlannedFold) -> FoldKey {
        FoldKey { trial: self.trials[fold.trial].id, split: fold.split, seed: fold.seed }
    }

    /// The trials that have a fold; a filter leaves others without.
    pub(crate) fn trials_with_folds(&self) -> BTreeSet<usize> {
        self.folds.iter().map(|fold| fold.trial).collect()
    }

    /// The identity of a trial.
    pub(crate) fn id(&self, trial: usize) -> TrialId {
        self.trials[trial].id
    }

    /// Whether some of these trials have different values of a setting.
    pub(crate) fn differs(&self, trials: &[usize], name: &str) -> Result<bool> {
        let Some((first, others)) = trials.split_first() else { return Ok(false) };
        let first = self.label(*first, name)?;
        for other in others {
            if self.label(*other, name)? != first {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The settings in which some of these trials differ, in the order of the schema.
    pub(crate) fn varied(&self, trials: &[usize]) -> Result<Vec<String>> {
        let mut varied = Vec::new();
        for name in self.settings() {
            if self.differs(trials, &name)? {
                varied.push(name);
            }
        }
        Ok(varied)
    }

    /// The names of all settings of its trials: ours, and what programs declare.
    pub(crate) fn settings(&self) -> Vec<String> {
        let written = self.trials.iter().filter_map(|trial| match &trial.settings {
            Settings::Written(config) => Some(config.as_ref()),
            Settings::Row { .. } => None,
        });
        settings::names_of(written)
    }

    /// Refuses a name that cannot make rows or columns of a table of these trials.
    pub(crate) fn check_label(&self, name: &str) -> Result<()> {
        let saved = || self.sources.iter().any(|source| source.column(name).is_ok());
        if self.settings().iter().any(|known| known == name) || saved() {
            return Ok(());
        }
        schema::check_label(name)
    }

    /// The place of every trial.
    pub(crate) fn places(&self) -> HashMap<TrialId, usize> {
        self.trials.iter().enumerate().map(|(at, trial)| (trial.id, at)).collect()
    }

    /// The values of several settings of a trial.
    pub(crate) fn labels(&self, trial: usize, names: &[impl AsRef<str>]) -> Result<Vec<String>> {
        names.iter().map(|name| self.label(trial, name.as_ref())).collect()
    }

    /// The value of a setting, or the method, as tables spell it.
    pub(crate) fn label(&self, trial: usize, name: &str) -> Result<String> {
        let trial = &self.trials[trial];
        if let (Some(method), "method") = (&trial.method, name) {
            return Ok(method.clone());
        }
        match &trial.settings {
            Settings::Written(config) => Ok(config.show(name).unwrap_or_default()),
            Settings::Row { source, row } => match self.sources[*source].column(name) {
                Ok(column) => Ok(columns::label(&column.get(*row)?)),
                Err(_) => Ok(String::new()), // declared by the program of another trial
            },
        }
    }
}
