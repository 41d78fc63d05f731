//! Somebody who looks and never reads: opens streams of what happens to a sweep, leaves what comes unread for a while, goes
//! away and comes back. Must make no difference to anybody.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng as SmallRng;
use togl_proto::client::{self, Bearer};
use togl_proto::wire;

use crate::ledger::Ledger;
use crate::network;

/// Looks until the world ends.
pub async fn look(token: String, ledger: Ledger, seed: u64) -> turmoil::Result {
    let mut rng = SmallRng::seed_from_u64(seed);
    loop {
        tokio::time::sleep(Duration::from_millis(rng.random_range(200..1_500))).await;
        let connecting = tokio::time::timeout(Duration::from_secs(5), network::connect());
        let Ok(Ok(channel)) = connecting.await else { continue };
        let mut client = client::sweeps_on(channel, Bearer::new(&token)?);
        let sweep = "a".to_owned();
        let watching = client.watch(wire::StatusRequest { sweep: sweep.clone() });
        let Ok(Ok(states)) = tokio::time::timeout(Duration::from_secs(5), watching).await else { continue };
        let following = client.follow(wire::FollowRequest { sweep, ..Default::default() });
        let Ok(Ok(changes)) = tokio::time::timeout(Duration::from_secs(5), following).await else { continue };
        ledger.count("unread streams");
        tokio::time::sleep(Duration::from_millis(rng.random_range(500..5_000))).await;
        drop((states, changes));
    }
}
