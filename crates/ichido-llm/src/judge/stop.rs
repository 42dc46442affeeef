//! A signal that ends a run early.

use std::sync::Arc;

use tokio::sync::watch;

/// Ends a run early. Cheap to clone; all clones are the same signal.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<StopStage>>);

/// How urgent the stop is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StopStage {
    #[default]
    Running,
    /// No new calls; the run waits for calls in flight.
    Finishing,
    /// Calls in flight are abandoned: they may be billed.
    AtOnce,
}

impl Stop {
    /// Creates a signal that has not been given.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(StopStage::Running)))
    }

    /// Stops new calls. The run waits for calls in flight, because they are paid for.
    pub fn finish(&self) {
        self.reach(StopStage::Finishing);
    }

    /// Abandons calls in flight as well; whether they are billed is unknown.
    pub fn at_once(&self) {
        self.reach(StopStage::AtOnce);
    }

    /// Returns whether the signal was given.
    pub fn is_given(&self) -> bool {
        StopStage::Running < *self.0.borrow()
    }

    fn reach(&self, stage: StopStage) {
        self.0.send_if_modified(|at| std::mem::replace(at, stage.max(*at)) < stage);
    }

    pub(super) async fn reached(&self, stage: StopStage) {
        // The sender is in `self`, so it still exists.
        drop(self.0.subscribe().wait_for(|at| stage <= *at).await);
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}
