//! What a sweep file would do, before it does it: `togl plan` counts folds and estimates time and memory, from folds
//! that have finished or, if asked, from a quick measurement on this machine. Nothing here changes anything.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use togl_coordinator::store::reading::{Fact, FoldsWanted, Wanted};
use togl_coordinator::store::{self, FoldFilter, FoldWord, ResultRow};
use togl_proto::wire;
use togl_sweeps::estimate::{Estimate, Experience};
use togl_sweeps::plan::{FoldState, KnownFold, Plan as Counts};
use togl_sweeps::spec::PlannedTrial;
use togl_sweeps::{FoldKey, SweepSpec, TrialConfig, TrialId};

use super::Outcome;
use crate::calibrate;
use crate::facts;
use crate::output::{self, Plain};
use crate::problem::Problem;
use crate::remote::{self, Target};

/// Say what a sweep file would do
#[derive(Debug, clap::Args)]
pub struct Plan {
    /// The sweep file
    file: PathBuf,
    #[command(flatten)]
    target: Target,
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
    counts: Counts,
    #[serde(flatten)]
    estimate: Estimate,
    /// Slots that the finish time assumes.
    slots: u64,
    /// Seconds until everything is done on these slots; null if that cannot be said.
    finish_seconds: Option<f64>,
}

