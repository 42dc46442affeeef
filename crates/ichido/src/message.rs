//! Typed messages: a type declares its queue once, and is enqueued the same way everywhere.
//!
//! Guarantee: two messages of one queue, identity and key are the same message only if their payloads mean the same as
//! JSON, in whatever order their members are.
//!
//! ```
//! use ichido::message::Message;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct SendReceipt {
//!     order: i64,
//! }
//!
//! impl Message for SendReceipt {
//!     const QUEUE: &str = "mail";
//!
//!     /// One receipt per order: enqueuing it twice makes one message.
//!     fn key(&self) -> Option<String> {
//!         Some(format!("order-{}", self.order))
//!     }
//! }
//! ```
//!
//! Start at [`Message`]; [`Draft`] changes one message before it is enqueued.
// Spec: H4.

mod finite;

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::digest::{self, Digest};
use ichido_core::json::CanonicalForm;
use ichido_core::key::{IdempotencyKey, KeyError};
use ichido_core::retry::Retry;
use ichido_core::time::Timestamp;
use ichido_store::error::StoreError;
use ichido_store::message::{
    IDENTITY_DEFAULT, NewMessage, PRIORITY_DEFAULT, QueueName, RequestBody, SameContent, limits,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

/// A payload that is sent as JSON through a queue.
pub trait Message: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name of its queue: 1 to 128 letters, digits, `.`, `_`, `-` and `:`.
    const QUEUE: &'static str;

    /// Its name among the types of its queue, of letters, digits, `.`, `_` and `-`.
    ///
    /// Set it if the queue carries several types: each message then has the media type `application/vnd.<name>+json`, and
    /// the worker passes it to the handler of that type. A worker without such a handler leaves it to others: the message waits, and
    /// its attempts do not count.
    const TYPE: Option<&'static str> = None;

    /// The priority: 0 is most urgent, 255 least.
    const PRIORITY: u8 = PRIORITY_DEFAULT;

    /// When failed attempts are repeated, and how often. All types of a queue have the same.
    const RETRY: Retry = Retry::ORDER;

    /// The window in which equal payloads of this type are one message, whatever their keys.
    // Spec: A7.
    const SAME_CONTENT_WITHIN: Option<Duration> = None;

    /// Returns the idempotency key, for as long as the message is kept.
    ///
    /// Without one, every enqueue is a new message.
    fn key(&self) -> Option<String> {
        None
    }

    /// Returns the identity it acts for, such as a tenant. The same key of another identity is another message.
    ///
    /// Without one, it is [`IDENTITY_DEFAULT`], as over HTTP.
    fn identity(&self) -> Option<String> {
        None
    }

    /// Returns what it is about, for people: dead letters and alerts show it. Keep secrets out of it.
    fn item(&self) -> Option<String> {
        None
    }
}

/// A message to enqueue, made from a payload by [`Draft::new`] or `Draft::from(&payload)`.
///
/// What its type declares can be changed here for a single message. An invalid value is reported when it is enqueued.
#[derive(Debug)]
#[must_use = "a draft is not a message until it is enqueued"]
pub struct Draft(Result<NewMessage, EnqueueError>);

impl Draft {
    /// Makes a draft of a payload.
    pub fn new<M: Message>(message: &M) -> Self {
        Self(draft(message))
    }

    /// Sets the delay before the first attempt.
    pub fn delay(self, delay: Duration) -> Self {
        self.change(|message| message.delay = delay)
    }

    /// Sets the earliest time of the first attempt, by the clock of the database.
    pub fn run_at(self, run_at: Timestamp) -> Self {
        self.change(|message| message.run_at = Some(run_at))
    }

    /// Sets the priority: 0 is most urgent, 255 least.
    pub fn priority(self, priority: u8) -> Self {
        self.change(|message| message.priority = priority)
    }

    /// Sets how many attempts are made, instead of those of [`Message::RETRY`].
    pub fn max_attempts(self, max_attempts: NonZeroU32) -> Self {
        self.change(|message| message.max_attempts = max_attempts)
    }

    /// Links it to a dead message, as its successor in the application's own records.
    ///
    /// The dead letter stays open: [`DeadLetters::replace`](ichido_store::DeadLetters::replace) closes one.
    pub fn replaces(self, dead: Uuid) -> Self {
        self.change(|message| message.replacement_of = Some(dead))
    }

    /// Sets the idempotency key.
    pub fn key(self, key: &str) -> Self {
        Self(self.0.and_then(|message| Ok(NewMessage { key: IdempotencyKey::parse(key)?, ..message })))
    }

    /// Sets the identity it acts for.
    pub fn identity(self, identity: impl Into<String>) -> Self {
        self.change(|message| message.identity = identity.into())
    }

    /// Sets what it is about, for people.
    pub fn item(self, item: impl Into<String>) -> Self {
        self.change(|message| message.item = Some(item.into()))
    }

    /// Sets the trace it belongs to, in the format of `traceparent`.
    pub fn trace(self, trace: impl Into<String>) -> Self {
        self.change(|message| message.trace = Some(trace.into()))
    }

    /// Returns the message, or the first invalid value.
    pub(crate) fn into_message(self) -> Result<NewMessage, EnqueueError> {
        self.0
    }

    fn change(self, change: impl FnOnce(&mut NewMessage)) -> Self {
        Self(self.0.map(|mut message| {
            change(&mut message);
            message
        }))
    }
}

