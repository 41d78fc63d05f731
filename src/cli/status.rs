//! `togl status` and `togl watch`: one sweep now, or until it has ended.

use std::process::ExitCode;
use std::time::Duration;

use togl_proto::wire;

use super::{VerbOutcome, race};
use crate::clock;
use crate::output::{self, Plain};
use crate::problem::{self, Problem};
use crate::progress::Progress;
use crate::remote::{self, Client, CoordinatorTarget, FoldGivenUp, ListedSweep, SweepStatus};
use crate::watch::{self, WatchEnd};

/// Show one sweep
#[derive(Debug, clap::Args)]
pub struct Status {
    /// Name of the sweep
    sweep: String,
    #[command(flatten)]
    target: CoordinatorTarget,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

/// Show one sweep until it has ended, or all sweeps and workers
#[derive(Debug, clap::Args)]
pub struct Watch {
    /// Name of the sweep; all sweeps and workers if left out
    sweep: Option<String>,
    /// Lines and bars instead of the whole screen
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    target: CoordinatorTarget,
}

impl Status {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let mut source = self.target.live().await?;
        let mut status = source.status(&self.sweep).await?;
        if let Some(race::JudgedRace { stopped, .. }) = race::judged(source.as_mut(), &self.sweep).await? {
            status.race = race::in_words(&stopped);
            if !source.is_live() {
                status.sweep.pending -= status.sweep.pending.min(race::saved(&stopped)); // a coordinator counts so itself
            }
        }
        output::one(&status, self.format, describe)
    }
}

fn describe(status: &SweepStatus) -> String {
    let sweep = &status.sweep;
    let mut text = format!(
        "{} ({}): {} of {} folds finished, {} running, {} pending, {} failed\n",
        sweep.name, sweep.state, sweep.finished, sweep.folds, sweep.running, sweep.pending, sweep.failed
    );
    text += &nothing_runs(status);
    if !status.race.is_empty() {
        text += &format!("  race: {}\n", status.race);
    }
    for fold in &status.in_training {
        let epochs = match fold.max_epochs {
            0 => "no epoch yet".to_owned(),
            most => format!("epoch {}/{most}", fold.epoch),
        };
        text += &format!("  {}: {epochs}, attempt {} on {}\n", fold.title, fold.attempt, fold.worker);
    }
    text += &more(sweep.running, status.in_training.len(), "are in training");
    text + &failures(status, "")
}

/// Why nothing runs, as a line; empty if something does.
pub fn nothing_runs(status: &SweepStatus) -> String {
    match status.standstill.as_str() {
        "" => String::new(),
        why => format!("  nothing runs: {why}\n"),
    }
}

/// What a list does not show.
fn more(all: u64, shown: usize, are: &str) -> String {
    match all.saturating_sub(shown as u64) {
        0 => String::new(),
        more => format!("  and {more} more {are}\n"),
    }
}

/// The failed folds, for people; empty if there is none. `options` are those that find the same coordinator again.
pub fn failures(status: &SweepStatus, options: &str) -> String {
    let line = |f: &FoldGivenUp| {
        format!("  failed: {} ({}): {}\n    togl logs {}{options}\n", f.title, f.class, f.message, f.fold)
    };
    let shown: String = status.failures.iter().map(line).collect();
    let rest = more(status.sweep.failed, status.failures.len(), "failed");
    if rest.is_empty() {
        return shown;
    }
    let classes = status.failed_by_class.iter().map(|(class, folds)| format!("{folds} {class}"));
    let classes = classes.collect::<Vec<_>>().join(", ");
    let by_class = if classes.is_empty() { String::new() } else { format!(" (in all {classes})") };
    format!("{shown}{}{by_class}; `togl folds {}` lists them\n", rest.trim_end(), status.sweep.name)
}

