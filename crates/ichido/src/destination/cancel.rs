//! Cancellation of a call, visible to the handler and to anything it started.

use std::sync::Arc;

use tokio::sync::watch;

/// Signals a handler that its work is no longer wanted.
///
/// Somebody asked to cancel the message ([`Cancel::is_requested`]), the worker is stopping, its claim was lost, or its time is
/// up. Cheap to clone; all clones share the signal.
///
/// ```
/// use ichido::destination::{Job, JobError};
///
/// async fn convert(job: Job<String>) -> Result<(), JobError> {
///     tokio::select! {
///         () = read_page(&job.payload) => (),
///         () = job.cancel.cancelled() => return Err(JobError::cancelled()), // Nothing was done.
///     }
///     Ok(()) // Store the page here.
/// }
/// # async fn read_page(_: &str) {}
/// ```
#[derive(Clone, Debug)]
pub struct Cancel(Arc<watch::Sender<Signal>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    None,
    /// The worker does not want the work.
    Worker,
    /// Somebody asked to cancel the message.
    Requested,
}

impl Cancel {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Signal::None)))
    }

    /// Returns whether the work is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow() != Signal::None
    }

    /// Returns whether somebody asked to cancel this message.
    ///
    /// If the handler then returns an error that says that nothing was done, such as
    /// [`JobError::cancelled`](super::JobError::cancelled), the message is cancelled and not tried again.
    // Spec: D2, H5.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow() == Signal::Requested
    }

    /// Waits for the cancellation.
    pub async fn cancelled(&self) {
        // The sender is ours, so it cannot be dropped.
        drop(self.0.subscribe().wait_for(|signal| *signal != Signal::None).await);
    }

    pub(crate) fn cancel(&self) {
        self.0.send_if_modified(|signal| {
            let is_first = *signal == Signal::None;
            if is_first {
                *signal = Signal::Worker;
            }
            is_first
        });
    }

    /// Signals that somebody asked to cancel the message.
    pub(crate) fn request(&self) {
        self.0.send_replace(Signal::Requested);
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
