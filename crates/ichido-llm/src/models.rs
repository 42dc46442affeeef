//! Asking a language model: one call, and what came of it.
//!
//! Guarantee: a [`Model`] puts at most one request on the wire for each call of [`Model::ask`], and never tries again by itself: ours is the
//! only loop. What a try came to is judged by [`Table::llm`](ichido_core::verdict::Table::llm) (SPEC B1). No prompt, answer or key is in
//! what is shown of any of these types (SPEC B8).
//!
//! Calls to a model are *repeatable* (SPEC F2): nothing breaks when one is made twice, but it may be billed twice. Whoever repeats one of
//! unknown outcome counts it ([`Trouble::may_be_billed`]).
//!
//! Start at [`Prompt`] and [`Model`]. [`OpenAi`] and [`Anthropic`] are models behind HTTP, in those two ways of speaking.

mod anthropic;
mod form;
mod line;
mod openai;
mod prompt;
mod trial;

pub use anthropic::{Anthropic, AnthropicSettings};
pub use form::{Form, FormError, Read, Unusable};
pub use line::{ENDPOINTS_MAX, HttpModel, Hush, ServiceSettings};
pub use openai::{FormBy, LimitBy, OpenAi, OpenAiSettings};
pub use prompt::Prompt;
pub use trial::{Ended, Reply, Trial, Trouble, Usage};
pub(crate) use trial::{accepted, is_set_up};

use std::pin::Pin;
use std::time::Duration;

/// A call under way.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Trial> + Send + 'a>>;

/// A model that can be asked, at one or more endpoints.
pub trait Model: Send + Sync {
    /// Which model it is, as its provider names it. What is remembered of answers is remembered under this name.
    fn name(&self) -> &str;

    /// Where it can be asked: regions, hosts. At least one; each has a pace of its own, shared by all nodes under this name.
    fn endpoints(&self) -> &[String];

    /// The longest that a call takes; it is given up on then.
    fn time_out(&self) -> Duration;

    /// One call to the endpoint at this place in [`Model::endpoints`]. It ends within [`Model::time_out`]; whoever drops it gives it up, and
    /// cannot know whether it is billed.
    fn ask<'a>(&'a self, endpoint: usize, prompt: &'a Prompt) -> Asking<'a>;
}
