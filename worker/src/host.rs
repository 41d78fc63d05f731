//! What this machine is called, where its files go, and how much memory a fold used. Reads `/proc` and the environment;
//! decides nothing.

use togl_learning::Device;

/// The host name, for people.
pub fn name() -> String {
    let from_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = from_kernel.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "unknown-host".to_owned() } else { name.to_owned() }
}

/// Measures the most memory that a part of this process's life takes where it trains. A GPU's is counted by libtorch;
/// for the processor's, Linux is asked to start its own record anew. Where it refuses, the memory at the moments of
/// [`PeakMemory::look`] is what is known.
#[derive(Debug)]
pub struct PeakMemory {
    device: Device,
    restarted: bool,
    seen: u64,
}

impl PeakMemory {
    /// Starts measuring; what an earlier fold used and freed is given back to the system first.
    pub fn start(device: Device) -> Self {
        give_back();
        device.restart_memory();
        // "5" is the kernel's word for "forget the peak".
        let restarted = std::fs::write("/proc/self/clear_refs", "5").is_ok();
        Self { device, restarted, seen: status("VmRSS:") }
    }

    /// Looks at the memory in use now.
    pub fn look(&mut self) {
        if !self.restarted {
            self.seen = self.seen.max(status("VmRSS:"));
        }
    }

    /// The largest so far, in bytes; 0 where the system does not tell.
    pub fn bytes(&self) -> u64 {
        let resident = if self.restarted { peak_memory() } else { self.seen };
        self.device.peak_memory().unwrap_or(resident)
    }
}

/// Largest resident memory of this process so far, in bytes; 0 where the system does not tell.
pub fn peak_memory() -> u64 {
    status("VmHWM:")
}

fn status(key: &str) -> u64 {
    kilobytes(&std::fs::read_to_string("/proc/self/status").unwrap_or_default(), key)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn give_back() {
    // SAFETY: takes a plain number and only returns free memory of the allocator to the system.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}

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

    #[cfg(target_os = "linux")]
    #[test]
    fn libraries_that_are_loaded_are_seen_and_others_are_not() {
        assert!(has_loaded("libc.so"));
        assert!(!has_loaded("libnosuchthing.so"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_peak_of_one_fold_is_not_that_of_an_earlier_one() {
        const LARGE: u64 = 200 << 20;
        let first = PeakMemory::start(Device::Cpu);
        let ballast = std::hint::black_box(vec![1u8; LARGE as usize]);
        drop(ballast);
        let second = PeakMemory::start(Device::Cpu);
        assert!(second.bytes() > 1 << 20);
        if first.restarted {
            assert!(first.bytes() < LARGE, "the record was started anew, for all measures");
            assert!(second.bytes() < LARGE, "{} bytes", second.bytes());
        }
    }

    #[test]
    fn where_the_record_cannot_be_restarted_the_largest_look_counts() {
        let mut peak = PeakMemory { device: Device::Cpu, restarted: false, seen: 0 };
        peak.look();
        let looked = peak.bytes();
        assert_eq!(looked > 0, cfg!(target_os = "linux"));
        peak.look();
        assert!(peak.bytes() >= looked);
    }
}
