//! Notifications of `togl serve --notify`: looks at the coordinator as everybody else does, over a connection, decides what is to
//! be told, keeps it in `notify.json` of the state directory, and delivers it. All of it happens on a thread of its own with a
//! runtime of its own, so whatever a webhook does, the coordinator does not wait.

mod decide;
#[cfg(test)]
mod decide_tests;
mod file;
mod letter;
mod outbox;
mod send;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use togl_analysis::render;
use togl_coordinator::private;
use togl_proto::wire;
use togl_sweeps::bounded;
use tokio::task::JoinSet;

use self::decide::{Disputed, Notice, Observed, Occasion};
use self::letter::{Enclosed, Letter, Steering};
use self::outbox::{Lost, Outbox};
use self::send::{Returned, Sender};
use crate::cli;
use crate::clock;
use crate::facts::{self, Depth, Facts as _, KnownWorkers, Remote};
use crate::problem::Problem;
use crate::remote::{self, CoordinatorTarget};
use crate::state::StateDir;
use crate::web;

pub use self::file::{Hook, NotifyFile};

/// Between two looks at the coordinator.
const EVERY: Duration = Duration::from_secs(2);
/// Between two looks at what is to be delivered.
const POST: Duration = Duration::from_millis(250);
/// No table is made of more folds beside a coordinator: it would take its memory.
const MOST_FOLDS: u64 = 100_000;
/// What people did to a sweep is told back to so many acts.
const ACTS: usize = 5;

/// What makes one attempt to tell a webhook that letters arrive; for `togl notify test`.
pub fn tester(file: &NotifyFile) -> Result<impl Fn(&Hook) -> Result<(), Returned>, Problem> {
    let (sender, now) = (Sender::new(file.ca_file.as_deref())?, clock::unix_seconds());
    Ok(move |hook: &Hook| sender.deliver(hook, &Letter::test(new_id(), now), now))
}

/// A name that no other letter has.
fn new_id() -> String {
    format!("msg_{}", &web::secret()[..32])
}

/// Somebody who tells what happens.
pub struct Notifier {
    file: NotifyFile,
    sender: Sender,
    record: PathBuf,
    target: CoordinatorTarget,
}

impl Notifier {
    /// One that is ready to begin.
    pub fn new(file: NotifyFile, state: &StateDir, target: CoordinatorTarget) -> Result<Self, Problem> {
        let sender = Sender::new(file.ca_file.as_deref())?;
        Ok(Self { file, sender, record: state.path().join("notify.json"), target })
    }

    /// Who is told, by name.
    pub fn names(&self) -> String {
        self.file.hooks.iter().map(|hook| hook.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Tells what happens from now on, until the process ends.
    pub fn start(self) -> Result<(), Problem> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let tell = move || runtime.block_on(self.run());
        std::thread::Builder::new().name("notify".to_owned()).spawn(tell)?;
        Ok(())
    }

    async fn run(self) {
        let mut post = Post {
            outbox: self.read(),
            on_their_way: JoinSet::new(),
            changed: false,
            keeps: true,
            sees: true,
        };
        let mut looks = tokio::time::interval(EVERY);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut rounds = tokio::time::interval(POST);
        let mut client = None;
        loop {
            tokio::select! {
                _ = looks.tick() => self.look(&mut client, &mut post).await,
                _ = rounds.tick() => {}
                Some(ended) = post.on_their_way.join_next() => post.note(ended.ok()),
            }
            self.keep(&mut post);
            self.send_what_is_due(&mut post);
        }
    }

    /// Looks at the coordinator and writes what is to be told.
    async fn look(&self, client: &mut Option<remote::Client>, post: &mut Post) {
        let today = clock::unix_seconds();
        let lost = post.outbox.sort_out(&self.file.hooks, today);
        post.lose(lost);
        let (connected, picture) = match self.picture(client).await {
            Ok(seen) => seen,
            Err(problem) => {
                *client = None;
                if std::mem::replace(&mut post.sees, false) {
                    tracing::warn!(%problem, "notifications: the coordinator cannot be looked at; tried again and again");
                }
                return;
            }
        };
        post.sees = true;
        let before = post.outbox.told.clone();
        for notice in post.outbox.told.decide(&self.file.rules, &picture, clock::running()) {
            let enclosed = enclosed(connected.clone(), &notice).await;
            let letter = Letter::new(new_id(), today, notice, enclosed);
            tracing::info!(event = letter.occasion, about = letter.about, "notifications: something to tell");
            let lost = post.outbox.post(&self.file.hooks, &letter);
            post.lose(lost);
        }
        post.changed |= before != post.outbox.told;
    }

    /// What the coordinator shows, over the last connection or a new one.
    async fn picture(
        &self,
        client: &mut Option<remote::Client>,
    ) -> Result<(remote::Client, Observed), Problem> {
        let connected = match client.take() {
            Some(client) => client,
            None => self.target.connect().await?,
        };
        *client = Some(connected.clone());
        Ok((connected.clone(), picture(connected).await?))
    }

    fn send_what_is_due(&self, post: &mut Post) {
        for (name, letter) in post.outbox.due(clock::running()) {
            let Some(hook) = self.file.hooks.iter().find(|hook| hook.name == name).cloned() else { continue };
            let (sender, name) = (self.sender.clone(), Arc::<str>::from(name));
            post.on_their_way.spawn_blocking(move || {
                let attempt = || sender.deliver(&hook, &letter, clock::unix_seconds());
                // A library that gives up is a letter that did not arrive, and is tried again.
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt));
                (name, outcome.unwrap_or_else(|_| Err("it cannot be sent".to_owned())))
            });
        }
    }

    fn read(&self) -> Outbox {
        let read = || -> Result<Outbox, String> {
            let file = std::fs::File::open(&self.record).map_err(|error| error.to_string())?;
            let text = bounded::text(file, bounded::DOCUMENT).map_err(|error| error.to_string())?;
            serde_json::from_str(&text).map_err(|error| error.to_string())
        };
        if !self.record.exists() {
            return Outbox::default();
        }
        read().unwrap_or_else(|error| {
            tracing::warn!(error, file = %self.record.display(), "notifications: what was told cannot be read; begun anew");
            Outbox::default()
        })
    }

    /// Writes what changed before anything of it is sent: nothing is told twice for want of a record.
    fn keep(&self, post: &mut Post) {
        if !post.changed {
            return;
        }
        let text = serde_json::to_vec(&post.outbox).map_err(std::io::Error::from);
        match text.and_then(|text| private::write(&self.record, &text)) {
            Ok(()) => (post.changed, post.keeps) = (false, true),
            // Once, not with every round; it is tried again with the next one.
            Err(error) if std::mem::replace(&mut post.keeps, false) => {
                tracing::warn!(%error, file = %self.record.display(), "notifications: what was told cannot be kept");
            }
            Err(_) => {}
        }
    }
}

