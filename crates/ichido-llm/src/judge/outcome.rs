//! What became of each item, and of the whole.

use std::sync::Arc;

use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use ichido_store::answer::Answer;
use ichido_store::error::StoreError;
use serde::de::DeserializeOwned;

use super::Counts;

/// What became of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<T> {
    /// It was answered.
    Judged(Judged<T>),
    /// It was not, and why: what stands in for an answer is the caller's (SPEC B6).
    Fallback(Why),
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged<T> {
    /// What the model said.
    pub answer: T,
    /// When it was kept.
    pub at: Timestamp,
    /// Whether it was known before this run.
    pub was_known: bool,
    /// How many calls for it were begun of which nobody knows what came: they may have been billed as well.
    pub lost: u32,
}

/// Why an item was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// Its retries are spent.
    #[error("its retries are spent: {code}, {why}")]
    Spent {
        /// What the last call came to.
        code: ErrorCode,
        /// In words; nothing of the prompt.
        why: Arc<str>,
    },
    /// Its retries are spent, and none of its calls arrived: nobody listens there.
    #[error("nobody was reached: {why}")]
    Unreached {
        /// In words.
        why: Arc<str>,
    },
    /// No retry can mend it.
    #[error("no retry can mend it: {code}, {why}")]
    Refused {
        /// What the call came to.
        code: ErrorCode,
        /// The status, where an answer came.
        status: Option<u16>,
        /// In words; nothing of the prompt.
        why: Arc<str>,
    },
    /// The model answered, and never what it was asked for.
    #[error("the model never answered as asked: {why}")]
    Unusable {
        /// What was wrong with its last answer; nothing of the answer.
        why: Arc<str>,
    },
    /// The time was over.
    #[error("the time was over before it was answered")]
    Deadline,
    /// It was not asked: others before it were refused for a reason that holds for all.
    #[error("it was not asked, since every call before it came to {code}")]
    SetUp {
        /// What their calls came to.
        code: ErrorCode,
    },
    /// The run was stopped.
    #[error("the run was stopped before it was answered")]
    Stopped,
}

impl Why {
    /// A stable name for programs.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Spent { .. } => "retries_spent",
            Self::Unreached { .. } => "unreached",
            Self::Refused { .. } => "refused",
            Self::Unusable { .. } => "unusable_answer",
            Self::Deadline => "deadline",
            Self::SetUp { .. } => "set_up",
            Self::Stopped => "stopped",
        }
    }
}

/// What became of a run.
#[derive(Clone, Debug)]
pub struct Report<T> {
    /// One outcome for each prompt, in order.
    pub outcomes: Vec<Outcome<T>>,
    /// What this run counted.
    pub counts: Counts,
    /// Why it ended.
    pub ended: Ended,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every item had its turn.
    Whole,
    /// Its time was over, and some items were not answered.
    Deadline,
    /// It was stopped, and some items were not answered.
    Stopped,
    /// Every call was refused for a reason that has nothing to do with the items: access, or money (SPEC B6).
    SetUp {
        /// What the calls came to.
        code: ErrorCode,
        /// In words.
        why: Arc<str>,
    },
}

/// The same before answers are read as the caller's type.
pub(super) struct Unread {
    pub(super) outcomes: Vec<Result<Settled, Why>>,
    pub(super) counts: Counts,
    pub(super) ended: Ended,
}

/// An answer as it is kept.
#[derive(Clone)]
pub(super) struct Settled {
    pub(super) answer: Answer,
    pub(super) was_known: bool,
}

impl Unread {
    pub(super) fn read<T: DeserializeOwned>(self) -> Result<Report<T>, StoreError> {
        let read = |outcome| match outcome {
            Err(why) => Ok(Outcome::Fallback(why)),
            Ok(Settled { answer, was_known }) => match serde_json::from_slice(&answer.bytes) {
                Ok(read) => {
                    let (at, lost) = (answer.at, answer.lost);
                    Ok(Outcome::Judged(Judged { answer: read, at, was_known, lost }))
                }
                // The form is part of the question, so this is another type than the one that asked.
                Err(_) => Err(StoreError::Corrupt {
                    table: "answers",
                    detail: "an answer is kept that is not of the type that is asked for; forget its topic"
                        .to_owned(),
                }),
            },
        };
        let outcomes = self.outcomes.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Report { outcomes, counts: self.counts, ended: self.ended })
    }
}
