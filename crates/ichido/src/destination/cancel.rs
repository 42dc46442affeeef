//! Cancellation of a call, visible to the handler and to anything it started.

use std::sync::Arc;

use tokio::sync::watch;

/// Signals a handler that its work is no longer wanted.
///
/// The worker is stopping, its claim was lost, or its time is up. Cheap to clone; all clones share the signal.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Cancel {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Returns whether the work is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the cancellation.
    pub async fn cancelled(&self) {
        // The sender is ours, so it cannot be dropped.
        drop(self.0.subscribe().wait_for(|cancelled| *cancelled).await);
    }

    pub(crate) fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Signals holders of clones that the call has ended.
    ///
    /// Usually there are none, and signalling nobody costs more than a short call.
    pub(crate) fn cancel_clones(&self) {
        if 1 < Arc::strong_count(&self.0) {
            self.cancel();
        }
    }
}
