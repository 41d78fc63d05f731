//! Which trials of a plan the race of its sweep has stopped, and which of their folds a table shows: those of the splits that were
//! compared; of a halving the rung that a trial has come to, and no lower one. Follows from the results of a frame, as the
//! coordinator's own decision does (`togl_sweeps::race`). A frame does not say which folds have failed: where one has, the races of
//! its group are not followed further, and its trials are incomplete.

use std::collections::{BTreeMap, HashMap, HashSet};

use togl_sweeps::race::{FoldStanding, Heat, RaceGroup, run};
use togl_sweeps::{FoldKey, TrialId};

use crate::error::Result;
use crate::frame::FoldFrame;
use crate::plan::Plan;
use crate::replay::scores;

/// Trials that a race has stopped, with the splits that count.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StoppedTrials {
    stopped: HashMap<TrialId, HashSet<u32>>,
    /// Rungs of a halving that are not the last one that their trial has come to.
    hidden: HashSet<TrialId>,
    /// How many trials a halving has stopped after each of its rungs.
    dropped: BTreeMap<u32, usize>,
}

impl StoppedTrials {
    /// Of the sweep that a plan is of; nobody where it has no race.
    pub(crate) fn of(frame: &FoldFrame, plan: &Plan) -> Result<Self> {
        let Some(race) = plan.race() else { return Ok(Self::default()) };
        let scores = scores(frame, race.by, None)?;
        let outcome = |fold: &FoldKey| {
            scores.get(fold).map_or(FoldStanding::Open, |score| FoldStanding::Scored(*score))
        };
        let mut all = Self::default();
        for group in &race.groups {
            let heat = run(race, group, outcome);
            match group.is_halving() {
                true => all.note_halving(group, &heat),
                false => all.note_race(group, &heat),
            }
        }
        Ok(all)
    }

    fn note_race(&mut self, group: &RaceGroup, heat: &Heat) {
        for (place, trial) in group.trials.iter().enumerate() {
            if let Some(stop) = heat.stop(place) {
                let splits = group.splits.iter().take(stop.look as usize).map(|(split, _)| *split);
                self.stopped.insert(*trial, splits.collect());
            }
        }
    }

    /// Of each place one rung is shown: the one that it was stopped after, else the one that it has come to.
    fn note_halving(&mut self, group: &RaceGroup, heat: &Heat) {
        for (place, rung, trial) in group.all() {
            let stop = heat.stop(place);
            let shown = stop.map_or(heat.looks() as usize, |stop| stop.look as usize - 1);
            if rung != shown {
                self.hidden.insert(trial);
            } else if let Some(stop) = stop {
                self.stopped.insert(trial, group.splits.iter().map(|(split, _)| *split).collect());
                *self.dropped.entry(stop.look).or_default() += 1;
            }
        }
    }

    /// Whether a trial is stopped.
    pub(crate) fn contains(&self, trial: TrialId) -> bool {
        self.stopped.contains_key(&trial)
    }

    /// Whether a trial is a rung of a halving that no table shows.
    pub(crate) fn hides(&self, trial: TrialId) -> bool {
        self.hidden.contains(&trial)
    }

    /// Whether a fold came too late to count.
    pub(crate) fn leaves_out(&self, fold: &FoldKey) -> bool {
        self.stopped.get(&fold.trial).is_some_and(|splits| !splits.contains(&fold.split))
    }

    /// What the sign of a stopped trial means in a sweep with a halving.
    pub(crate) fn remark(&self, plan: &Plan) -> Option<String> {
        let rungs = plan.race()?.rungs.as_ref()?;
        let last = rungs.values.last()?;
        let told = self.dropped.iter().filter_map(|(look, trials)| {
            let value = rungs.values.get(*look as usize - 1)?;
            let trials = if *trials == 1 { "1 trial".to_owned() } else { format!("{trials} trials") };
            Some(format!("{trials} after {value} of {last}"))
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| format!("stopped by `halve`, of `{}`: {}", rungs.over, told.join(", ")))
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

    const HALVED: &str = "version: 1\nname: halved\nbase: {dataset: DD}\ngrid: {lr: [0.1, 0.2, 0.3]}\nsplits: {from: 0, to: 3}\n\
                          halve: {over: max_epochs, rungs: [20, 60], keep: 1/3, among: [lr]}\n";

    /// Three rates on the first rung; the second is the best there, and has come to the end. The first has a perfect result of
    /// the second rung, from another sweep.
    fn halved(spec: &SweepSpec) -> FoldFrame {
        let of = |at: usize, value: f64| folds(at as u64, &spec.trials[at].config, &[value; 4]);
        frame([of(0, 0.5), of(1, 1.0), of(2, 0.75), of(3, 0.7), of(4, 0.5)].concat())
    }

    #[test]
    fn a_halving_shows_of_each_trial_the_rung_that_it_has_come_to_and_those_who_were_stopped_with_their_sign()
    {
        let spec = SweepSpec::parse(HALVED).expect("a sweep");
        let (frame, plan) = (halved(&spec), Plan::of_sweep(&spec));
        let rows = TableSpec { rows: vec!["lr".to_owned()], ..TableSpec::default() };
        let table = Table::of_block(&frame, &plan, &rows, None).expect("a table");
        let marks = |cell: &crate::cell::Cell| cell.marks.contains(&Mark::Stopped);
        let cells: Vec<_> = table.rows.iter().map(|row| (row.cells[0].mean, marks(&row.cells[0]))).collect();
        assert_eq!(cells, [(Some(50.0), true), (Some(70.0), false), (Some(50.0), true)]);
        assert!(table.rows.iter().all(|row| row.cells[0].n == 4), "not the average over rungs");
        assert_eq!(table.unplanned, 0, "a lower rung is hidden, and nothing strange");
        let said = "stopped by `halve`, of `max_epochs`: 2 trials after 20 of 60";
        assert!(table.remarks.iter().any(|remark| remark == said), "{:?}", table.remarks);
    }

    #[test]
    fn while_a_rung_is_trained_a_table_shows_it_of_those_who_go_on() {
        let spec = SweepSpec::parse(HALVED).expect("a sweep");
        let (frame, plan) = (halved(&spec), Plan::of_sweep(&spec));
        let frame = frame.only(&frame.keys().expect("keys")[..14]).expect("the last rung is not there yet");
        let frame =
            frame.filtered(&[("max_epochs".to_owned(), vec!["20".to_owned()])]).expect("the first rung");
        let rows = TableSpec { rows: vec!["lr".to_owned()], ..TableSpec::default() };
        let table = Table::of_block(&frame, &plan, &rows, None).expect("a table");
        assert!(
            table.rows.iter().all(|row| !row.cells[0].marks.contains(&Mark::Stopped)),
            "the third is open"
        );
    }

    #[test]
    fn who_was_stopped_by_a_halving_has_lost_every_choice() {
        let spec = SweepSpec::parse(HALVED).expect("a sweep");
        let (frame, plan) = (halved(&spec), Plan::of_sweep(&spec));
        for per in [Per::Config, Per::Split] {
            let selection =
                Selection { among: Some(vec!["lr".to_owned()]), by: Metric::ValidationAccuracy, per };
            let table =
                Table::of_block(&frame, &plan, &TableSpec::default(), Some(&selection)).expect("a table");
            let cell = &table.rows[0].cells[0];
            assert_eq!((table.rows.len(), cell.mean, cell.n), (1, Some(70.0), 4), "{per:?} {cell:?}");
            assert!(cell.marks.is_empty(), "{cell:?}");
        }
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
