//! Open files and connections: a thousand workers need more than the thousand that many systems allow a program at
//! first. Owns the one place that asks for more; decides nothing else.

/// Asks the system for as many as it allows this user, and says so in the log. A coordinator that gets fewer than it
/// needs accepts fewer connections and says that then, so a refusal is no reason not to start.
pub fn raise() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => tracing::info!(limit, "files and connections that may be open at once"),
        Err(error) => tracing::warn!(%error, "the limit of open files stays as it is"),
    }
}
