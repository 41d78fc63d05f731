//! `togl folds SWEEP` lists the folds of a sweep; `togl explain FOLD` says why one is not running.

use std::collections::BTreeMap;

use serde::Serialize;
use togl_coordinator::store::reading::{Fact, FoldsWanted, Wanted};
use togl_coordinator::store::{FoldFilter, FoldState, FoldWord, StoredFold, trials_beginning};
use togl_sweeps::settings::Setting;
use togl_sweeps::{FailureClass, SweepSpec, TrialConfig, WorkerId, nearest};

use super::history::rfc3339;
use crate::facts::{FoldExplanation, sweep_name};
use crate::output::{self, ListFormat, ListRow, Listing, Plain};
use crate::problem::Problem;
use crate::remote::CoordinatorTarget;
use crate::streamed::Streamed;

/// Folds that are shown to people unless they ask for more.
const SCREEN: u64 = 100;

/// List the folds of a sweep
#[derive(Debug, clap::Args)]
pub struct Folds {
    /// Name of the sweep
    sweep: String,
    /// Only folds in these states, with commas between: pending, running, finished, failed
    #[arg(long = "in", value_name = "STATES", value_delimiter = ',')]
    states: Vec<FoldWord>,
    /// Only folds that this worker has, or had last
    #[arg(long, value_name = "NAME")]
    worker: Option<WorkerId>,
    /// Only folds that failed like this, such as out-of-memory
    #[arg(long, value_name = "CLASS", value_parser = class)]
    class: Option<FailureClass>,
    /// Only folds of trials whose id begins like this
    #[arg(long, value_name = "TRIAL")]
    trial: Option<String>,
    /// Only folds on this data set
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// Leave out so many before the first
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: u64,
    /// Show so many at the most; 0 shows all [default: 100 for people, all for programs]
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    #[command(flatten)]
    target: CoordinatorTarget,
    #[command(flatten)]
    listing: Listing,
}

/// Say why a fold is not running, or what became of it
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// The fold, as TRIAL/split/seed; the trial may be shortened
    fold: String,
    #[command(flatten)]
    target: CoordinatorTarget,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

#[derive(Serialize)]
struct Fold {
    fold: String,
    /// As people type it, or whole.
    #[serde(skip)]
    shown: String,
    method: String,
    dataset: String,
    /// Those that vary in the sweep.
    settings: BTreeMap<&'static str, String>,
    split: u32,
    seed: u64,
    state: &'static str,
    attempts: u32,
    worker: String,
    value: Option<f64>,
    seconds: Option<f64>,
    finished_at: Option<String>,
    failure: Option<String>,
}

impl ListRow for Fold {
    const COLUMNS: &'static [&'static str] = &[
        "FOLD", "METHOD", "DATASET", "SETTINGS", "SPLIT", "SEED", "STATE", "VALUE", "SECONDS", "WORKER",
        "ATTEMPTS", "FAILURE",
    ];
    const ALSO: &'static [&'static str] = &["finished_at"];

    fn cells(&self) -> Vec<String> {
        let settings: Vec<String> =
            self.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        vec![
            self.shown.clone(),
            self.method.clone(),
            self.dataset.clone(),
            settings.join(" "),
            self.split.to_string(),
            self.seed.to_string(),
            self.state.to_owned(),
            self.value.map_or_else(String::new, |value| format!("{value:.4}")),
            self.seconds.map_or_else(String::new, |seconds| format!("{seconds:.1}")),
            self.worker.clone(),
            self.attempts.to_string(),
            self.failure.clone().unwrap_or_default(),
        ]
    }
}

/// What becomes of the folds as they come in.
enum Sink {
    /// People get them in one piece.
    Kept(Vec<Fold>),
    /// Programs get each page when it is there.
    Printed(Streamed<Fold>),
}

/// A trial as its folds show it.
#[derive(Clone, Default)]
struct Shown {
    method: String,
    dataset: String,
    settings: BTreeMap<&'static str, String>,
}

/// The folds of a sweep as they come in.
struct Found {
    format: ListFormat,
    varying: Vec<&'static Setting>,
    total: u64,
    digits: usize,
    /// The trial of the fold before, and how it is shown: its folds stand together.
    last: (String, Shown),
    sink: Sink,
}

impl Found {
    fn none(how: &Listing) -> Result<Self, Problem> {
        let sink = match how.format {
            ListFormat::Human => Sink::Kept(Vec::new()),
            ListFormat::Json | ListFormat::Ndjson | ListFormat::Csv => Sink::Printed(Streamed::new(how)?),
        };
        let last = (String::new(), Shown::default());
        Ok(Self { format: how.format, varying: Vec::new(), total: 0, digits: 32, last, sink })
    }

    fn add(&mut self, fact: Fact) -> Result<(), Problem> {
        match fact {
            // A sweep file of an older language shows its folds without settings.
            Fact::Sweep(stored) => {
                self.varying = SweepSpec::parse(&stored.yaml).map(|spec| spec.varying()).unwrap_or_default();
                self.varying.retain(|setting| setting.name != "dataset");
            }
            Fact::Folds { total, digits } => (self.total, self.digits) = (total, digits),
            Fact::Fold(fold) => {
                let line = self.line(*fold);
                match &mut self.sink {
                    Sink::Kept(folds) => folds.push(line),
                    Sink::Printed(streamed) => streamed.push(line)?,
                }
            }
            Fact::Result(_) | Fact::Replicate(_) => {}
        }
        Ok(())
    }

