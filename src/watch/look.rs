//! Asks the coordinator for what is looked at, again and again, and does what was asked for. One connection, and one question
//! after the other; what is not shown is not asked for. Draws nothing.

use std::time::{Duration, Instant};

use togl_analysis::render;
use togl_coordinator::store::history::Acted;
use togl_proto::wire;
use tokio::sync::{mpsc, watch};

use super::model::{Deed, Update, View};
use crate::cli::rfc3339;
use crate::cli::table_of;
use crate::clock;
use crate::facts::{self, Depth, Facts, Remote};
use crate::problem::Problem;
use crate::remote::{self, Client, SweepStatus, Target};

/// What is looked at now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    pub sweep: Option<String>,
    pub view: Option<View>,
    pub fold: Option<String>,
}

/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(500);

/// The table pauses so many times as long as it took to make.
const REST: u32 = 3;

/// Lines of a log that are shown.
const LOG: usize = 200;

/// How long a coordinator that is away is left alone, from the first try on.
const PATIENCE: [u64; 5] = [200, 500, 1_000, 2_000, 5_000];

/// Looks until nobody wants to know any more. Ends with a problem that asking again does not mend.
pub async fn look(
    target: Target,
    client: Client,
    mut wanted: watch::Receiver<Wanted>,
    updates: mpsc::Sender<Update>,
) -> Result<(), Problem> {
    let mut looker = Looker { facts: Remote::new(client), updates, table: None };
    let (mut tries, mut since) = (0, None);
    loop {
        let now = wanted.borrow_and_update().clone();
        let pause = match looker.round(&now).await {
            Ok(true) => {
                (tries, since) = (0, None);
                PAUSE
            }
            Ok(false) => return Ok(()),
            Err(problem) if problem.is_unreachable() => {
                let since = since.get_or_insert_with(clock::time_of_day);
                looker.tell(Update::Away(format!("away since {since}"))).await;
                if let Ok(client) = target.connect().await {
                    looker.facts = Remote::new(client);
                }
                tries += 1;
                Duration::from_millis(PATIENCE[tries.min(PATIENCE.len()) - 1])
            }
            Err(problem) => return Err(problem),
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            changed = wanted.changed() => if changed.is_err() { return Ok(()) }
        }
    }
}

/// The table as it was last made.
struct Made {
    sweep: String,
    /// Results that it has.
    finished: u64,
    /// When it may be made again.
    due: Instant,
}

struct Looker {
    facts: Remote,
    updates: mpsc::Sender<Update>,
    table: Option<Made>,
}

impl Looker {
    /// Whether somebody still listens.
    async fn tell(&self, update: Update) -> bool {
        self.updates.send(update).await.is_ok()
    }

    async fn round(&mut self, wanted: &Wanted) -> Result<bool, Problem> {
        let (sweeps, workers) = (self.facts.sweeps(false).await?, self.facts.workers().await?);
        let workers = match workers {
            facts::Workers::Here(workers) => workers,
            facts::Workers::Past(_) => Vec::new(), // only a store that nobody serves tells of them
        };
        let mut listens = self.tell(Update::All { sweeps, workers }).await;
        if let Some(sweep) = &wanted.sweep {
            let status = self.facts.status(sweep).await?;
            listens &= self.tell(Update::Status(Box::new(status.clone()))).await;
            if wanted.view == Some(View::Table) {
                self.table(sweep, &status).await?;
            }
        }
        if wanted.view == Some(View::History) {
            let update = match self.facts.acts(wanted.sweep.as_deref()).await {
                Ok(acts) => Update::Acts(acts.into_iter().map(line).collect()),
                Err(problem) => beside(problem, Update::Said)?,
            };
            listens &= self.tell(update).await;
        }
        if let Some(fold) = &wanted.fold {
            let update = match self.fold(fold).await {
                Ok(lines) => Update::Fold(lines),
                Err(problem) => beside(problem, |words| Update::Fold(vec![words]))?,
            };
            listens &= self.tell(update).await;
        }
        Ok(listens)
    }

