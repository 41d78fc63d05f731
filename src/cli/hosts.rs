//! `togl hosts`: workers on other machines over `ssh`: `up` brings them there, `down` lets them leave, and without either it shows
//! each host and its worker. Hosts are looked after at the same time, and what fails on one does not stop the others.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use togl_coordinator::tokens::{self, Role};
use togl_proto::token::Token;
use togl_proto::wire;
use togl_sweeps::bounded;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::VerbOutcome;
use crate::clock;
use crate::hosts::act::{self, HostTask, Left, Parcel};
use crate::hosts::bundle::HostBundle;
use crate::hosts::decide::HostRefusal;
use crate::hosts::file::{HostEntry, HostsFile};
use crate::output::{self, ListRow, Listing};
use crate::problem::{self, Problem};
use crate::remote::{self, Client, CoordinatorTarget, ListedWorker};

/// Hosts that are looked after at the same time.
const AT_ONCE: usize = 16;
/// How often a worker is looked for that should join.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Show, start and stop workers on other machines over ssh
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Hosts {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Bring a worker to each host of a file: look, copy what is missing, start, wait until it has joined
    Up(Up),
    /// Let the workers save and leave; nothing of them runs afterwards
    Down(Down),
    /// Show each host and its worker
    Status(List),
}

#[derive(Debug, clap::Args)]
struct List {
    /// The file of hosts
    #[arg(default_value = "hosts.yaml")]
    file: PathBuf,
    #[command(flatten)]
    target: CoordinatorTarget,
    #[command(flatten)]
    listing: Listing,
}

#[derive(Debug, clap::Args)]
struct Up {
    #[command(flatten)]
    list: List,
    /// What to send: a folder as `make install` makes it, or a tarball of one [default: what this program is part of]
    #[arg(long, value_name = "DIR|TARBALL")]
    bundle: Option<PathBuf>,
    /// How long a worker may take to leave, and another to join, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
}

#[derive(Debug, clap::Args)]
struct Down {
    /// The file of hosts
    #[arg(default_value = "hosts.yaml")]
    file: PathBuf,
    /// How long a worker may take to save and leave, in seconds; then it is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
}

/// A host and its worker.
#[derive(Debug, Serialize)]
struct Row {
    host: String,
    /// `joined`, `not joined`, `stopped`, `failed`, or what the coordinator calls the state of its worker.
    state: String,
    worker: String,
    slots: u32,
    busy: usize,
    devices: Vec<String>,
    /// Why, where something is not as it should be.
    note: String,
    #[serde(skip)]
    hint: String,
}

impl ListRow for Row {
    const COLUMNS: &'static [&'static str] = &["HOST", "STATE", "WORKER", "BUSY", "SLOTS", "DEVICES", "NOTE"];

    fn cells(&self) -> Vec<String> {
        let Self { host, state, worker, slots, busy, devices, note, .. } = self;
        let mut devices = devices.clone();
        devices.dedup();
        let (busy, slots) = (busy.to_string(), slots.to_string());
        vec![host.clone(), state.clone(), worker.clone(), busy, slots, devices.join(" "), note.clone()]
    }
}

impl Row {
    fn new(wish: &HostEntry, state: &str) -> Self {
        let (host, state) = (wish.host.clone(), state.to_owned());
        let (worker, note, hint) = Default::default();
        Self { host, state, worker, slots: 0, busy: 0, devices: Vec::new(), note, hint }
    }

    fn failed(wish: &HostEntry, refusal: HostRefusal) -> Self {
        Self { note: refusal.reason, hint: refusal.hint, ..Self::new(wish, "failed") }
    }

    fn joined(wish: &HostEntry, worker: ListedWorker) -> Self {
        let state = if worker.state == "connected" { "joined".to_owned() } else { worker.state };
        let ListedWorker { worker, slots, devices, running, note, .. } = worker;
        Self { state, worker, slots, devices, busy: running.len(), note, ..Self::new(wish, "") }
    }

