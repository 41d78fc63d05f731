//! Facts about workers and hosts: who is draining, which hosts are kept out and why. A row is there for as long as the
//! fact holds.

use togl_scheduler::FleetChange;

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
