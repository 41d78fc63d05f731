//! Asks the coordinator for what is looked at and does what was asked for. A sweep comes by streams, as it does to a page, and
//! its table is made here from what came; lists and what people did are asked for now and then, and only while they are shown.
//! Draws nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use togl_analysis::render;
use togl_coordinator::store::history::Acted;
use togl_proto::wire;
use togl_web::Trouble;
use tokio::sync::{mpsc, watch};

use super::model::{SteeringKey, Update, View};
use crate::cli::Because;
use crate::cli::rfc3339;
use crate::clock;
use crate::facts::{self, Facts, Remote};
use crate::live::{CoordinatorLink, LiveSweep};
use crate::problem::Problem;
use crate::remote::{self, Client, CoordinatorTarget, SweepStatus};

/// What is looked at now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interest {
    pub sweep: Option<String>,
    pub view: Option<View>,
    pub fold: Option<String>,
}

/// Between two rounds, of which most ask nobody.
const PAUSE: Duration = Duration::from_millis(500);

/// Between two questions for what is shown.
const SHOWN: Duration = Duration::from_secs(1);

/// Between two questions for what only the head counts.
const BESIDE: Duration = Duration::from_secs(5);

/// Lines of a log that are shown.
const LOG: usize = 200;

/// Looks until nobody wants to know any more. Ends with a problem that asking again does not mend.
pub async fn look(
    target: CoordinatorTarget,
    client: Client,
    mut wanted: watch::Receiver<Interest>,
    updates: mpsc::Sender<Update>,
) -> Result<(), Problem> {
    let connection = Arc::new(CoordinatorLink::new(target, client)?);
    let mut looker = Looker { connection, updates, sweep: None, asked: Asked::default() };
    let mut last = Interest::default();
    loop {
        let now = wanted.borrow_and_update().clone();
        if now != last {
            looker.asked = Asked { lists: looker.asked.lists, ..Asked::default() };
            last.clone_from(&now);
        }
        match looker.round(&now).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(problem) if problem.is_unreachable() => {
                looker.connection.heard(&problem);
                let since = looker.connection.away_since().unwrap_or_default();
                looker.tell(Update::Away(format!("away since {since}"))).await;
            }
            Err(problem) => return Err(problem),
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = looker.news() => {}
            changed = wanted.changed() => if changed.is_err() { return Ok(()) }
        }
    }
}

/// When something was asked for last.
#[derive(Default)]
struct Asked {
    lists: Option<Instant>,
    acts: Option<Instant>,
    fold: Option<Instant>,
}

/// Whether it is time to ask again; if so, it is being asked now.
fn is_due(asked: &mut Option<Instant>, pause: Duration) -> bool {
    let now = clock::now();
    let due = asked.is_none_or(|asked| now.duration_since(asked) >= pause);
    if due {
        *asked = Some(now);
    }
    due
}

/// The sweep that is looked at.
struct Followed {
    name: String,
    live: Arc<LiveSweep>,
    states: watch::Receiver<Option<Result<SweepStatus, Trouble>>>,
    /// Version of the table that was shown last.
    shown: Option<u64>,
}

struct Looker {
    connection: Arc<CoordinatorLink>,
    updates: mpsc::Sender<Update>,
    sweep: Option<Followed>,
    asked: Asked,
}

/// As a command would say it.
fn problem(trouble: &Trouble) -> Problem {
    match trouble {
        Trouble::Unknown(words) => Problem::negative(words),
        Trouble::Bad(words) | Trouble::Refused(words) => Problem::told(words),
        Trouble::Away(words) => Problem::unreachable(words),
        Trouble::Ours(words) => Problem::ours(words),
    }
}

impl Looker {
    /// Whether somebody still listens.
    async fn tell(&self, update: Update) -> bool {
        self.updates.send(update).await.is_ok()
    }

    /// Waits until something new is known of the sweep.
    async fn news(&mut self) {
        if let Some(Followed { states, .. }) = &mut self.sweep
            && states.changed().await.is_ok()
        {
            states.mark_changed(); // the round takes it
            return;
        }
        std::future::pending().await
    }

    async fn facts(&self) -> Result<Remote, Problem> {
        Ok(Remote::new(self.connection.client().await?))
    }

    async fn round(&mut self, wanted: &Interest) -> Result<bool, Problem> {
        self.turn_to(wanted.sweep.as_deref())?;
        let mut listens = self.state().await?;
        let lists = matches!(wanted.view, Some(View::Sweeps | View::Workers));
        let away = self.connection.away_since().is_some();
        if is_due(&mut self.asked.lists, if lists || away { SHOWN } else { BESIDE }) {
            listens &= self.lists().await?;
        }
        if wanted.view == Some(View::Table) {
            listens &= self.table().await?;
        }
        if wanted.view == Some(View::History) && is_due(&mut self.asked.acts, SHOWN * 2) {
            let update = match self.facts().await?.acts(wanted.sweep.as_deref()).await {
                Ok(acts) => Update::Acts(acts.into_iter().map(line).collect()),
                Err(problem) => beside(problem, Update::Said)?,
            };
            listens &= self.tell(update).await;
        }
        if let Some(fold) = &wanted.fold
            && is_due(&mut self.asked.fold, SHOWN)
        {
            let update = match self.fold(fold).await {
                Ok(lines) => Update::Fold(lines),
                Err(problem) => beside(problem, |words| Update::Fold(vec![words]))?,
            };
            listens &= self.tell(update).await;
        }
        Ok(listens)
    }

