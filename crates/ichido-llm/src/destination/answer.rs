//! Enqueues an answer as a message.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido::destination::{DeliveryAttempt, DeliveryOutcome};
use ichido_core::digest::{BodyRules, Digest};
use ichido_core::json::CanonicalForm;
use ichido_core::key::IdempotencyKey;
use ichido_core::verdict::{Advice, Effect, ErrorCode, PaceReport, Verdict};
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::{Enqueued, InvalidBody, NewMessage, Note, QueueName, RequestBody};
use serde_json::{Value, json};

use crate::models::Reply;

/// How long to try to enqueue an answer, because asking for another one costs more.
pub(super) const ENQUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay before the next try.
const RETRY_AFTER: Duration = Duration::from_millis(200);
const JSON: &str = "application/json";

/// An answer and the call it belongs to.
pub(super) struct AnswerMessage<'a> {
    pub(super) call: &'a DeliveryAttempt,
    pub(super) reply: &'a Reply,
    /// JSON in the requested form, or the text.
    pub(super) value: Value,
    pub(super) model: &'a str,
}

impl AnswerMessage<'_> {
    /// Enqueues the answer unless an answer to this message is already queued.
    pub(super) async fn enqueue(
        &self,
        store: &Store,
        queue: &QueueName,
        attempts: NonZeroU32,
    ) -> DeliveryOutcome {
        let name = queue.as_str();
        let unusable = |why: &str| {
            let why = format!("cannot enqueue the answer in queue {name}: {why}");
            (Some(ErrorCode::AnswerUnusable), Effect::Done, Advice::GiveUp, why)
        };
        let (code, effect, advice, why) = match self.message(queue, attempts) {
            Err(invalid) => unusable(&invalid.to_string()),
            Ok(message) => {
                match tokio::time::timeout(ENQUEUE_TIMEOUT, enqueue_with_retries(store, &message)).await {
                    Ok(Ok(Enqueued::New { id } | Enqueued::Replay { id })) => {
                        let why = format!("the answer is message {id} of queue {name}");
                        (None, Effect::Done, Advice::Accept, why)
                    }
                    Ok(Ok(Enqueued::SameContent { id }) | Err(StoreError::KeyConflict { id })) => {
                        let why = format!(
                            "an earlier answer is message {id} of queue {name}; this one was dropped"
                        );
                        (Some(ErrorCode::ConflictProcessed), Effect::Done, Advice::AcceptAsProcessed, why)
                    }
                    Ok(Err(error)) => unusable(&error.with_causes()),
                    Err(_) => {
                        let why = format!("cannot enqueue the answer in queue {name}: timed out");
                        (Some(ErrorCode::Unknown), Effect::Unknown, Advice::Retry, why)
                    }
                }
            }
        };
        let result_digest = (advice == Advice::Accept).then(|| self.digest());
        let (receipt, excerpt) = (self.reply.id.clone(), Some(why));
        // The endpoint answered, whether or not the answer could be enqueued.
        DeliveryOutcome::judged(
            Verdict::declared(code, effect, advice, None, Some(PaceReport::Success)),
            Note { receipt, excerpt, result_digest, ..Note::default() },
        )
    }

    fn message(&self, queue: &QueueName, attempts: NonZeroU32) -> Result<NewMessage, InvalidBody> {
        let DeliveryAttempt { message, key, identity, hops, trace, .. } = self.call;
        let usage = self.reply.usage.map(|usage| json!({"input": usage.input, "output": usage.output}));
        let body = json!({
            "message_id": message.to_string(),
            "key": key.as_str(),
            "answer": self.value,
            "model": self.model,
            "usage": usage,
        });
        let key = IdempotencyKey::derived("llm-answer", &[key.as_str().as_bytes()]);
        let body = RequestBody::new(JSON, body.to_string().into(), CanonicalForm::default())?;
        Ok(NewMessage {
            hops: (!hops.is_empty()).then(|| hops.to_string()),
            trace: trace.clone(),
            max_attempts: attempts,
            ..NewMessage::new(queue.clone(), identity, key, body)
        })
    }

    /// Digests the answer alone, in canonical form: the token counts are not part of the result.
    fn digest(&self) -> Digest {
        let text = self.value.to_string();
        let rules = BodyRules { max_bytes: text.len(), ..BodyRules::default() };
        Digest::of_body(JSON, text.as_bytes(), &rules).unwrap_or_else(|_| Digest::of_bytes(text.as_bytes()))
    }
}

/// Retries until the store answers or fails permanently.
async fn enqueue_with_retries(store: &Store, message: &NewMessage) -> Result<Enqueued, StoreError> {
    loop {
        match store.messages().enqueue(message.clone()).await {
            Err(StoreError::Busy | StoreError::Unavailable(_) | StoreError::Unknown(_)) => {
                tokio::time::sleep(RETRY_AFTER).await;
            }
            answer => return answer,
        }
    }
}
