//! Group commit: batches of all kinds of jobs, each in one transaction.

use super::Sqlite;
use crate::error::StoreError;
use crate::ledger::KeySettle;
use crate::message::{EnqueueOutcome, NumberedMessage, Settlement, StepResult};
use crate::record::ClaimAttempt;
use crate::split_retry::{BatchWriter, WriteMode};
use crate::write_job::{WriteJob, WriteResult};

impl BatchWriter<WriteJob, WriteResult> for Sqlite {
    const BUSY_FOR_ALL: bool = true;

    async fn write(&self, jobs: &[WriteJob], manner: WriteMode) -> Result<Vec<WriteResult>, StoreError> {
        let kinds = JobsByKind::new(jobs);
        // Settles first: they may have to restart the transaction, and a claim of the same key then finds the outcome.
        let (mut tx, settled) = self.key_settle(&kinds.settles, manner.is_retry).await?;
        let claimed = self.key_claim(&mut tx, &kinds.claims).await?;
        let now = tx.now;
        let enqueued = super::enqueue::enqueue_at(tx.connection(), &kinds.messages, now).await?;
        let stepped = self.settle(&mut tx, &kinds.settlements).await?;
        tx.commit().await?;
        self.key_settled(&kinds.settles);
        self.key_claimed(&kinds.claims, &claimed);
        let stepped = self.reported(stepped);
        let (mut settled, mut claimed) = (settled.into_iter(), claimed.into_iter());
        let (mut enqueued, mut stepped) = (enqueued.into_iter(), stepped.into_iter());
        let answer = |job: &WriteJob| match job {
            WriteJob::Settle(_) => settled.next().map(WriteResult::Settled),
            WriteJob::Claim(_) => claimed.next().map(WriteResult::Claimed),
            WriteJob::Message(_) => enqueued.next().map(WriteResult::Enqueued),
            WriteJob::Settlement(_) => stepped.next().map(WriteResult::Stepped),
        };
        Ok(jobs.iter().filter_map(answer).collect())
    }
}

/// The jobs of a batch by kind, each kind in the order they came.
#[derive(Default)]
struct JobsByKind<'a> {
    claims: Vec<&'a ClaimAttempt>,
    settles: Vec<&'a KeySettle>,
    messages: Vec<&'a NumberedMessage>,
    settlements: Vec<&'a Settlement>,
}

impl<'a> JobsByKind<'a> {
    fn new(jobs: &'a [WriteJob]) -> Self {
        let mut kinds = Self::default();
        for job in jobs {
            match job {
                WriteJob::Claim(attempt) => kinds.claims.push(attempt),
                WriteJob::Settle(settle) => kinds.settles.push(settle),
                WriteJob::Message(message) => kinds.messages.push(message),
                WriteJob::Settlement(settlement) => kinds.settlements.push(settlement),
            }
        }
        kinds
    }
}

/// Messages that one caller enqueues together.
impl BatchWriter<NumberedMessage, EnqueueOutcome> for Sqlite {
    const BUSY_FOR_ALL: bool = true;

    async fn write(
        &self,
        jobs: &[NumberedMessage],
        _manner: WriteMode,
    ) -> Result<Vec<EnqueueOutcome>, StoreError> {
        let mut tx = self.write().await?;
        let now = tx.now;
        let messages: Vec<&NumberedMessage> = jobs.iter().collect();
        let enqueued = super::enqueue::enqueue_at(tx.connection(), &messages, now).await?;
        tx.commit().await?;
        Ok(enqueued)
    }
}

/// Reports that one caller makes together.
impl BatchWriter<Settlement, StepResult> for Sqlite {
    const BUSY_FOR_ALL: bool = true;

    async fn write(&self, jobs: &[Settlement], _manner: WriteMode) -> Result<Vec<StepResult>, StoreError> {
        let mut tx = self.write().await?;
        let settlements: Vec<&Settlement> = jobs.iter().collect();
        let stepped = self.settle(&mut tx, &settlements).await?;
        tx.commit().await?;
        Ok(self.reported(stepped))
    }
}
