//! Facts about workers and hosts: who is draining, which hosts are kept out and why. A row is there for as long as the
//! fact holds.

use ::postgres::GenericClient;
use ::postgres::fallible_iterator::FallibleIterator;
use togl_scheduler::Snapshot;
use togl_sweeps::WorkerId;

use super::super::word;
use super::Failed;
use super::read::{rows, text};

/// What is written.
pub(super) enum FleetOp {
    /// A worker gets nothing new; with its host.
    Drain(WorkerId, String),
    /// It gets work again.
    Undrain(WorkerId),
    /// A host is kept out, for this reason.
    Quarantine(String, String),
    /// It is not any more.
    Release(String),
}

impl FleetOp {
    /// The statement and its values.
    pub(super) fn sql(&self) -> (&'static str, Vec<&[u8]>) {
        match self {
            Self::Drain(worker, host) => (
                "INSERT INTO drain (worker, host) VALUES ($1, $2)
                 ON CONFLICT (worker) DO UPDATE SET host = excluded.host",
                vec![worker.as_str().as_bytes(), host.as_bytes()],
            ),
            Self::Undrain(worker) => {
                ("DELETE FROM drain WHERE worker = $1", vec![worker.as_str().as_bytes()])
            }
            Self::Quarantine(host, reason) => (
                "INSERT INTO quarantine (host, reason) VALUES ($1, $2)
                 ON CONFLICT (host) DO UPDATE SET reason = excluded.reason",
                vec![host.as_bytes(), reason.as_bytes()],
            ),
            Self::Release(host) => ("DELETE FROM quarantine WHERE host = $1", vec![host.as_bytes()]),
        }
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
