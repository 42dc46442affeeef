//! The result of one call to a model.

use ichido_core::limits::Limits;
use ichido_core::pace::CallOutcome;
use ichido_core::verdict::{Advice, Effect, ErrorCode, PaceReport, Verdict};

/// The result of one call, and the limits that the provider reported.
#[derive(Clone, Debug)]
pub struct CallReport {
    /// The answer, or what went wrong.
    pub outcome: Result<Reply, CallError>,
    /// What the provider reports as left of its limits, with an answer or a refusal.
    pub limits: Limits,
}

/// A model's reply.
#[derive(Clone)]
pub struct Reply {
    /// The text.
    pub text: String,
    /// Why the model stopped.
    pub finish_reason: FinishReason,
    /// The provider's id of this reply, for support requests.
    pub id: Option<String>,
    /// The tokens counted.
    pub usage: Option<Usage>,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The reply is complete.
    Whole,
    /// The model ran out of its allowed tokens.
    CutOff,
    /// The model, or a filter in front of it, refused to answer.
    Declined,
}

/// The tokens of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
}

/// Why a call has no answer.
#[derive(Clone, Debug)]
pub struct CallError {
    /// The verdict, from the table of models.
    pub verdict: Verdict,
    /// The HTTP status, if a response came.
    pub status: Option<u16>,
    /// The provider's name for the error, such as `ThrottlingException`.
    pub name: Option<String>,
    /// The reason, in our words or the provider's, truncated; nothing of the prompt.
    pub why: String,
}

impl CallError {
    /// Returns whether the provider may bill this call though it has no answer.
    pub fn may_be_billed(&self) -> bool {
        self.verdict.effect == Effect::Unknown
    }

    /// Returns whether the error is unrelated to the question.
    ///
    /// It is then about access, quota, or an address or model that does not exist. Another endpoint may answer the same
    /// question.
    pub fn is_set_up(&self) -> bool {
        is_set_up(self.verdict.code, self.status)
    }

    /// Returns what the error says about the endpoint; `None` if nothing.
    pub(crate) fn call_end(&self) -> Option<CallOutcome> {
        match self.verdict.pace_report() {
            _ if self.is_set_up() => Some(CallOutcome::Refused),
            Some(PaceReport::Throttled | PaceReport::Failure) => Some(CallOutcome::Failed),
            Some(PaceReport::Success) | None => None,
        }
    }
}

/// The verdict of an answered call.
pub(crate) fn accepted() -> Verdict {
    Verdict::declared(None, Effect::Done, Advice::Accept, None, Some(PaceReport::Success))
}

/// Returns whether a refusal with this code and status is unrelated to the question.
pub(crate) fn is_set_up(code: Option<ErrorCode>, status: Option<u16>) -> bool {
    matches!(code, Some(ErrorCode::Unauthorized | ErrorCode::QuotaSpent)) || status == Some(404)
}

ichido_core::debug_only! {
    /// Replies stay out of logs.
    // SPEC B8.
    Reply as reply { text_bytes: reply.text.len(), finish_reason, id, usage }
}
