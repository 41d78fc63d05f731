//! The real coordinator on a simulated host: driver, scheduler and server as in the program, on a store that
//! outlives the host. Ends its host's life when the driver ends, as the program does.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use togl_coordinator::checkpoints::{HeldCheckpoints, USUAL_ROOM};
use togl_coordinator::driver::{Driver, Handle};
use togl_coordinator::server::{self, Rooms};
use togl_coordinator::tokens::Tokens;
use togl_scheduler::Limits;

use crate::faults::{FaultyStore, JumpingClock, Jumps};
use crate::ledger::Ledger;
use crate::network;

/// Milliseconds after which the coordinator notices that it stood still.
pub const STANDSTILL: u64 = 600;

/// Short terms, so that a world is over soon. The proportions are those of the program.
pub fn limits() -> Limits {
    Limits {
        lease_term: 3_000,
        grace: 400,
        pulse: 200,
        standstill: STANDSTILL,
        avoidance: 2_000,
        back_off: 500,
        quarantine: 5_000,
        ..Limits::default()
    }
}

/// Runs until the host crashes. Sets `dead` when the process would have ended by itself.
pub async fn run(
    (store, checkpoints): (FaultyStore, PathBuf),
    jumps: Jumps,
    tokens: Tokens,
    ledger: Ledger,
    dead: Arc<AtomicBool>,
) -> turmoil::Result {
    let rooms = Rooms { checkpoints: Some(HeldCheckpoints::open(&checkpoints, USUAL_ROOM)?), programs: None };
    let (handle, driver) = Driver::new(Box::new(store), Arc::new(JumpingClock::new(jumps)), limits())?;
    tokio::spawn(watch_books(handle.clone(), ledger));
    let driver = tokio::spawn(async move {
        _ = driver.run().await; // an error is a fault that the world asked for
        dead.store(true, Ordering::SeqCst);
    });
    let incoming = network::incoming().await?;
    let admission = server::Admission::of(&tokens)?;
    server::serve_on(incoming, handle, admission, rooms, std::future::pending()).await?;
    driver.await?;
    Ok(())
}

/// All parts of the state agree, whenever somebody looks.
async fn watch_books(handle: Handle, ledger: Ledger) {
    while let Ok(checked) = handle.check_invariants().await {
        if let Err(broken) = checked {
            ledger.broken(broken.to_string());
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
}
