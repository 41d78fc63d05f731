//! What a sweep file would do, before it does it: `togl plan` counts and estimates, `togl hash` shows identities,
//! `togl schema` prints the schema for editors. Nothing here changes anything.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use togl_proto::wire;
use togl_sweeps::plan::{FoldState, KnownFold, Plan as Counts};
use togl_sweeps::spec::PlannedTrial;
use togl_sweeps::{FoldKey, SweepSpec};

use super::Outcome;
use super::folds;
use crate::output::{self, Format, Plain, Row};
use crate::problem::Problem;
use crate::remote::{self, Target};
use crate::rows;

/// Say what a sweep file would do
#[derive(Debug, clap::Args)]
pub struct Plan {
    /// The sweep file
    file: PathBuf,
    #[command(flatten)]
    target: Target,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

/// Show the identity of every trial of a sweep file
#[derive(Debug, clap::Args)]
pub struct Hash {
    /// The sweep file
    file: PathBuf,
    /// Say why two trials differ: two beginnings of ids, or two places in the list (from 0)
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    explain: Option<Vec<String>>,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

/// Print the JSON Schema of sweep files, for editors
#[derive(Debug, clap::Args)]
pub struct Schema {}

#[derive(Serialize)]
struct Planned {
    name: String,
    #[serde(flatten)]
    counts: Counts,
    /// Estimated seconds on one device for the folds to do that have a precedent.
    device_seconds: f64,
    /// Folds to do without a precedent, not part of the estimate.
    without_precedent: u64,
}

impl Plan {
    pub(super) async fn run(self) -> Outcome {
        let (_, spec) = super::read_sweep(&self.file)?;
        let known = self.known(&spec).await?;
        let done: HashSet<FoldKey> =
            known.folds.iter().filter(|fold| fold.state == FoldState::Done).map(|fold| fold.key).collect();
        let counts = Counts::of(&spec, known.folds).map_err(Problem::usage)?;
        let (device_seconds, without_precedent) = estimate(&spec, &done, &known.precedents)?;
        let planned = Planned { name: spec.name.to_string(), counts, device_seconds, without_precedent };
        match self.format {
            Plain::Human => output::print(&describe(&planned))?,
            Plain::Json => output::print(&output::json(&planned)?)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What the store holds, and what a coordinator that serves it says on top.
    async fn known(&self, spec: &SweepSpec) -> Result<Known, Problem> {
        let mut known = Known::default();
        let state = self.target.state()?;
        if self.target.coordinator.is_none() && state.has_store() {
            let stored = rows::stored_folds(&state)?;
            for (key, seconds, title) in stored.finished {
                known.precedents.entry(title).or_default().push(seconds);
                let in_sweep =
                    stored.sweeps.get(spec.name.as_str()).is_some_and(|folds| folds.contains(&key));
                known.folds.push(KnownFold { key, state: FoldState::Done, in_sweep });
            }
        }
        if self.target.coordinator.is_some() || state.served().is_some() {
            self.ask(spec, &mut known).await?;
        }
        Ok(known)
    }

    async fn ask(&self, spec: &SweepSpec, known: &mut Known) -> Result<(), Problem> {
        let mut client = self.target.connect().await?;
        let sweeps = client.list_sweeps(wire::ListSweepsRequest {}).await.map_err(remote::refused)?;
        for sweep in sweeps.into_inner().sweeps {
            let in_sweep = sweep.name == spec.name.as_str();
            let folds = folds::of_sweep(&mut client, &sweep.name).await?;
            known.folds.extend(folds.into_iter().filter_map(|fold| known_fold(fold, in_sweep)));
        }
        Ok(())
    }
}

/// What is known before a sweep is submitted.
#[derive(Default)]
struct Known {
    folds: Vec<KnownFold>,
    /// Seconds of finished folds, by network and data set.
    precedents: BTreeMap<String, Vec<f64>>,
}

fn known_fold(fold: wire::FoldSummary, in_sweep: bool) -> Option<KnownFold> {
    let key = fold.fold?.try_into().ok()?;
    let state = match fold.state.as_str() {
        "finished" => FoldState::Done,
        "running" => FoldState::Running,
        "failed" => FoldState::Failed,
        _ => FoldState::Waiting,
    };
    Some(KnownFold { key, state, in_sweep })
}

/// Seconds for what is to do, from the mean of finished folds of the same network on the same data set.
fn estimate(
    spec: &SweepSpec,
    done: &HashSet<FoldKey>,
    precedents: &BTreeMap<String, Vec<f64>>,
) -> Result<(f64, u64), Problem> {
    let (mut seconds, mut unknown) = (0.0, 0);
    for trial in spec.trials().map_err(Problem::usage)? {
        let to_do = spec.folds_of(trial.id).filter(|fold| !done.contains(fold)).count();
        match precedents.get(&rows::title(&trial.config)) {
            Some(times) => seconds += to_do as f64 * times.iter().sum::<f64>() / times.len() as f64,
            None => unknown += to_do as u64,
        }
    }
    Ok((seconds, unknown))
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
    let hours = planned.device_seconds / 3600.0;
    match (counts.to_do, planned.without_precedent) {
        (0, _) => {}
        (_, unknown) if unknown == counts.to_do => {
            text += "  estimate   none: no folds like these have finished yet\n"
        }
        (_, 0) => text += &format!("  estimate   {hours:.2} device-hours, from folds like these\n"),
        (_, unknown) => {
            text += &format!(
                "  estimate   {hours:.2} device-hours, without {unknown} folds that have no precedent\n"
            );
        }
    }
    text
}

#[derive(Serialize)]
struct Identity {
    place: usize,
    trial: String,
    method: String,
    dataset: String,
    canonical: String,
}

impl Row for Identity {
    const COLUMNS: &'static [&'static str] = &["PLACE", "TRIAL", "METHOD", "DATASET", "SETTINGS"];

    fn cells(&self) -> Vec<String> {
        let place = self.place.to_string();
        vec![place, self.trial.clone(), self.method.clone(), self.dataset.clone(), self.canonical.clone()]
    }
}

impl Hash {
    pub(super) fn run(self) -> Outcome {
        let (_, spec) = super::read_sweep(&self.file)?;
        let trials = spec.trials().map_err(Problem::usage)?;
        if let Some(pair) = &self.explain {
            let [a, b] = pair.as_slice() else { return Err(Problem::usage("--explain takes two trials")) };
            return explain(find(&trials, a)?, find(&trials, b)?);
        }
        let identity = |(place, trial): (usize, &PlannedTrial)| Identity {
            place,
            trial: trial.id.to_string(),
            method: trial.config.method(),
            dataset: trial.config.dataset.clone(),
            canonical: trial.config.canonical(),
        };
        output::list(&trials.iter().enumerate().map(identity).collect::<Vec<_>>(), self.format)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn find<'a>(trials: &'a [PlannedTrial], asked: &str) -> Result<&'a PlannedTrial, Problem> {
    let by_place = asked.parse::<usize>().ok().and_then(|place| trials.get(place));
    let by_id = || trials.iter().find(|trial| trial.id.to_string().starts_with(asked));
    by_place.or_else(by_id).ok_or_else(|| {
        Problem::negative(format!("there is no trial `{asked}`"))
            .hint("`togl hash FILE` lists places and ids")
    })
}

fn explain(a: &PlannedTrial, b: &PlannedTrial) -> Outcome {
    let mut text =
        format!("{} and {} are {}\n", a.id, b.id, if a.id == b.id { "the same trial" } else { "two trials" });
    for difference in togl_sweeps::explain::explain(&a.config, &b.config) {
        text += &format!("  {difference}\n");
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

impl Schema {
    pub(super) fn run(self) -> Outcome {
        output::print(&output::json(&togl_sweeps::schema::schema())?)?;
        Ok(ExitCode::SUCCESS)
    }
}
