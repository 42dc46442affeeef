//! The stages of stopping a worker.

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StopStage {
    /// It works.
    Running,
    /// It claims nothing more, gives back unstarted messages, and finishes started ones.
    Draining,
    /// Calls in flight are abandoned, and settled as such.
    GivingUp,
    /// It has ended, whatever is left.
    Over,
}

#[derive(Clone, Debug)]
pub(super) struct StopSignal(watch::Receiver<StopStage>);

impl StopSignal {
    pub(super) fn new() -> (watch::Sender<StopStage>, Self) {
        let (sender, receiver) = watch::channel(StopStage::Running);
        (sender, Self(receiver))
    }

    pub(super) fn has(&self, stage: StopStage) -> bool {
        stage <= *self.0.borrow()
    }

    /// Waits until it has reached a stage.
    pub(super) async fn reached(&self, stage: StopStage) {
        let mut stages = self.0.clone();
        if stages.wait_for(|now| stage <= *now).await.is_err() {
            // The worker was dropped, and the waiting task is about to end with it: that is not a stop.
            std::future::pending::<()>().await;
        }
    }
}

/// Advances to a stage, never back.
pub(super) fn advance(sender: &watch::Sender<StopStage>, stage: StopStage) {
    sender.send_if_modified(|now| {
        let further = *now < stage;
        *now = (*now).max(stage);
        further
    });
}
