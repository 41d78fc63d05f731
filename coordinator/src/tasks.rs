//! The one place that spawns tasks: each has a name, and how it ended is in the log. Everybody in this crate
//! who needs a task calls [`spawn`].

use std::future::Future;

use tokio::task::JoinHandle;

/// Runs `future` as a task. A panic is logged as an error; ending and being cancelled only at debug level.
#[expect(clippy::disallowed_methods, reason = "the wrapper that the ban points to")]
pub fn spawn<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(async move {
        let mut watcher = Watcher { name, ended: false };
        let output = future.await;
        watcher.ended = true;
        output
    })
}

/// Says how its task ended when it is dropped.
struct Watcher {
    name: &'static str,
    ended: bool,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let Self { name: task, ended } = *self;
        if ended {
            tracing::debug!(task, "task ended");
        } else if std::thread::panicking() {
            tracing::error!(task, "task panicked");
        } else {
            tracing::debug!(task, "task was cancelled");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_output_of_a_task_comes_back() {
        assert_eq!(spawn("adder", async { 1 + 2 }).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_panic_stays_in_its_task() {
        let ended = spawn("jumper", async { panic!("on purpose") }).await;
        assert!(ended.is_err_and(|error| error.is_panic()));
    }
}
