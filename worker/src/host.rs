//! What this machine is called, where its files go, and how much memory a fold used. Reads `/proc` and the environment;
//! decides nothing.

use togl_learning::Device;

use crate::energy;

/// The host name, for people.
pub fn name() -> String {
    let from_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = from_kernel.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "unknown-host".to_owned() } else { name.to_owned() }
}

/// Where this process runs as the batch system calls it, such as `slurm:123_4`; empty if none started it.
pub fn allocation() -> String {
    slurm_job(|name| std::env::var(name).ok()).map(|job| format!("slurm:{job}")).unwrap_or_default()
}

fn slurm_job(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    match (variable("SLURM_ARRAY_JOB_ID"), variable("SLURM_ARRAY_TASK_ID")) {
        (Some(array), Some(task)) => Some(format!("{array}_{task}")),
        _ => variable("SLURM_JOB_ID"),
    }
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

/// The version of the NVIDIA driver; nothing where there is none.
pub fn nvidia_driver() -> Option<String> {
    let from_kernel = std::fs::read_to_string("/proc/driver/nvidia/version").ok();
    // Where the kernel does not say it (as within Windows), the driver's own library does.
    from_kernel.as_deref().and_then(driver_version).or_else(|| energy::nvml()?.sys_driver_version().ok())
}

/// The first word of the kernel's line that is a version: what stands before it differs from driver to driver.
fn driver_version(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("NVRM version"))?;
    let is_version = |word: &&str| {
        word.contains('.')
            && word.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    line.split_whitespace().find(is_version).map(str::to_owned)
}

/// Cores that this process may use: what the system, its control group and Slurm allow.
pub fn cores() -> usize {
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    slurm_cores(|name| std::env::var(name).ok()).map_or(allowed, |allotted| allowed.min(allotted))
}

fn slurm_cores(variable: impl Fn(&str) -> Option<String>) -> Option<usize> {
    let number = |name| variable(name)?.parse().ok().filter(|number| *number > 0);
    number("SLURM_CPUS_PER_TASK").or_else(|| number("SLURM_CPUS_ON_NODE"))
}

/// Memory in bytes that this process may use: what the machine has and its control group and Slurm allow; 0 where the
/// system does not tell.
pub fn total_memory() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = kilobytes(&read("/proc/meminfo").unwrap_or_default(), "MemTotal:");
    let limits = [group_memory(read), slurm_memory(|name| std::env::var(name).ok())];
    limits
        .into_iter()
        .flatten()
        .fold(machine, |least, limit| if least == 0 { limit } else { least.min(limit) })
}

/// The least limit of this process's control group and those above it.
fn group_memory(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let groups = read("/proc/self/cgroup")?;
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (kind, path) = (parts.next()?, parts.next()?);
        let (root, file) = match kind {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        let above = std::path::Path::new(path).ancestors();
        let limit = |group: &std::path::Path| {
            read(&format!("{root}{}/{file}", group.display()).replace("//", "/"))?.trim().parse::<u64>().ok()
        };
        above.filter_map(limit).min()
    });
    limits.min()
}

fn slurm_memory(variable: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let megabytes = |name| variable(name)?.parse::<u64>().ok().filter(|number| *number > 0);
    let by_core = || Some(megabytes("SLURM_MEM_PER_CPU")?.saturating_mul(slurm_cores(&variable)? as u64));
    Some(megabytes("SLURM_MEM_PER_NODE").or_else(by_core)?.saturating_mul(1 << 20))
}

fn kilobytes(text: &str, key: &str) -> u64 {
    let rest = text.lines().find_map(|line| line.strip_prefix(key));
    rest.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slurm_allots_is_read_from_its_variables() {
        let told = |pairs: &'static [(&str, &str)]| {
            move |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let by_node = told(&[("SLURM_CPUS_ON_NODE", "4"), ("SLURM_MEM_PER_NODE", "2048")]);
        assert_eq!((slurm_cores(by_node), slurm_memory(by_node)), (Some(4), Some(2 << 30)));
        let by_core =
            told(&[("SLURM_CPUS_PER_TASK", "2"), ("SLURM_CPUS_ON_NODE", "4"), ("SLURM_MEM_PER_CPU", "512")]);
        assert_eq!((slurm_cores(by_core), slurm_memory(by_core)), (Some(2), Some(1 << 30)));
        let all = told(&[("SLURM_MEM_PER_NODE", "0"), ("SLURM_CPUS_ON_NODE", "x")]);
        assert_eq!((slurm_cores(all), slurm_memory(all)), (None, None), "0 is Slurm's word for everything");
    }

    #[test]
    fn the_least_limit_of_a_control_group_and_those_above_it_counts() {
        let told = |files: &'static [(&str, &str)]| {
            move |path: &str| files.iter().find(|(key, _)| *key == path).map(|(_, text)| (*text).to_owned())
        };
        let second = told(&[
            ("/proc/self/cgroup", "0::/job/step\n"),
            ("/sys/fs/cgroup/job/step/memory.max", "max\n"),
            ("/sys/fs/cgroup/job/memory.max", "1000\n"),
        ]);
        assert_eq!(group_memory(second), Some(1000));
        let first = told(&[
            ("/proc/self/cgroup", "12:cpu:/a\n11:memory:/a\n"),
            ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "77"),
        ]);
        assert_eq!(group_memory(first), Some(77));
        assert_eq!(group_memory(told(&[])), None);
    }

    #[test]
    fn the_version_of_the_driver_is_read_from_either_kind_of_kernel_module() {
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version: 12.2.0\n";
        let open =
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs)\n";
        assert_eq!(driver_version(closed).as_deref(), Some("535.104.05"));
        assert_eq!(driver_version(open).as_deref(), Some("580.65.06"));
        assert_eq!(driver_version("GCC version: 12.2.0\n"), None);
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
