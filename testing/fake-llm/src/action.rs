//! What the server can do with a call.
//!
//! Guarantee: everything that reaches the model is billed: well or badly shaped answers, and connections that end after
//! the model's work. Errors are not billed.

use serde::Deserialize;

/// What the server does with a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedAction {
    /// The model answers, in this shape.
    Answer(AnswerShape),
    /// The model says exactly this.
    Say(String),
    /// The provider returns an error. Nothing is billed.
    Fail(ProviderFault),
    /// The connection ends after the whole request was read. Nothing is billed.
    Drop,
    /// The connection ends after the model's work, which is billed.
    DropCompleted,
}

/// The shape of the model's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerShape {
    /// As requested.
    Whole,
    /// Truncated, because the tokens were spent.
    CutOff,
    /// With text before and after it.
    Prose,
    /// Inside a code fence.
    Fence,
    /// JSON, but not in the requested form.
    SchemaMiss,
    /// Withheld by the provider's filter.
    Filtered,
}

/// An error of the provider, in its own format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderFault {
    /// Too many calls.
    Throttle,
    /// Too many tokens.
    ThrottleTokens,
    /// 503.
    Unavailable,
    /// 500.
    Internal,
    /// 529, if the provider has it.
    Overloaded,
    /// The model took too long.
    TimedOut,
    /// The model is still loading.
    NotReady,
    /// The model failed with this status.
    ModelError(u16),
    /// The money or the quota is spent.
    SpendLimit,
    /// The caller has no access.
    Denied,
    /// The request is invalid.
    Invalid,
    /// The answer ran out of its tokens before it began. Only OpenAI has an error for this.
    OutOfTokens,
    /// The model does not exist.
    NotFound,
    /// An unknown error: 418.
    Unknown,
    /// 502 from a proxy in between, in HTML.
    BadGateway,
}
