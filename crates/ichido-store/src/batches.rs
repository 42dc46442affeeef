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
use crate::job::{Answer, Job};
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

/// One of two waits for an answer.
enum Either<A, B> {
    Apart(A),
    Together(B),
}

/// Hands a job in where its kind belongs, and takes the answer of that kind. Only the wait is a future: it does not carry the job,
/// so that whoever awaits many of them moves little.
macro_rules! submit {
    ($batches:expr, $stream:ident, $job:ident => $answer:ident, $work:expr, $bytes:expr) => {{
        let wait = match $batches {
            Batches::Apart { $stream, .. } => Either::Apart($stream.submit($work, $bytes)),
            Batches::Together(all) => Either::Together(all.submit(Job::$job($work), $bytes)),
        };
        async move {
            match wait {
                Either::Apart(wait) => wait.await,
                Either::Together(wait) => match wait.await? {
                    Answer::$answer(answer) => Ok(answer),
                    _ => unreachable!("a job has an answer of its own kind"),
                },
            }
        }
    }};
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

    pub(crate) fn claim(
        &self,
        attempt: Attempt,
        bytes: usize,
    ) -> impl Future<Output = Result<KeyClaimed, StoreError>> + Send {
        submit!(self, claims, Claim => Claimed, attempt, bytes)
    }

    pub(crate) fn settle(
        &self,
        settle: KeySettle,
        bytes: usize,
    ) -> impl Future<Output = Result<KeySettled, StoreError>> + Send {
        submit!(self, settles, Settle => Settled, settle, bytes)
    }

    pub(crate) fn message(
        &self,
        message: Numbered,
        bytes: usize,
    ) -> impl Future<Output = Result<Enqueued, StoreError>> + Send {
        submit!(self, messages, Message => Enqueued, message, bytes)
    }

    pub(crate) fn settlement(
        &self,
        settlement: Settlement,
        bytes: usize,
    ) -> impl Future<Output = Result<Stepped, StoreError>> + Send {
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
