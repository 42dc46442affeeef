//! The tasks of a queue's attempts.
//!
//! Guarantee: they end with their runner, and none is started after it.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};

use ichido_core::sync::lock;
use tokio::task::{AbortHandle, JoinError, JoinSet};

/// The tasks of a queue's attempts, shared by its runner and its lanes.
#[derive(Clone)]
pub(super) struct AttemptTasks(Arc<Mutex<Option<JoinSet<()>>>>);

impl AttemptTasks {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Some(JoinSet::new()))))
    }

    /// Starts a task, unless the runner has ended.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
        lock(&self.0).as_mut().map(|tasks| tasks.spawn(task))
    }

    /// Forgets tasks that have ended.
    pub(super) fn reap(&self) {
        if let Some(tasks) = &mut *lock(&self.0) {
            while let Some(ended) = tasks.try_join_next() {
                log_panic(ended);
            }
        }
    }

    /// Waits until all tasks have ended.
    pub(super) async fn ended(&self) {
        loop {
            let next = poll_fn(|context| match &mut *lock(&self.0) {
                Some(tasks) => tasks.poll_join_next(context),
                None => std::task::Poll::Ready(None),
            });
            match next.await {
                Some(ended) => log_panic(ended),
                None => return,
            }
        }
    }

    /// Aborts all tasks, and starts no more.
    pub(super) fn abort(&self) {
        let tasks = lock(&self.0).take();
        drop(tasks);
    }
}

/// Attempts do not panic; if one does, its lease lapses and the rescue decides.
fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && !error.is_cancelled()
    {
        tracing::error!(%error, "attempt ended without settling its message");
    }
}
