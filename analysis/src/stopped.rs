//! Which trials of a plan the race of its sweep has stopped, and which of their folds a table shows: those of the splits that were
//! compared. Follows from the results of a frame, as the coordinator's own decision does (`togl_sweeps::race`). A frame does not
//! say which folds have failed: where one has, the races of its group are not followed further, and its trials are incomplete.

use std::collections::{HashMap, HashSet};

use togl_sweeps::race::{Outcome, run};
use togl_sweeps::{FoldKey, TrialId};

use crate::error::Result;
use crate::frame::FoldFrame;
use crate::plan::Plan;
use crate::replay::scores;

/// Trials that a race has stopped, with the splits that count.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StoppedTrials(HashMap<TrialId, HashSet<u32>>);

impl StoppedTrials {
    /// Of the sweep that a plan is of; nobody where it has no race.
    pub(crate) fn of(frame: &FoldFrame, plan: &Plan) -> Result<Self> {
        let Some(race) = plan.race() else { return Ok(Self::default()) };
        let scores = scores(frame, race.by, None)?;
        let outcome =
            |fold: &FoldKey| scores.get(fold).map_or(Outcome::Open, |score| Outcome::Scored(*score));
        let mut stopped = HashMap::new();
        for group in &race.groups {
            let heat = run(race, group, outcome);
            for (place, trial) in group.trials.iter().enumerate() {
                if let Some(stop) = heat.stop(place) {
                    let splits = group.splits.iter().take(stop.look as usize).map(|(split, _)| *split);
                    stopped.insert(*trial, splits.collect());
                }
            }
        }
        Ok(Self(stopped))
    }

    /// Whether a trial is stopped.
    pub(crate) fn contains(&self, trial: TrialId) -> bool {
        self.0.contains_key(&trial)
    }

    /// Whether a fold came too late to count.
    pub(crate) fn leaves_out(&self, fold: &FoldKey) -> bool {
        self.0.get(&fold.trial).is_some_and(|splits| !splits.contains(&fold.split))
    }
}

#[cfg(test)]
mod tests {
    use togl_sweeps::SweepSpec;
    use togl_sweeps::spec::{Metric, Per, Selection, TableSpec};

    use super::*;
    use crate::emphasis::Emphasis;
    use crate::frame::FoldRow;
    use crate::table::{Mark, Table};
    use crate::test_folds::{folds, frame};

    const SWEEP: &str = "version: 1\nname: raced\nbase: {dataset: DD}\ngrid: {lr: [0.1, 0.2]}\nsplits: {from: 0, to: 7}\n\
                         race: {among: [lr]}\n";

    /// The good trial on all splits; the bad one on those that were compared, and on one that came late and was perfect.
    fn raced(spec: &SweepSpec) -> FoldFrame {
        let mut rows: Vec<FoldRow> =
            folds(0, &spec.trials[0].config, &[0.75, 0.8, 0.7, 0.75, 0.8, 0.7, 0.75, 0.8]);
        rows.extend(folds(1, &spec.trials[1].config, &[0.25, 0.3, 0.2, 0.25, 1.0]));
        frame(rows)
    }

    #[test]
    fn a_stopped_trial_shows_the_splits_that_were_compared_with_its_sign_and_competes_for_nothing() {
        let spec = SweepSpec::parse(SWEEP).expect("a sweep");
        let (frame, plan) = (raced(&spec), Plan::of_sweep(&spec));
        let rows = TableSpec { rows: vec!["lr".to_owned()], ..TableSpec::default() };
        let table = Table::of_block(&frame, &plan, &rows, None).expect("a table");
        let table = table.with_emphasis(Emphasis::NotSignificantlyWorse, &frame).expect("tested");
        let cell = &table.rows[1].cells[0];
        assert_eq!((cell.n, cell.planned, cell.mean), (4, 8, Some(25.0)));
        assert_eq!(cell.marks.iter().copied().collect::<Vec<_>>(), [Mark::Stopped]);
        assert!(!cell.is_complete() && !cell.stands_out() && table.rows[0].cells[0].best);
        assert!(table.remarks.iter().all(|remark| !remark.contains("not tested")), "{:?}", table.remarks);
    }

    #[test]
    fn a_choice_of_a_configuration_is_no_choice_among_fewer_because_a_race_has_stopped_some() {
        let spec = SweepSpec::parse(SWEEP).expect("a sweep");
        let (frame, plan) = (raced(&spec), Plan::of_sweep(&spec));
        let selection = Selection { among: None, by: Metric::ValidationAccuracy, per: Per::Config };
        let table = Table::of_block(&frame, &plan, &TableSpec::default(), Some(&selection)).expect("a table");
        let cell = &table.rows[0].cells[0];
        assert!(cell.marks.is_empty() && cell.is_complete() && cell.n == 8, "{cell:?}");
    }
}
