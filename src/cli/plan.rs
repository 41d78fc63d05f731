//! What a sweep file would do, before it does it: `togl plan` counts folds and estimates time and memory, from folds
//! that have finished or, if asked, from a quick measurement on this machine. Nothing here changes anything.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use togl_coordinator::store::reading::{Fact, FoldsWanted, Wanted};
use togl_coordinator::store::{FoldFilter, ResultRow};
use togl_sweeps::estimate::{Estimate, Experience, Past, Workload};
use togl_sweeps::plan::{FoldWord, KnownFold, PlanCounts};
use togl_sweeps::race::Race;
use togl_sweeps::spec::PlannedTrial;
use togl_sweeps::{FoldKey, SweepSpec, TrialConfig, TrialId};

use super::VerbOutcome;
use super::sources::{Sources, SweepSource};
use crate::calibrate;
use crate::facts::{self, Facts, KnownWorkers, Remote};
use crate::output::{self, Plain};
use crate::problem::Problem;
use crate::reading::ReadSoFar;
use crate::remote::CoordinatorTarget;

/// Say what a sweep file would do
#[derive(Debug, clap::Args)]
pub struct Plan {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    target: CoordinatorTarget,
    /// Measure an epoch on this machine for every kind of fold of which none has finished yet
    #[arg(long)]
    calibrate: bool,
    /// Folds trained at the same time, for the finish time [default: slots of the connected workers, or cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    slots: Option<u64>,
    /// Where data sets are, for --calibrate and to tell of unknown ones
    #[arg(long, value_name = "DIR", env = "TOGL_DATA")]
    data_dir: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

#[derive(Serialize)]
struct Planned {
    name: String,
    #[serde(flatten)]
    counts: PlanCounts,
    #[serde(flatten)]
    estimate: Estimate,
    /// Who races with whom, in words; the estimate is for all folds, as if nobody were stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    race: Option<String>,
    /// Slots that the finish time assumes.
    slots: u64,
    /// Seconds until everything is done on these slots, at the least; null if that cannot be said.
    finish_seconds: Option<f64>,
    /// The same at the most.
    finish_seconds_at_most: Option<f64>,
}

impl Plan {
    pub(super) async fn run(self) -> VerbOutcome {
        for SweepSource { spec, .. } in self.sources.read()? {
            self.of_sweep(spec).await?;
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn of_sweep(&self, spec: SweepSpec) -> Result<(), Problem> {
        super::data::check_splits(&spec, self.data_dir.clone())?;
        super::data::mention_unknown(&spec, self.data_dir.clone())?;
        let known = self.known(&spec).await?;
        let to_do = to_do(&spec, &known.folds);
        let mut experience = known.experience();
        if self.calibrate {
            self.measure(&spec, &to_do, &mut experience)?;
        }
        let counts = PlanCounts::of(&spec, known.folds.into_values());
        let mut estimate = Estimate::default();
        for (trial, folds) in &to_do {
            estimate.add(&trial.config, *folds, &experience);
        }
        let slots = self.slots.or(known.slots).unwrap_or_else(cores);
        let [finish_seconds, finish_seconds_at_most] = match estimate.finish_seconds(slots) {
            Some(range) => range.map(Some),
            None => [None; 2],
        };
        let name = spec.name.to_string();
        let race = spec.race().map(|race| describe_race(&spec, &race));
        let planned = Planned { name, counts, estimate, race, slots, finish_seconds, finish_seconds_at_most };
        match self.format {
            Plain::Human => output::print(&describe(&planned)),
            Plain::Json => output::print(&output::json(&planned)?),
        }
    }

    /// What is stored, and the slots of a coordinator that serves it.
    async fn known(&self, spec: &SweepSpec) -> Result<Known, Problem> {
        let mut known = Known::default();
        let (state, named) = (self.target.state()?, self.target.coordinator.is_some());
        if named || state.has_store() || state.served().is_some() {
            let unfinished = vec![FoldWord::Pending, FoldWord::Running, FoldWord::Failed];
            let filter = FoldFilter { states: unfinished, ..FoldFilter::default() };
            let folds = Some(FoldsWanted { filter, ..FoldsWanted::default() });
            let wanted = Wanted { results: true, folds, ..Wanted::default() };
            let (mut in_sweep, mut so_far) = (false, ReadSoFar::new());
            so_far.expect(spec.count_folds());
            let mut take = |fact| {
                so_far.note(&fact);
                match fact {
                    Fact::Sweep(stored) => in_sweep = stored.name == spec.name,
                    Fact::Result(row) => known.learn(&row, in_sweep),
                    Fact::Fold(fold) => known.add(fold.fold, fold.state.word(), in_sweep),
                    Fact::Folds { .. } | Fact::Replicate(_) => {}
                }
                Ok(())
            };
            self.target.facts().await?.read(wanted, &mut take).await?;
        }
        if named || state.served().is_some() {
            known.slots = self.slots_of_workers().await?;
        }
        Ok(known)
    }

    /// None if nobody is connected, or the coordinator that served here is gone.
    async fn slots_of_workers(&self) -> Result<Option<u64>, Problem> {
        let client = match self.target.connect().await {
            Err(problem) if problem.is_unreachable() && self.target.coordinator.is_none() => return Ok(None),
            connected => connected?,
        };
        let KnownWorkers::Here(workers) = Remote::new(client).workers().await? else { return Ok(None) };
        let connected = workers.iter().filter(|worker| worker.state == "connected");
        Ok(Some(connected.map(|worker| u64::from(worker.slots)).sum()).filter(|slots| *slots > 0))
    }

    /// One measured epoch for every workload to do of which nothing is known.
    fn measure(
        &self,
        spec: &SweepSpec,
        to_do: &[(&PlannedTrial, u64)],
        experience: &mut Experience,
    ) -> Result<(), Problem> {
        let mut workloads = BTreeMap::new();
        for (trial, _) in to_do.iter().filter(|(_, folds)| *folds > 0) {
            workloads.entry(Workload::of(&trial.config)).or_insert(trial);
        }
        workloads.retain(|workload, _| !experience.knows(workload));
        let number = workloads.len();
        for (place, (workload, trial)) in workloads.into_iter().enumerate() {
            eprintln!("measuring {} ({} of {number})", facts::title(&trial.config), place + 1);
            let split = spec.folds_of(trial.id).next().map_or(0, |fold| fold.split);
            match calibrate::epoch(&trial.config, split, self.data_dir.as_deref()) {
                Ok(measured) => experience.calibrate(workload, measured),
                Err(calibrate::CalibrationFailed::NoWorker(problem)) => return Err(problem),
                Err(calibrate::CalibrationFailed::This(reason)) => {
                    eprintln!("  no estimate for it: {reason}")
                }
            }
        }
        Ok(())
    }
}

/// What is known before a sweep is submitted.
#[derive(Default)]
struct Known {
    folds: HashMap<FoldKey, KnownFold>,
    /// Canonical JSON of trials with finished folds, and what these cost.
    past: HashMap<TrialId, (String, Vec<Past>)>,
    /// Slots of the connected workers, if there are any.
    slots: Option<u64>,
}

impl Known {
    /// Takes note of a fold; it may be in several sweeps.
    fn add(&mut self, key: FoldKey, state: FoldWord, in_sweep: bool) {
        self.folds.entry(key).or_insert(KnownFold { key, state, in_sweep }).in_sweep |= in_sweep;
    }

    fn learn(&mut self, row: &ResultRow, in_sweep: bool) {
        if !self.folds.contains_key(&row.fold) {
            let result = &row.result;
            let past =
                Past { seconds: result.seconds, epochs: result.epochs, peak_memory: result.peak_memory };
            self.past.entry(row.fold.trial).or_insert_with(|| (row.trial.clone(), Vec::new())).1.push(past);
        }
        self.add(row.fold, FoldWord::Finished, in_sweep);
    }

    /// What finished folds teach; trials of another version are passed over.
    fn experience(&self) -> Experience {
        let mut experience = Experience::default();
        for (canonical, past) in self.past.values() {
            if let Ok(trial) = TrialConfig::from_canonical(canonical) {
                experience.learn(&trial, past);
            }
        }
        experience
    }
}

/// Every trial with the number of its folds that are still to be trained, or are in training.
fn to_do<'a>(spec: &'a SweepSpec, known: &HashMap<FoldKey, KnownFold>) -> Vec<(&'a PlannedTrial, u64)> {
    let is_open = |fold: &FoldKey| match known.get(fold).map(|fold| fold.state) {
        Some(FoldWord::Finished | FoldWord::Failed) => false,
        Some(FoldWord::Running | FoldWord::Pending) | None => true,
    };
    let left = |trial: &PlannedTrial| spec.folds_of(trial.id).filter(is_open).count() as u64;
    spec.trials.iter().map(|trial| (trial, left(trial))).collect()
}

fn cores() -> u64 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64)
}