    /// How a trial is shown.
    fn show(&mut self, trial: &str) -> Shown {
        if self.last.0 != trial {
            let config = TrialConfig::from_canonical(trial).ok();
            let show = |name| config.as_ref().and_then(|config| config.show(name)).unwrap_or_default();
            let settings = self.varying.iter().map(|setting| (setting.name, show(setting.name))).collect();
            let shown = Shown { method: show("method"), dataset: show("dataset"), settings };
            self.last = (trial.to_owned(), shown);
        }
        self.last.1.clone()
    }

    fn line(&mut self, stored: StoredFold) -> Fold {
        let StoredFold { fold, trial, state, attempts, worker, outcome } = stored;
        let Shown { method, dataset, settings } = self.show(&trial);
        let whole = fold.to_string();
        let (trial, rest) = whole.split_at(32);
        Fold {
            shown: match self.format {
                ListFormat::Human => format!("{}{rest}", &trial[..self.digits]),
                ListFormat::Json | ListFormat::Ndjson | ListFormat::Csv => whole.clone(),
            },
            method,
            dataset,
            settings,
            split: fold.split,
            seed: fold.seed,
            state: state.word().as_str(),
            attempts,
            worker: worker.as_ref().map(WorkerId::to_string).unwrap_or_default(),
            value: outcome.map(|outcome| outcome.value),
            seconds: outcome.map(|outcome| outcome.seconds),
            finished_at: outcome.and_then(|outcome| outcome.finished_at).map(|at| rfc3339(at.cast_signed())),
            failure: match state {
                FoldState::Failed(failure) => Some(self.cut(failure.to_string())),
                FoldState::Pending | FoldState::Running { .. } | FoldState::Finished { .. } => None,
            },
            fold: whole,
        }
    }

    /// People get one line a fold; `togl explain` has the rest.
    fn cut(&self, text: String) -> String {
        match text.char_indices().nth(72) {
            Some((end, _)) if self.format == ListFormat::Human => format!("{}...", &text[..end]),
            _ => text,
        }
    }
}

/// A failure class as typed.
fn class(word: &str) -> Result<FailureClass, String> {
    let known = FailureClass::WORDS.iter().copied();
    word.parse().map_err(|error| format!("{error}; {}", nearest::hint(word, known)))
}

impl Folds {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let trials = self.trial.as_deref().map(|text| {
            trials_beginning(text).ok_or_else(|| {
                Problem::usage(format!("`{text}` is not the beginning of a trial's id")).hint(
                    "an id has up to 32 digits of 0-9 and a-f; `togl hash FILE` shows those of a sweep file",
                )
            })
        });
        let filter = FoldFilter {
            states: self.states,
            worker: self.worker,
            class: self.class,
            trials: trials.transpose()?,
            dataset: self.dataset,
        };
        let is_for_people = self.listing.format == ListFormat::Human;
        let usual = is_for_people.then_some(SCREEN);
        let limit = self.limit.map_or(usual, |limit| Some(limit).filter(|limit| *limit > 0));
        let folds = Some(FoldsWanted { filter, skip: self.skip, limit });
        let wanted = Wanted { sweep: Some(sweep_name(&self.sweep)?), folds, ..Wanted::default() };
        let mut found = Found::none(&self.listing)?;
        let mut take = |fact| found.add(fact);
        self.target.facts().await?.read(wanted, &mut take).await?;
        if found.total == 0 && is_for_people {
            return Err(Problem::negative(format!("no fold of {} is like that", self.sweep)));
        }
        let folds = match found.sink {
            Sink::Printed(streamed) => return streamed.end(),
            Sink::Kept(folds) => folds,
        };
        output::list(&folds, &self.listing)?;
        let (shown, total) = (folds.len() as u64, found.total);
        if shown < total {
            let next = self.skip + shown;
            let more = if next < total { format!("; go on with --skip {next}") } else { String::new() };
            eprintln!("{} to {next} of {total} folds{more}", (self.skip + 1).min(next));
        }
        Ok(())
    }
}

impl Explain {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let explanation = self.target.live().await?.explain(&self.fold).await?;
        output::one(&explanation, self.format, describe)
    }
}

fn describe(explanation: &FoldExplanation) -> String {
    let mut text = format!("{}: {}\n", explanation.fold, explanation.reason);
    text += &match explanation.sweeps.as_slice() {
        [] => "  in no sweep any more\n".to_owned(),
        sweeps => format!("  in sweeps: {}\n", sweeps.join(", ")),
    };
    for attempt in &explanation.attempts {
        let ending = if attempt.ending.is_empty() { "" } else { ", ended: " };
        text += &format!("  attempt {} on {}{ending}{}\n", attempt.attempt, attempt.worker, attempt.ending);
    }
    text
}