    /// Makes the table with the code of `togl table`, if there is something new in it.
    async fn table(&mut self, sweep: &str, status: &SweepStatus) -> Result<(), Problem> {
        let finished = status.sweep.finished;
        let is_new =
            |made: &Made| made.sweep != sweep || (made.finished != finished && made.due <= clock::now());
        if finished == 0 || !self.table.as_ref().is_none_or(is_new) {
            return Ok(());
        }
        let began = clock::now();
        let collected = facts::collected(&mut self.facts, sweep, Depth::Frame).await?;
        let made = tokio::task::block_in_place(|| table_of(&collected));
        let lines = match made {
            Ok(table) => render::terminal(&table, false).lines().map(str::to_owned).collect(),
            Err(problem) => vec![problem.to_string()], // such as a table of which no cell has a value yet
        };
        self.tell(Update::Table { sweep: sweep.to_owned(), lines }).await;
        let due = clock::now() + began.elapsed() * REST;
        self.table = Some(Made { sweep: sweep.to_owned(), finished, due });
        Ok(())
    }

    async fn fold(&mut self, fold: &str) -> Result<Vec<String>, Problem> {
        let explained = self.facts.explain(fold).await?;
        let mut lines = vec![explained.fold, explained.reason];
        for attempt in explained.attempts {
            let ending = if attempt.ending.is_empty() {
                String::new()
            } else {
                format!(", ended: {}", attempt.ending)
            };
            lines.push(format!("attempt {} on {}{ending}", attempt.attempt, attempt.worker));
        }
        for piece in self.facts.log(fold).await? {
            lines.push(format!("--- what attempt {} wrote", piece.attempt));
            let written: Vec<&str> = piece.text.lines().collect();
            lines.extend(written[written.len().saturating_sub(LOG)..].iter().map(ToString::to_string));
        }
        Ok(lines)
    }
}

/// What cannot be shown in one view does not end the others, unless nobody answers at all.
fn beside(problem: Problem, told: impl FnOnce(String) -> Update) -> Result<Update, Problem> {
    if problem.is_unreachable() { Err(problem) } else { Ok(told(problem.to_string())) }
}

fn line(act: Acted) -> Vec<String> {
    vec![rfc3339(act.at), act.by, act.act, act.about, act.detail, act.reason]
}

/// Does what somebody agreed to, and says how it went.
pub async fn carry_out(target: Target, deed: Deed) -> String {
    let done = async {
        let mut client = target.connect().await?;
        match deed {
            Deed::Pause(sweep) => {
                client.pause(wire::PauseRequest { sweep: sweep.clone() }).await.map_err(remote::refused)?;
                Ok(format!("{sweep} is paused; what runs goes on"))
            }
            Deed::Resume(sweep) => {
                client.resume(wire::ResumeRequest { sweep: sweep.clone() }).await.map_err(remote::refused)?;
                Ok(format!("{sweep} goes on"))
            }
            Deed::Retry(sweep) => {
                let reply = client.retry(wire::RetryRequest { sweep }).await.map_err(remote::refused)?;
                Ok(format!("{} failed folds will be tried again", reply.into_inner().folds))
            }
            Deed::Cancel(sweep) => {
                let reply = client.cancel(wire::CancelRequest { sweep }).await.map_err(remote::refused)?;
                Ok(format!("cancelled; {} running folds stopped", reply.into_inner().abandoned))
            }
            Deed::Drain(worker) => {
                let request = wire::DrainRequest { worker: worker.clone(), undo: false };
                client.drain(request).await.map_err(remote::refused)?;
                Ok(format!("{worker} finishes what it trains and leaves"))
            }
        }
    };
    done.await.unwrap_or_else(|problem: Problem| problem.to_string())
}
