//! Queues and nodes over HTTP.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use axum::response::Response;
use http::StatusCode;
use ichido_core::time::Timestamp;
use ichido_store::error::StoreError;
use ichido_store::message::QueueName;

use super::api::ApiState;
use super::caller::{ApiCaller, unknown_queue};
use super::models::{Counts, NodeStatus, Nodes, Queue, Queues};
use super::parallelism::Parallelism;
use super::problem::{Code, Problem};
use super::request::{Anyone, AuthorizedRequest, Operator, Segment, Viewer};
use super::response::json;
use super::text;
use crate::config::did_you_mean;

/// Lists queues.
///
/// Each has its message counts, the age of its oldest waiting message, and whether it is paused. A producer sees only its own queues,
/// and of each only whether it is served here and paused, since it may hold messages of others. Its own messages are at
/// `GET /v1/messages`.
#[utoipa::path(
    get,
    path = "/v1/queues",
    responses(
        (status = 200, description = "The queues that you may see", body = Queues),
    )
)]
pub(super) async fn list_queues(
    AuthorizedRequest { api, caller, .. }: AuthorizedRequest<Anyone>,
) -> Result<Response, Problem> {
    let queues = current_queues(&api, |name| caller.can_see_queue(name)).await?;
    let queues = queues.into_iter().map(|queue| queue.redacted_for(&caller)).collect();
    Ok(json(StatusCode::OK, &Queues { queues }))
}

/// Pauses a queue on all nodes.
///
/// It still accepts messages, and messages in flight finish.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/pause",
    params(("queue" = text::QueueName, Path, description = "The queue", example = "demo")),
    responses(
        (status = 200, description = "The queue is paused", body = Queue),
    )
)]
pub(super) async fn pause_queue(
    call: AuthorizedRequest<Operator>,
    Segment(queue): Segment,
) -> Result<Response, Problem> {
    set_paused(&call, &queue, true).await
}

/// Resumes a queue on all nodes.
#[utoipa::path(
    post,
    path = "/v1/queues/{queue}/resume",
    params(("queue" = text::QueueName, Path, description = "The queue", example = "demo")),
    responses(
        (status = 200, description = "The queue is not paused", body = Queue),
    )
)]
pub(super) async fn resume_queue(
    call: AuthorizedRequest<Operator>,
    Segment(queue): Segment,
) -> Result<Response, Problem> {
    set_paused(&call, &queue, false).await
}

async fn set_paused(
    call: &AuthorizedRequest<Operator>,
    queue: &str,
    paused: bool,
) -> Result<Response, Problem> {
    let name = known_queue(call, queue).await?;
    call.api.store.queues().pause(&name, paused, Some(&call.caller.name)).await?;
    queue_response(&call.api, queue).await
}

/// Returns a queue that is served here or has messages. Any other is a typing error.
pub(super) async fn known_queue(
    AuthorizedRequest { api, caller, .. }: &AuthorizedRequest<Operator>,
    queue: &str,
) -> Result<QueueName, Problem> {
    let name = QueueName::parse(queue).ok_or_else(unknown_queue)?;
    if current_queues(api, |name| name == queue).await?.is_empty() {
        check_known(api, caller, Some(&name)).await?;
        return Err(unknown_queue());
    }
    Ok(name)
}

/// Returns the current state of one queue.
pub(super) async fn queue_response(api: &ApiState, queue: &str) -> Result<Response, Problem> {
    let now = current_queues(api, |name| name == queue).await?;
    now.first().map(|queue| json(StatusCode::OK, queue)).ok_or_else(unknown_queue)
}

/// Refuses a queue that is not served here, that no worker serves, and that has no messages: a typing error.
pub(super) async fn check_known(
    api: &ApiState,
    caller: &ApiCaller,
    queue: Option<&QueueName>,
) -> Result<(), Problem> {
    // A producer's token names its queues, and the names of others are not shown to it.
    let Some(queue) = queue.filter(|_| caller.require_viewer().is_ok()) else { return Ok(()) };
    let mut known: BTreeSet<String> = api.served.iter().chain(api.queues.keys()).cloned().collect();
    known.extend(api.store.queues().counts().await?.into_iter().map(|count| count.queue));
    known.extend(api.store.facts().list().await?.iter().map(|served| served.queue.as_str().to_owned()));
    if known.contains(queue.as_str()) {
        return Ok(());
    }
    let fix = "see `ichido queues list`";
    let meant = did_you_mean(queue.as_str(), known.iter().map(String::as_str), fix);
    Err(Problem::new(Code::QueueUnknown, format!("there is no queue {}{meant}", queue.as_str())))
}

/// Returns the current state of all queues served here or known to the store.
pub(super) async fn current_queues(
    api: &ApiState,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Queue>, StoreError> {
    let mut counts: BTreeMap<String, Counts> =
        api.queues.keys().map(|name| (name.clone(), Counts::default())).collect();
    for count in api.store.queues().counts().await? {
        *counts.entry(count.queue).or_default().get_mut(count.state) += count.count;
    }
    let mut pauses: HashMap<_, _> =
        api.store.queues().pauses().await?.into_iter().map(|pause| (pause.queue.clone(), pause)).collect();
    let set = api.store.queues().parallelisms().await?;
    let mut set: HashMap<_, _> = set.into_iter().map(|set| (set.queue.clone(), set)).collect();
    let mut oldest: HashMap<String, Timestamp> =
        api.store.queues().oldest_of_each().await?.into_iter().collect();
    let now = api.store.now().await?;
    let mut queues = Vec::new();
    for (name, counts) in counts.into_iter().filter(|(name, _)| is_wanted(name)) {
        if QueueName::parse(&name).is_none() {
            continue;
        }
        let oldest = oldest.remove(&name);
        let pause = pauses.remove(&name).filter(|pause| pause.paused);
        let configured = api.queues.get(&name).and_then(|queue| queue.parallelism);
        queues.push(Queue {
            parallelism: Some(Parallelism::new(configured, set.remove(&name))),
            served_here: api.served.contains(&name),
            name,
            paused: pause.is_some(),
            paused_at: pause.as_ref().map(|pause| pause.since.to_string()),
            paused_by: pause.and_then(|pause| pause.by),
            counts: Some(counts),
            oldest_waiting_at: oldest.map(|at| at.to_string()),
            oldest_waiting_seconds: oldest.map(|at| now.since(at).as_secs_f64()),
        });
    }
    Ok(queues)
}

/// Lists the nodes that work on the same store.
#[utoipa::path(
    get,
    path = "/v1/nodes",
    responses(
        (status = 200, description = "All nodes that were ever seen, most recent first", body = Nodes),
    )
)]
pub(super) async fn list_nodes(
    AuthorizedRequest { api, .. }: AuthorizedRequest<Viewer>,
) -> Result<Response, Problem> {
    let nodes = current_nodes(&api).await?;
    Ok(json(StatusCode::OK, &Nodes { nodes }))
}

/// Returns all nodes, and whether they are alive.
pub(super) async fn current_nodes(api: &ApiState) -> Result<Vec<NodeStatus>, StoreError> {
    let listed = api.store.nodes().list().await?;
    let now = api.store.now().await?;
    let nodes = listed
        .into_iter()
        .map(|node| NodeStatus {
            id: node.id,
            alive: node.is_alive(now),
            name: node.name,
            started_at: node.started_at.to_string(),
            seen_at: node.seen_at.to_string(),
        })
        .collect();
    Ok(nodes)
}
