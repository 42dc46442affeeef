//! Language models on Amazon Bedrock, called with its Converse API.
//!
//! Guarantee: each [`ask`](ichido_llm::models::Model::ask) of a [`Bedrock`] sends at most one request, because the
//! retries of AWS's SDK are disabled. [`Table::llm`](ichido_core::verdict::Table::llm) judges the outcome; unless it is
//! certain that nothing was sent, the call counts as possibly billed. No prompt, answer or key is shown or logged,
//! neither by this crate nor by the SDK, which alone would log whole responses at trace level.
//!
//! Start at [`BedrockSettings`]. This is a separate crate because the SDK is slow to build.
// SPEC B8.

mod bound;
mod call_fault;
mod reading;
mod request;
mod sent;
mod settings;
mod words;

pub use settings::{
    BedrockSettings, Credentials, DEFAULT_CONNECT_TIMEOUT, DEFAULT_TIMEOUT, EndpointSettings, Forms, Keys,
};

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_bedrockruntime::Client;
use ichido_core::limits::Limits;
use ichido_core::verdict::{Advice, Effect, ErrorCode, Verdict};
use ichido_llm::models::{CallError, CallReport, Model, ModelFuture, Prompt, Reply};
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use sent::SentFlag;

/// A model on Bedrock in one or more regions, made by [`BedrockSettings::resolve`].
pub struct Bedrock {
    name: String,
    /// The id that is called: the model, or the inference profile in front of it.
    called: String,
    /// The names of the clients, in the same order.
    endpoints: Vec<String>,
    clients: Vec<Client>,
    timeout: Duration,
    forms: Forms,
}

ichido_core::debug_only! {
    Bedrock as bedrock { name, called, endpoints, timeout, forms }
}

impl Model for Bedrock {
    fn name(&self) -> &str {
        &self.name
    }

    fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn ask<'a>(&'a self, endpoint: usize, prompt: &'a Prompt) -> ModelFuture<'a> {
        // Bedrock does not report what is left of its limits.
        Box::pin(async move {
            CallReport { outcome: self.tried(endpoint, prompt).await, limits: Limits::default() }
        })
    }
}

impl Bedrock {
    async fn tried(&self, endpoint: usize, prompt: &Prompt) -> Result<Reply, CallError> {
        let Some(client) = self.clients.get(endpoint) else {
            return Err(unasked(format!(
                "endpoint {endpoint} does not exist; there are {}",
                self.clients.len()
            )));
        };
        let call = request::build(client, &self.called, prompt, self.forms).map_err(unasked)?;
        let sent = Arc::new(SentFlag::default());
        // The SDK logs whole responses at trace level.
        let outcome = call
            .customize()
            .interceptor(sent::Watch(Arc::clone(&sent)))
            .send()
            .with_subscriber(NoSubscriber::new())
            .await;
        match outcome {
            Ok(output) => reading::reply(output),
            Err(error) => Err(reading::call_error(&error, sent.get(), prompt, ichido_http::clock::now())),
        }
    }
}

/// Returns the error of a call that was not made, because it is invalid.
fn unasked(why: String) -> CallError {
    let verdict = Verdict::declared(Some(ErrorCode::BadRequest), Effect::NotDone, Advice::GiveUp, None, None);
    CallError { verdict, status: None, name: None, why }
}