fn describe(planned: &Planned) -> String {
    let counts = &planned.counts;
    let mut text = format!(
        "{}: {}, {}, {}\n  done       {}\n  running    {}\n  failed     {}\n  to do      {} \
         ({} new)\n  orphaned   {}\n",
        planned.name,
        output::count(counts.points, "grid point"),
        output::count(counts.trials, "trial"),
        output::count(counts.folds, "fold"),
        counts.done,
        counts.running,
        counts.failed,
        counts.to_do,
        counts.new,
        counts.orphaned
    );
    if counts.to_do + counts.running > 0 {
        text += &describe_estimate(planned);
    }
    text + &planned.race.iter().map(|race| format!("  race       {race}\n")).collect::<String>()
}

fn describe_race(spec: &SweepSpec, race: &Race) -> String {
    let trials: usize = race.groups.iter().map(|group| group.trials.len()).sum();
    if let Some(halve) = &spec.halve {
        let of = |group: &togl_sweeps::race::RaceGroup| {
            let folds = group.folds(0, 0).count();
            halve.entering(group.trials.len()).iter().map(|trials| trials * folds).sum::<usize>()
        };
        let folds: usize = race.groups.iter().map(of).sum();
        let rungs: Vec<String> = halve.rungs.iter().map(u64::to_string).collect();
        return format!(
            "{} of {} go on from each rung ({} = {}); {} to train if none fails",
            halve.keep,
            output::count(trials as u64, "trial"),
            halve.over,
            rungs.join(", "),
            output::count(folds as u64, "fold")
        );
    }
    let most = race.groups.iter().map(|group| group.splits.len()).max().unwrap_or_default();
    let (groups, trials) =
        (output::count(race.groups.len() as u64, "group"), output::count(trials as u64, "trial"));
    format!(
        "{groups} with {trials}; the worse are stopped after {} of {most} splits at the earliest",
        race.terms.after
    )
}

