//! The outcome of each item, and of the run.

use std::sync::Arc;

use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use ichido_store::answer::StoredAnswer;
use ichido_store::error::StoreError;
use serde::de::DeserializeOwned;

use super::Counts;
use crate::models::is_set_up;

/// The outcome of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<T> {
    /// The item was answered.
    Judged(JudgedAnswer<T>),
    /// The item was not answered, and why. The caller decides what to use instead.
    // SPEC B6.
    Fallback(FallbackReason),
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedAnswer<T> {
    /// The model's answer.
    pub answer: T,
    /// When it was stored.
    pub at: Timestamp,
    /// Whether it was stored before this run.
    pub was_known: bool,
    /// Calls for it whose outcome is unknown: they may have been billed as well.
    pub lost: u32,
}

/// Why an item was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FallbackReason {
    /// The retries are exhausted.
    #[error("its retries are exhausted: {code}, {why}")]
    Spent {
        /// The error code of the last call.
        code: ErrorCode,
        /// The reason in words, without any of the prompt.
        why: Arc<str>,
    },
    /// The retries are exhausted, and no call arrived: nothing listens there.
    #[error("no endpoint was reached: {code}, {why}")]
    Unreached {
        /// The error code of the last call.
        code: ErrorCode,
        /// The reason in words.
        why: Arc<str>,
    },
    /// No retry can help.
    #[error("no retry can help: {code}, {why}")]
    Refused {
        /// The error code of the call.
        code: ErrorCode,
        /// The HTTP status, if a response came.
        status: Option<u16>,
        /// The reason in words, without any of the prompt.
        why: Arc<str>,
    },
    /// The model answered, but never in the requested form.
    #[error("the model gave no usable answer: {why}")]
    Unusable {
        /// What was wrong with its last answer, without any of the answer.
        why: Arc<str>,
    },
    /// The model's answer ran out of its tokens, and so did another one with twice as many.
    #[error("the answer did not fit into {max_tokens} tokens")]
    CutOff {
        /// How many the last answer was allowed.
        max_tokens: u32,
    },
    /// The deadline passed.
    #[error("the deadline passed before it was answered")]
    Deadline,
    /// The item was not asked, because earlier ones failed for a reason that holds for all.
    #[error("it was not asked, because every call before it failed with {code}")]
    SetUp {
        /// The error code of their calls.
        code: ErrorCode,
    },
    /// The run was stopped.
    #[error("the run was stopped before it was answered")]
    Stopped,
}

impl FallbackReason {
    /// Returns a stable name for programs.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Spent { .. } => "retries_spent",
            Self::Unreached { .. } => "unreached",
            Self::Refused { .. } => "refused",
            Self::Unusable { .. } => "unusable_answer",
            Self::CutOff { .. } => "cut_off",
            Self::Deadline => "deadline",
            Self::SetUp { .. } => "set_up",
            Self::Stopped => "stopped",
        }
    }
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct JudgeReport<T> {
    /// One outcome for each prompt, in order.
    pub outcomes: Vec<Outcome<T>>,
    /// What this run counted.
    pub counts: Counts,
    /// Why the run ended.
    pub ended: JudgeEnd,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JudgeEnd {
    /// Every item was handled.
    Whole,
    /// The deadline passed, and some items were not answered.
    Deadline,
    /// The run was stopped, and some items were not answered.
    Stopped,
    /// Every call failed for a reason unrelated to the items: access, quota, or nothing listens there.
    // SPEC B6.
    SetUp {
        /// The error code of the calls.
        code: ErrorCode,
        /// The reason in words.
        why: Arc<str>,
    },
    /// Every answer ran out of its tokens, also with twice as many.
    CutOff {
        /// How many the last answer was allowed.
        max_tokens: u32,
    },
}

impl JudgeEnd {
    /// Returns how a run ends in which every item failed for this reason; `None` if the reason is of the item.
    pub(super) fn of_all(why: &FallbackReason) -> Option<Self> {
        match why {
            FallbackReason::Refused { code, status, why } if is_set_up(Some(*code), *status) => {
                Some(Self::SetUp { code: *code, why: Arc::clone(why) })
            }
            FallbackReason::Unreached { code, why } => {
                Some(Self::SetUp { code: *code, why: Arc::clone(why) })
            }
            FallbackReason::CutOff { max_tokens } => Some(Self::CutOff { max_tokens: *max_tokens }),
            _ => None,
        }
    }

    /// Returns the error code of all calls of such a run.
    pub(super) fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::SetUp { code, .. } => Some(*code),
            Self::CutOff { .. } => Some(ErrorCode::AnswerUnusable),
            Self::Whole | Self::Deadline | Self::Stopped => None,
        }
    }
}

/// A report before the answers are deserialized as the caller's type.
pub(super) struct Unread {
    pub(super) outcomes: Vec<Result<Settled, FallbackReason>>,
    pub(super) counts: Counts,
    pub(super) ended: JudgeEnd,
}

/// A stored answer.
#[derive(Clone)]
pub(super) struct Settled {
    pub(super) answer: StoredAnswer,
    pub(super) was_known: bool,
}

impl Unread {
    pub(super) fn read<T: DeserializeOwned>(self) -> Result<JudgeReport<T>, StoreError> {
        let read = |outcome| match outcome {
            Err(why) => Ok(Outcome::Fallback(why)),
            Ok(Settled { answer, was_known }) => match serde_json::from_slice(&answer.bytes) {
                Ok(read) => {
                    let (at, lost) = (answer.at, answer.lost);
                    Ok(Outcome::Judged(JudgedAnswer { answer: read, at, was_known, lost }))
                }
                // The form is part of the question, so the answer belongs to a different type than the one requested.
                Err(_) => Err(StoreError::Corrupt {
                    table: "answers",
                    detail: "a stored answer does not have the requested type; delete its topic".to_owned(),
                }),
            },
        };
        let outcomes = self.outcomes.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(JudgeReport { outcomes, counts: self.counts, ended: self.ended })
    }
}
