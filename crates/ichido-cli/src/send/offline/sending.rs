//! The sender's side: what is in the file goes out, until nothing more comes.

use std::time::Duration;

use ichido_client::queue::{Drained, Event, QueueError, Sender};
use tokio::sync::{mpsc, watch};

/// The longest that a command waits for a try that is not due yet. Beyond that it ends, and whoever runs it again goes on.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long it looks at nothing else while it waits for lines. Each that is accepted ends it.
const REST: Duration = Duration::from_hours(1);

/// Sends until all was read and nothing waits, or until there is no use in going on.
pub(super) async fn all(
    mut sender: Sender,
    mut is_all_read: watch::Receiver<bool>,
    stop: watch::Sender<bool>,
    tell: mpsc::UnboundedSender<Event>,
) -> Result<Drained, QueueError> {
    loop {
        // Before the look, so that what was accepted before the end is seen.
        let is_last = *is_all_read.borrow_and_update();
        // Whoever listened may have gone, and wants to know nothing more.
        let came = sender.drain(PATIENCE, told(&stop), |event| drop(tell.send(event))).await?;
        if is_last || came != Drained::Empty {
            return Ok(came);
        }
        tokio::select! {
            () = told(&stop) => return Ok(Drained::Stopped),
            _ = is_all_read.changed() => {}
            () = sender.rest(REST) => {}
        }
    }
}

async fn told(stop: &watch::Sender<bool>) {
    // It is ours as well, so that it does not end before us.
    drop(stop.subscribe().wait_for(|told| *told).await);
}
