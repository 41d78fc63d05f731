//! What one training step asks of a device, by the part of the network that asks: launches, copies and waits.
//! Owns the names of the parts and the table; the rules of counting are in `native/count.cpp`, what they mean is in
//! docs/benchmarks.md. While nobody counts, naming a part costs one look at a flag.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::native;

static COUNTING: AtomicBool = AtomicBool::new(false);

/// What a part of the network asks for in one training step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PartLaunches {
    /// Which part: a layer, the loss, the optimiser, or sums of gradients of what is used more than once.
    pub part: String,
    /// Operations of the forward pass that launch work.
    pub forward: u64,
    /// Operations of the backward pass that launch work.
    pub backward: u64,
    /// Operations that others of the same step do inside; launches of theirs, not of ours.
    pub nested: u64,
    /// Copies from the host that it need not wait for.
    pub copies: u64,
    /// Copies from the host that it waits for.
    pub blocking_copies: u64,
    /// Reads of what the device has computed: the host waits for all that was asked for before.
    pub waits: u64,
    /// How often each operation was launched.
    pub operations: BTreeMap<String, u64>,
}

/// What one training step asks of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepLaunches {
    /// Name of the network, such as `GCN-4`.
    pub method: String,
    /// By part, in the order of their names.
    pub parts: Vec<PartLaunches>,
    /// Over all parts.
    pub total: PartLaunches,
}

impl PartLaunches {
    /// Forward and backward together.
    pub fn launches(&self) -> u64 {
        self.forward + self.backward
    }

    fn add(&mut self, phase: &str, kind: &str, operation: &str, count: u64) {
        match (kind, phase) {
            ("launch", "forward") => self.forward += count,
            ("launch", _) => self.backward += count,
            ("wait", _) => self.waits += count,
            ("blocking copy", _) => self.blocking_copies += count,
            ("nested", _) => self.nested += count,
            _ => self.copies += count,
        }
        if kind == "launch" {
            *self.operations.entry(operation.to_owned()).or_default() += count;
        }
    }
}

/// What follows, and the backward pass of it, belongs to this part of the network.
pub(crate) fn part(name: impl std::fmt::Display) {
    if !COUNTING.load(Ordering::Relaxed) {
        return;
    }
    if let Ok(name) = CString::new(name.to_string()) {
        native::count_part(&name);
    }
}

/// Counts while `work` runs; nothing for a device that libtorch does not count for.
pub(crate) fn counted<T>(device: tch::Device, work: impl FnOnce() -> T) -> Option<(T, String)> {
    if !native::begin_counting(device) {
        return None;
    }
    COUNTING.store(true, Ordering::Relaxed);
    let made = work();
    COUNTING.store(false, Ordering::Relaxed);
    Some((made, native::end_counting()))
}

/// The table of a step from the lines of `native/count.h`.
pub(crate) fn table(method: String, lines: &str) -> StepLaunches {
    let mut parts: BTreeMap<&str, PartLaunches> = BTreeMap::new();
    let mut total = PartLaunches { part: "all".to_owned(), ..PartLaunches::default() };
    for line in lines.lines() {
        let [name, phase, kind, operation, count] = line.split('\t').collect::<Vec<_>>()[..] else {
            continue;
        };
        let count = count.parse().unwrap_or(0);
        let of_part = parts.entry(name).or_default();
        name.clone_into(&mut of_part.part);
        of_part.add(phase, kind, operation, count);
        total.add(phase, kind, operation, count);
    }
    StepLaunches { method, parts: parts.into_values().collect(), total }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_a_table_by_part_with_a_sum() {
        let lines = "head\tforward\tlaunch\taten::addmm\t3\nhead\tbackward\tlaunch\taten::mm\t6\n\
                     loss\tforward\twait\taten::_local_scalar_dense\t1\nloss\tforward\tnested\taten::add\t2\n";
        let step = table("GCN-4".to_owned(), lines);
        assert_eq!((step.total.launches(), step.total.waits, step.total.nested), (9, 1, 2));
        assert_eq!(
            (step.parts[0].part.as_str(), step.parts[0].forward, step.parts[0].backward),
            ("head", 3, 6)
        );
        assert_eq!(step.parts[0].operations["aten::mm"], 6);
    }

    #[test]
    fn the_processor_launches_nothing_that_could_be_counted() {
        assert!(counted(tch::Device::Cpu, || ()).is_none());
    }
}
