//! Batches of any kind of work, each in one transaction: one commit serves all of them.

use super::Sqlite;
use crate::alone::{Manner, Write};
use crate::error::StoreError;
use crate::job::{Answer, Job};
use crate::ledger::KeySettle;
use crate::message::{Enqueued, Numbered, Settlement, Stepped};
use crate::record::Attempt;

impl Write<Job, Answer> for Sqlite {
    const BUSY_FOR_ALL: bool = true;

    async fn write(&self, jobs: &[Job], manner: Manner) -> Result<Vec<Answer>, StoreError> {
        let kinds = Kinds::of(jobs);
        // Outcomes first: they may have to begin the transaction again, and a claim that comes for one of them finds it.
        let (mut writing, settled) = self.key_settle(&kinds.settles, manner.again).await?;
        let claimed = self.key_claim(&mut writing, &kinds.claims).await?;
        let now = writing.now;
        let enqueued = super::enqueue::enqueue_at(writing.connection(), &kinds.messages, now).await?;
        let stepped = self.settle(&mut writing, &kinds.settlements).await?;
        writing.commit().await?;
        self.key_settled(&kinds.settles);
        self.key_claimed(&kinds.claims, &claimed);
        let stepped = self.reported(stepped);
        let (mut settled, mut claimed) = (settled.into_iter(), claimed.into_iter());
        let (mut enqueued, mut stepped) = (enqueued.into_iter(), stepped.into_iter());
        let answer = |job: &Job| match job {
            Job::Settle(_) => settled.next().map(Answer::Settled),
            Job::Claim(_) => claimed.next().map(Answer::Claimed),
            Job::Message(_) => enqueued.next().map(Answer::Enqueued),
            Job::Settlement(_) => stepped.next().map(Answer::Stepped),
        };
        Ok(jobs.iter().filter_map(answer).collect())
    }
}

/// The jobs of a batch by their kind, each kind in the order in which they came.
#[derive(Default)]
struct Kinds<'a> {
    claims: Vec<&'a Attempt>,
    settles: Vec<&'a KeySettle>,
    messages: Vec<&'a Numbered>,
    settlements: Vec<&'a Settlement>,
}

impl<'a> Kinds<'a> {
    fn of(jobs: &'a [Job]) -> Self {
        let mut kinds = Self::default();
        for job in jobs {
            match job {
                Job::Claim(attempt) => kinds.claims.push(attempt),
                Job::Settle(settle) => kinds.settles.push(settle),
                Job::Message(message) => kinds.messages.push(message),
                Job::Settlement(settlement) => kinds.settlements.push(settlement),
            }
        }
        kinds
    }
}

/// Messages that one caller puts in together.
impl Write<Numbered, Enqueued> for Sqlite {
    const BUSY_FOR_ALL: bool = true;

    async fn write(&self, jobs: &[Numbered], _manner: Manner) -> Result<Vec<Enqueued>, StoreError> {
        let mut writing = self.write().await?;
        let now = writing.now;
        let messages: Vec<&Numbered> = jobs.iter().collect();
        let enqueued = super::enqueue::enqueue_at(writing.connection(), &messages, now).await?;
        writing.commit().await?;
        Ok(enqueued)
    }
}

/// Reports that one caller makes together.
impl Write<Settlement, Stepped> for Sqlite {
    const BUSY_FOR_ALL: bool = true;

    async fn write(&self, jobs: &[Settlement], _manner: Manner) -> Result<Vec<Stepped>, StoreError> {
        let mut writing = self.write().await?;
        let settlements: Vec<&Settlement> = jobs.iter().collect();
        let stepped = self.settle(&mut writing, &settlements).await?;
        writing.commit().await?;
        Ok(self.reported(stepped))
    }
}
