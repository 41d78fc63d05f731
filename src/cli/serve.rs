//! `togl serve`: a coordinator for other processes and machines.

use std::io::IsTerminal;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use togl_coordinator::checkpoints::{NotStorage, Storage};
use togl_coordinator::service::Coordinator;
use togl_proto::token::Token;
use tokio::net::TcpListener;

use super::install::InstallFrom;
use crate::descriptors;
use crate::embedded::{self, Embedded};
use crate::notify::{Notifier, NotifyFile};
use crate::problem::Problem;
use crate::remote::CoordinatorTarget;
use crate::state::StateDir;
use crate::web::{self, Page};

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Human,
    /// One JSON object a line, for programs that collect logs.
    Json,
}

/// Serve a coordinator
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// Where to listen; 0.0.0.0:7447 means every address of this machine
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7447")]
    listen: String,
    /// A further name or address of this machine for its certificate; may be given several times
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Let other machines come without TLS (only on a network that you trust; the token is still required)
    #[arg(long)]
    plaintext: bool,
    /// PEM file of CAs: who comes over TLS must show a certificate of one of them, besides the token
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Where to serve /metrics for Prometheus and /scale for whoever starts workers, such as 127.0.0.1:9464; from other machines it needs TLS and a token
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
    /// Show the page of `togl web` beside it, at this address of this machine [default: 127.0.0.1:7448]
    #[arg(long, value_name = "IP:PORT", num_args = 0..=1, require_equals = true, default_missing_value = web::USUAL)]
    web: Option<String>,
    /// Tell webhooks when a sweep is done, pauses itself or fails, and what else asks for a hand; a YAML file that only its owner may read
    #[arg(long, value_name = "FILE")]
    notify: Option<PathBuf>,
    /// Room for the checkpoints that workers bring, so that folds can go on elsewhere; 0 for none
    #[arg(long, value_name = "MEGABYTES", env = "TOGL_HELD_MEGABYTES", default_value_t = 10_000)]
    held_megabytes: u64,
    /// Take sweeps that bring programs of their own (`program:`), for workers that were started with --programs: whoever has
    /// an operator token can then run code on those
    #[arg(long, env = "TOGL_PROGRAMS")]
    programs: bool,
    /// Keep these checkpoints in S3-compatible storage, such as https://s3.eu-central-1.amazonaws.com/BUCKET/PREFIX, with the keys in
    /// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; workers need none
    #[arg(long, value_name = "URL", env = "TOGL_CHECKPOINT_STORAGE")]
    checkpoint_storage: Option<String>,
    /// The region of that storage
    #[arg(long, value_name = "REGION", env = "AWS_REGION", default_value = "us-east-1")]
    checkpoint_region: String,
    /// How to write the log; what is in it is chosen with -v or RUST_LOG
    #[arg(long, value_enum, default_value = "human")]
    pub log_format: LogFormat,
    /// The state directory [default: the user's own]
    #[arg(long, value_name = "DIR", env = "TOGL_STATE")]
    state: Option<PathBuf>,
    /// The store: sqlite:PATH, postgres://USER@HOST/DATABASE or memory: [default: a file in the state directory]
    #[arg(long, value_name = "ADDRESS", env = "TOGL_STORE", hide_env_values = true)]
    store: Option<String>,
    /// While another coordinator has the PostgreSQL store, wait, and take over as soon as it is gone
    #[arg(long)]
    standby: bool,
    #[command(flatten)]
    install: InstallFrom,
    /// Stop when standard input is closed: for programs that start a coordinator and may be killed
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

