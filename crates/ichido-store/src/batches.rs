//! The streams of batches before a database.
//!
//! PostgreSQL writes on many connections at once, so there each kind of work has a stream of its own. SQLite has one writer, and
//! what it costs is the commit: there all kinds go in one stream, and one commit serves all who wait, whatever they wait for.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;

use crate::alone::{Manner, Write};
use crate::batch::{Batcher, Bounds};
use crate::driver::Driver;
use crate::error::StoreError;
use crate::ledger::{KeyClaimed, KeySettle, KeySettled};
use crate::message::{Enqueued, Numbered, Settlement, Stepped};
use crate::postgres::Postgres;
use crate::record::Attempt;

pub(crate) enum Batches {
    Apart {
        claims: Batcher<Attempt, KeyClaimed>,
        settles: Batcher<KeySettle, KeySettled>,
        messages: Batcher<Numbered, Enqueued>,
        settlements: Batcher<Settlement, Stepped>,
    },
    Together(Batcher<Job, Answer>),
}

/// Work of any kind.
pub(crate) enum Job {
    Claim(Attempt),
    Settle(KeySettle),
    Message(Numbered),
    Settlement(Settlement),
}

/// The answer to a [`Job`], of the same kind.
pub(crate) enum Answer {
    Claimed(KeyClaimed),
    Settled(KeySettled),
    Enqueued(Enqueued),
    Stepped(Stepped),
}

/// Hands a job in where its kind belongs, and takes the answer of that kind.
macro_rules! submit {
    ($batches:expr, $stream:ident, $job:ident => $answer:ident, $work:expr, $bytes:expr) => {
        match $batches {
            Batches::Apart { $stream, .. } => $stream.submit($work, $bytes).await,
            Batches::Together(all) => match all.submit(Job::$job($work), $bytes).await? {
                Answer::$answer(answer) => Ok(answer),
                _ => unreachable!("a job has an answer of its own kind"),
            },
        }
    };
}

impl Batches {
    pub(crate) fn start(driver: &Driver) -> Self {
        let bounds = Bounds::DEFAULT;
        match driver {
            Driver::Postgres(postgres) => Self::Apart {
                claims: Batcher::start(bounds, Arc::clone(postgres)),
                settles: Batcher::start(bounds, Arc::clone(postgres)),
                messages: Batcher::start(bounds, Arc::clone(postgres)),
                settlements: Batcher::start(bounds, Arc::clone(postgres)),
            },
            Driver::Sqlite(sqlite) => Self::Together(Batcher::start(bounds, Arc::clone(sqlite))),
        }
    }

    pub(crate) async fn claim(&self, attempt: Attempt, bytes: usize) -> Result<KeyClaimed, StoreError> {
        submit!(self, claims, Claim => Claimed, attempt, bytes)
    }

    pub(crate) async fn settle(&self, settle: KeySettle, bytes: usize) -> Result<KeySettled, StoreError> {
        submit!(self, settles, Settle => Settled, settle, bytes)
    }

    pub(crate) async fn message(&self, message: Numbered, bytes: usize) -> Result<Enqueued, StoreError> {
        submit!(self, messages, Message => Enqueued, message, bytes)
    }

    pub(crate) async fn settlement(
        &self,
        settlement: Settlement,
        bytes: usize,
    ) -> Result<Stepped, StoreError> {
        submit!(self, settlements, Settlement => Stepped, settlement, bytes)
    }
}

impl Write<Attempt, KeyClaimed> for Postgres {
    const BUSY_FOR_ALL: bool = false;

    fn about(job: &Attempt) -> u64 {
        thing(&job.claim.name)
    }

    async fn write(&self, jobs: &[Attempt], manner: Manner) -> Result<Vec<KeyClaimed>, StoreError> {
        self.key_claim(jobs, manner).await
    }
}

impl Write<KeySettle, KeySettled> for Postgres {
    const BUSY_FOR_ALL: bool = false;

    fn about(job: &KeySettle) -> u64 {
        thing(&job.name)
    }

    async fn write(&self, jobs: &[KeySettle], manner: Manner) -> Result<Vec<KeySettled>, StoreError> {
        self.key_settle(jobs, manner).await
    }
}

impl Write<Numbered, Enqueued> for Postgres {
    const BUSY_FOR_ALL: bool = false;

    fn about((_, message): &Numbered) -> u64 {
        thing(&(&message.queue, &message.identity, message.key.as_str()))
    }

    async fn write(&self, jobs: &[Numbered], manner: Manner) -> Result<Vec<Enqueued>, StoreError> {
        self.enqueue(jobs, manner).await
    }
}

impl Write<Settlement, Stepped> for Postgres {
    const BUSY_FOR_ALL: bool = false;

    fn about(job: &Settlement) -> u64 {
        thing(&job.id)
    }

    async fn write(&self, jobs: &[Settlement], manner: Manner) -> Result<Vec<Stepped>, StoreError> {
        self.settle(jobs, manner).await
    }
}

/// A number for a thing. Two things with the same number only wait for each other.
fn thing(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
