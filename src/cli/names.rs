//! Names that a shell completes: sweeps, folds and workers, from the coordinator or the store that the command line would ask.
//! Quick, and silent where nobody answers: a shell shows whatever is said.

use std::ffi::OsStr;
use std::time::Duration;

use clap::{Command, FromArgMatches};
use clap_complete::CompletionCandidate;
use togl_coordinator::store::reading::{Fact, FoldsWanted, Wanted};
use togl_coordinator::store::{FoldFilter, FoldWord, trials_beginning};
use togl_sweeps::FoldKey;

use super::{context, grouped};
use crate::contexts::Contexts;
use crate::facts::{self, Facts, sweep_name};
use crate::problem::Problem;
use crate::remote::CoordinatorTarget;

/// What completes the beginning of a word.
pub(super) type Complete = fn(&OsStr) -> Vec<CompletionCandidate>;

/// How long somebody waits for a key to do something.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Folds of one state and sweep that are offered.
const FOLDS: u64 = 20;

/// Sweeps whose folds are offered.
const SWEEPS: usize = 10;

pub(super) fn sweeps(begun: &OsStr) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy().into_owned();
    answered(async move {
        let sweeps = asked()?.live().await?.sweeps(true).await?;
        let named = sweeps.into_iter().filter(|sweep| sweep.name.starts_with(&begun));
        Ok(named.map(|sweep| (sweep.name, sweep.state)).collect())
    })
}

pub(super) fn workers(begun: &OsStr) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy().into_owned();
    answered(async move {
        let found: Vec<(String, String)> = match asked()?.live().await?.workers().await? {
            facts::KnownWorkers::Here(here) => here.into_iter().map(|one| (one.worker, one.state)).collect(),
            facts::KnownWorkers::Past(past) => {
                past.into_iter().map(|one| (one.worker.to_string(), one.host)).collect()
            }
        };
        Ok(found.into_iter().filter(|(name, _)| name.starts_with(&begun)).collect())
    })
}

/// Those that run and those that failed come first: one asks about them.
pub(super) fn folds(begun: &OsStr) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy().into_owned();
    answered(async move {
        let mut source = asked()?.facts().await?;
        let mut found = Vec::new();
        for states in [&[FoldWord::Running, FoldWord::Failed][..], &[FoldWord::Finished, FoldWord::Pending]] {
            for sweep in source.sweeps(false).await?.into_iter().take(SWEEPS) {
                found.extend(folds_of(source.as_mut(), &sweep.name, states, &begun).await?);
            }
            if !found.is_empty() {
                break;
            }
        }
        Ok(found)
    })
}

pub(super) fn folds_and_sweeps(begun: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = sweeps(begun);
    found.extend(folds(begun));
    found
}

async fn folds_of(
    source: &mut dyn Facts,
    sweep: &str,
    states: &[FoldWord],
    begun: &str,
) -> Result<Vec<(String, String)>, Problem> {
    let (trial, is_whole) = begun.split_once('/').map_or((begun, false), |(trial, _)| (trial, true));
    let trials = trials_beginning(trial);
    if trials.is_none() && !trial.is_empty() {
        return Ok(Vec::new());
    }
    let filter = FoldFilter { states: states.to_vec(), trials, ..FoldFilter::default() };
    let folds = Some(FoldsWanted { filter, skip: 0, limit: Some(FOLDS) });
    let wanted = Wanted { sweep: Some(sweep_name(sweep)?), folds, ..Wanted::default() };
    let (mut digits, mut found) = (32, Vec::new());
    let mut take = |fact| {
        match fact {
            Fact::Folds { digits: enough, .. } => digits = enough,
            Fact::Fold(fold) => found.push((fold.fold, fold.state.word().as_str().to_owned())),
            Fact::Sweep(_) | Fact::Result(_) | Fact::Replicate(_) => {}
        }
        Ok(())
    };
    source.read(wanted, &mut take).await?;
    let name = |FoldKey { trial: id, split, seed }| {
        let typed = if is_whole { trial.len() } else { digits.max(trial.len()) };
        format!("{}/{split}/{seed}", id.to_string().get(..typed).unwrap_or_default())
    };
    let named = found.into_iter().map(|(fold, state)| (name(fold), format!("{state} in {sweep}")));
    Ok(named.filter(|(fold, _)| fold.starts_with(begun)).collect())
}

/// What could be found out in time.
fn answered(
    names: impl Future<Output = Result<Vec<(String, String)>, Problem>> + Send + 'static,
) -> Vec<CompletionCandidate> {
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
    else {
        return Vec::new();
    };
    let names = runtime.spawn(names);
    let found = runtime.block_on(async { tokio::time::timeout(PATIENCE, names).await });
    runtime.shutdown_background();
    let Ok(Ok(Ok(found))) = found else { return Vec::new() };
    found.into_iter().map(|(name, help)| CompletionCandidate::new(name).help(Some(help.into()))).collect()
}

/// Whom the line that is being typed would ask, as far as it has got.
fn asked() -> Result<CoordinatorTarget, Problem> {
    let words: Vec<_> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let parse = |command: Command| {
        command.ignore_errors(true).try_get_matches_from(words.clone()).map_err(Problem::usage)
    };
    let grammar = grouped::command();
    let mut matches = parse(grammar.clone())?;
    if let Some(context) = context::meant(&grammar, &matches, Contexts::place().as_deref())? {
        matches = parse(context::with(grouped::command(), &context))?;
    }
    CoordinatorTarget::from_arg_matches(context::deepest(&matches)).map_err(Problem::usage)
}
