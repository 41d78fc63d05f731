//! Time as the scheduler knows it, and the numbers that bound what it does. Reads no clock: every time is
//! given.

/// Milliseconds since an instant that the driver chose. Monotonic; means nothing after a restart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// This many milliseconds later; stops at the end of time instead of overflowing.
    #[must_use]
    pub fn plus(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }

    /// Milliseconds from `earlier` to here; 0 if it is not earlier.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Bounds of the scheduler. The defaults are what the documentation promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long a lease lasts without renewal, in milliseconds.
    pub lease_term: u64,
    /// How long a worker whose connection closed may take to come back, in milliseconds.
    pub grace: u64,
    /// How often the scheduler wants to hear of the time while anybody could be judged by it, in milliseconds.
    pub pulse: u64,
    /// How long it may hear of nothing before it must have stood still, in milliseconds.
    pub standstill: u64,
    /// How long it is remembered that a worker is draining that went silent, in milliseconds.
    pub drain_memory: u64,
    /// How long a fold waits for another worker after it failed on one, in milliseconds.
    pub avoidance: u64,
    /// Losses of one fold before it counts as failed.
    pub free_retries: u32,
    /// Preemptions of one fold before it counts as failed: a fold of a week needs many jobs of a few hours.
    pub preemptions: u32,
    /// How many of these one host may count for, while another is here that did not lose the fold.
    pub losses_of_a_host: u32,
    /// Distinct hosts lost under one fold before the fold is blamed.
    pub lost_hosts: u32,
    /// Attempts that may run out of memory.
    pub memory_attempts: u32,
    /// Attempts that may fail in a way that would happen again.
    pub error_attempts: u32,
    /// Folds that must fail on a host and succeed elsewhere before it is kept out.
    pub quarantine_after: u32,
    /// How long a host is kept out, in milliseconds.
    pub quarantine: u64,
    /// How long a host is kept out after the second of its workers that died in a row, in milliseconds; twice as long
    /// after each further one.
    pub back_off: u64,
    /// Workers of a host that may die in a row before it is quarantined.
    pub most_deaths: u32,
    /// How long a worker must have been here for its end to be no sign of a bad host, in milliseconds.
    pub short_life: u64,
    /// Folds of a sweep that must fail first, all for one reason, before it pauses itself.
    pub same_failures: u32,
    /// Slots that one worker may claim.
    pub max_slots: u32,
    /// Workers that may be connected at once.
    pub max_workers: usize,
    /// Folds that one store may hold.
    pub max_folds: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lease_term: 14_000, // with timers and a queue, a fold of a silent worker is free again within 15 s
            grace: 2_000,
            pulse: 1_000,
            standstill: 3_000,
            drain_memory: 3_600_000,
            avoidance: 60_000,
            free_retries: 10,
            preemptions: 100,
            losses_of_a_host: 3,
            lost_hosts: 3,
            memory_attempts: 2,
            error_attempts: 2,
            quarantine_after: 3,
            quarantine: 600_000,
            back_off: 10_000,
            most_deaths: 5,
            short_life: 600_000,
            same_failures: 5,
            max_slots: 1_024,
            max_workers: 10_000,
            max_folds: 20_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_neither_overflows_nor_goes_below_zero() {
        assert_eq!(Timestamp(u64::MAX).plus(1), Timestamp(u64::MAX));
        assert_eq!(Timestamp(3).since(Timestamp(5)), 0);
    }
}
