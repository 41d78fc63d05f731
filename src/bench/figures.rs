//! The figures of a measurement: percentiles of what was timed, and what a process has used according to the system.
//! Pure except for reading `/proc`.

use std::time::Duration;

use serde::Serialize;

/// Percentiles of a set of durations, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latency {
    /// How many were measured.
    pub count: usize,
    /// Half were faster.
    pub p50_ms: f64,
    /// Ninety-nine of a hundred were faster.
    pub p99_ms: f64,
    /// The slowest.
    pub max_ms: f64,
}

impl Latency {
    /// Sorts and picks; all zero if nothing was measured.
    pub fn of(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        let at = |share: f64| {
            let place = (durations.len() as f64 * share).ceil() as usize;
            durations.get(place.saturating_sub(1)).map_or(0.0, |found| found.as_secs_f64() * 1e3)
        };
        Self { count: durations.len(), p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1.0) }
    }
}

/// What a process has used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessUsage {
    /// Processor time of all its threads, in seconds.
    pub cpu_seconds: f64,
    /// Resident memory in bytes.
    pub resident: u64,
}

impl ProcessUsage {
    /// Asks the system about a process; zero where it does not tell.
    pub fn of(pid: u32) -> Self {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        Self { cpu_seconds: cpu_seconds(&read("stat")), resident: resident(&read("status")) }
    }
}

/// Fields 14 and 15, in hundredths of a second on every Linux; the name before them may hold anything.
fn cpu_seconds(stat: &str) -> f64 {
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

fn resident(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_hundred_and_of_none() {
        let latency = Latency::of((1..=100).rev().map(Duration::from_millis).collect());
        assert_eq!(latency, Latency { count: 100, p50_ms: 50.0, p99_ms: 99.0, max_ms: 100.0 });
        assert_eq!(Latency::of(Vec::new()), Latency::default());
        assert_eq!(Latency::of(vec![Duration::from_millis(7)]).p50_ms, 7.0);
    }

    #[test]
    fn a_name_with_brackets_does_not_move_the_fields() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0";
        assert_eq!(cpu_seconds(stat), 2.0);
        assert_eq!(resident("Name:\tx\nVmRSS:\t   12 kB\n"), 12 * 1024);
        assert_eq!((cpu_seconds(""), resident("")), (0.0, 0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_used_something() {
        assert!(ProcessUsage::of(std::process::id()).resident > 0);
    }
}