    fn is_good(&self) -> bool {
        matches!(self.state.as_str(), "joined" | "draining")
    }
}

impl Hosts {
    pub(super) async fn run(self) -> VerbOutcome {
        match self.action {
            Some(Action::Up(up)) => up.run().await,
            Some(Action::Down(down)) => down.run().await,
            Some(Action::Status(list)) => list.run().await,
            None => self.list.run().await,
        }
    }
}

impl List {
    /// The coordinator: the one that was named, else the one that serves the state directory, else that of the file.
    async fn coordinator(&self, file: &HostsFile) -> Result<Client, Problem> {
        let served = self.target.state()?.served().is_some();
        let coordinator = self.target.coordinator.clone();
        let coordinator = coordinator.or_else(|| (!served).then(|| file.join.clone()));
        CoordinatorTarget { coordinator, ..self.target.clone() }.connect().await
    }

    async fn run(self) -> VerbOutcome {
        let file = HostsFile::read(&self.file)?;
        let workers = match self.coordinator(&file).await {
            Ok(mut client) => workers(&mut client).await,
            Err(problem) => Err(problem),
        };
        let workers = Arc::new(workers.unwrap_or_else(|problem| {
            eprintln!("the coordinator cannot be asked: {problem}");
            Vec::new()
        }));
        let rows = on_each(file.hosts, move |wish| {
            let workers = workers.clone();
            async move { look(&wish, &workers).await }
        });
        let rows = rows.await;
        output::list(&rows, &self.listing)?;
        Ok(code(rows.iter().all(Row::is_good)))
    }
}

async fn look(wish: &HostEntry, workers: &[ListedWorker]) -> Row {
    let looked = match act::look(wish, false).await {
        Ok(looked) => looked,
        Err(reason) => return Row::failed(wish, HostRefusal { reason, hint: act::reach(wish) }),
    };
    let joined = workers.iter().find(|worker| looked.worker.as_ref() == Some(&worker.worker));
    match joined {
        Some(worker) if looked.running => Row::joined(wish, worker.clone()),
        _ => {
            let state = if looked.running { "not joined" } else { "stopped" };
            let note = looked.log.last().cloned().unwrap_or_default();
            Row { worker: looked.worker.unwrap_or_default(), note, ..Row::new(wish, state) }
        }
    }
}

impl Up {
    async fn run(self) -> VerbOutcome {
        let file = HostsFile::read(&self.list.file)?;
        let client = self.list.coordinator(&file).await?;
        let token = self.token(&file)?.reveal();
        let bundle = tokio::task::block_in_place(|| HostBundle::find(self.bundle.as_deref()))?;
        let task = Arc::new(HostTask::new(Parcel::new(bundle), file.join, token, self.wait));
        let rows = on_each(file.hosts, move |wish| {
            let (task, mut client) = (task.clone(), client.clone());
            async move {
                let say = |words: String| eprintln!("{}: {words}", wish.host);
                let outcome = match task.up(&wish, &say).await {
                    Ok(()) => wait_for(&wish, &mut client, Duration::from_secs(self.wait)).await,
                    Err(refusal) => Err(refusal),
                };
                outcome.unwrap_or_else(|refusal| Row::failed(&wish, refusal))
            }
        });
        let rows = rows.await;
        output::list(&rows, &self.list.listing)?;
        Ok(said_at_the_end(&rows))
    }

    /// The worker token: of the file that is named, or of the state directory.
    fn token(&self, file: &HostsFile) -> Result<Token, Problem> {
        let Some(path) = &file.token_file else {
            let state = self.list.target.state()?;
            return tokens::own(state.path(), Role::Worker).map_err(|error| {
                Problem::usage(error)
                    .hint("name a file with a worker token of that coordinator as `token_file:` in the file of hosts")
            });
        };
        let refuse = |error: &dyn std::fmt::Display| {
            Problem::usage(format!("cannot read the worker token {}: {error}", path.display()))
                .hint("`togl token create --role worker` makes one")
        };
        read_token(path)
            .map_err(|error| refuse(&error))
            .and_then(|text| Token::parse(&text).map_err(|e| refuse(&e)))
    }
}

