//! `togl-worker join`: puts the agent, its slots and the link together and runs them until told to stop.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use togl_agent::agent::{Agent, AgentEnd, Habits, Life, Tidy};
use togl_agent::courier::Courier;
use togl_agent::identity::{WorkerIdentity, unique_worker_id};
use togl_agent::library::Library;
use togl_agent::link::LinkRefusal;
use togl_agent::slots::SlotEvent;
use togl_agent::spool::Spool;
use togl_agent::{agent, link, tasks};
use togl_proto::client::{self, ClientAccess, ConnectError};
use togl_sweeps::{Capability, bounded};
use tokio::sync::{mpsc, watch};

use crate::background::Background;
use crate::data::Data;
use crate::devices::DeviceRequest;
use crate::fold::Keeping;
use crate::moving::Moving;
use crate::program::Setup;
use crate::program::options::Options;
use crate::saving::{Bringing, Saving};
use crate::slot::TrainerProgram;
use crate::{Usage, devices, host, own_coordinator, slot, version};

/// Joins a coordinator and trains what it hands out.
#[derive(Debug, clap::Args)]
pub struct Join {
    /// Where the coordinator listens, as HOST:PORT [default: the one that serves the state directory of this machine]
    address: Option<String>,
    /// File that holds the worker token; otherwise TOGL_TOKEN, otherwise that of the state directory if its coordinator is
    /// meant, otherwise standard input
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// PEM file with a certificate and its key, for a coordinator that asks for one
    #[arg(long, value_name = "FILE", env = "TOGL_IDENTITY")]
    identity: Option<PathBuf>,
    #[command(flatten)]
    devices: DeviceRequest,
    #[command(flatten)]
    data: Data,
    /// Threads of each slot; one is bit-reproducible, and several slots of one thread train faster than one of several
    #[arg(long, value_name = "N", env = "TOGL_THREADS", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Leave after this many seconds without work, so that a cluster job ends
    #[arg(long, value_name = "SECONDS")]
    idle_exit: Option<u64>,
    /// Leave before so much time has passed, such as 12h or 43200: nothing is begun that would take longer, and what is in
    /// training then is saved
    #[arg(long, value_name = "DURATION", env = "TOGL_LIFETIME", value_parser = duration)]
    lifetime: Option<Duration>,
    /// Exit code after being told to leave, by a signal, by `togl workers drain` or because the lifetime was over
    #[arg(long, value_name = "CODE", env = "TOGL_STOPPED_EXIT", default_value_t = 0)]
    stopped_exit: u8,
    /// Seconds that folds in training may take to save when this worker is told to stop
    #[arg(long, value_name = "SECONDS", env = "TOGL_GRACE", default_value_t = 10)]
    grace: u64,
    #[command(flatten)]
    background: Background,
    #[command(flatten)]
    saving: Saving,
    #[command(flatten)]
    bringing: Bringing,
    #[command(flatten)]
    programs: Options,
    /// Leave when standard input closes: the program that started this worker is gone
    #[arg(long, hide = true)]
    with_parent: bool,
}

