//! Simulated worlds: the real coordinator (server, driver, scheduler) and several real agents of workers (with their link
//! and spool) over a simulated network in virtual time, with faults drawn from a seed: lost links, held messages,
//! repeated reports, sessions without heartbeats, crashes and restarts of either side, processes of either side that
//! stand still, hosts whose workers crash again and again, workers that are told to stop or drained, coordinators that
//! are older than their workers, results that contradict themselves, checkpoints that come late, torn or never, clocks that jump, commits that are slow or fail
//! before or after they are kept, viewers that never read; a coordinator that loses its store without knowing it while
//! another one takes over.
//!
//! Checked in every world: at most one accepted result a fold; no result lost that was acknowledged or only reported;
//! no report refused but those that contradict themselves; no lease ended before its term, in time that the coordinator
//! was awake; no fold failed because of one bad host; no lease beyond a slot and no two folds on one; no fold given away
//! while its lease runs; results only under the attempt that trained them; nobody goes on when told to stop; hellos that
//! name everything in training; checkpoints removed only when a result is safe; no checkpoint kept that is torn, none lost that the
//! coordinator said it holds, none left of a fold with a result, and nobody goes on from one that nobody saved; all parts of the state in step; and every sweep ends
//! once the faults stop.
//!
//! Only the slots are played: they train nothing. `TOGL_WORLDS` sets how many worlds are run (`make soak`),
//! `TOGL_WORLD_SEED` repeats one and tells all that is said in it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "says what happened in the worlds, to whoever asks for it")]
#![allow(clippy::needless_update, reason = "messages may get further fields")]
#![expect(
    clippy::disallowed_methods,
    reason = "virtual time is read where it is needed, and tasks die with their host"
)]

mod coordinator;
mod eyes;
mod faults;
mod ledger;
mod moving;
mod network;
mod operator;
mod slots;
mod standby;
mod viewer;
mod worker;
mod world;

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Worlds of one test; there are five tests, so that they can run side by side.
fn worlds() -> u64 {
    let all = std::env::var("TOGL_WORLDS").ok().and_then(|text| text.parse().ok()).unwrap_or(500);
    u64::div_ceil(all, 5)
}

/// What must happen at least so often in a hundred worlds: a fault that never comes proves nothing.
const LEAST: [(&str, u64); 38] = [
    ("coordinator crashes", 30),
    ("worker crashes", 30),
    ("worker stops", 10),
    ("left when told", 8),
    ("left when drained", 5),
    ("partitions", 15),
    ("one-way partitions", 15),
    ("held links", 15),
    ("lost sessions", 100),
    ("sessions without heartbeats", 20),
    ("clock jumps", 15),
    ("worker clock jumps", 15),
    ("slow commits", 4),
    ("commits failed before", 1),
    ("commits failed after", 1),
    ("doubled reports", 50),
    ("repeated reports", 15),
    ("told to stop", 10),
    ("revived leases", 1),
    ("coordinator pauses", 10),
    ("worker pauses", 10),
    ("crash loops", 10),
    ("kept for an upgrade", 5),
    ("refused for good", 3),
    ("unread streams", 100),
    ("lost stores", 20),
    ("taken over", 10),
    ("checkpoints that arrived", 50),
    ("checkpoints that never came", 20),
    ("late checkpoints", 20),
    ("torn checkpoints", 20),
    ("declined checkpoints", 10),
    ("damaged checkpoints", 2),
    ("folds that moved", 10),
    ("saved and stopped", 8),
    ("brought again", 20),
    ("folds that a race saved", 20),
    ("folds that a halving saved", 100),
];

/// The one world that somebody wants to look at.
fn single_seed() -> Option<u64> {
    static SEED: OnceLock<Option<u64>> = OnceLock::new();
    *SEED.get_or_init(|| std::env::var("TOGL_WORLD_SEED").ok().map(|text| text.parse().unwrap()))
}

fn run(first: u64) {
    if let Some(seed) = single_seed() {
        return println!("{:?}", world::run(seed));
    }
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..worlds() {
        for (what, count) in world::run(first + seed * 5) {
            *seen.entry(what).or_default() += count;
        }
    }
    println!("{} worlds from seed {first}, every fifth: {seen:?}", worlds());
    for (what, least) in LEAST {
        let (count, least) = (seen.get(what).copied().unwrap_or(0), least * worlds() / 100);
        assert!(count >= least, "{what}: {count} times in {} worlds, not {least}", worlds());
    }
}

#[test]
fn promises_hold_in_worlds_of_seed_0_mod_5() {
    run(0);
}

#[test]
fn promises_hold_in_worlds_of_seed_1_mod_5() {
    run(1);
}

#[test]
fn promises_hold_in_worlds_of_seed_2_mod_5() {
    run(2);
}

#[test]
fn promises_hold_in_worlds_of_seed_3_mod_5() {
    run(3);
}

#[test]
fn promises_hold_in_worlds_of_seed_4_mod_5() {
    run(4);
}

/// The mistake that fencing prevents: then promises are broken, and this is noticed.
#[test]
fn two_coordinators_that_are_active_at_once_are_caught() {
    let caught = (0..20).filter(|seed| {
        let world = || world::run_with(*seed, world::Mistake::TwoActive);
        std::panic::catch_unwind(world).is_err()
    });
    let caught = caught.count();
    println!("two active coordinators are caught in {caught} of 20 worlds");
    assert!(caught > 0, "worlds do not notice two active coordinators");
}

/// The mistake that digests prevent: then somebody goes on from what nobody saved, and this is noticed.
#[test]
fn a_coordinator_that_keeps_torn_checkpoints_is_caught() {
    let caught = (0..40).filter(|seed| {
        let world = || world::run_with(*seed, world::Mistake::AcceptTorn);
        let words = std::panic::catch_unwind(world).err().and_then(|words| words.downcast::<String>().ok());
        words.is_some_and(|words| words.contains("goes on from a checkpoint of"))
    });
    let caught = caught.count();
    println!("a coordinator that keeps torn checkpoints is caught in {caught} of 40 worlds");
    assert!(caught > 0, "worlds do not notice torn checkpoints that are kept");
}