impl Plan {
    pub(super) async fn run(self) -> Outcome {
        let (_, spec) = super::read_sweep(&self.file)?;
        super::data::mention_unknown(&spec, self.data_dir.clone())?;
        let mut known = self.known(&spec).await?;
        let to_do = to_do(&spec, &known.folds)?;
        if self.calibrate {
            self.measure(&spec, &to_do, &mut known.experience)?;
        }
        let counts = Counts::of(&spec, known.folds.into_values()).map_err(Problem::usage)?;
        let mut estimate = Estimate::default();
        for (trial, folds) in &to_do {
            estimate.add(&facts::title(&trial.config), &trial.config, *folds, &known.experience);
        }
        let slots = self.slots.or(known.slots).unwrap_or_else(cores);
        let finish_seconds = estimate.finish_seconds(slots);
        let planned = Planned { name: spec.name.to_string(), counts, estimate, slots, finish_seconds };
        match self.format {
            Plain::Human => output::print(&describe(&planned))?,
            Plain::Json => output::print(&output::json(&planned)?)?,
        }
        Ok(ExitCode::SUCCESS)
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
            let mut in_sweep = false;
            let mut take = |fact| {
                match fact {
                    Fact::Sweep(stored) => in_sweep = stored.name == spec.name,
                    Fact::Result(row) => known.learn(&row, in_sweep),
                    Fact::Fold(fold) => known.add(fold.fold, state_of(&fold.state), in_sweep),
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

    async fn slots_of_workers(&self) -> Result<Option<u64>, Problem> {
        let mut client = self.target.connect().await?;
        let workers = client.list_workers(wire::ListWorkersRequest {}).await.map_err(remote::refused)?;
        let connected = workers.into_inner().workers.into_iter().filter(|worker| worker.state == "connected");
        Ok(Some(connected.map(|worker| u64::from(worker.slots)).sum()).filter(|slots| *slots > 0))
    }

    /// One measured epoch for every kind of fold to do of which nothing is known.
    fn measure(
        &self,
        spec: &SweepSpec,
        to_do: &[(PlannedTrial, u64)],
        experience: &mut Experience,
    ) -> Result<(), Problem> {
        let mut kinds = BTreeMap::new();
        for (trial, _) in to_do.iter().filter(|(_, folds)| *folds > 0) {
            kinds.entry(facts::title(&trial.config)).or_insert(trial);
        }
        kinds.retain(|title, _| !experience.precedents.contains_key(title));
        for (place, (title, trial)) in kinds.iter().enumerate() {
            eprintln!("measuring {title} ({} of {})", place + 1, kinds.len());
            let split = spec.folds_of(trial.id).next().map_or(0, |fold| fold.split);
            match calibrate::epoch(&trial.config, split, self.data_dir.as_deref()) {
                Ok(measured) => drop(experience.calibrations.insert(title.clone(), measured)),
                Err(calibrate::Failed::NoWorker(problem)) => return Err(problem),
                Err(calibrate::Failed::This(reason)) => eprintln!("  no estimate for it: {reason}"),
            }
        }
        Ok(())
    }
}

/// What is known before a sweep is submitted.
#[derive(Default)]
struct Known {
    folds: HashMap<FoldKey, KnownFold>,
    experience: Experience,
    /// What trials are called; none for those of another version.
    titles: HashMap<TrialId, Option<String>>,
    /// Slots of the connected workers, if there are any.
    slots: Option<u64>,
}

impl Known {
    /// Takes note of a fold; it may be in several sweeps.
    fn add(&mut self, key: FoldKey, state: FoldState, in_sweep: bool) {
        self.folds.entry(key).or_insert(KnownFold { key, state, in_sweep }).in_sweep |= in_sweep;
    }

    fn learn(&mut self, row: &ResultRow, in_sweep: bool) {
        if !self.folds.contains_key(&row.fold) {
            let name = || TrialConfig::from_canonical(&row.trial).ok().map(|config| facts::title(&config));
            if let Some(title) = self.titles.entry(row.fold.trial).or_insert_with(name) {
                let precedent = self.experience.precedents.entry(title.clone()).or_default();
                precedent.add(row.result.seconds, row.result.peak_memory);
            }
        }
        self.add(row.fold, FoldState::Done, in_sweep);
    }
}

fn state_of(state: &store::FoldState) -> FoldState {
    match FoldWord::of(state) {
        FoldWord::Finished => FoldState::Done,
        FoldWord::Running => FoldState::Running,
        FoldWord::Failed => FoldState::Failed,
        FoldWord::Pending => FoldState::Waiting,
    }
}

/// Every trial with the number of its folds that are still to be trained, or are in training.
fn to_do(spec: &SweepSpec, known: &HashMap<FoldKey, KnownFold>) -> Result<Vec<(PlannedTrial, u64)>, Problem> {
    let is_open = |fold: &FoldKey| match known.get(fold).map(|fold| fold.state) {
        Some(FoldState::Done | FoldState::Failed) => false,
        Some(FoldState::Running | FoldState::Waiting) | None => true,
    };
    let trials = spec.trials().map_err(Problem::usage)?.into_iter();
    let left = |trial: &PlannedTrial| spec.folds_of(trial.id).filter(is_open).count();
    Ok(trials.map(|trial| (left(&trial) as u64, trial)).map(|(count, trial)| (trial, count)).collect())
}

fn cores() -> u64 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64)
}

fn describe(planned: &Planned) -> String {
    let counts = &planned.counts;
    let mut text = format!(
        "{}: {} grid points, {} trials, {} folds\n  done       {}\n  running    {}\n  failed     {}\n  to do      {} \
         ({} new)\n  orphaned   {}\n",
        planned.name,
        counts.points,
        counts.trials,
        counts.folds,
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
    text
}

fn describe_estimate(planned: &Planned) -> String {
    let estimate = &planned.estimate;
    if estimate.from_past_folds + estimate.from_calibration == 0 {
        return "  estimate   none: no folds like these have finished yet; `--calibrate` measures an epoch of each kind\n"
            .to_owned();
    }
    let [least, most] = [estimate.device_seconds, estimate.device_seconds_at_most].map(|s| s / 3600.0);
    let mut text = match most > least {
        true => format!("  estimate   {least:.2} to {most:.2} device-hours"),
        false => format!("  estimate   {least:.2} device-hours"),
    };
    text += match (estimate.from_past_folds, estimate.from_calibration) {
        (_, 0) => ", from folds like these",
        (0, _) => ", from an epoch measured on this machine",
        _ => ", from folds like these and epochs measured on this machine",
    };
    if estimate.without_precedent > 0 {
        text += &format!(", without {} folds that have no precedent", estimate.without_precedent);
    }
    text.push('\n');
    if let Some(seconds) = planned.finish_seconds {
        let (slots, plural) = (planned.slots, if planned.slots == 1 { "slot" } else { "slots" });
        text += &format!("  finish     in about {} with {slots} {plural}\n", duration(seconds));
    }
    if estimate.memory_bytes > 0 {
        text += &format!("  memory     up to {} MB for one fold\n", estimate.memory_bytes.div_ceil(1 << 20));
    }
    text
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
    fn durations_have_two_units() {
        let told = [0.2, 59.0, 61.0, 3_700.0, 90_000.0].map(duration);
        assert_eq!(told, ["1 s", "59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]);
    }
}
