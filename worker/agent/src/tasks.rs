//! The one place that starts tasks: each has a name, and how it ended is logged if it ended badly.

use std::future::Future;

use tokio::task::JoinHandle;

/// Runs `work` in the background under a name.
#[expect(clippy::disallowed_methods, reason = "the wrapper that the ban asks for")]
pub fn spawn(name: &'static str, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(async move {
        let ended = tokio::spawn(work).await;
        if let Err(error) = ended
            && error.is_panic()
        {
            tracing::error!(task = name, "background task panicked");
        }
    })
}
