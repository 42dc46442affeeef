//! The two ways in: through a running server, and straight on the store.
//!
//! Guarantee: both mean the same. A message is known by its queue, its identity, its key and the digest of [`accept::message`], so that what was
//! put in the one way is the same the other way.

use std::num::NonZeroU32;
use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method};
use ichido_client::{Action, ActionError, Answer, Client, Outcome};
use ichido_core::key::IdempotencyKey;
use ichido_core::verdict::Effect;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::{Enqueued, QueueName};

use super::came::{About, Came, Refused};
use crate::accept::{self, Offer, Understood};
use crate::config::Intake;
use crate::reach::{gave_up, redirected};

/// For whom, as a server is told.
const IDENTITY: HeaderName = HeaderName::from_static("ichido-identity");
/// The word of a server for a key that was used for another body.
const KEY_CONFLICT: &str = "key_conflict";
/// Where a server's answer has the message's id.
const ID_AT: &str = "/id";
/// Where it says under which key.
const KEY_AT: &str = "/idempotency_key";

/// Puts messages into one queue.
#[derive(Clone)]
pub(super) struct Sender {
    pub(super) queue: QueueName,
    pub(super) content_type: String,
    pub(super) way: Way,
}

/// Which way.
#[derive(Clone)]
pub(super) enum Way {
    Server {
        /// Its address, as it was given.
        url: String,
        client: Arc<Client>,
        /// Told only where it was given: a token may stand for another.
        identity: Option<HeaderValue>,
    },
    Store {
        store: Store,
        identity: String,
        tries_allowed: NonZeroU32,
        /// What messages must look like, and what of them counts, as the configuration says.
        intake: Intake,
    },
}

impl Sender {
    /// Puts a message in, or says why it does not stand.
    pub(super) async fn put(&self, key: IdempotencyKey, body: Vec<u8>) -> Came {
        match &self.way {
            Way::Server { client, identity, .. } => self.post(client, identity.as_ref(), key, body).await,
            Way::Store { store, identity, tries_allowed, intake } => {
                let offer = Offer {
                    queue: self.queue.clone(),
                    identity: identity.clone(),
                    key,
                    content_type: self.content_type.clone(),
                    body,
                    hops: None,
                    trace: None,
                    tries: *tries_allowed,
                    intake: intake.clone(),
                };
                match accept::message(offer) {
                    Ok(Understood { message, misfit: None }) => {
                        of_store(store.message_enqueue(message).await)
                    }
                    // What was taken before the schema was as it is now stands.
                    Ok(Understood { message, misfit: Some(misfit) }) => {
                        let found = accept::standing(store, &message).await.transpose();
                        found.map_or_else(|| Came::Refused(not_taken(&misfit)), of_store)
                    }
                    Err(refused) => Came::Refused(not_taken(&refused)),
                }
            }
        }
    }

    async fn post(
        &self,
        client: &Client,
        identity: Option<&HeaderValue>,
        key: IdempotencyKey,
        body: Vec<u8>,
    ) -> Came {
        match self.action(identity, key.clone(), body) {
            Ok(action) => of_server(client.send(&action).await, &key),
            Err(error) => Came::Refused(Refused::message("request_invalid", error.to_string())),
        }
    }

    /// A message as a server is asked to take it.
    pub(super) fn action(
        &self,
        identity: Option<&HeaderValue>,
        key: IdempotencyKey,
        body: Vec<u8>,
    ) -> Result<Action, ActionError> {
        // The name of a queue has no character that a path would read otherwise.
        let path = format!("/v1/queues/{}/messages", self.queue.as_str());
        let action = Action::new(Method::POST, &path, key, &self.content_type, body)?;
        match identity {
            Some(identity) => action.with_header(IDENTITY, identity.clone()),
            None => Ok(action),
        }
    }
}

fn of_server(outcome: Outcome, key: &IdempotencyKey) -> Came {
    match outcome {
        Outcome::Done { answer, .. } => of_answer(&answer, key),
        Outcome::Refused { answer, .. } => Came::Refused(refusal(&answer)),
        Outcome::GaveUp { why, last, effect, .. } => Came::Unknown { effect, detail: gave_up(why, &last) },
    }
}

