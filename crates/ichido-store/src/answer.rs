//! Stored answers of models, kept until a person deletes them.
//!
//! Guarantee: a call is recorded in the store before it is made, so after a crash the next run knows which calls may have been
//! billed without an answer. Of several runs with the same question, one asks at a time. The first answer wins, and only
//! [`Answers::delete`](crate::Answers::delete) deletes it.
//!
//! ```
//! use std::time::Duration;
//! use ichido_store::Store;
//! use ichido_store::answer::{AskOutcome, QuestionId};
//! use uuid::Uuid;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let store = Store::open(&file.url, 4).await?;
//! let question = QuestionId::from_bytes([7; 32]); // A digest of everything the answer depends on.
//! let (ours, lease) = (Uuid::now_v7(), Duration::from_secs(10));
//! let asking = store.answers().ask(question, "articles", ours, lease).await?;
//! assert_eq!(asking, AskOutcome::Run { lost: 0 }); // Make the call.
//! store.answers().store(question, b"a cat").await?;
//! // The same question later gets the stored answer.
//! let asking = store.answers().ask(question, "articles", Uuid::now_v7(), lease).await?;
//! assert!(matches!(asking, AskOutcome::Replay(answer) if answer.bytes == b"a cat"));
//! # Ok(())
//! # }
//! ```
// SPEC B7.

use std::fmt;

use ichido_core::digest::hex;
use ichido_core::time::Timestamp;

use crate::columns::Columns;
use crate::error::StoreError;

/// Limits of answers.
pub mod limits {
    /// The maximum length of an answer, in bytes.
    pub const MAX_ANSWER_BYTES: usize = 1 << 20;
    /// The maximum length of a topic name, in bytes. It has room for the name of a model.
    pub const MAX_TOPIC_BYTES: usize = 384;
    /// The maximum number of topics that are counted.
    pub const MAX_TOPICS: u32 = 1_000;
    /// The maximum number of questions looked up at once.
    pub const MAX_FIND: usize = 1_000;
}

/// A question, identified by a digest of everything its answer depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuestionId([u8; 32]);

impl QuestionId {
    /// Creates an id from a digest.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QuestionId({})", hex(&self.0))
    }
}

/// A stored answer.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The stored bytes.
    pub bytes: Vec<u8>,
    /// When it was stored.
    pub at: Timestamp,
    /// The number of calls for it that were started and whose outcome is unknown.
    pub lost: u32,
}

ichido_core::debug_only! {
    /// Keeps the answer itself out of logs.
    StoredAnswer as answer { bytes: answer.bytes.len(), at, lost }
}

/// The outcome of asking for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a call that runs must be answered or given up"]
pub enum AskOutcome {
    /// Make the call. The question is ours until it is answered, it is given up, or our lease expires.
    Run {
        /// The number of earlier calls that were started and whose outcome is unknown.
        lost: u32,
    },
    /// The question is answered.
    Replay(StoredAnswer),
    /// Another run has a call in flight.
    InFlight {
        /// When that run's lease expires, unless it reports first.
        until: Timestamp,
    },
}

/// What is stored of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicCount {
    /// The topic.
    pub topic: String,
    /// Its questions, answered or not.
    pub questions: u64,
    /// Its answers.
    pub answers: u64,
}

/// The state of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The question.
    pub id: QuestionId,
    /// The number of calls that were started and whose outcome is unknown.
    pub lost: u32,
    /// The answer, if there is one.
    pub answer: Option<StoredAnswer>,
    /// When the lease of the run that asks it expires, unless that run reports first.
    pub held_until: Option<Timestamp>,
}

pub(crate) fn question(row: &impl Columns) -> Result<Question, StoreError> {
    let lost = row.positive("lost")?;
    let answer = match (row.bytes_or_none("answer")?, row.timestamp_or_none("answered_at")?) {
        (Some(bytes), Some(at)) => Some(StoredAnswer { bytes: bytes.to_owned(), at, lost }),
        _ => None,
    };
    let id = QuestionId(row.hash("id")?);
    Ok(Question { id, lost, answer, held_until: row.timestamp_or_none("held_until")? })
}
