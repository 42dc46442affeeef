//! The way a message came (SPEC F1), and whether it goes round in circles.
//!
//! Guarantee: what is kept is what the header says, bounded, and nothing where it says nothing clear: a broken story stops no message. A
//! message that came out of a queue and through as many hops as are kept does not go into the same queue again, so that no message goes
//! round for ever, whatever stands in between.

use http::HeaderMap;
use http::header::HeaderName;
use ichido_core::hops::{HOPS_MAX, Hops, OUTBOX};
use ichido_store::message::QueueName;
use uuid::Uuid;

use super::api::ApiState;
use super::problem::{Code, Problem};

const HOPS: HeaderName = HeaderName::from_static("ichido-hops");

/// The way a request for a queue came, as it is kept.
pub(super) async fn read(
    api: &ApiState,
    queue: &QueueName,
    headers: &HeaderMap,
) -> Result<Option<String>, Problem> {
    let hops = Hops::read(headers.get_all(HOPS));
    if hops.is_full() && has_passed(api, queue, &hops).await? {
        let detail = format!(
            "it came through {HOPS_MAX} hops, which is the most that are kept, and out of this very queue: it goes round in circles; nothing was \
             put in; send what the queue delivers somewhere else, or, if this is a new beginning, send it without Ichido-Hops"
        );
        return Err(Problem::new(Code::LoopDetected, detail));
    }
    Ok(Some(hops).filter(|hops| !hops.is_empty()).map(|hops| hops.to_string()))
}

/// Whether one of the hops is a message that this queue delivered. Those are few, and asked for only where the header is full.
async fn has_passed(api: &ApiState, queue: &QueueName, hops: &Hops) -> Result<bool, Problem> {
    let outboxes = hops.iter().filter(|hop| hop.name.as_str() == OUTBOX);
    for id in outboxes.filter_map(|hop| Uuid::try_parse(hop.request_id.as_str()).ok()) {
        if api.store.messages().get(id).await?.is_some_and(|found| found.queue == queue.as_str()) {
            return Ok(true);
        }
    }
    Ok(false)
}
