//! What one call to a model came to.

use ichido_core::limits::Limits;
use ichido_core::pace::CallEnd;
use ichido_core::verdict::{Advice, Effect, ErrorCode, PaceReport, Verdict};

/// What one call came to.
#[derive(Clone, Debug)]
pub struct CallReport {
    /// The answer, or what went wrong.
    pub outcome: Result<Reply, CallError>,
    /// What the provider says is left of its limits, with the answer or the refusal.
    pub limits: Limits,
}

/// What a model answered.
#[derive(Clone)]
pub struct Reply {
    /// Its words.
    pub text: String,
    /// Why it stopped there.
    pub finish_reason: FinishReason,
    /// The provider's name for this answer, for who asks after it.
    pub id: Option<String>,
    /// What it counts as.
    pub usage: Option<Usage>,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// It had said all.
    Whole,
    /// It ran out of the tokens that it was given.
    CutOff,
    /// It, or a filter before it, would not answer this.
    Declined,
}

/// What a call counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub struct CallError {
    /// What it came to, by the table of models.
    pub verdict: Verdict,
    /// The status, where an answer came.
    pub status: Option<u16>,
    /// The provider's name for the error, such as `ThrottlingException`.
    pub name: Option<String>,
    /// What happened, in our own words or the provider's, cut; nothing of the prompt.
    pub why: String,
}

impl CallError {
    /// Whether the provider may count this call though no answer came of it.
    pub fn may_be_billed(&self) -> bool {
        self.verdict.effect == Effect::Unknown
    }

    /// Whether it has nothing to do with what was asked: access, quota, an address or a model that is not there. Another endpoint may
    /// answer the same question.
    pub fn is_set_up(&self) -> bool {
        is_set_up(self.verdict.code, self.status)
    }

    /// What it says about the endpoint; `None` if it says nothing.
    pub(crate) fn call_end(&self) -> Option<CallEnd> {
        match self.verdict.tells_pace() {
            _ if self.is_set_up() => Some(CallEnd::Refused),
            Some(PaceReport::Throttled | PaceReport::Failure) => Some(CallEnd::Failed),
            Some(PaceReport::Success) | None => None,
        }
    }
}

/// What a call that was answered says.
pub(crate) fn accepted() -> Verdict {
    Verdict::said(None, Effect::Done, Advice::Accept, None, Some(PaceReport::Success))
}

/// Whether a refusal with this code and status has nothing to do with what was asked.
pub(crate) fn is_set_up(code: Option<ErrorCode>, status: Option<u16>) -> bool {
    matches!(code, Some(ErrorCode::Unauthorized | ErrorCode::QuotaSpent)) || status == Some(404)
}

ichido_core::debug_only! {
    /// The words stay out of logs (SPEC B8).
    Reply as reply { text_bytes: reply.text.len(), finish_reason, id, usage }
}