/// What is told, and what is being delivered.
struct Post {
    outbox: Outbox,
    on_their_way: JoinSet<(Arc<str>, Result<(), Returned>)>,
    /// Since it was kept last.
    changed: bool,
    /// Whether keeping works.
    keeps: bool,
    /// Whether the coordinator can be looked at.
    sees: bool,
}

impl Post {
    /// An attempt has ended.
    fn note(&mut self, ended: Option<(Arc<str>, Result<(), Returned>)>) {
        match ended {
            Some((hook, Ok(()))) => {
                self.outbox.arrived(&hook);
                self.changed = true;
                tracing::info!(%hook, "notifications: delivered");
            }
            Some((hook, Err(why))) => {
                let (pause, failed) = self.outbox.returned(&hook, clock::running());
                tracing::warn!(%hook, why, failed, again_in_seconds = pause.as_secs(), "notifications: not delivered");
            }
            None => tracing::warn!("notifications: an attempt to deliver broke off"),
        }
    }

    fn lose(&mut self, lost: Vec<Lost>) {
        self.changed |= !lost.is_empty();
        for Lost { hook, occasion } in lost {
            tracing::warn!(hook, event = occasion, "notifications: given up");
        }
    }
}

/// What the coordinator shows.
async fn picture(mut client: remote::Client) -> Result<Observed, Problem> {
    let mut remote = Remote::new(client.clone());
    let sweeps = remote.sweeps(false).await?;
    let KnownWorkers::Here(workers) = remote.workers().await? else {
        return Err(Problem::ours("the coordinator told of workers of the past"));
    };
    let disputes = client.list_disputes(wire::ListDisputesRequest {}).await.map_err(remote::refused)?;
    let disputed =
        |dispute: wire::Dispute| Disputed { data: dispute.data, dissenting: dispute.dissent.len() };
    let disputes = disputes.into_inner().disputes.into_iter().map(disputed).collect();
    Ok(Observed { sweeps, workers, disputes })
}

/// What belongs to a notice about a sweep. What cannot be had is left out: that something happened is worth telling by itself.
async fn enclosed(client: remote::Client, notice: &Notice) -> Enclosed {
    let Some(counts) = notice.sweep else { return Enclosed::default() };
    let sweep = &notice.matter.about;
    let mut remote = Remote::new(client);
    let acts = remote.acts(Some(sweep)).await.unwrap_or_default();
    let acts = acts.iter().rev().take(ACTS).rev().map(|act| Steering {
        at: cli::rfc3339(act.at),
        by: act.by.clone(),
        act: act.act.clone(),
        reason: act.reason.clone(),
    });
    let acts = acts.collect();
    let wants_table = notice.matter.occasion == Occasion::SweepDone && counts.finished > 0;
    let table = match (wants_table, counts.finished > MOST_FOLDS) {
        (false, _) => None,
        (true, true) => Some(format!("more than {MOST_FOLDS} folds: `togl table {sweep}` makes the table")),
        (true, false) => table(&mut remote, sweep).await.map_or_else(
            |problem| {
                tracing::warn!(%problem, sweep, "notifications: the table cannot be made");
                None
            },
            Some,
        ),
    };
    Enclosed { table, acts }
}

/// The table that the sweep file asks for, as text.
async fn table(remote: &mut Remote, sweep: &str) -> Result<String, Problem> {
    let collected = facts::collected(remote, sweep, Depth::Frame).await?;
    Ok(render::terminal(&cli::table_of(&collected)?, false))
}
