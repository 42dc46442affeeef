//! Write queues: the streams of batches in front of a database.
//!
//! PostgreSQL writes on many connections at once, so each kind of job has its own stream. SQLite has one writer, and the commit
//! is what costs: all kinds share one stream, and one commit serves all that wait.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;

use crate::batch::{BatchLimits, Batcher};
use crate::driver::Driver;
use crate::error::StoreError;
use crate::ledger::{KeyClaimed, KeySettle, KeySettled};
use crate::message::{EnqueueOutcome, NumberedMessage, Settlement, StepResult};
use crate::postgres::Postgres;
use crate::record::ClaimAttempt;
use crate::split_retry::{BatchWriter, WriteMode};
use crate::write_job::{WriteJob, WriteResult};

pub(crate) enum WriteQueues {
    PerKind {
        claims: Batcher<ClaimAttempt, KeyClaimed>,
        settles: Batcher<KeySettle, KeySettled>,
        messages: Batcher<NumberedMessage, EnqueueOutcome>,
        settlements: Batcher<Settlement, StepResult>,
    },
    Shared(Batcher<WriteJob, WriteResult>),
}

/// One of two futures of a result.
enum Either<A, B> {
    PerKind(A),
    Shared(B),
}

/// Declares each kind of job: how it is submitted, and how PostgreSQL writes a batch of it.
macro_rules! kinds {
    ($($submit:ident($work:ty) -> $result:ty: $stream:ident, $job:ident, $answer:ident, $write:ident, $about:expr;)+) => {
        impl WriteQueues {
            $(
                /// Submits a job to the stream of its kind. The future does not hold the job, so callers that await many of
                /// them move little memory.
                pub(crate) fn $submit(
                    &self,
                    work: $work,
                    bytes: usize,
                ) -> impl Future<Output = Result<$result, StoreError>> + Send {
                    let wait = match self {
                        Self::PerKind { $stream, .. } => Either::PerKind($stream.submit(work, bytes)),
                        Self::Shared(all) => Either::Shared(all.submit(WriteJob::$job(work), bytes)),
                    };
                    async move {
                        match wait {
                            Either::PerKind(wait) => wait.await,
                            Either::Shared(wait) => match wait.await? {
                                WriteResult::$answer(answer) => Ok(answer),
                                _ => unreachable!("a job has an answer of its own kind"),
                            },
                        }
                    }
                }
            )+
        }

        $(
            impl BatchWriter<$work, $result> for Postgres {
                const BUSY_FOR_ALL: bool = false;

                fn about(job: &$work) -> u64 {
                    let about: fn(&$work) -> u64 = $about;
                    about(job)
                }

                async fn write(&self, jobs: &[$work], manner: WriteMode) -> Result<Vec<$result>, StoreError> {
                    self.$write(jobs, manner).await
                }
            }
        )+
    };
}

kinds! {
    claim(ClaimAttempt) -> KeyClaimed: claims, Claim, Claimed, key_claim, |job| subject_hash(&job.claim.name);
    settle(KeySettle) -> KeySettled: settles, Settle, Settled, key_settle, |job| subject_hash(&job.name);
    message(NumberedMessage) -> EnqueueOutcome: messages, Message, Enqueued, enqueue,
        |(_, new)| subject_hash(&(&new.queue, &new.identity, new.key.as_str()));
    settlement(Settlement) -> StepResult: settlements, Settlement, Stepped, settle, |job| subject_hash(&job.id);
}

impl WriteQueues {
    pub(crate) fn start(driver: &Driver) -> Self {
        let bounds = BatchLimits::DEFAULT;
        match driver {
            Driver::Postgres(postgres) => Self::PerKind {
                claims: Batcher::start(bounds, Arc::clone(postgres)),
                settles: Batcher::start(bounds, Arc::clone(postgres)),
                messages: Batcher::start(bounds, Arc::clone(postgres)),
                settlements: Batcher::start(bounds, Arc::clone(postgres)),
            },
            Driver::Sqlite(sqlite) => Self::Shared(Batcher::start(bounds, Arc::clone(sqlite))),
        }
    }
}

/// Hashes a subject. Two subjects with the same hash only wait for each other.
fn subject_hash(subject: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    subject.hash(&mut hasher);
    hasher.finish()
}
