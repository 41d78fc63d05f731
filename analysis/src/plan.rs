//! What a table expects: every planned fold with its settings, finished or not. The plan gives a table its rows,
//! its columns and their order, and tells an incomplete cell from a complete one. Holds no results.

use polars::prelude::*;
use togl_sweeps::{FoldKey, SweepSpec, TrialConfig};

use crate::columns::{Identity, identity_columns};
use crate::error::Result;
use crate::frame::FoldFrame;
use crate::schema::{KEYS, SETTINGS};

/// A trial that a plan contains, with its folds.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedFolds {
    /// The trial's place in the sweep.
    pub position: u64,
    /// Its settings as the sweep wrote them; tables take their labels from here.
    pub config: TrialConfig,
    /// The folds it is to have.
    pub folds: Vec<FoldKey>,
}

/// All planned folds, in the order of the sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    title: String,
    folds: DataFrame,
}

impl Plan {
    /// A plan from its trials.
    pub fn of_trials(title: &str, trials: &[PlannedFolds]) -> Result<Self> {
        let identities: Vec<Identity<'_>> = trials
            .iter()
            .flat_map(|trial| {
                trial.folds.iter().map(|fold| Identity {
                    position: trial.position,
                    fold: *fold,
                    config: &trial.config,
                })
            })
            .collect();
        let folds = DataFrame::new(identities.len(), identity_columns(&identities))?;
        Ok(Self { title: title.to_owned(), folds })
    }

    /// What a sweep plans.
    pub fn of_sweep(sweep: &SweepSpec) -> Result<Self> {
        let trials: Vec<PlannedFolds> = sweep
            .trials()?
            .into_iter()
            .map(|trial| PlannedFolds {
                position: trial.position,
                folds: sweep.folds_of(trial.id).collect(),
                config: trial.config,
            })
            .collect();
        Self::of_trials(sweep.name.as_str(), &trials)
    }

    /// The plan of a frame whose sweep is not known: exactly the folds that are there.
    pub fn of_frame(title: &str, frame: &FoldFrame) -> Result<Self> {
        let names = KEYS.iter().chain(&SETTINGS).map(|spec| spec.name);
        Ok(Self { title: title.to_owned(), folds: frame.data().select(names)? })
    }

    /// What the table is called: the sweep's name.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Number of planned folds.
    pub fn len(&self) -> usize {
        self.folds.height()
    }

    /// Whether nothing is planned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same plan with other names of methods.
    pub(crate) fn with_methods(&self, name: impl Fn(&str) -> String) -> Result<Self> {
        let methods = self.folds.column("method")?.str()?;
        let names: Vec<String> = methods.iter().map(|method| name(method.unwrap_or_default())).collect();
        let mut folds = self.folds.clone();
        folds.with_column(Column::new("method".into(), names))?;
        Ok(Self { title: self.title.clone(), folds })
    }

    /// The planned folds, for joining results to.
    pub(crate) fn folds(&self) -> LazyFrame {
        self.folds.clone().lazy()
    }
}
