//! The hops of a message, and loop detection.
//!
//! Guarantee: the hops from the header are stored, bounded; an unclear header is ignored and stops no message. A message that
//! left a queue and passed through the maximum number of hops does not enter the same queue again, so no message loops forever,
//! whatever is in between.

// Spec: F1.

use http::HeaderMap;
use http::header::HeaderName;
use ichido_core::hops::{HopName, Hops, MAX_HOPS};
use ichido_store::message::QueueName;
use uuid::Uuid;

use super::api::ApiState;
use super::problem::{Code, Problem};

const HOPS: HeaderName = HeaderName::from_static("ichido-hops");

/// Returns the hops of a request for a queue, as they are stored.
pub(super) async fn read(
    api: &ApiState,
    queue: &QueueName,
    headers: &HeaderMap,
) -> Result<Option<String>, Problem> {
    let hops = Hops::read(headers.get_all(HOPS));
    if hops.is_full() && has_passed(api, queue, &hops).await? {
        let detail = format!(
            "the message passed {MAX_HOPS} hops, the maximum, including this queue: it is in a loop; nothing was enqueued; send what the queue \
             delivers to another queue, or, if this is a new message, send it without Ichido-Hops"
        );
        return Err(Problem::new(Code::LoopDetected, detail));
    }
    Ok(Some(hops).filter(|hops| !hops.is_empty()).map(|hops| hops.to_string()))
}

/// Whether one of the hops is a message that this queue delivered.
///
/// There are few such hops, and the store is asked only if the header is full.
async fn has_passed(api: &ApiState, queue: &QueueName, hops: &Hops) -> Result<bool, Problem> {
    let outboxes = hops.iter().filter(|hop| hop.name == HopName::OUTBOX);
    for id in outboxes.filter_map(|hop| Uuid::try_parse(hop.request_id.as_str()).ok()) {
        if api.store.messages().get(id).await?.is_some_and(|found| found.queue == queue.as_str()) {
            return Ok(true);
        }
    }
    Ok(false)
}
