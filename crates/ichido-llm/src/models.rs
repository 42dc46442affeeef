//! One call to a language model, and its result.
//!
//! Guarantee: a [`Model`] sends at most one request for each call of [`Model::ask`] and never retries automatically:
//! the caller has the only retry loop. [`Table::llm`](ichido_core::verdict::VerdictTable::llm) judges the outcome. No `Debug`
//! output of these types shows a prompt, an answer or a key.
//!
//! Calls to a model are *repeatable*: a second call breaks nothing but may be billed twice. Code that repeats a call of
//! unknown outcome counts it ([`CallError::may_be_billed`]).
//!
//! Start at [`Prompt`] and [`Model`]. [`OpenAi`] and [`Anthropic`] are models behind HTTP that speak those two APIs.
// SPEC B1, B8, F2.

mod anthropic;
mod call;
mod form;
mod http_model;
mod openai;
mod prompt;

pub use anthropic::{Anthropic, AnthropicSettings};
pub use call::{CallError, CallReport, FinishReason, Reply, Usage};
pub(crate) use call::{accepted, is_set_up};
pub use form::{AnswerForm, FormError, ParsedAnswer, Unusable};
pub use http_model::{HttpModel, MAX_ENDPOINTS, Redactor, ServiceSettings};
pub use openai::{LimitBy, OpenAi, OpenAiSettings, SchemaMode};
pub use prompt::Prompt;

use std::pin::Pin;
use std::time::Duration;

/// A call in flight.
pub type ModelFuture<'a> = Pin<Box<dyn Future<Output = CallReport> + Send + 'a>>;

/// A model with one or more endpoints.
pub trait Model: Send + Sync {
    /// Returns the provider's name of the model. Answers are stored under this name.
    fn name(&self) -> &str;

    /// Returns the endpoints, such as regions or hosts.
    ///
    /// There is at least one. Each has its own pace, shared by all nodes under this name.
    fn endpoints(&self) -> &[String];

    /// Returns the maximum duration of a call; a longer one is abandoned.
    fn timeout(&self) -> Duration;

    /// Makes one call to the endpoint at this index of [`Model::endpoints`].
    ///
    /// It ends within [`Model::timeout`]. Dropping the future abandons the call, and whether it is billed is then
    /// unknown.
    fn ask<'a>(&'a self, endpoint: usize, prompt: &'a Prompt) -> ModelFuture<'a>;
}
