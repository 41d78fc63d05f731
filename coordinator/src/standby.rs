//! Waiting to take a store over: asks every second whether its coordinator is gone. Whoever waits serves nobody and changes
//! nothing; when it has the store, it starts from there as any coordinator does.

use std::time::Duration;

use crate::store::postgres::{Asked, PostgresAccess, Waiting};
use crate::store::{Store, StoreError};

/// Between two questions.
const EVERY: Duration = Duration::from_secs(1);

/// Waits until the store is ours. A first question that fails for another reason than that somebody else has the store is the
/// user's to hear; later ones are a server that is being started again.
pub(crate) async fn wait(access: PostgresAccess) -> Result<Box<dyn Store>, StoreError> {
    let mut waiting = Waiting::new(access);
    let mut said = None;
    loop {
        let (asked, back) = ask(waiting).await?;
        waiting = back;
        match asked {
            Ok(Asked::Opened(store)) => {
                tracing::info!("the store is ours: taking over");
                return Ok(store);
            }
            Ok(Asked::Held { by }) => {
                if said.replace(by.clone()).as_ref() != Some(&by) {
                    tracing::info!(holder = %by, "waiting to take over");
                }
            }
            Err(error) if said.is_some() && may_pass(&error) => {
                let text = error.to_string();
                if said.replace(text.clone()).as_ref() != Some(&text) {
                    tracing::warn!(%error, "waiting to take over from a store that cannot be asked");
                }
            }
            Err(error) => return Err(error),
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Whether a server that is being started again, or a broken connection, may be the reason.
fn may_pass(error: &StoreError) -> bool {
    matches!(error, StoreError::Unreachable { .. } | StoreError::Postgres { .. })
}

/// Asks on a thread that may wait for the network.
async fn ask(mut waiting: Waiting) -> Result<(Result<Asked, StoreError>, Waiting), StoreError> {
    let asking = tokio::task::spawn_blocking(move || (waiting.ask(), waiting));
    asking.await.map_err(|error| StoreError::Impossible { what: "question", detail: error.to_string() })
}

#[cfg(test)]
#[path = "standby_tests.rs"]
mod tests;
