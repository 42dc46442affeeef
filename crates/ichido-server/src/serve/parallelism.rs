//! How many messages of a queue each worker runs at the same time, and how operators change it.
//!
//! Guarantee: a change applies on every node within about a second, without a restart. It is recorded in the audit trail in the
//! transaction that makes it.
// Spec: H9.

#![allow(missing_docs, reason = "a comment on a member is its description in docs/openapi.json")]

use std::num::NonZeroU32;

use axum::response::Response;
use ichido::worker::limits::MAX_PARALLELISM;
use ichido_store::node::QueueParallelism;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::json_body::{BodyShape, JsonBody};
use super::problem::{Code, Problem};
use super::queues::{known_queue, queue_response};
use super::request::{AuthorizedRequest, Operator, Segment};
use super::text;

/// How many messages of a queue each worker runs at the same time.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Parallelism {
    /// What this server's configuration says; null if it does not serve the queue.
    pub configured: Option<u32>,
    /// What an operator set instead.
    pub set: Option<u32>,
    /// Who set it.
    pub set_by: Option<String>,
    /// When it was set.
    pub set_at: Option<String>,
}

impl Parallelism {
    pub(super) fn new(configured: Option<NonZeroU32>, set: Option<QueueParallelism>) -> Self {
        Self {
            configured: configured.map(NonZeroU32::get),
            set: set.as_ref().map(|set| set.parallelism.get()),
            set_at: set.as_ref().map(|set| set.since.to_string()),
            set_by: set.and_then(|set| set.by),
        }
    }
}

/// The parallelism of a queue.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetParallelism {
    /// Messages that each worker runs at the same time; null restores what is configured.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required, minimum = 1, maximum = 100_000)]
    parallelism: Option<u32>,
}

impl BodyShape for SetParallelism {
    const EXAMPLE: &'static str = r#"{"parallelism":4} or {"parallelism":null}"#;
}

/// Sets how many messages of a queue each worker runs at the same time, or restores what is configured.
///
/// More messages start within about a second. With fewer, messages in flight finish first.
#[utoipa::path(
    put,
    path = "/v1/queues/{queue}/parallelism",
    params(("queue" = text::QueueName, Path, description = "The queue", example = "demo")),
    request_body = SetParallelism,
    responses(
        (status = 200, description = "Workers apply it within about a second", body = super::models::Queue),
    )
)]
pub(super) async fn set_queue_parallelism(
    call: AuthorizedRequest<Operator>,
    Segment(queue): Segment,
    JsonBody(SetParallelism { parallelism }): JsonBody<SetParallelism>,
) -> Result<Response, Problem> {
    let parallelism = parallelism.map(checked).transpose()?;
    let name = known_queue(&call, &queue).await?;
    call.api.store.queues().set_parallelism(&name, parallelism, Some(&call.caller.name)).await?;
    queue_response(&call.api, &queue).await
}

fn checked(count: u32) -> Result<NonZeroU32, Problem> {
    NonZeroU32::new(count).filter(|count| count.get() <= MAX_PARALLELISM).ok_or_else(|| {
        let detail = format!(
            "parallelism must be from 1 to {MAX_PARALLELISM}, or null for what is configured; to stop all calls, pause the queue"
        );
        Problem::new(Code::BodyUnexpected, detail)
    })
}