impl Serve {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let install = self.install.advice()?; // a mistake is said before anything is served
        let storage = self.storage()?;
        let notify = self.notify.as_deref().map(NotifyFile::read).transpose()?;
        let mut stop = Box::pin(told_to_stop(self.until_stdin_closes)); // who reads that it serves may stop it at once
        let listener = web::bind_if(self.web.as_deref()).await?;
        let state = StateDir::resolve(self.state.clone())?.with_store(self.store.as_deref())?;
        let started = tokio::select! {
            started = self.start(&state, storage) => started?,
            () = &mut stop => {
                eprintln!("stopping before there was anything to serve");
                return Ok(());
            }
        };
        let Embedded { coordinator, announcement } = started;
        descriptors::raise();
        eprintln!("serving {} at {}", state.path().display(), coordinator.address());
        // Whatever is no terminal is kept by somebody; a secret must not be in it.
        let hidden = self.log_format == LogFormat::Json || !std::io::stderr().is_terminal();
        self.greet(&coordinator, &state, &install, hidden)?;
        let stop = async {
            stop.await;
            eprintln!("stopping; everything acknowledged is stored");
        };
        let target = web::own(&state, coordinator.address());
        if let Some(file) = notify {
            let notifier = Notifier::new(file, &state, target.clone())?;
            eprintln!("notifications go to {}", notifier.names());
            notifier.start()?;
        }
        let ended = tokio::select! {
            ended = coordinator.run(stop) => ended,
            never = page(listener, target, &state, hidden) => match never {},
        };
        drop(announcement);
        ended.map_err(|error| embedded::explain(error, &state))?;
        Ok(())
    }

    /// Where checkpoints go, with the keys of the environment; on the command line everybody would see them.
    fn storage(&self) -> Result<Option<Storage>, Problem> {
        let refuse =
            |error: NotStorage| Problem::usage(format!("--checkpoint-storage: {error}")).hint(error.hint());
        let address = self.checkpoint_storage.as_deref().filter(|address| !address.is_empty());
        let open = |address| Storage::new(address, &self.checkpoint_region, |name| std::env::var(name).ok());
        address.map(open).transpose().map_err(refuse)
    }

    /// Says where what is, and how a worker is added.
    fn greet(
        &self,
        coordinator: &Coordinator,
        state: &StateDir,
        install: &impl std::fmt::Display,
        hidden: bool,
    ) -> Result<(), Problem> {
        if let Some(address) = coordinator.metrics_address() {
            eprintln!("metrics at http://{address}/metrics");
        }
        eprintln!("{install}");
        let host = self.hosts.first().cloned().or_else(host_name);
        let reachable = reachable(coordinator.address(), host);
        match hidden {
            false => eprintln!("{}", join_line(coordinator, self.plaintext, &reachable)?),
            true => eprintln!("{}", join_line_without_token(state, &reachable)),
        }
        Ok(())
    }

    async fn start(&self, state: &StateDir, storage: Option<Storage>) -> Result<Embedded, Problem> {
        let address = resolve("--listen", &self.listen)?;
        let metrics = self.metrics.as_deref().map(|text| resolve("--metrics", text)).transpose()?;
        Embedded::start(state, address, |settings| {
            settings.plaintext = self.plaintext;
            settings.hosts = self.hosts.iter().cloned().chain(host_name()).collect();
            settings.client_ca = self.client_ca.clone();
            settings.metrics = metrics;
            settings.standby = self.standby;
            settings.programs = self.programs;
            settings.checkpoint_room = self.held_megabytes.saturating_mul(1_000_000);
            settings.checkpoint_storage = storage;
        })
        .await
    }
}

/// The page, if one is wanted, for as long as there is a coordinator.
async fn page(
    listener: Option<TcpListener>,
    target: CoordinatorTarget,
    state: &StateDir,
    hidden: bool,
) -> std::convert::Infallible {
    if let Some(listener) = listener {
        let served = async {
            let page = Page::open(target, &listener, false).await?;
            match hidden {
                // Whatever is no terminal is kept by somebody; a secret must not be in it.
                true => eprintln!("page: a link is in {}", web::link_file(state).display()),
                false => eprintln!("{}\n{}", page.sentence(), page.elsewhere()),
            }
            page.serve(listener, page.keep_link(state)).await
        };
        if let Err(problem) = served.await {
            eprintln!("the page is not served: {}", problem.in_one_line());
        }
    }
    std::future::pending().await
}

fn resolve(option: &str, text: &str) -> Result<SocketAddr, Problem> {
    let hint = "use HOST:PORT, such as 127.0.0.1:7447";
    let found = text.to_socket_addrs();
    let mut found = found
        .map_err(|error| Problem::usage(format!("{option}: `{text}` is no address: {error}")).hint(hint))?;
    found.next().ok_or_else(|| Problem::usage(format!("{option}: `{text}` is no address")).hint(hint))
}

/// What this machine calls itself.
fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// What to type on another machine: the host name where the address says "every address of this machine".
fn reachable(address: SocketAddr, host: Option<String>) -> String {
    match address.ip().is_unspecified() {
        true => format!("{}:{}", host.as_deref().unwrap_or("THIS-HOST"), address.port()),
        false => address.to_string(),
    }
}

fn join_line(coordinator: &Coordinator, plaintext: bool, address: &str) -> Result<String, Problem> {
    let token = Token::parse(&coordinator.tokens().worker).map_err(Problem::ours)?;
    // A token that names the CA is only ever sent over TLS.
    let token = if plaintext { token } else { token.pinned(coordinator.pin().clone()) };
    Ok(format!("add workers with:\n\n  TOGL_TOKEN={} togl-worker join {address}\n", token.reveal()))
}

fn join_line_without_token(state: &StateDir, address: &str) -> String {
    let file = state.path().join("worker.token");
    format!(
        "add workers with `togl-worker join {address} --token-file FILE` and a copy of {}",
        file.display()
    )
}

/// Done when the user or the system asks to stop, or the program that started this one has ended, if that is listened for.
/// From the call on, a signal ends nothing by itself.
fn told_to_stop(with_stdin: bool) -> impl Future<Output = ()> {
    let interrupted = interrupted();
    async move {
        match with_stdin {
            true => tokio::select! { () = interrupted => {} () = stdin_closed() => {} },
            false => interrupted.await,
        }
    }
}

/// Done when whoever started this program is gone, however it ended: the system closes its end of the pipe.
pub async fn stdin_closed() {
    let (closed, heard) = tokio::sync::oneshot::channel::<()>();
    let wait = move || {
        _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink()); // an error is an end, too
        drop(closed);
    };
    match std::thread::Builder::new().name("stdin".to_owned()).spawn(wait) {
        Ok(_) => _ = heard.await,
        Err(error) => {
            tracing::warn!(%error, "standard input is not watched");
            std::future::pending().await
        }
    }
}

/// Done when the user or the system asks to stop. From the call on, a signal is a question and ends nothing by itself.
pub fn interrupted() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
            return std::future::pending().await; // without signals there is nobody to ask
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}
