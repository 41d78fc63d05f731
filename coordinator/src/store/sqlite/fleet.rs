//! Facts about workers and hosts: who is draining, which hosts are kept out and why. A row is there for as long as the
//! fact holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::{Connection, Transaction, params};
use togl_scheduler::{FleetChange, Snapshot};
use togl_sweeps::WorkerId;

use super::super::{StoreError, word};

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

/// Reads them all.
pub(super) fn load(on: &Connection, snapshot: &mut Snapshot) -> Result<(), StoreError> {
    snapshot.drains = load_drains(on)?;
    let mut statement = on.prepare("SELECT host, reason FROM quarantine")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, Arc<str>>(1)?)))?;
    snapshot.quarantines = rows.collect::<Result<_, _>>()?;
    Ok(())
}

fn load_drains(on: &Connection) -> Result<BTreeMap<WorkerId, String>, StoreError> {
    let mut statement = on.prepare("SELECT worker, host FROM drain")?;
    let mut rows = statement.query([])?;
    let mut drains = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let worker: String = row.get(0)?;
        drains.insert(word("worker", &worker)?, row.get(1)?);
    }
    Ok(drains)
}
