//! A sweep with its finished folds, as tables, figures and reports take them: every result at its trial's place in the
//! sweep. Text, results, failures and further results belong to one state. Computes no numbers.

use std::collections::HashMap;

use togl_analysis::PagedFolds;
use togl_analysis::frame::{FoldFrame, FoldRow};
use togl_analysis::report::{ReportedFailure, ReportedReplicate};
use togl_coordinator::store::reading::{Fact, FoldsWanted, Wanted};
use togl_coordinator::store::{self, FoldFilter, FoldState, FoldWord, ResultRow, StoredFold};
use togl_sweeps::spec::PlannedTrial;
use togl_sweeps::{SweepSpec, TrialId, WorkerId};

use super::{Facts, sweep_name};
use crate::problem::Problem;
use crate::reading::ReadSoFar;

/// How much is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// What a table needs: the frame.
    Frame,
    /// The rows too, with learning curves.
    Curves,
    /// Failures and further results on top.
    Outcomes,
}

/// A sweep and its finished folds.
pub struct Collected {
    /// The sweep as it was submitted.
    pub spec: SweepSpec,
    /// Its text.
    pub yaml: String,
    /// Its finished folds, with learning curves; none if only the frame was wanted.
    pub rows: Vec<FoldRow>,
    /// The same folds as a frame: one row each, in their defined order.
    pub frame: FoldFrame,
    /// Folds that were given up, if they were wanted.
    pub failures: Vec<ReportedFailure>,
    /// Results beside the ones that count, if they were wanted.
    pub replicates: Vec<ReportedReplicate>,
}

/// Reads a sweep.
pub async fn collected(facts: &mut dyn Facts, sweep: &str, depth: Depth) -> Result<Collected, Problem> {
    let failed = FoldFilter { states: vec![FoldWord::Failed], ..FoldFilter::default() };
    let outcomes = depth >= Depth::Outcomes;
    let wanted = Wanted {
        sweep: Some(sweep_name(sweep)?),
        results: true,
        results_of: Vec::new(),
        curves: depth >= Depth::Curves,
        replicates: outcomes,
        folds: outcomes.then(|| FoldsWanted { filter: failed, ..FoldsWanted::default() }),
    };
    let mut pile = Pile::new(depth);
    let mut so_far = ReadSoFar::new();
    facts
        .read(wanted, &mut |fact| {
            so_far.note(&fact);
            let is_sweep = matches!(fact, Fact::Sweep(_));
            pile.add(fact)?;
            pile.sweep.iter().filter(|_| is_sweep).for_each(|(spec, _)| so_far.expect(spec.count_folds()));
            Ok(())
        })
        .await?;
    drop(so_far);
    pile.collected()
}

/// Facts of one sweep as they come in.
struct Pile {
    depth: Depth,
    sweep: Option<(SweepSpec, String)>,
    places: HashMap<TrialId, PlannedTrial>,
    /// Where only the frame is wanted, they become columns as they come.
    folds: PagedFolds,
    rows: Vec<FoldRow>,
    failures: Vec<ReportedFailure>,
    replicates: Vec<ReportedReplicate>,
}

impl Pile {
    fn new(depth: Depth) -> Self {
        let (folds, rows) = (PagedFolds::default(), Vec::new());
        let (failures, replicates) = (Vec::new(), Vec::new());
        Self { depth, sweep: None, places: HashMap::new(), folds, rows, failures, replicates }
    }

    fn add(&mut self, fact: Fact) -> Result<(), Problem> {
        match fact {
            Fact::Sweep(stored) => {
                let spec = SweepSpec::parse(&stored.yaml).map_err(|error| {
                    Problem::ours(format!("the stored sweep file cannot be read any more: {error}"))
                })?;
                self.places = spec.trials.iter().map(|trial| (trial.id, trial.clone())).collect();
                self.sweep = Some((spec, stored.yaml));
            }
            Fact::Result(row) => {
                let Some(trial) = self.places.get(&row.fold.trial) else { return Ok(()) };
                match self.depth {
                    Depth::Frame => self.folds.push(at(trial, *row)).map_err(Problem::ours)?,
                    Depth::Curves | Depth::Outcomes => self.rows.push(at(trial, *row)),
                }
            }
            Fact::Fold(fold) => self.failures.extend(failure(*fold)),
            Fact::Replicate(row) => self.replicates.push(told(&row)),
            Fact::Folds { .. } => {}
        }
        Ok(())
    }

    fn collected(self) -> Result<Collected, Problem> {
        let Self { sweep, depth, places: _, folds, rows, failures, replicates } = self;
        let (spec, yaml) = sweep.ok_or_else(|| Problem::ours("nothing was said of the sweep"))?;
        let (frame, rows) = match depth {
            Depth::Frame => (folds.frame(), Vec::new()),
            Depth::Curves | Depth::Outcomes => (FoldFrame::from_rows(rows.iter().cloned()), rows),
        };
        let frame = frame.map_err(Problem::ours)?;
        Ok(Collected { spec, yaml, rows, frame, failures, replicates })
    }
}

/// A result at its trial's place.
pub fn at(trial: &PlannedTrial, row: ResultRow) -> FoldRow {
    FoldRow {
        position: trial.position,
        fold: row.fold,
        config: trial.config.clone(),
        attempt: row.attempt.0,
        worker: row.worker.to_string(),
        result: row.result,
    }
}

fn failure(fold: StoredFold) -> Option<ReportedFailure> {
    let FoldState::Failed(failure) = fold.state else { return None };
    Some(ReportedFailure {
        fold: fold.fold.to_string(),
        attempts: fold.attempts,
        worker: fold.worker.as_ref().map(WorkerId::to_string).unwrap_or_default(),
        class: failure.class.to_string(),
        message: failure.message,
    })
}

fn told(row: &store::replicates::Replicate) -> ReportedReplicate {
    let counted = row.counted.as_ref(); // the one that counted may have been set aside since
    ReportedReplicate {
        fold: row.fold.to_string(),
        attempt: row.attempt.0,
        worker: row.worker.to_string(),
        kind: row.kind.as_str().to_owned(),
        same: counted.map(|counted| counted.differences.is_empty()),
        test_accuracy: Some(row.test_accuracy),
        counted: counted.map(|counted| counted.test_accuracy),
    }
}
