//! Sends the entries of the file until no more arrive.

use std::time::Duration;

use ichido_client::queue::{DrainOutcome, Event, QueueError, Sender};
use tokio::sync::{mpsc, watch};

/// The longest wait for an attempt that is not due. After that the command ends, and the next run continues.
const PATIENCE: Duration = Duration::from_mins(1);
/// The longest wait for new lines. Each accepted line ends it.
const REST: Duration = Duration::from_hours(1);

/// Sends until the input has ended and nothing waits, or until sending is pointless.
pub(super) async fn send_all(
    mut sender: Sender,
    mut is_all_read: watch::Receiver<bool>,
    stop: watch::Sender<bool>,
    events: mpsc::UnboundedSender<Event>,
) -> Result<DrainOutcome, QueueError> {
    loop {
        // Read before draining, so entries accepted before the end are seen.
        let is_last = *is_all_read.borrow_and_update();
        // The receiver of events may be gone, and then nobody needs them.
        let outcome = sender.drain(PATIENCE, stopped(&stop), |event| drop(events.send(event))).await?;
        if is_last || outcome != DrainOutcome::Empty {
            return Ok(outcome);
        }
        tokio::select! {
            () = stopped(&stop) => return Ok(DrainOutcome::Stopped),
            _ = is_all_read.changed() => {}
            () = sender.rest(REST) => {}
        }
    }
}

async fn stopped(stop: &watch::Sender<bool>) {
    // This task holds the sender too, so the channel stays open.
    drop(stop.subscribe().wait_for(|stopped| *stopped).await);
}