impl Join {
    /// Runs until stopped; the exit code follows the documented table.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let (life, told_to_leave) = (self.life()?, ExitCode::from(self.stopped_exit));
        let state = self.saving.room().state().context("no home directory; name a folder with --state")?;
        let address = self.address(&state)?;
        let access = self.access(&state, &address)?;
        let (room, spool) = Spool::open_free(&state, &host::name())?;
        let devices = self.devices.choose()?;
        let programs = self.programs.setup(&room)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let stopped = runtime.block_on(self.work(address, access, spool, (devices, programs), life))?;
        runtime.shutdown_timeout(Duration::from_secs(1));
        match stopped {
            AgentEnd::Asked => Ok(told_to_leave),
            AgentEnd::Idle => Ok(ExitCode::SUCCESS),
            AgentEnd::Refused { why, kept } => anyhow::bail!(refused(&why, kept, &room)),
        }
    }

    /// What is left for training must be more than saving may take.
    fn life(&self) -> anyhow::Result<Option<Life>> {
        let margin = self.saving.every() + Duration::from_secs(self.grace);
        let life = self.lifetime.map(|lasts| Life { lasts, margin });
        match life {
            Some(Life { lasts, .. }) if lasts <= margin => anyhow::bail!(
                Usage::new(format!(
                    "a lifetime of {} s leaves no time for training: up to {} s are kept for saving",
                    lasts.as_secs(),
                    margin.as_secs()
                ))
                .hint("give more time, or lower --checkpoint-seconds and --grace")
            ),
            life => Ok(life),
        }
    }

    fn address(&self, state: &Path) -> anyhow::Result<String> {
        let nobody = || {
            let state = state.display();
            Usage::new(format!("no coordinator is named, and none serves {state}"))
                .hint("start one with `togl serve`, or name one as HOST:PORT")
        };
        let typed = self.address.as_ref().map(|typed| own_coordinator::meant(state, typed));
        Ok(typed.or_else(|| own_coordinator::address(state)).ok_or_else(nobody)?)
    }

    /// The right to call the coordinator at `address`.
    fn access(&self, state: &Path, address: &str) -> anyhow::Result<ClientAccess> {
        let usage = |error: ConnectError| Usage::new(error);
        client::check_address(address).map_err(usage)?;
        let access =
            ClientAccess::new(&self.token(state, address)?, self.identity.as_deref()).map_err(usage)?;
        if !access.is_encrypted() && !client::is_local(address) {
            tracing::warn!(
                "the token has no `.ca` part, so the connection is not encrypted, which coordinators refuse from other \
                 machines; copy the whole token that yours has printed"
            );
        }
        Ok(access)
    }

    fn token(&self, state: &Path, address: &str) -> anyhow::Result<String> {
        let own = || own_coordinator::token(state, address).filter(|_| !self.with_parent);
        let text = match (&self.token_file, std::env::var("TOGL_TOKEN")) {
            (Some(file), _) => {
                std::fs::File::open(file).and_then(|opened| bounded::text(opened, bounded::SECRET)).map_err(
                    |error| Usage::new(format!("cannot read the token file {}: {error}", file.display())),
                )?
            }
            (None, Ok(token)) => token,
            (None, Err(_)) if let Some(own) = own() => own,
            (None, Err(_)) if self.with_parent => String::new(),
            (None, Err(_)) => bounded::text(std::io::stdin(), bounded::SECRET)
                .context("cannot read the token from standard input")?,
        };
        let token = text.trim().to_owned();
        if token.is_empty() {
            anyhow::bail!(
                Usage::new("no token")
                    .hint("set TOGL_TOKEN to the worker token that `togl serve` prints, or use --token-file")
            );
        }
        Ok(token)
    }

    async fn work(
        self,
        address: String,
        access: ClientAccess,
        spool: Spool,
        (devices, programs): (Vec<String>, Option<Setup>),
        life: Option<Life>,
    ) -> anyhow::Result<AgentEnd> {
        let keeping = self.saving.keeping();
        say_where_checkpoints_are(&keeping);
        let moves = self.saving.room().is_shared() || self.bringing.every().is_some();
        let identity = identity(devices, moves, self.programs.offers());
        tracing::info!(worker = %identity.worker, devices = ?identity.devices, "worker starts");
        let path = std::env::current_exe().context("cannot find this program's own file")?;
        let (courier, library) = carriers(&identity, &access, &address);
        let moving = keeping.checkpoints.clone().zip(self.bringing.every());
        let moving = moving.map(|(checkpoints, every)| Moving { courier, checkpoints, every });
        let program = TrainerProgram {
            programs: programs.map(|setup| (setup, library)),
            moving,
            path,
            threads: self.threads,
            data: self.data,
            keeping: keeping.clone(),
            save_every: self.saving.every(),
            pauses: self.background.pauses(),
        };
        let (slot_events, slot_inbox) = mpsc::channel(256);
        let slots = (0..identity.devices.len()).map(|number| start_slot(number, &program, &slot_events));
        let slots = slots.collect();
        let (link_events, link_inbox) = mpsc::channel(256);
        let connect = move || {
            let (access, address) = (access.clone(), address.clone());
            async move { access.workers(&address).await }
        };
        tasks::spawn("link", link::keep(connect, link_events));
        let (stop, stopped) = mpsc::channel(1);
        tasks::spawn("stop", wait_for_stop(stop, self.with_parent));
        let (grace, idle_exit) = (Duration::from_secs(self.grace), self.idle_exit.map(Duration::from_secs));
        let habits = Habits { grace, idle_exit, life, tidy: tidy(keeping) };
        Ok(Agent::new(identity, habits, spool, slots).run(link_inbox, slot_inbox, stopped).await)
    }
}

