//! Measures the coordinator as workers meet it: a real process, real connections over loopback, simulated workers
//! that train nothing. Owns the process under test and the figures; what a simulated worker does is in `crowd`.

pub mod crowd;
pub mod figures;
pub mod watchers;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use togl_coordinator::private::OwnerOnly;
use togl_coordinator::store::address::StoreAddress;
use togl_coordinator::store::{Readers as _, StoreError};
use tokio::process::{Child, Command};

use crate::output;
use crate::problem::Problem;
use crate::state::StateDir;
use figures::ProcessUsage;

/// A coordinator in a process of its own, with a state directory of its own. Killed when dropped, and it ends by itself
/// when this process is killed.
pub struct ServerUnderTest {
    child: Child,
    /// Where it listens.
    pub address: String,
    /// Its state directory.
    pub state: StateDir,
}

impl ServerUnderTest {
    /// Starts one and waits until it listens. Its store is in the folder, unless another is named, which must be empty.
    pub async fn start(folder: &Path, store: Option<&str>) -> Result<Self, Problem> {
        let store =
            store.map_or_else(|| format!("sqlite:{}", folder.join("store.sqlite").display()), str::to_owned);
        let state = StateDir::resolve(Some(folder.to_owned()))?.with_store(Some(&store))?;
        let program = std::env::current_exe()?;
        let private = OwnerOnly::begin();
        let log = std::fs::File::create(folder.join("serve.log"))?;
        drop(private);
        let mut child = Command::new(program)
            .env("TOGL_STORE", &store) // never the store of somebody's work
            .args(["serve", "--until-stdin-closes", "--listen", "127.0.0.1:0", "--state"])
            .arg(folder)
            .env("RUST_LOG", "warn")
            .stdin(Stdio::piped()) // closed by the system when we end, also when we are killed
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let pid = child.id();
        let mut look = tokio::time::interval(Duration::from_millis(10));
        loop {
            look.tick().await;
            if let Some(served) = state.served().filter(|served| Some(served.pid) == pid) {
                return Ok(Self { child, address: served.address, state });
            }
            if let Some(status) = child.try_wait()? {
                let log = std::fs::read_to_string(folder.join("serve.log")).unwrap_or_default();
                return Err(Problem::ours(format!("the coordinator under test ended ({status}): {log}")));
            }
        }
    }

    /// How many transactions its store has seen.
    pub fn transactions(&self) -> Result<u64, Problem> {
        let reader = self.state.store().open_reader().map_err(Problem::ours)?;
        reader.transactions().map_err(Problem::ours)
    }

    /// What it has used so far; nothing where the system does not tell.
    pub fn usage(&self) -> ProcessUsage {
        self.child.id().map(ProcessUsage::of).unwrap_or_default()
    }

    /// Ends it, and says how if it does not go well.
    pub async fn stop(mut self) -> Result<(), Problem> {
        self.child.kill().await.map_err(Problem::ours)
    }
}

/// Refuses to measure on a store that holds somebody's work.
pub fn refuse_used(store: &str) -> Result<(), Problem> {
    let address: StoreAddress = store.parse().map_err(Problem::usage)?;
    let sweeps = match address.open_reader() {
        Ok(reader) => reader.sweeps().map_err(Problem::usage)?.len(),
        // There is none yet; what else may be wrong with the place is said by the coordinator that makes one.
        Err(StoreError::Missing { .. } | StoreError::Unusable { .. }) => 0,
        Err(error) => return Err(Problem::usage(error)),
    };
    if sweeps == 0 {
        return Ok(());
    }
    let sweeps = output::count(sweeps as u64, "sweep");
    Err(Problem::usage(format!(
        "the store {address} holds {sweeps}, and a measurement fills it with its own"
    ))
    .hint("name an empty database"))
}
