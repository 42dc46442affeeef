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

/// Declares each kind of work: how it is submitted, and how PostgreSQL writes a batch of it.
macro_rules! kinds {
    ($($submit:ident($work:ty) -> $result:ty: $stream:ident, $job:ident, $answer:ident, $write:ident, $about:expr;)+) => {
        impl Batches {
            $(
                /// Hands the work in where its kind belongs, and takes the answer of that kind. Only the wait is a future: it does not
                /// carry the work, so callers that await many of them move little.
                pub(crate) fn $submit(
                    &self,
                    work: $work,
                    bytes: usize,
                ) -> impl Future<Output = Result<$result, StoreError>> + Send {
                    let wait = match self {
                        Self::Apart { $stream, .. } => Either::Apart($stream.submit(work, bytes)),
                        Self::Together(all) => Either::Together(all.submit(Job::$job(work), bytes)),
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
                }
            )+
        }

        $(
            impl Write<$work, $result> for Postgres {
                const BUSY_FOR_ALL: bool = false;

                fn about(job: &$work) -> u64 {
                    let about: fn(&$work) -> u64 = $about;
                    about(job)
                }

                async fn write(&self, jobs: &[$work], manner: Manner) -> Result<Vec<$result>, StoreError> {
                    self.$write(jobs, manner).await
                }
            }
        )+
    };
}

kinds! {
    claim(Attempt) -> KeyClaimed: claims, Claim, Claimed, key_claim, |job| thing(&job.claim.name);
    settle(KeySettle) -> KeySettled: settles, Settle, Settled, key_settle, |job| thing(&job.name);
    message(Numbered) -> Enqueued: messages, Message, Enqueued, enqueue,
        |(_, new)| thing(&(&new.queue, &new.identity, new.key.as_str()));
    settlement(Settlement) -> Stepped: settlements, Settlement, Stepped, settle, |job| thing(&job.id);
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
}

/// A number for a thing. Two things with the same number only wait for each other.
fn thing(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
