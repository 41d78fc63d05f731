//! `togl serve`: a coordinator for other processes and machines.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;

use togl_coordinator::tokens::Tokens;

use super::Outcome;
use crate::embedded::{self, Embedded};
use crate::problem::Problem;
use crate::state::StateDir;

/// Serve a coordinator
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// Where to listen
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7447")]
    listen: String,
    /// Allow listening beyond this machine although the connection is not encrypted (use a trusted network or a
    /// tunnel; the token is still required)
    #[arg(long)]
    plaintext: bool,
    /// The state directory [default: the user's own]
    #[arg(long, value_name = "DIR", env = "TOGL_STATE")]
    state: Option<PathBuf>,
    /// The store: sqlite:PATH, postgres://USER@HOST/DATABASE or memory: [default: a file in the state directory]
    #[arg(long, value_name = "ADDRESS", env = "TOGL_STORE", hide_env_values = true)]
    store: Option<String>,
}

impl Serve {
    pub(super) async fn run(self) -> Outcome {
        let address = self.address()?;
        let state = StateDir::resolve(self.state)?.with_store(self.store.as_deref())?;
        let Embedded { coordinator, announcement } = Embedded::start(&state, address).await?;
        eprintln!("serving {} at {}", state.path().display(), coordinator.address());
        eprintln!("{}", join_line(coordinator.tokens(), &reachable(coordinator.address())));
        let stop = async {
            interrupted().await;
            eprintln!("stopping; everything acknowledged is stored");
        };
        let ended = coordinator.run(stop).await;
        drop(announcement);
        ended.map_err(|error| embedded::explain(error, &state))?;
        Ok(ExitCode::SUCCESS)
    }

    fn address(&self) -> Result<SocketAddr, Problem> {
        let mut found = self.listen.to_socket_addrs().map_err(|error| {
            Problem::usage(format!("cannot listen at `{}`: {error}", self.listen))
                .hint("use HOST:PORT, such as 127.0.0.1:7447")
        })?;
        let address =
            found.next().ok_or_else(|| Problem::usage(format!("`{}` is no address", self.listen)))?;
        if !address.ip().is_loopback() && !self.plaintext {
            return Err(Problem::usage(format!(
                "{address} is reachable from other machines and the connection is not encrypted"
            ))
            .hint("use a tunnel to 127.0.0.1, or --plaintext on a trusted network"));
        }
        Ok(address)
    }
}

/// What to type on another machine: the host name where the address says "every address of this machine".
fn reachable(address: SocketAddr) -> String {
    if !address.ip().is_unspecified() {
        return address.to_string();
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "THIS-HOST" } else { host.trim() };
    format!("{host}:{}", address.port())
}

fn join_line(tokens: &Tokens, address: &str) -> String {
    format!("add workers with:\n\n  TOGL_TOKEN={} togl-worker join {address}\n", tokens.worker)
}

/// Done when the user or the system asks to stop.
pub async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await; // without signals there is nobody to ask
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
