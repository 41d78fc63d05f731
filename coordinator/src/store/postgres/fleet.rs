//! Facts about workers and hosts: who is draining, which hosts are kept out and why. A row is there for as long as the
//! fact holds.

use ::postgres::GenericClient;
use ::postgres::fallible_iterator::FallibleIterator;
use togl_scheduler::{FleetChange, Snapshot};

use super::super::word;
use super::Failed;
use super::read::{rows, text};

/// The statement of a fact and its values.
pub(super) fn sql(change: &FleetChange) -> (&'static str, Vec<&[u8]>) {
    match change {
        FleetChange::Drained { worker, host } => (
            "INSERT INTO drain (worker, host) VALUES ($1, $2)
             ON CONFLICT (worker) DO UPDATE SET host = excluded.host",
            vec![worker.as_str().as_bytes(), host.as_bytes()],
        ),
        FleetChange::Undrained { worker } => {
            ("DELETE FROM drain WHERE worker = $1", vec![worker.as_str().as_bytes()])
        }
        FleetChange::Quarantined { host, reason } => (
            "INSERT INTO quarantine (host, reason) VALUES ($1, $2)
             ON CONFLICT (host) DO UPDATE SET reason = excluded.reason",
            vec![host.as_bytes(), reason.as_bytes()],
        ),
        FleetChange::Released { host } => ("DELETE FROM quarantine WHERE host = $1", vec![host.as_bytes()]),
    }
}

/// Reads them all.
pub(super) fn load(on: &mut impl GenericClient, snapshot: &mut Snapshot) -> Result<(), Failed> {
    let mut found = rows(on, "SELECT worker, host FROM drain")?;
    while let Some(row) = found.next()? {
        let worker = word("worker", &text("worker", row.try_get(0)?)?)?;
        snapshot.drains.insert(worker, text("host", row.try_get(1)?)?);
    }
    drop(found);
    let mut found = rows(on, "SELECT host, reason FROM quarantine")?;
    while let Some(row) = found.next()? {
        let reason = text("reason", row.try_get(1)?)?;
        snapshot.quarantines.insert(text("host", row.try_get(0)?)?, reason.into());
    }
    Ok(())
}
