//! Counts the jobs of a stream that have no answer yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::oneshot;

/// The number of jobs without an answer, wherever they are: submitted, in flight, or in the side queue.
#[derive(Clone, Default)]
pub(super) struct Unanswered(Arc<AtomicUsize>);

impl Unanswered {
    /// Adds a job. Returns its answer, the receiver of it, and whether it is the only job.
    pub(super) fn add<R>(&self) -> (Answer<R>, oneshot::Receiver<R>, bool) {
        let (sender, receiver) = oneshot::channel();
        let is_only = self.0.fetch_add(1, Ordering::SeqCst) == 0;
        (Answer { sender: Some(sender), unanswered: self.clone() }, receiver, is_only)
    }
}

/// Sends the answer to a job. A job that is dropped without one is not counted any more.
pub(super) struct Answer<R> {
    sender: Option<oneshot::Sender<R>>,
    unanswered: Unanswered,
}

impl<R> Answer<R> {
    /// Sends it. The job is no longer counted when the caller sees it.
    pub(super) fn send(mut self, result: R) {
        let sender = self.sender.take();
        drop(self);
        if let Some(sender) = sender {
            // The caller may have gone away; its job is done anyway.
            drop(sender.send(result));
        }
    }
}

impl<R> Drop for Answer<R> {
    fn drop(&mut self) {
        self.unanswered.0.fetch_sub(1, Ordering::SeqCst);
    }
}
