//! What can be done with a call.
//!
//! Guarantee: what is billed is what reaches the model: answers, well or badly shaped, and connections that end after
//! the model's work. Errors are not.

use serde::Deserialize;

/// What is done with a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The model answers, well or badly.
    Answer(AnswerShape),
    /// The model says just this.
    Say(String),
    /// The provider's own error. Nothing is billed.
    Fail(Fault),
    /// The connection ends after the whole request was read. Nothing is billed.
    Drop,
    /// The connection ends after the model has done its work, which is billed.
    DropCompleted,
}

/// How the model's text comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerShape {
    /// As it should be.
    Whole,
    /// It ends in the middle, for the tokens were spent.
    CutOff,
    /// Words before and after it.
    Prose,
    /// Inside a code fence.
    Fence,
    /// JSON, but none that was asked for.
    SchemaMiss,
    /// Held back by the provider's filter.
    Filtered,
}

/// An error of the provider, in its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Too many calls.
    Throttle,
    /// Too many tokens.
    ThrottleTokens,
    /// 503.
    Unavailable,
    /// 500.
    Internal,
    /// 529, where the provider has it.
    Overloaded,
    /// The model took too long.
    TimedOut,
    /// The model is still being loaded.
    NotReady,
    /// The model failed with this status.
    ModelError(u16),
    /// The money or the quota is spent.
    SpendLimit,
    /// The caller may not.
    Denied,
    /// The request is refused for what it says.
    Invalid,
    /// There is no such model.
    NotFound,
    /// An error that nobody has heard of: 418.
    Unknown,
    /// 502 from something in between, in HTML.
    BadGateway,
}
