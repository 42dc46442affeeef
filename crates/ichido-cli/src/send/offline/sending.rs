//! The sender's side: what is in the file goes out, until nothing more comes.

use std::time::Duration;

use ichido_client::queue::{Drained, Event, QueueError, Sender};
use tokio::sync::{mpsc, watch};

/// The longest that a command waits for a try that is not due yet. Beyond that it ends, and whoever runs it again goes on.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long it looks at nothing else while it waits for lines. Each that is accepted ends it.
const REST: Duration = Duration::from_hours(1);

/// Sends until all was read and nothing waits, or until there is no use in going on.
pub(super) async fn send_all(
    mut sender: Sender,
    mut is_all_read: watch::Receiver<bool>,
    stop: watch::Sender<bool>,
    events: mpsc::UnboundedSender<Event>,
) -> Result<Drained, QueueError> {
    loop {
        // Before the look, so that what was accepted before the end is seen.
        let is_last = *is_all_read.borrow_and_update();
        // Whoever listened may have gone, and wants to know nothing more.
        let outcome = sender.drain(PATIENCE, stopped(&stop), |event| drop(events.send(event))).await?;
        if is_last || outcome != Drained::Empty {
            return Ok(outcome);
        }
        tokio::select! {
            () = stopped(&stop) => return Ok(Drained::Stopped),
            _ = is_all_read.changed() => {}
            () = sender.rest(REST) => {}
        }
    }
}

async fn stopped(stop: &watch::Sender<bool>) {
    // It is ours as well, so that it does not end before us.
    drop(stop.subscribe().wait_for(|stopped| *stopped).await);
}
