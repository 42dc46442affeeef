//! A destination that asks a language model about each message and enqueues the answers.
//!
//! Guarantee: a message's answer is enqueued in the other queue before the message counts as sent, and each message
//! gets at most one answer: a crash in between repeats the call, not the delivery. Calls are *repeatable*: a call with
//! a lost outcome is made again and counted as possibly billed twice (`ichido_llm_possibly_billed_twice_total`). A
//! message that cannot fill the prompt becomes a dead letter at once, with the reason and without a call. No word of a
//! prompt or an answer appears in a note, a log or an error; the answer is only in the other queue.
//!
//! # The answer message
//!
//! The body is JSON: `{"message_id", "key", "answer", "model", "usage"}`. It names the message that asked and its
//! outbound key, the answer in the requested form (or the text if none was requested), the model's name, and the tokens
//! counted (`{"input", "output"}`, or null). Identity and trace are copied from the message that asked; the key is
//! derived from that message's outbound key.
//!
//! # Several endpoints
//!
//! A call goes to a free endpoint. This node leaves an endpoint alone that throttles or seems down, for as long as the
//! endpoint asks. A message is not sent again to an endpoint that refused it while another is free. Only when no
//! endpoint is free does the destination as a whole slow down, for all nodes.
//!
//! Start at [`LlmSettings`].
// SPEC A10, D7, F2, B8.

mod answer;
mod endpoints;
mod settings;
mod template;

pub use settings::{
    LlmPlan, LlmSettings, MAX_LOCATIONS, MAX_PROMPT_BYTES, MAX_TEMPLATE_BYTES, MAX_TOKENS_LIMIT,
};

use std::sync::Arc;
use std::time::Duration;

use ichido::destination::{DeliveryAttempt, DeliveryOutcome, DeliveryTerms, Destination, Handler, JobError};
use ichido_core::retry::Guarantee;
use ichido_core::verdict::{Advice, AttemptResponse, Effect, Verdict, VerdictTable};
use ichido_http::clock;
use ichido_store::Store;
use ichido_store::message::Note;

use crate::judge::CallMetrics;
use crate::models::{CallError, FinishReason, Reply};
use answer::{AnswerMessage, ENQUEUE_TIMEOUT};
use endpoints::Endpoints;

/// Minimum delay for a message that finds every endpoint resting.
const MIN_SNOOZE: Duration = Duration::from_millis(10);

/// A destination that asks a model, made by [`LlmPlan::on`].
pub struct Llm {
    plan: LlmPlan,
    store: Store,
    endpoints: Endpoints,
    metrics: CallMetrics,
}

ichido_core::debug_only! {
    Llm as llm { model: llm.plan.model.name() }
}

impl LlmPlan {
    /// Builds the destination on the store that holds both queues.
    pub fn on(self, store: Store) -> Llm {
        let endpoints = Endpoints::new(self.model.endpoints().len());
        let metrics = CallMetrics::new(self.model.name(), Some(&store));
        Llm { plan: self, store, endpoints, metrics }
    }

    /// Returns the guarantee: repeating a call is harmless, though it may be billed twice.
    pub fn promise(&self) -> DeliveryTerms {
        DeliveryTerms {
            guarantee: Guarantee::Idempotent,
            timeout: self.model.timeout().saturating_add(ENQUEUE_TIMEOUT),
            settle_grace: Duration::ZERO,
        }
    }
}

impl Llm {
    /// Returns the guarantee for the calls it gets.
    pub fn promise(&self) -> DeliveryTerms {
        self.plan.promise()
    }

    /// Makes one attempt: asks at most one question and enqueues the answer.
    pub async fn call(&self, call: &DeliveryAttempt) -> DeliveryOutcome {
        if call.queue == self.plan.answers_to {
            return JobError::dead(
                "answers_to is the message's own queue, so answers would be asked about without \
                end; name another queue",
            )
            .into();
        }
        let prompt = match self.plan.prompt(&call.body) {
            Ok(prompt) => prompt,
            Err(why) => return JobError::dead(why).into(),
        };
        let now = clock::now();
        let endpoint = match self.endpoints.acquire(call.message, prompt.max_tokens(), now, fastrand::f64()) {
            Ok(endpoint) => endpoint,
            Err(until) => return DeliveryOutcome::Snoozed { wait: until.since(now).max(MIN_SNOOZE) },
        };
        let report = self.metrics.ask(&*self.plan.model, endpoint, &prompt, call.attempt <= 1).await;
        let outcome = report.outcome.as_ref();
        let verdict = self.endpoints.record_outcome(
            call.message,
            endpoint,
            outcome.map(drop),
            &report.limits,
            clock::now(),
        );
        match outcome {
            Ok(reply) => {
                self.metrics.replied(clock::now().since(now), reply.usage);
                self.handle_reply(call, reply).await
            }
            Err(call_error) => without_answer(verdict, call_error),
        }
    }

    async fn handle_reply(&self, call: &DeliveryAttempt, reply: &Reply) -> DeliveryOutcome {
        let value = match self.plan.read(reply) {
            Ok(value) => value,
            Err(why) => {
                self.metrics.unusable();
                let mut verdict = VerdictTable::llm().judge(&AttemptResponse::UnusableAnswer, clock::now());
                if reply.finish_reason == FinishReason::Declined {
                    // The model would decline again.
                    verdict.advice = Advice::GiveUp;
                }
                let note = Note { receipt: reply.id.clone(), excerpt: Some(why), ..Note::default() };
                return DeliveryOutcome::judged(verdict, note);
            }
        };
        let answer = AnswerMessage { call, reply, value, model: self.plan.model.name() };
        let outcome = answer.enqueue(&self.store, &self.plan.answers_to, self.plan.answer_attempts).await;
        if matches!(&outcome, DeliveryOutcome::Judged { verdict, .. } if verdict.effect == Effect::Unknown) {
            self.metrics.lost(1);
        }
        outcome
    }
}

/// Returns the outcome of a call without an answer. The verdict, from the endpoints, drives the destination's pace.
fn without_answer(verdict: Verdict, call_error: &CallError) -> DeliveryOutcome {
    let note = Note { status: call_error.status, excerpt: Some(call_error.why.clone()), ..Note::default() };
    DeliveryOutcome::judged(verdict, note)
}

impl From<Llm> for Destination {
    fn from(llm: Llm) -> Self {
        let DeliveryTerms { timeout, settle_grace, .. } = llm.promise();
        let llm = Arc::new(llm);
        let handler = Handler::judged(move |call| {
            let llm = Arc::clone(&llm);
            async move { llm.call(&call).await }
        });
        // Repeating a call is harmless, though it may be billed twice.
        handler.idempotent().timeout(timeout).settle_grace(settle_grace).into()
    }
}
