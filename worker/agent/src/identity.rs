//! Who a worker is: what it tells the coordinator about itself. Makes names that no other process has; looks at no
//! device and no machine, that is done by whoever starts the agent.

use togl_sweeps::{Capability, WorkerId};

/// Who this worker is and what it has.
#[derive(Debug, Clone)]
pub struct WorkerIdentity {
    /// Unique per process.
    pub worker: WorkerId,
    /// Host name.
    pub host: String,
    /// Version of the program.
    pub code_version: String,
    /// Device of each slot.
    pub devices: Vec<String>,
    /// Memory in bytes of the device of each slot; 0 where it is not known.
    pub memories: Vec<u64>,
    /// Where it runs as who started it calls it, such as `slurm:123_4`; empty if nobody did.
    pub allocation: String,
    /// Whether another worker can go on from the checkpoints that it saves.
    pub moves_checkpoints: bool,
    /// What it was told to offer beyond what every worker does.
    pub offers: Vec<Capability>,
}

/// A worker id that no other process has: host, process id, and a part that differs after a reboot.
pub fn unique_worker_id(host: &str) -> WorkerId {
    let host: String =
        host.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.')).take(60).collect();
    let host = host.trim_start_matches(['-', '.']);
    let random = random();
    let text = format!("w{host}-{}-{random:08x}", std::process::id());
    text.parse().unwrap_or_else(|_| fallback(random))
}

/// A number that differs from call to call and from process to process. Nothing that is computed depends on it.
pub(crate) fn random() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) as u32 // seeded by the operating system
}

fn fallback(random: u32) -> WorkerId {
    format!("worker-{random:08x}")
        .parse()
        .unwrap_or_else(|_| unreachable!("letters and digits are a worker id"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ids_of_one_process_differ_and_odd_host_names_are_tamed() {
        assert_ne!(unique_worker_id("gpu-1"), unique_worker_id("gpu-1"));
        assert!(unique_worker_id("--näme with spaces/../").as_str().starts_with("wnmewithspaces"));
    }
}
