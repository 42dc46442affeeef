//! The wish that a call end: seen by the handler, and by whatever it started elsewhere.

use std::sync::Arc;

use tokio::sync::watch;

/// Tells a handler that its work is no longer wanted: the worker is stopping, its claim was lost, or its time is over. Cheap to
/// clone; all clones are the same wish.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Cancel {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Whether the work is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is.
    pub async fn cancelled(&self) {
        // The sender is ours, so it cannot be gone.
        drop(self.0.subscribe().wait_for(|cancelled| *cancelled).await);
    }

    pub(crate) fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// The call has ended: whoever was given a clone is told. Mostly nobody was, and telling nobody costs more than a short call.
    pub(crate) fn cancel_clones(&self) {
        if 1 < Arc::strong_count(&self.0) {
            self.cancel();
        }
    }
}
