//! Cancellation of a call, visible to the handler and to anything it started.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

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
pub struct Cancel(Arc<Signal>);

/// Every call has one, so it is small: a watch channel costs more than a short call.
#[derive(Debug)]
struct Signal {
    /// [`NONE`], [`WORKER`] or [`REQUESTED`].
    state: AtomicU8,
    changed: Notify,
}

const NONE: u8 = 0;
/// The worker does not want the work.
const WORKER: u8 = 1;
/// Somebody asked to cancel the message.
const REQUESTED: u8 = 2;

impl Cancel {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Signal { state: AtomicU8::new(NONE), changed: Notify::const_new() }))
    }

    /// Returns whether the work is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        self.0.state.load(Ordering::Acquire) != NONE
    }

    /// Returns whether somebody asked to cancel this message.
    ///
    /// If the handler then returns an error that says that nothing was done, such as
    /// [`JobError::cancelled`](super::JobError::cancelled), the message is cancelled and not tried again.
    // Spec: D2, H5.
    pub fn is_requested(&self) -> bool {
        self.0.state.load(Ordering::Acquire) == REQUESTED
    }

    /// Waits for the cancellation.
    pub async fn cancelled(&self) {
        // Made before the check, so it misses no later signal.
        let changed = self.0.changed.notified();
        if !self.is_cancelled() {
            changed.await;
        }
    }

    pub(crate) fn cancel(&self) {
        let first = self.0.state.compare_exchange(NONE, WORKER, Ordering::AcqRel, Ordering::Acquire);
        if first.is_ok() {
            self.0.changed.notify_waiters();
        }
    }

    /// Signals that somebody asked to cancel the message.
    pub(crate) fn request(&self) {
        self.0.state.store(REQUESTED, Ordering::Release);
        self.0.changed.notify_waiters();
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