    /// Follows this sweep and no other.
    fn turn_to(&mut self, sweep: Option<&str>) -> Result<(), Problem> {
        if self.sweep.as_ref().map(|followed| followed.name.as_str()) == sweep {
            return Ok(());
        }
        let follow = |name: &str| {
            let live = LiveSweep::follow(self.connection.clone(), facts::sweep_name(name)?);
            let states = live.states();
            Ok::<_, Problem>(Followed { name: name.to_owned(), live, states, shown: None })
        };
        self.sweep = sweep.map(follow).transpose()?;
        Ok(())
    }

    /// What is new of the sweep, if anything is.
    async fn state(&mut self) -> Result<bool, Problem> {
        let Some(followed) = &mut self.sweep else { return Ok(true) };
        if !followed.states.has_changed().unwrap_or(false) {
            return Ok(true);
        }
        let state = followed.states.borrow_and_update().clone();
        match state {
            None => Ok(true),
            Some(Ok(status)) => {
                let left = followed.live.time_left(&status);
                Ok(self.tell(Update::Status(Box::new(status), left)).await)
            }
            Some(Err(trouble)) => Err(problem(&trouble)),
        }
    }

    async fn lists(&mut self) -> Result<bool, Problem> {
        let mut facts = self.facts().await?;
        let sweeps = facts.sweeps(false).await?;
        let workers = match facts.workers().await? {
            facts::KnownWorkers::Here(workers) => workers,
            facts::KnownWorkers::Past(_) => Vec::new(), // only a store that nobody serves tells of them
        };
        Ok(self.tell(Update::All { sweeps, workers, at: clock::running() }).await)
    }

    /// The table as it is, once the first folds are read and whenever there is something new in it.
    async fn table(&mut self) -> Result<bool, Problem> {
        let Some(Followed { name, live, shown, .. }) = &mut self.sweep else { return Ok(true) };
        let version = live.version().await;
        if version == 0 || *shown == Some(version) {
            return Ok(true);
        }
        let made = match live.made().await {
            Ok(made) => made,
            Err(Trouble::Away(_)) => return Ok(true), // whoever follows says so
            Err(trouble) => return Err(problem(&trouble)),
        };
        *shown = Some(made.version);
        if made.frame.is_empty() {
            return Ok(true);
        }
        let lines = match &made.table {
            Ok(table) => render::terminal(table, false).lines().map(str::to_owned).collect(),
            Err(problem) => vec![problem.clone()], // such as a table of which no cell has a value yet
        };
        let update = Update::Table { sweep: name.clone(), lines };
        Ok(self.tell(update).await)
    }

    async fn fold(&mut self, fold: &str) -> Result<Vec<String>, Problem> {
        let mut facts = self.facts().await?;
        let explained = facts.explain(fold).await?;
        let mut lines = vec![explained.fold, explained.reason];
        for attempt in explained.attempts {
            let ending = if attempt.ending.is_empty() {
                String::new()
            } else {
                format!(", ended: {}", attempt.ending)
            };
            lines.push(format!("attempt {} on {}{ending}", attempt.attempt, attempt.worker));
        }
        for piece in facts.log(fold).await? {
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
pub async fn carry_out(target: CoordinatorTarget, deed: SteeringKey, reason: String) -> String {
    let because = Because::of(&reason);
    let done = async {
        let mut client = target.connect().await?;
        match deed {
            SteeringKey::Pause(sweep) => {
                let request = because.ask(wire::PauseRequest { sweep: sweep.clone() });
                client.pause(request).await.map_err(remote::refused)?;
                Ok(format!("{sweep} is paused; what runs goes on"))
            }
            SteeringKey::Resume(sweep) => {
                let request = because.ask(wire::ResumeRequest { sweep: sweep.clone() });
                client.resume(request).await.map_err(remote::refused)?;
                Ok(format!("{sweep} goes on"))
            }
            SteeringKey::Retry(sweep) => {
                let request = because.ask(wire::RetryRequest { sweep });
                let reply = client.retry(request).await.map_err(remote::refused)?;
                Ok(format!("{} failed folds will be tried again", reply.into_inner().folds))
            }
            SteeringKey::Cancel(sweep) => {
                let request = because.ask(wire::CancelRequest { sweep });
                let reply = client.cancel(request).await.map_err(remote::refused)?;
                Ok(format!("cancelled; {} running folds stopped", reply.into_inner().abandoned))
            }
            SteeringKey::Drain(worker) => {
                let request = because.ask(wire::DrainRequest { worker: worker.clone(), undo: false });
                client.drain(request).await.map_err(remote::refused)?;
                Ok(format!("{worker} finishes what it trains and leaves"))
            }
        }
    };
    done.await.unwrap_or_else(|problem: Problem| problem.to_string())
}
