//! Asking a language model: one call, and what came of it.
//!
//! Guarantee: a [`Model`] puts at most one request on the wire for each call of [`Model::ask`], and never tries again by itself: ours is the
//! only loop. What a try came to is judged by [`Table::llm`](ichido_core::verdict::Table::llm) (SPEC B1). No prompt, answer or key is in
//! what is shown of any of these types (SPEC B8).
//!
//! Calls to a model are *repeatable* (SPEC F2): nothing breaks when one is made twice, but it may be billed twice. Whoever repeats one of
//! unknown outcome counts it ([`CallError::may_be_billed`]).
//!
//! Start at [`Prompt`] and [`Model`]. [`OpenAi`] and [`Anthropic`] are models behind HTTP, in those two ways of speaking.

mod anthropic;
mod call;
mod form;
mod http_model;
mod openai;
mod prompt;

pub use anthropic::{Anthropic, AnthropicSettings};
pub use call::{CallError, CallReport, FinishReason, Reply, Usage};
pub(crate) use call::{accepted, is_set_up};
pub use form::{Form, FormError, ParsedAnswer, Unusable};
pub use http_model::{ENDPOINTS_MAX, HttpModel, Redactor, ServiceSettings};
pub use openai::{FormBy, LimitBy, OpenAi, OpenAiSettings};
pub use prompt::Prompt;

use std::pin::Pin;
use std::time::Duration;

/// A call under way.
pub type ModelFuture<'a> = Pin<Box<dyn Future<Output = CallReport> + Send + 'a>>;

/// A model that can be asked, at one or more endpoints.
pub trait Model: Send + Sync {
    /// Which model it is, as its provider names it. What is remembered of answers is remembered under this name.
    fn name(&self) -> &str;

    /// Where it can be asked: regions, hosts. At least one; each has a pace of its own, shared by all nodes under this name.
    fn endpoints(&self) -> &[String];

    /// The longest that a call takes; it is given up on then.
    fn timeout(&self) -> Duration;

    /// One call to the endpoint at this place in [`Model::endpoints`]. It ends within [`Model::timeout`]; whoever drops it gives it up, and
    /// cannot know whether it is billed.
    fn ask<'a>(&'a self, endpoint: usize, prompt: &'a Prompt) -> ModelFuture<'a>;
}
