//! What this machine and process are called, and how much memory the process used. Reads `/proc` and the
//! environment; decides nothing.

use std::path::PathBuf;

use togl_sweeps::WorkerId;

/// The host name, for people.
pub fn name() -> String {
    let from_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = from_kernel.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "unknown-host".to_owned() } else { name.to_owned() }
}

/// A worker id that no other process has: host, process id, and a part that differs after a reboot.
pub fn unique_worker_id(host: &str) -> WorkerId {
    use std::hash::{BuildHasher, RandomState};
    let host: String =
        host.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.')).take(60).collect();
    let host = host.trim_start_matches(['-', '.']);
    // RandomState is seeded by the operating system; all that is needed here is to differ.
    let random = RandomState::new().hash_one(host) as u32;
    let text = format!("w{host}-{}-{random:08x}", std::process::id());
    text.parse().unwrap_or_else(|_| fallback(random))
}

fn fallback(random: u32) -> WorkerId {
    format!("worker-{random:08x}")
        .parse()
        .unwrap_or_else(|_| unreachable!("letters and digits are a worker id"))
}

/// Largest resident memory of this process so far, in bytes; 0 where the system does not tell.
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    kilobytes(&status, "VmHWM:")
}

/// The user's cache directory for this project; none where there is no home.
pub fn cache_home() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    Some(base.or_else(|| std::env::home_dir().map(|home| home.join(".cache")))?.join("togl"))
}

/// Whether this process has loaded a library of this name; false where the system does not tell.
pub fn has_loaded(library: &str) -> bool {
    std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains(library))
}

/// Memory of the machine in bytes; 0 where the system does not tell.
pub fn total_memory() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kilobytes(&info, "MemTotal:")
}

fn kilobytes(text: &str, key: &str) -> u64 {
    let rest = text.lines().find_map(|line| line.strip_prefix(key));
    rest.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ids_of_one_process_differ_and_odd_host_names_are_tamed() {
        assert_ne!(unique_worker_id("gpu-1"), unique_worker_id("gpu-1"));
        assert!(unique_worker_id("--näme with spaces/../").as_str().starts_with("wnmewithspaces"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn libraries_that_are_loaded_are_seen_and_others_are_not() {
        assert!(has_loaded("libc.so"));
        assert!(!has_loaded("libnosuchthing.so"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_some_memory() {
        assert!(peak_memory() > 1 << 20);
    }
}