fn describe_estimate(planned: &Planned) -> String {
    let estimate = &planned.estimate;
    if estimate.from_past_folds + estimate.from_calibration == 0 {
        return "  estimate   none: no folds that cost the same have finished yet; `--calibrate` measures an epoch of each kind\n"
            .to_owned();
    }
    let [least, most] = [estimate.device_seconds, estimate.device_seconds_at_most];
    let mut text = format!("  estimate   {}", device_time(least, most));
    text += match (estimate.from_past_folds, estimate.from_calibration) {
        (_, 0) => ", from folds that cost the same",
        (0, _) => ", from an epoch measured on this machine",
        _ => ", from folds that cost the same and epochs measured on this machine",
    };
    if estimate.without_precedent > 0 {
        text += &format!(
            ", without {} of which nothing is known",
            output::count(estimate.without_precedent, "fold")
        );
    }
    text.push('\n');
    if let (Some(least), Some(most)) = (planned.finish_seconds, planned.finish_seconds_at_most) {
        let range = match [least, most].map(duration) {
            [least, most] if least == most => format!("in about {least}"),
            [least, most] => format!("in {least} to {most}"),
        };
        text += &format!("  finish     {range} with {}\n", output::count(planned.slots, "slot"));
    }
    if estimate.memory_bytes > 0 {
        text += &format!("  memory     up to {} MB for one fold\n", estimate.memory_bytes.div_ceil(1 << 20));
    }
    text
}

/// Device time in a unit that leaves something to read.
fn device_time(least: f64, most: f64) -> String {
    let (unit, name) = match most {
        most if most >= 3600.0 => (3600.0, "device-hours"),
        most if most >= 60.0 => (60.0, "device-minutes"),
        _ => (1.0, "device-seconds"),
    };
    match [least, most].map(|seconds| format!("{:.1}", seconds / unit)) {
        [least, most] if least == most => format!("{most} {name}"),
        [least, most] => format!("{least} to {most} {name}"),
    }
}

/// Two units are enough: nobody plans a week by the second.
fn duration(seconds: f64) -> String {
    let total = seconds.ceil() as u64;
    let (days, hours, minutes) = (total / 86400, total / 3600 % 24, total / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{total} s"),
        (0, 0, _) => format!("{minutes} min {} s", total % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_time_is_never_told_as_nothing() {
        assert_eq!(device_time(2.04, 2.04), "2.0 device-seconds");
        assert_eq!(device_time(30.0, 90.0), "0.5 to 1.5 device-minutes");
        assert_eq!(device_time(1260.0, 16056.0), "0.3 to 4.5 device-hours");
    }

    #[test]
    fn durations_have_two_units() {
        let told = [0.2, 59.0, 61.0, 3_700.0, 90_000.0].map(duration);
        assert_eq!(told, ["1 s", "59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]);
    }
}