impl Watch {
    pub(super) async fn run(self) -> VerbOutcome {
        let client = self.target.connect().await?; // if nobody is there from the beginning, it is a mistake
        let last = match (&self.sweep, !self.plain && !output::is_quiet() && watch::is_there()) {
            (sweep, true) => match watch::full_screen(&self.target, client, sweep.clone()).await? {
                WatchEnd::Over(last) => *last,
                WatchEnd::Left => return Ok(ExitCode::SUCCESS),
                WatchEnd::Interrupted => return Ok(ExitCode::from(problem::INTERRUPTED)),
            },
            (Some(sweep), false) => self.watch_on(client, sweep).await?,
            (None, false) => {
                return Err(Problem::usage(
                    "without a terminal to draw on, one sweep is watched, and none is named",
                )
                .hint("name a sweep; `togl sweeps` and `togl workers` list them all"));
            }
        };
        eprint!("{}", failures(&last, ""));
        eprintln!("{}", farewell(&last.sweep));
        Ok(ExitCode::from(if last.sweep.failed > 0 { problem::NEGATIVE } else { problem::DONE }))
    }

    /// Until the sweep has ended, however often the coordinator is away in between.
    async fn watch_on(&self, mut client: Client, sweep: &str) -> Result<SweepStatus, Problem> {
        let coordinator = self.target.address()?;
        let (mut progress, mut away) = (Progress::start(), None);
        loop {
            let mut show = |status: &SweepStatus| progress.show(status);
            let mut problem = match until_over(&mut client, sweep, &mut show, &mut away).await {
                Ok(last) => return Ok(last),
                Err(problem) => problem,
            };
            let absence = away.get_or_insert_with(Absence::begin);
            client = loop {
                if !problem.is_unreachable() {
                    return Err(problem);
                }
                progress.trouble(&absence.describe(&coordinator));
                tokio::time::sleep(absence.pause()).await;
                match self.target.connect().await {
                    Ok(client) => break client,
                    Err(again) => problem = again,
                }
            };
        }
    }
}

/// What is left to say of a sweep that has ended.
fn farewell(sweep: &ListedSweep) -> String {
    let ListedSweep { name, state, .. } = sweep;
    match state.as_str() {
        "failed" => format!("{name} failed: none of its {} folds has a result", sweep.folds),
        _ => format!("{name} is {state}; make its table with `togl table {name}`"),
    }
}

/// Pauses before the coordinator is looked for again: quick at first, because it restarts in a moment.
const PAUSES: [u64; 6] = [100, 200, 500, 1_000, 2_000, 5_000];

/// The coordinator is away.
pub struct Absence {
    since: String,
    tries: usize,
}

impl Absence {
    fn begin() -> Self {
        Self { since: clock::time_of_day(), tries: 0 }
    }

    fn describe(&self, coordinator: &str) -> String {
        format!("the coordinator at {coordinator} is away since {}; trying again", self.since)
    }

    fn pause(&mut self) -> Duration {
        let milliseconds = PAUSES[self.tries.min(PAUSES.len() - 1)];
        self.tries += 1;
        Duration::from_millis(milliseconds)
    }
}

/// Shows the sweep until it has ended; gives its last state. With the first state that comes the coordinator is no longer
/// away.
pub async fn until_over(
    client: &mut Client,
    sweep: &str,
    show: &mut (dyn FnMut(&SweepStatus) + Send),
    away: &mut Option<Absence>,
) -> Result<SweepStatus, Problem> {
    let request = wire::StatusRequest { sweep: sweep.to_owned() };
    let mut states = client.watch(request).await.map_err(remote::refused)?.into_inner();
    let mut last = None;
    while let Some(state) = states.message().await.map_err(remote::refused)? {
        let status = SweepStatus::from(state);
        *away = None;
        show(&status);
        last = Some(status);
    }
    match last {
        Some(status) if status.sweep.ended() => Ok(status),
        _ => Err(Problem::unreachable("the coordinator stopped before the sweep ended")
            .hint("results are safe; watch again when it is back")),
    }
}
