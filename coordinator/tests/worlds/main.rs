//! Simulated worlds: the real coordinator (server, driver, scheduler) and several workers over a simulated network
//! in virtual time, with faults drawn from a seed: lost links, held messages, repeated reports, crashes and
//! restarts of either side, clocks that jump, commits that are slow or fail before or after they are kept.
//!
//! Checked in every world: at most one accepted result a fold, no acknowledged result lost, no result of an issued
//! attempt refused, no lease beyond a slot, no fold given away while its lease runs, all books in step, and every
//! sweep ends once the faults stop.
//!
//! The workers are played by `agent.rs`, which speaks the real protocol in the way of the worker program but
//! trains nothing. `TOGL_WORLDS` sets how many worlds are run (`make soak`), `TOGL_WORLD_SEED` repeats one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "says what happened in the worlds, to whoever asks for it")]
#![allow(clippy::needless_update, reason = "messages may get further fields")]
#![expect(
    clippy::disallowed_methods,
    reason = "virtual time is read where it is needed, and tasks die with their host"
)]

mod agent;
mod coordinator;
mod faults;
mod ledger;
mod network;
mod world;

use std::collections::BTreeMap;

/// Worlds of one test; there are five tests, so that they can run side by side.
fn worlds() -> u64 {
    let all = std::env::var("TOGL_WORLDS").ok().and_then(|text| text.parse().ok()).unwrap_or(500);
    u64::div_ceil(all, 5)
}

fn run(first: u64) {
    if let Ok(seed) = std::env::var("TOGL_WORLD_SEED") {
        return println!("{:?}", world::run(seed.parse().unwrap()));
    }
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..worlds() {
        for (what, count) in world::run(first + seed * 5) {
            *seen.entry(what).or_default() += count;
        }
    }
    println!("{} worlds from seed {first}, every fifth: {seen:?}", worlds());
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
