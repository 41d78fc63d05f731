//! Facts about workers and hosts: who is draining, which hosts are kept out and why. A row is there for as long as the
//! fact holds.

use rusqlite::{Transaction, params};
use togl_scheduler::FleetChange;

use super::super::StoreError;

/// Writes a fact about a worker or a host.
pub(super) fn write(on: &Transaction<'_>, change: &FleetChange) -> Result<(), StoreError> {
    match change {
        FleetChange::Drained { worker, host } => {
            let sql = "INSERT INTO drain (worker, host) VALUES (?1, ?2)
                       ON CONFLICT (worker) DO UPDATE SET host = excluded.host";
            on.prepare_cached(sql)?.execute(params![worker.as_str(), host])?;
        }
        FleetChange::Undrained { worker } => {
            on.prepare_cached("DELETE FROM drain WHERE worker = ?1")?.execute([worker.as_str()])?;
        }
        FleetChange::Quarantined { host, reason } => {
            let sql = "INSERT INTO quarantine (host, reason) VALUES (?1, ?2)
                       ON CONFLICT (host) DO UPDATE SET reason = excluded.reason";
            on.prepare_cached(sql)?.execute(params![host, &**reason])?;
        }
        FleetChange::Released { host } => {
            on.prepare_cached("DELETE FROM quarantine WHERE host = ?1")?.execute([host])?;
        }
    }
    Ok(())
}