/// Whether an answer is about a message of this key: the least that a server of ours says.
pub(super) fn is_about(answer: &Answer, key: &IdempotencyKey) -> bool {
    let names_another = answer.text_at(KEY_AT).is_some_and(|named| named != key.as_str());
    answer.text_at(ID_AT).is_some() && !names_another
}

pub(super) fn of_answer(answer: &Answer, key: &IdempotencyKey) -> Came {
    // An answer to somebody else's request, as from a proxy that mixes them up, says nothing of ours.
    if answer.text_at(KEY_AT).is_some_and(|named| named != key.as_str()) {
        let detail = format!("the server answered {} about another key", answer.status);
        return Came::Unknown { effect: Effect::Unknown, detail };
    }
    match answer.text_at(ID_AT) {
        Some(id) if answer.is_replay() => Came::Same { id },
        Some(id) => Came::New { id },
        // Whoever answers so is not known to have put a message in.
        None => Came::Unknown {
            effect: Effect::Unknown,
            detail: format!(
                "the server answered {} and named no message; is it an Ichido server that is at this address?",
                answer.status
            ),
        },
    }
}

pub(super) fn refusal(answer: &Answer) -> Refused {
    let problem = answer.problem();
    let about = match (answer.status, problem.code.as_deref()) {
        (_, Some(KEY_CONFLICT)) | (409, None) => About::Key,
        // Who asks and where to is the same for every message; a redirect leads elsewhere for all of them.
        (300..=399 | 401 | 403 | 404 | 405 | 415, _) | (_, Some("identity_invalid")) => About::All,
        _ => About::Message,
    };
    let detail = problem.detail.or(problem.title).or_else(|| redirected(answer));
    let detail = detail.unwrap_or_else(|| format!("the server answered {}", answer.status));
    Refused { code: problem.code, detail, about }
}

/// What a server would answer: the same words, and about the same.
fn not_taken(refused: &accept::Refused) -> Refused {
    let (code, about) = match refused {
        accept::Refused::Identity => ("identity_invalid", About::All),
        accept::Refused::ContentType | accept::Refused::NotJson => ("media_type_unsupported", About::All),
        accept::Refused::TooLarge => ("body_too_large", About::Message),
        accept::Refused::Json { .. } => ("body_invalid", About::Message),
        accept::Refused::KeyDisagrees => ("key_disagrees", About::Message),
        accept::Refused::Schema(_) => ("schema_broken", About::Message),
    };
    Refused { code: Some(code.to_owned()), detail: refused.to_string(), about }
}

fn of_store(put: Result<Enqueued, StoreError>) -> Came {
    let error = match put {
        Ok(Enqueued::New { id }) => return Came::New { id: id.to_string() },
        Ok(Enqueued::Same { id } | Enqueued::SameContent { id }) => return Came::Same { id: id.to_string() },
        Ok(Enqueued::Different { id }) => {
            return Came::Refused(Refused {
                code: Some(KEY_CONFLICT.to_owned()),
                detail: format!(
                    "the key was used for another body, message {id}; a new action needs a new key"
                ),
                about: About::Key,
            });
        }
        Err(error) => error,
    };
    let detail = format!("the message cannot be put in: {error}");
    match error {
        StoreError::Busy | StoreError::Unavailable(_) | StoreError::Full => {
            Came::Unknown { effect: Effect::NotDone, detail }
        }
        // A file that was only moved still has it.
        StoreError::Unknown(_) | StoreError::FileLost { .. } => {
            Came::Unknown { effect: Effect::Unknown, detail }
        }
        StoreError::TooLarge { .. }
        | StoreError::OutOfRange { .. }
        | StoreError::Empty { .. }
        | StoreError::NulInText { .. }
        | StoreError::Corrupt { .. } => Came::Refused(Refused { code: None, detail, about: About::Message }),
        StoreError::TooNew { .. }
        | StoreError::Migration(_)
        | StoreError::Address(_)
        | StoreError::WrongDatabase(_)
        | StoreError::Refused(_) => Came::Refused(Refused { code: None, detail, about: About::All }),
    }
}
