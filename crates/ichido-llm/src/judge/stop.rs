//! The wish that a run end before it is done.

use std::sync::Arc;

use tokio::sync::watch;

/// Ends a run early. Cheap to clone; all clones are the same wish.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<StopStage>>);

/// How urgently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StopStage {
    #[default]
    Running,
    /// No call is begun; those under way are waited for.
    Finishing,
    /// Calls under way are given up on: they may be billed.
    AtOnce,
}

impl Stop {
    /// A run that is not to be stopped, for now.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(StopStage::Running)))
    }

    /// No further call is begun. What is under way is waited for, since it is paid for.
    pub fn finish(&self) {
        self.reach(StopStage::Finishing);
    }

    /// Gives up on the calls that are under way as well: nobody knows then whether they are billed.
    pub fn at_once(&self) {
        self.reach(StopStage::AtOnce);
    }

    fn reach(&self, stage: StopStage) {
        self.0.send_if_modified(|at| std::mem::replace(at, stage.max(*at)) < stage);
    }

    pub(super) async fn reached(&self, stage: StopStage) {
        // The sender is ours, so it cannot be gone.
        drop(self.0.subscribe().wait_for(|at| stage <= *at).await);
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}
