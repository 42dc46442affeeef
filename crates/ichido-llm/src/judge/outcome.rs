//! The outcome of each item, and of the run.

use std::sync::Arc;

use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use ichido_store::answer::StoredAnswer;
use ichido_store::error::StoreError;
use serde::de::DeserializeOwned;

use super::Counts;
use super::endpoints::EndpointStatus;
use super::next::is_network;
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
    /// The provider asked for a pause that ends after the deadline.
    #[error("the provider asked for a pause that ends after the deadline")]
    Paused,
    /// The run ended early, because others failed for a reason that holds for all.
    #[error("the run ended before it was answered, because {why}")]
    SetUp {
        /// The reason in words.
        why: Arc<str>,
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
            Self::Deadline | Self::Paused => "deadline",
            Self::SetUp { .. } => "set_up",
            Self::Stopped => "stopped",
        }
    }

    /// Returns whether it is about the endpoints, so that another endpoint may do better.
    pub(super) fn is_of_endpoints(&self) -> bool {
        match self {
            Self::Refused { code, status, .. } => is_set_up(Some(*code), *status),
            Self::Unreached { .. } | Self::Spent { .. } => true,
            _ => false,
        }
    }

    /// Returns the reason of an item that waits for a retry, while the run ends for this reason.
    pub(super) fn of_waiting(&self, last: Option<&Self>) -> Self {
        match (self, last) {
            // Its own reason says more; only its retries are not exhausted.
            (Self::SetUp { .. }, Some(last)) if !matches!(last, Self::Spent { .. }) => last.clone(),
            _ => self.clone(),
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
    /// The endpoints, with the calls of this judge.
    pub endpoints: Vec<EndpointStatus>,
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

    /// Returns how a run ends in which several items in a row failed for this reason, and none was answered.
    pub(super) fn of_many(why: &FallbackReason) -> Option<Self> {
        match why {
            FallbackReason::Spent { code, .. } if !is_network(*code) => None,
            FallbackReason::Refused { code, why, .. } | FallbackReason::Spent { code, why } => {
                Some(Self::SetUp { code: *code, why: Arc::clone(why) })
            }
            FallbackReason::Unusable { why } => {
                Some(Self::SetUp { code: ErrorCode::AnswerUnusable, why: Arc::clone(why) })
            }
            _ => Self::of_all(why),
        }
    }

    /// Returns whether both are the same reason. A refusal may be about its item, unless the words are the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::SetUp { code, why }, Self::SetUp { code: other, why: because }) => {
                let is_of_item = matches!(code, ErrorCode::BadRequest | ErrorCode::Unknown);
                code == other && (!is_of_item || why == because)
            }
            _ => matches!((self, other), (Self::CutOff { .. }, Self::CutOff { .. })),
        }
    }

    /// Returns why the other items were not answered, if the run ended early.
    pub(super) fn of_others(&self) -> FallbackReason {
        let why = match self {
            Self::SetUp { code, .. } => format!("the calls failed with {code}"),
            Self::CutOff { max_tokens } => format!("the answers did not fit into {max_tokens} tokens"),
            Self::Whole | Self::Deadline | Self::Stopped => return FallbackReason::Stopped,
        };
        FallbackReason::SetUp { why: why.into() }
    }
}

/// A report before the answers are deserialized as the caller's type.
pub(super) struct Unread {
    pub(super) outcomes: Vec<Result<Settled, FallbackReason>>,
    pub(super) counts: Counts,
    pub(super) endpoints: Vec<EndpointStatus>,
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
        let Self { outcomes, counts, endpoints, ended } = self;
        let outcomes = outcomes.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(JudgeReport { outcomes, counts, endpoints, ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_one_reason_only_if_the_words_are_the_same() {
        let end = |code, why: &str| JudgeEnd::SetUp { code, why: why.into() };
        let is_same = |code, left, right| end(code, left).is_same(&end(code, right));
        assert!(is_same(ErrorCode::BadRequest, "unknown parameter", "unknown parameter"));
        assert!(!is_same(ErrorCode::BadRequest, "9312 tokens are too many", "9400 tokens are too many"));
        assert!(is_same(ErrorCode::Unauthorized, "request 1", "request 2"));
        assert!(!end(ErrorCode::Unauthorized, "").is_same(&end(ErrorCode::QuotaSpent, "")));
        assert!(!end(ErrorCode::Unauthorized, "").is_same(&JudgeEnd::CutOff { max_tokens: 1 }));
    }

    #[test]
    fn throttling_and_failing_servers_end_no_run() {
        for code in [ErrorCode::RateLimited, ErrorCode::Broker5xx] {
            assert_eq!(JudgeEnd::of_many(&FallbackReason::Spent { code, why: "".into() }), None);
        }
    }
}
