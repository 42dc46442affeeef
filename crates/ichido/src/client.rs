//! Typed messages for an Ichido server, over HTTP.
//!
//! Guarantee: a message means the same through every door. The client retries under the message's key until the outcome is
//! known, and a key that was used for another payload is an error.
//!
//! ```no_run
//! use ichido::client::{ClientExt as _, ClientSettings};
//! # use ichido::prelude::*;
//! # #[derive(serde::Serialize, serde::Deserialize)]
//! # struct SendReceipt { order: i64 }
//! # impl Message for SendReceipt { const QUEUE: &str = "mail"; }
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = ClientSettings::new("https://ichido.example").resolve()?;
//! client.enqueue(&SendReceipt { order: 1 }).await?;
//! # Ok(())
//! # }
//! ```
// Spec: D1, H4.

use http::{HeaderName, HeaderValue, Method};
pub use ichido_client::*;
use ichido_core::settings::duration;
use ichido_store::message::{Enqueued, IDENTITY_DEFAULT, NewMessage, PRIORITY_DEFAULT};
use uuid::Uuid;

use crate::message::{Draft, EnqueueError};

const IDENTITY: HeaderName = HeaderName::from_static("ichido-identity");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Enqueues typed messages at the server of a [`Client`].
///
/// The server's configuration decides how often a message is tried, and what it is about (`item`). A producer's token
/// decides the identity: a message with another one is refused.
pub trait ClientExt {
    /// Enqueues a message. It is durable when this returns.
    fn enqueue(
        &self,
        message: impl Into<Draft> + Send,
    ) -> impl Future<Output = Result<Enqueued, EnqueueError>> + Send;

    /// Enqueues many messages, one after another. Returns the outcomes in the same order.
    ///
    /// It ends with the first error, and the messages before it are enqueued. Repeating it is safe for messages with a
    /// key.
    fn enqueue_many<D: Into<Draft> + Send>(
        &self,
        messages: impl IntoIterator<Item = D, IntoIter: Send> + Send,
    ) -> impl Future<Output = Result<Vec<Enqueued>, EnqueueError>> + Send;
}

impl ClientExt for Client {
    async fn enqueue(&self, message: impl Into<Draft> + Send) -> Result<Enqueued, EnqueueError> {
        let action = action(message.into().into_message()?)?;
        enqueued(&self.send(&action).await)
    }

    async fn enqueue_many<D: Into<Draft> + Send>(
        &self,
        messages: impl IntoIterator<Item = D, IntoIter: Send> + Send,
    ) -> Result<Vec<Enqueued>, EnqueueError> {
        let mut outcomes = Vec::new();
        for message in messages {
            outcomes.push(self.enqueue(message).await?);
        }
        Ok(outcomes)
    }
}

/// Builds the request that enqueues a message.
fn action(message: NewMessage) -> Result<Action, EnqueueError> {
    if message.same_content.is_some() {
        return Err(EnqueueError::NotOverHttp("the server does not compare messages by content alone"));
    }
    if message.replacement_of.is_some() {
        return Err(EnqueueError::NotOverHttp("replace a dead letter with `ichido dead edit`"));
    }
    if message.run_at.is_some() && !message.delay.is_zero() {
        return Err(EnqueueError::NotOverHttp("set either a delay or a time of the first attempt"));
    }
    let priority = (message.priority != PRIORITY_DEFAULT).then(|| format!("priority={}", message.priority));
    let delay = (!message.delay.is_zero()).then(|| format!("delay={}", duration::format(message.delay)));
    let run_at = message.run_at.map(|run_at| format!("run_at={run_at}"));
    let query: Vec<String> = priority.into_iter().chain(delay).chain(run_at).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    let path = format!("/v1/queues/{}/messages{mark}{}", message.queue.as_str(), query.join("&"));
    let body = message.request.bytes().to_vec();
    let content_type = message.request.content_type();
    let mut action = Action::new(Method::POST, &path, message.key, content_type, body).map_err(refused)?;
    let identity = Some(message.identity).filter(|identity| identity != IDENTITY_DEFAULT);
    for (name, value) in [(IDENTITY, identity), (TRACEPARENT, message.trace)] {
        if let Some(value) = value {
            let value = HeaderValue::from_bytes(value.as_bytes())
                .map_err(|_| EnqueueError::NotOverHttp("its identity or trace has control characters"))?;
            action = action.with_header(name, value).map_err(refused)?;
        }
    }
    Ok(action.started_by(Cause::Auto))
}

#[expect(clippy::needless_pass_by_value, reason = "a function for map_err")]
fn refused(error: ActionError) -> EnqueueError {
    EnqueueError::Refused { code: None, detail: error.to_string() }
}

/// Returns what the server's response says about the message.
fn enqueued(outcome: &Outcome) -> Result<Enqueued, EnqueueError> {
    let unconfirmed = |why: String| EnqueueError::Unconfirmed { why };
    match outcome {
        Outcome::Done { answer, .. } => {
            let id = answer.text_at("/id").and_then(|id| Uuid::parse_str(&id).ok());
            let id = id.ok_or_else(|| unconfirmed("its response names no message".to_owned()))?;
            Ok(if answer.is_replay() { Enqueued::Replay { id } } else { Enqueued::New { id } })
        }
        Outcome::Refused { answer, reason, .. } => {
            let first = answer.text_at("/first").and_then(|path| message_of(&path));
            if let (decision::RefusalReason::KeyConflict, Some(id)) = (reason, first) {
                return Err(EnqueueError::KeyConflict { id });
            }
            let problem = answer.problem();
            let detail = problem.detail.unwrap_or_else(|| format!("status {}", answer.status));
            Err(EnqueueError::Refused { code: problem.code, detail })
        }
        Outcome::GaveUp { why, .. } => Err(unconfirmed(why.to_string())),
    }
}

/// Returns the message of a path such as `/v1/messages/<id>`.
fn message_of(path: &str) -> Option<Uuid> {
    Uuid::parse_str(path.rsplit('/').next()?).ok()
}
