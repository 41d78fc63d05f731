//! Pools: who starts workers for which part of a cluster. Each pool has one holder at a time, who says so again and again and
//! tells what it does, so that two autoscalers never answer the same demand. In memory only: after a restart whoever asks
//! first goes on, which is its old holder unless that is gone. Starts no workers and decides nothing about folds.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use togl_proto::wire;
use togl_scheduler::Timestamp;
use togl_sweeps::hint;
use tonic::Status;

/// How long a holder may be silent, in milliseconds; it is heard of every half minute.
const TERM: u64 = 90_000;

/// Pools at once.
const MOST: usize = 100;

/// Characters of names, and of what a holder says.
const LONGEST_NAME: usize = 100;
const LONGEST_WORDS: usize = 500;

/// The pools that somebody holds.
#[derive(Default)]
pub(super) struct Pools(Mutex<BTreeMap<String, Held>>);

struct Held {
    holder: String,
    said: String,
    heard: Timestamp,
    /// Whether somebody asked the holder to stop.
    stop: bool,
}

impl Pools {
    pub(super) fn hold(
        &self,
        now: Timestamp,
        request: wire::HoldPoolRequest,
    ) -> Result<wire::HoldPoolReply, Status> {
        let wire::HoldPoolRequest { pool, holder, said, release, stop } = request;
        if pool.is_empty() || pool.len() > LONGEST_NAME || holder.len() > LONGEST_NAME {
            return Err(Status::invalid_argument("a pool and its holder have names of up to 100 bytes"));
        }
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|_, held| now.since(held.heard) < TERM);
        if stop {
            let held = pools.get_mut(&pool).map(|held| held.stop = true);
            return Ok(wire::HoldPoolReply { stop: held.is_some() });
        }
        if let Some(held) = pools.get(&pool).filter(|held| held.holder != holder) {
            return Err(Status::failed_precondition(taken(&pool, held, now)));
        }
        if release {
            pools.remove(&pool);
            return Ok(wire::HoldPoolReply { stop: false });
        }
        if pools.len() >= MOST && !pools.contains_key(&pool) {
            return Err(Status::resource_exhausted(format!("{MOST} pools are held, which is the limit")));
        }
        let said = said.chars().take(LONGEST_WORDS).collect();
        let stop = pools.get(&pool).is_some_and(|held| held.stop);
        pools.insert(pool, Held { holder, said, heard: now, stop });
        Ok(wire::HoldPoolReply { stop })
    }

    pub(super) fn list(&self, now: Timestamp) -> Vec<wire::PoolSummary> {
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|_, held| now.since(held.heard) < TERM);
        let summary = |(pool, held): (&String, &Held)| wire::PoolSummary {
            pool: pool.clone(),
            holder: held.holder.clone(),
            said: held.said.clone(),
            seconds_ago: now.since(held.heard) / 1_000,
        };
        pools.iter().map(summary).collect()
    }
}

fn taken(pool: &str, held: &Held, now: Timestamp) -> String {
    let seconds = now.since(held.heard) / 1_000;
    let message = format!("pool `{pool}` is held by {}, heard of {seconds} s ago", held.holder);
    let advice =
        format!("choose another name with --pool, or stop that one with `togl slurm down --pool {pool}`");
    hint::below(message, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(holder: &str) -> wire::HoldPoolRequest {
        let (pool, holder) = ("gpu".to_owned(), holder.to_owned());
        wire::HoldPoolRequest { pool, holder, said: "all is well".to_owned(), ..Default::default() }
    }

    #[test]
    fn a_pool_has_one_holder_until_it_lets_go_or_is_silent_for_long() {
        let pools = Pools::default();
        pools.hold(Timestamp(0), asks("a")).unwrap();
        let refused = pools.hold(Timestamp(5_000), asks("b")).unwrap_err();
        assert!(refused.message().starts_with("pool `gpu` is held by a, heard of 5 s ago"), "{refused}");
        pools.hold(Timestamp(80_000), asks("a")).unwrap();
        pools.hold(Timestamp(100_000), asks("b")).unwrap_err();
        pools.hold(Timestamp(100_000), wire::HoldPoolRequest { release: true, ..asks("a") }).unwrap();
        pools.hold(Timestamp(100_000), asks("b")).unwrap();
        pools.hold(Timestamp(190_000), asks("c")).unwrap();
        assert_eq!(pools.list(Timestamp(191_000))[0].holder, "c");
        assert_eq!(pools.list(Timestamp(300_000)), []);
    }

    #[test]
    fn a_holder_hears_that_it_shall_stop_and_the_next_one_does_not() {
        let pools = Pools::default();
        let stop = || wire::HoldPoolRequest { stop: true, ..asks("") };
        assert!(!pools.hold(Timestamp(0), stop()).unwrap().stop, "there is nobody to stop");
        assert!(!pools.hold(Timestamp(0), asks("a")).unwrap().stop);
        assert!(pools.hold(Timestamp(1), stop()).unwrap().stop);
        assert!(pools.hold(Timestamp(2), asks("a")).unwrap().stop);
        pools.hold(Timestamp(3), wire::HoldPoolRequest { release: true, ..asks("a") }).unwrap();
        assert!(!pools.hold(Timestamp(4), asks("b")).unwrap().stop);
    }
}