/// Returns the messages, or the first invalid value. Stops where one call has too many, which the store then refuses.
pub(crate) fn drafted<D: Into<Draft>>(
    messages: impl IntoIterator<Item = D>,
) -> Result<Vec<NewMessage>, EnqueueError> {
    let (mut drafted, mut bytes) = (Vec::new(), 0);
    for message in messages.into_iter().take(limits::MAX_ENQUEUE as usize + 1) {
        let message = message.into().into_message()?;
        bytes += message.request.bytes().len();
        drafted.push(message);
        if limits::MAX_ENQUEUE_BYTES < bytes {
            break;
        }
    }
    Ok(drafted)
}

impl<M: Message> From<&M> for Draft {
    fn from(message: &M) -> Self {
        Self::new(message)
    }
}

fn draft<M: Message>(message: &M) -> Result<NewMessage, EnqueueError> {
    let queue = QueueName::parse(M::QUEUE).ok_or(EnqueueError::QueueName { queue: M::QUEUE })?;
    let key = message.key().unwrap_or_else(|| Uuid::now_v7().to_string());
    finite::check(message).map_err(|error| EnqueueError::Payload(error.into()))?;
    let request = serde_json::to_vec(message).map_err(|error| EnqueueError::Payload(error.into()))?;
    let request = RequestBody::new(content_type::<M>()?, request, CanonicalForm::default())
        .map_err(|invalid| EnqueueError::Payload(invalid.error.into()))?;
    let identity = message.identity().unwrap_or_else(|| IDENTITY_DEFAULT.to_owned());
    Ok(NewMessage {
        item: message.item(),
        priority: M::PRIORITY,
        max_attempts: M::RETRY.max_attempts,
        same_content: M::SAME_CONTENT_WITHIN
            .map(|window| SameContent { content: content::<M>(&request), window }),
        ..NewMessage::new(queue, &identity, IdempotencyKey::parse(&key)?, request)
    })
}

/// Returns what a content window compares: the payload, and the type if it has a name. Two types of a queue may have equal
/// payloads, and are two kinds of work.
// Spec: A7, H4.
fn content<M: Message>(request: &RequestBody) -> Digest {
    let payload = *request.digest();
    if M::TYPE.is_none() {
        return payload;
    }
    let media_type = digest::media_type(request.content_type());
    Digest::of_bytes(&[media_type.as_bytes(), b"\n", payload.as_bytes()].concat())
}

/// Returns the media type of a type's messages.
pub(crate) fn content_type<M: Message>() -> Result<String, EnqueueError> {
    match M::TYPE {
        None => Ok("application/json".to_owned()),
        Some(name) if is_type_name(name) => Ok(format!("application/vnd.{name}+json")),
        Some(name) => Err(EnqueueError::TypeName { name }),
    }
}

/// Returns whether a media type names a type of message, as [`content_type`] does.
pub(crate) fn names_type(media_type: &str) -> bool {
    media_type.starts_with("application/vnd.") && media_type.ends_with("+json")
}

fn is_type_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=limits::MAX_QUEUE_BYTES).contains(&name.len()) && name.bytes().all(is_plain)
}

/// Why a message was not enqueued.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// The key was used before for another payload. The message was not enqueued; other messages of the same call may be in the
    /// transaction: roll back.
    #[error(
        "the key was used before for another payload, by message {id}; this message was not enqueued; roll back, or use \
            another key"
    )]
    KeyConflict {
        /// The message that has the key.
        id: Uuid,
    },
    /// The name is not valid for a queue.
    #[error(
        "`{queue}` is not a queue's name; it must have 1 to {} letters, digits, `.`, `_`, `-` or `:`",
        limits::MAX_QUEUE_BYTES
    )]
    QueueName {
        /// The name.
        queue: &'static str,
    },
    /// The name is not valid for a type.
    #[error(
        "`{name}` is not a type's name; it must have 1 to {} letters, digits, `.`, `_` or `-`",
        limits::MAX_QUEUE_BYTES
    )]
    TypeName {
        /// The name.
        name: &'static str,
    },
    /// The key is not valid.
    #[error("the idempotency key is not valid: {0}")]
    Key(#[from] KeyError),
    /// The payload has no JSON form, for example because it contains NaN.
    #[error("the payload cannot be written as JSON: {0}")]
    Payload(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server refused it.
    #[error("the server refused the message: {detail}")]
    Refused {
        /// The problem's code, such as `role_insufficient`.
        code: Option<String>,
        /// Why, and what to do.
        detail: String,
    },
    /// The server did not confirm it: it may be enqueued or not. A message with a key can be enqueued again.
    #[error("the server did not confirm the message: {why}; enqueue it again with the same key")]
    Unconfirmed {
        /// Why no confirmation came.
        why: String,
    },
    /// It asks for something that the server's API does not have.
    #[error("the message cannot be enqueued over HTTP: {0}")]
    NotOverHttp(&'static str),
    /// The store refused it, or could not be reached.
    #[error(transparent)]
    Store(StoreError),
}

/// The text: a `main` that returns an error prints this form.
impl fmt::Debug for EnqueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => fmt::Debug::fmt(error, f),
            _ => fmt::Display::fmt(self, f),
        }
    }
}

impl From<StoreError> for EnqueueError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::KeyConflict { id } => Self::KeyConflict { id },
            error => Self::Store(error),
        }
    }
}