/// Who carries checkpoints, and who fetches the files of programs.
fn carriers(identity: &WorkerIdentity, access: &ClientAccess, address: &str) -> (Courier, Library) {
    let to = (access.clone(), address.to_owned());
    let courier = Courier::new(identity.worker.clone(), move || {
        let (access, address) = to.clone();
        async move { access.checkpoints(&address).await }
    });
    let to = (access.clone(), address.to_owned());
    let library = Library::new(move || {
        let (access, address) = to.clone();
        async move { access.workers(&address).await }
    });
    (courier, library)
}

/// What the user reads when the coordinator will never take this worker, and what can be done.
fn refused(why: &LinkRefusal, kept: usize, room: &Path) -> Usage {
    let mut text = format!("the coordinator refused this worker: {why}");
    if kept > 0 {
        let results = if kept == 1 { "1 result is".to_owned() } else { format!("{kept} results are") };
        text += &format!("\n  {results} kept in {}; the next worker here reports them", room.display());
    }
    Usage::new(text).hint(match why {
        LinkRefusal::Token(_) => {
            "ask the operator for another token (`togl token create --role worker`) and join again with it"
        }
        LinkRefusal::Other(_) => "copy address and token from the line that `togl serve` prints",
    })
}

/// A time with its unit, or a number of seconds.
fn duration(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => {
            humantime::parse_duration(text).map_err(|error| format!("{error}; write it as in 12h or 43200"))
        }
    }
}

fn identity(devices: Vec<String>, moves_checkpoints: bool, offers: Vec<Capability>) -> WorkerIdentity {
    let host = host::name();
    let memories = devices::memories(&devices);
    let (worker, code_version) = (unique_worker_id(&host), version::VERSION.to_owned());
    let allocation = host::allocation();
    WorkerIdentity { worker, host, code_version, devices, memories, allocation, moves_checkpoints, offers }
}

fn start_slot(number: usize, program: &TrainerProgram, events: &mpsc::Sender<SlotEvent>) -> agent::SlotEnds {
    let (sender, receiver) = mpsc::channel(8);
    let (progress, latest) = watch::channel(None);
    tasks::spawn("slot", slot::run(number, program.clone(), receiver, events.clone(), progress));
    (sender, latest)
}

/// A fold whose result is safe needs its checkpoints no more.
fn tidy(keeping: Keeping) -> Tidy {
    Arc::new(move |fold| keeping.checkpoints.as_ref().map_or(Ok(()), |checkpoints| checkpoints.remove(fold)))
}

fn say_where_checkpoints_are(keeping: &Keeping) {
    let Some(checkpoints) = &keeping.checkpoints else {
        return tracing::warn!("no home directory, so no checkpoints; name a folder with --checkpoint-dir");
    };
    let (folder, usage) = (checkpoints.folder.display(), checkpoints.usage());
    let most_bytes = checkpoints.most_bytes;
    tracing::info!(%folder, files = usage.files, bytes = usage.bytes, most_bytes, "checkpoints");
}

/// Says stop on SIGINT, SIGTERM or, when asked to, on the end of standard input; and again on a second signal.
async fn wait_for_stop(stop: mpsc::Sender<()>, with_parent: bool) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return tracing::error!("cannot listen for signals");
    };
    if with_parent {
        leave_with_parent(stop.clone());
    }
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if stop.send(()).await.is_err() {
            return; // the agent is gone already
        }
    }
}

/// Asks to stop when standard input ends. A thread of its own, because reading standard input blocks.
fn leave_with_parent(stop: mpsc::Sender<()>) {
    let wait = move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        let _ = stop.blocking_send(());
    };
    if let Err(error) = std::thread::Builder::new().name("parent".to_owned()).spawn(wait) {
        tracing::error!(%error, "cannot watch the parent process");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_is_cut_off_says_what_it_keeps_and_how_to_go_on() {
        let why = LinkRefusal::Token("the token was revoked or has expired".to_owned());
        let said = refused(&why, 2, Path::new("state/worker"));
        assert_eq!(
            said.to_string(),
            "the coordinator refused this worker: the token was revoked or has expired\n  \
             2 results are kept in state/worker; the next worker here reports them"
        );
        assert!(said.hint.unwrap().starts_with("ask the operator for another token"));
        assert!(
            !refused(&LinkRefusal::Other("x".to_owned()), 0, Path::new("y")).to_string().contains("kept")
        );
    }
}