fn read_token(path: &Path) -> std::io::Result<String> {
    std::fs::File::open(path).and_then(|file| bounded::text(file, bounded::SECRET))
}

/// Waits until the worker of a host has joined, and says what its log says if it does not.
async fn wait_for(wish: &HostEntry, client: &mut Client, limit: Duration) -> Result<Row, HostRefusal> {
    let begun = clock::now();
    loop {
        let refuse = |reason| HostRefusal { reason, hint: act::reach(wish) };
        let looked = act::look(wish, false).await.map_err(refuse)?;
        let late = begun.elapsed() >= limit;
        let workers =
            workers(client).await.or_else(|problem| if late { Err(problem) } else { Ok(Vec::new()) });
        let workers = workers.map_err(|problem| refuse(problem.to_string()))?;
        let joined = workers.into_iter().find(|worker| looked.worker.as_ref() == Some(&worker.worker));
        if let Some(worker) = joined.filter(|worker| looked.running && worker.state != "disconnected") {
            eprintln!("{}: joined as {}", wish.host, worker.worker);
            return Ok(Row::joined(wish, worker));
        }
        // A shell needs a moment to become the worker.
        let died = !looked.running && begun.elapsed() > Duration::from_secs(5);
        if late || died {
            let how = if died { "the worker ended" } else { "the worker runs and has not joined" };
            let log = looked.log.join(" | ");
            let reason =
                format!("{how}; its log ends with: {}", if log.is_empty() { "nothing" } else { &log });
            let hint = format!("see {}/worker.log there", looked.folder);
            return Err(HostRefusal { reason, hint });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn workers(client: &mut Client) -> Result<Vec<ListedWorker>, Problem> {
    let reply = client.list_workers(wire::ListWorkersRequest {}).await.map_err(remote::refused)?;
    Ok(reply.into_inner().workers.into_iter().map(Into::into).collect())
}

impl Down {
    async fn run(self) -> VerbOutcome {
        let file = HostsFile::read(&self.file)?;
        let rows = on_each(file.hosts, move |wish| async move {
            let words = match act::down(&wish, self.wait).await {
                Ok(Left::Before) => "no worker ran",
                Ok(Left::Itself) => "the worker saved and left",
                Ok(Left::Killed) => "the worker took too long and was ended",
                Err(reason) => return Row::failed(&wish, HostRefusal { reason, hint: act::reach(&wish) }),
            };
            eprintln!("{}: {words}", wish.host);
            Row::new(&wish, "stopped")
        });
        Ok(said_at_the_end(&rows.await))
    }
}

/// Does something for each host, some at the same time; rows are in the order of the file.
async fn on_each<F: Future<Output = Row> + Send + 'static>(
    hosts: Vec<HostEntry>,
    act: impl Fn(HostEntry) -> F,
) -> Vec<Row> {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    for (number, wish) in hosts.into_iter().enumerate() {
        let (places, work) = (places.clone(), act(wish));
        tasks.spawn(async move {
            let _place = places.acquire().await;
            (number, work.await)
        });
    }
    let mut rows = tasks.join_all().await;
    rows.sort_by_key(|(number, _)| *number);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Names what failed, after all that went well.
fn said_at_the_end(rows: &[Row]) -> ExitCode {
    let failed: Vec<&Row> = rows.iter().filter(|row| row.state == "failed").collect();
    for row in &failed {
        eprintln!("error: {}: {}\n\n  hint: {}", row.host, row.note, row.hint);
    }
    code(failed.is_empty())
}

fn code(good: bool) -> ExitCode {
    ExitCode::from(if good { problem::DONE } else { problem::NEGATIVE })
}
