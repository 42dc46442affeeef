//! The two transports: a running server, and the API in this process.
//!
//! Guarantee: both mean the same, so a message sent with one is the same message with the other.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method};
use ichido_client::{Action, ActionError, Client, Outcome, Response};
use ichido_core::key::IdempotencyKey;
use ichido_core::verdict::Effect;
use ichido_server::schedule::Schedule;
use ichido_server::serve::InProcessApi;

use super::line::LineMessage;
use super::outcome::{RefusalScope, SendOutcome, SendRefusal};
use crate::api_client::{describe_failure, describe_redirect};

/// The request header that names the identity.
const IDENTITY: HeaderName = HeaderName::from_static("ichido-identity");
/// The server's error code for a key that was used for another body.
const KEY_CONFLICT: &str = "key_conflict";
/// Where a response has the message's id.
const ID_AT: &str = "/id";
/// Where a response has the key.
const KEY_AT: &str = "/idempotency_key";
/// Where a response names the message that has the key, if it is another one.
const FIRST_AT: &str = "/first";

/// Enqueues messages in one queue.
#[derive(Clone)]
pub(super) struct Sender {
    /// The path that messages are posted to.
    pub(super) path: String,
    pub(super) content_type: String,
    /// Sent only if it was given: a token may imply another identity.
    pub(super) identity: Option<HeaderValue>,
    /// The schedule of a message that has none of its own.
    pub(super) schedule: Schedule,
    pub(super) transport: SendTransport,
}

/// How messages reach the API.
#[derive(Clone)]
pub(super) enum SendTransport {
    Server {
        /// The URL as it was given.
        url: String,
        client: Arc<Client>,
    },
    Store(Arc<InProcessApi>),
}

impl Sender {
    /// Enqueues a message, or says why it was not enqueued.
    pub(super) async fn enqueue(&self, item: LineMessage) -> SendOutcome {
        let key = item.key.clone();
        let outcome = match &self.transport {
            SendTransport::Server { client, .. } => match self.action(item) {
                Ok(action) => Ok(outcome_of_server(client.send(&action).await, &key)),
                Err(error) => Err(error.to_string()),
            },
            SendTransport::Store(api) => match self.target(item.schedule).parse() {
                Ok(target) => {
                    let identity = self.identity.as_ref();
                    let answer = api.put_in(target, &key, &self.content_type, identity, item.body).await;
                    answer.map(|answer| outcome_of_store(&answer, &key))
                }
                Err(error) => Err(error.to_string()),
            },
        };
        outcome.unwrap_or_else(|why| SendOutcome::Refused(SendRefusal::message("request_invalid", why)))
    }

    /// Builds the request for a server.
    pub(super) fn action(&self, item: LineMessage) -> Result<Action, ActionError> {
        let LineMessage { key, body, schedule } = item;
        let action = Action::new(Method::POST, &self.target(schedule), key, &self.content_type, body)?;
        match &self.identity {
            Some(identity) => action.with_header(IDENTITY, identity.clone()),
            None => Ok(action),
        }
    }

    fn target(&self, schedule: Schedule) -> String {
        format!("{}{}", self.path, schedule.or(self.schedule).to_query())
    }
}

fn outcome_of_server(outcome: Outcome, key: &IdempotencyKey) -> SendOutcome {
    match outcome {
        Outcome::Done { answer, .. } => outcome_of_answer(&answer, key),
        Outcome::Refused { answer, .. } => SendOutcome::Refused(refusal(&answer)),
        Outcome::GaveUp { why, last, effect, .. } => {
            SendOutcome::Unknown { effect, detail: describe_failure(why, &last) }
        }
    }
}

/// Interprets a response of the API in this process.
///
/// No response is lost here, but an error is as inconclusive as at a server.
fn outcome_of_store(answer: &Response, key: &IdempotencyKey) -> SendOutcome {
    match answer.status {
        200..=299 => outcome_of_answer(answer, key),
        408 | 429 | 500..=599 => {
            SendOutcome::Unknown { effect: Effect::Unknown, detail: refusal(answer).detail }
        }
        _ => SendOutcome::Refused(refusal(answer)),
    }
}

/// Returns whether a response is about a message with this key.
///
/// This is the minimum that our server says.
pub(super) fn is_about(answer: &Response, key: &IdempotencyKey) -> bool {
    let names_another = answer.text_at(KEY_AT).is_some_and(|named| named != key.as_str());
    answer.text_at(ID_AT).is_some() && !names_another
}

pub(super) fn outcome_of_answer(answer: &Response, key: &IdempotencyKey) -> SendOutcome {
    // A response to another request, such as from a faulty proxy, says nothing about this one.
    if answer.text_at(KEY_AT).is_some_and(|named| named != key.as_str()) {
        let detail = format!("the server responded {} about another key", answer.status);
        return SendOutcome::Unknown { effect: Effect::Unknown, detail };
    }
    match answer.text_at(ID_AT) {
        Some(id) if answer.is_replay() => SendOutcome::Same { id },
        Some(id) => SendOutcome::New { id },
        // Such a response does not prove that a message was enqueued.
        None => SendOutcome::Unknown {
            effect: Effect::Unknown,
            detail: format!(
                "the server responded {} without a message id; check that the URL is that of an Ichido server",
                answer.status
            ),
        },
    }
}

pub(super) fn refusal(answer: &Response) -> SendRefusal {
    let problem = answer.problem();
    let scope = match (answer.status, problem.code.as_deref()) {
        (_, Some(KEY_CONFLICT)) | (409, None) => RefusalScope::Key,
        // The caller and the queue are the same for every message, and a redirect applies to all of them.
        (300..=399 | 401 | 403 | 404 | 405 | 415, _) | (_, Some("identity_invalid")) => RefusalScope::All,
        _ => RefusalScope::Message,
    };
    let first = answer.text_at(FIRST_AT).filter(|_| scope == RefusalScope::Key);
    let used = first.as_deref().and_then(|first| first.rsplit('/').next()).map(|first| {
        format!("the key was used for another body, message {first}; use a new key for a new action")
    });
    let detail = used.or(problem.detail).or(problem.title).or_else(|| describe_redirect(answer));
    let detail = detail.unwrap_or_else(|| format!("the server responded {}", answer.status));
    SendRefusal { code: problem.code, detail, scope }
}
