//! The coordinator of a state directory, inside this process: starts it, says where it is, and words its
//! problems for the user. Used by `serve`, for others, and by `run`, for itself.

use std::net::SocketAddr;
use std::path::Path;

use togl_coordinator::driver::DriverError;
use togl_coordinator::service::{Coordinator, ServiceError, ServiceSettings};
use togl_coordinator::store::StoreError;
use togl_proto::own_machine::Served;

use crate::mounts;
use crate::problem::Problem;
use crate::state::{Announcement, StateDir};

/// A coordinator and its announcement in the state directory.
pub struct Embedded {
    /// The coordinator.
    pub coordinator: Coordinator,
    /// Taken back when dropped.
    pub announcement: Announcement,
}

impl Embedded {
    /// Makes the state directory if needed and starts its coordinator, with settings that may be other than the usual ones.
    pub async fn start(
        state: &StateDir,
        address: SocketAddr,
        edit: impl FnOnce(&mut ServiceSettings),
    ) -> Result<Self, Problem> {
        mounts::refuse_network(state)?;
        state.create()?;
        let mut settings = ServiceSettings::new(state.store().clone(), &state.tokens(), address);
        edit(&mut settings);
        let waiting =
            settings.standby.then(|| state.announce_waiting(&settings.address.to_string())).transpose()?;
        let coordinator = Coordinator::start_with(settings).await.map_err(|e| explain(e, state))?;
        drop(waiting);
        let mut address = coordinator.address();
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into()); // commands of this machine find it there
        }
        let announcement = state.announce(&address.to_string())?;
        Ok(Self { coordinator, announcement })
    }
}

/// What to do about a store that is damaged.
pub const RESTORE: &str =
    "`togl check` says what is damaged; `togl restore FILE --replace` puts a backup in its place";

/// What helps where nothing more can be written.
pub const FULL: &str = "the disk is full; make room, or choose a place on another disk";

fn use_the_other(served: Option<&Served>) -> String {
    let at = served.map_or_else(String::new, |served| format!(" at {}", served.address));
    format!(
        "send sweeps to the running coordinator{at} with `togl submit FILE`, or choose another folder with --state"
    )
}

/// What a coordinator's problem means for the user.
#[expect(clippy::too_many_lines, reason = "a dispatcher: one sentence a problem")]
pub fn explain(error: ServiceError, state: &StateDir) -> Problem {
    match error {
        // The port is taken because this very state is served, which is what the user should hear.
        ServiceError::Listen { address, .. }
            if let Some(served) = state.served().filter(|served| served.is_at(address)) =>
        {
            let (folder, Served { address, pid }) = (state.path().display(), &served);
            Problem::usage(format!("{folder} is served already, at {address} by process {pid}"))
                .hint(use_the_other(Some(&served)))
        }
        ServiceError::Listen { .. } => {
            Problem::usage(error).hint("choose another port with --listen or --metrics HOST:PORT")
        }
        ServiceError::Store(StoreError::Held { .. }) => Problem::usage(error).hint(format!(
            "{}; to take over when that one is gone, start this one with --standby",
            use_the_other(state.served().as_ref())
        )),
        ServiceError::Store(StoreError::Locked { .. }) => {
            Problem::usage(error).hint(use_the_other(state.served().as_ref()))
        }
        ServiceError::Store(ref store) if store.is_damage() => Problem::usage(error).hint(RESTORE),
        ServiceError::Store(ref store) if store.is_full() => Problem::usage(error).hint(FULL),
        ServiceError::NoAuthority { ref folder } => {
            let hint = take_the_ca(folder);
            Problem::usage(error).hint(hint)
        }
        ServiceError::NothingToTakeOver { .. } => {
            Problem::usage(error).hint("name a PostgreSQL store with --store postgres://USER@HOST/DATABASE")
        }
        ServiceError::Exposed { ref folder } => {
            let hint = format!("`chmod o-w {}` keeps others out", folder.display());
            Problem::usage(error).hint(hint)
        }
        ServiceError::Programs { ref source, .. } => {
            let full = source.kind() == std::io::ErrorKind::StorageFull;
            Problem::usage(error).hint(if full {
                FULL
            } else {
                "see who may write there, or leave --programs out"
            })
        }
        ServiceError::Store(_) | ServiceError::Tokens(_) | ServiceError::Certificates(_) => {
            Problem::usage(error)
        }
        ServiceError::Driver(DriverError::Store(store)) => explain_store(&store),
        ServiceError::Driver(_) | ServiceError::Serve(_) => Problem::ours(error),
    }
}

/// Why a coordinator that has served does not go on.
fn explain_store(error: &StoreError) -> Problem {
    match error {
        error if error.is_damage() => Problem::usage(error).hint(RESTORE),
        // What to do is in the message: it depends on what happened to the files.
        StoreError::Disturbed { .. } => Problem::usage(error),
        // Whoever starts it again with `--standby` waits for its turn, so this is no bad usage.
        StoreError::TakenOver { .. } => {
            Problem::negative(error).hint("start it again with --standby, and it waits for its turn")
        }
        _ => Problem::usage(error).hint(
            "everything that was acknowledged is stored; once the store can be written again, the same command goes on",
        ),
    }
}

fn take_the_ca(folder: &Path) -> String {
    format!(
        "copy ca.pem and ca.key from the state directory of the other coordinator to {}; `togl token bundle DIR` makes both \
         where there is none yet",
        folder.display()
    )
}
