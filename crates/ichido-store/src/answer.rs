//! What models answered, kept until a person has it forgotten.
//!
//! Guarantee: a call that is about to be made stands in the store before it is made, so that whoever comes after a crash knows which calls
//! may have been billed for nothing. Of several runs with the same question one asks at a time. The first answer stands, and nothing
//! but [`Answers::forget`](crate::Answers::forget) takes it away.
//!
//! ```
//! use std::time::Duration;
//! use ichido_store::Store;
//! use ichido_store::answer::{Asking, QuestionId};
//! use uuid::Uuid;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let store = Store::open(&file.url, 4).await?;
//! let question = QuestionId::from_bytes([7; 32]); // A digest of all that the answer depends on.
//! let (ours, lease) = (Uuid::now_v7(), Duration::from_secs(10));
//! let asking = store.answers().ask(question, "articles", ours, lease).await?;
//! assert_eq!(asking, Asking::Ours { lost: 0 }); // Make the call.
//! store.answers().keep(question, b"a cat").await?;
//! // Whoever asks the same later is answered from here.
//! let asking = store.answers().ask(question, "articles", Uuid::now_v7(), lease).await?;
//! assert!(matches!(asking, Asking::Answered(answer) if answer.bytes == b"a cat"));
//! # Ok(())
//! # }
//! ```
// SPEC B7.

use std::fmt;

use ichido_core::digest::hex;
use ichido_core::time::Timestamp;

use crate::columns::Columns;
use crate::error::StoreError;

/// The bounds of answers.
pub mod limits {
    /// The longest answer, in bytes.
    pub const ANSWER_BYTES_MAX: usize = 1 << 20;
    /// The longest name of a topic, in bytes.
    pub const TOPIC_BYTES_MAX: usize = 128;
    /// The most questions that are looked up at once.
    pub const FIND_MAX: usize = 1_000;
}

/// A question: a digest of all that its answer depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuestionId([u8; 32]);

impl QuestionId {
    /// By its digest.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QuestionId({})", hex(&self.0))
    }
}

/// An answer that is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// As it was kept.
    pub bytes: Vec<u8>,
    /// When.
    pub at: Timestamp,
    /// How many calls for it were begun of which nobody knows what came.
    pub lost: u32,
}

ichido_core::debug_only! {
    /// The answer itself stays out of logs.
    Answer as answer { bytes: answer.bytes.len(), at, lost }
}

/// Whether a call is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Make it: the question is ours until it is answered, given up, or our lease is over.
    Ours {
        /// How many calls were begun before of which nobody knows what came.
        lost: u32,
    },
    /// It is answered.
    Answered(Answer),
    /// Another run has a call under way.
    Theirs {
        /// Until when, unless it is heard of.
        until: Timestamp,
    },
}

/// What is known of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Which.
    pub id: QuestionId,
    /// How many calls were begun of which nobody knows what came.
    pub lost: u32,
    /// Its answer.
    pub answer: Option<Answer>,
    /// Until when a run has it, unless it is heard of.
    pub held_until: Option<Timestamp>,
}

pub(crate) fn question(row: &impl Columns) -> Result<Question, StoreError> {
    let lost = row.positive("lost")?;
    let answer = match (row.bytes_or_none("answer")?, row.timestamp_or_none("answered_at")?) {
        (Some(bytes), Some(at)) => Some(Answer { bytes: bytes.to_owned(), at, lost }),
        _ => None,
    };
    let id = QuestionId(row.hash("id")?);
    Ok(Question { id, lost, answer, held_until: row.timestamp_or_none("held_until")? })
}
