//! Calls to a named coordinator that are no session: who asks, with which token. Only `join` may also find coordinator and token by
//! itself, and ask for one on standard input.

use std::fs::File;
use std::path::PathBuf;

use togl_proto::client::{self, ClientAccess};
use togl_sweeps::bounded;

use crate::Usage;

/// The token of a worker, and what else a coordinator may ask for.
#[derive(Debug, clap::Args)]
pub struct AgentCaller {
    /// File that holds the worker token; otherwise TOGL_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// PEM file with a certificate and its key, for a coordinator that asks for one
    #[arg(long, value_name = "FILE", env = "TOGL_IDENTITY")]
    identity: Option<PathBuf>,
}

impl AgentCaller {
    /// The right to call the coordinator at `address`.
    pub fn access(&self, address: &str) -> anyhow::Result<ClientAccess> {
        client::check_address(address).map_err(Usage::new)?;
        Ok(ClientAccess::new(self.token()?.trim(), self.identity.as_deref()).map_err(Usage::new)?)
    }

    fn token(&self) -> anyhow::Result<String> {
        match (&self.token_file, std::env::var("TOGL_TOKEN")) {
            (Some(file), _) => {
                Ok(File::open(file).and_then(|opened| bounded::text(opened, bounded::SECRET)).map_err(
                    |error| Usage::new(format!("cannot read the token file {}: {error}", file.display())),
                )?)
            }
            (None, Ok(token)) => Ok(token),
            (None, Err(_)) => Err(Usage::new("no token")
                .hint("set TOGL_TOKEN to a worker token, or use --token-file")
                .into()),
        }
    }
}
