//! Stored answers of models.

use std::time::Duration;

use uuid::Uuid;

use super::Answers;
use crate::answer::limits::{MAX_ANSWER_BYTES, MAX_FIND, MAX_TOPIC_BYTES, MAX_TOPICS};
use crate::answer::{AskOutcome, Question, QuestionId, StoredAnswer, TopicCount, question};
use crate::check;
use crate::columns::{Columns as _, Row};
use crate::error::StoreError;
use crate::future::StoreFuture;
use crate::micros;
use crate::node::MAX_TASK_LEASE;
use crate::statement::{SqlValue, paired, shared};

impl<'s> Answers<'s> {
    /// Finds what is known of these questions, in no order. Questions that were never asked are omitted. At most
    /// [`MAX_FIND`](crate::answer::limits::MAX_FIND) at once.
    pub fn find(self, ids: &'s [QuestionId]) -> StoreFuture<'s, Vec<Question>> {
        Box::pin(async move {
            check::bytes("the list of questions", ids.len(), MAX_FIND)?;
            let ids: Vec<[u8; 32]> = ids.iter().map(|id| *id.as_bytes()).collect();
            self.0
                .driver
                .all(paired!("answer_find"), &[SqlValue::Hashes(&ids)])
                .await?
                .iter()
                .map(question)
                .collect()
        })
    }

    /// Claims a question for a call by the run `holder`. [`crate::answer`] has an example.
    ///
    /// The run that gets it makes one call and then reports the outcome with [`Answers::store`] or [`Answers::fail`]. Until then
    /// it [renews](Answers::renew) its lease.
    pub fn ask(
        self,
        id: QuestionId,
        topic: &'s str,
        holder: Uuid,
        lease: Duration,
    ) -> StoreFuture<'s, AskOutcome> {
        Box::pin(async move {
            check::name("the topic's name", topic, MAX_TOPIC_BYTES)?;
            let lease = micros(lease.min(MAX_TASK_LEASE)).into();
            let values =
                [hash(&id), topic.into(), holder.into(), lease, SqlValue::Now, micros(MAX_TASK_LEASE).into()];
            // A question that is deleted between the two reads is claimed once more.
            for _ in 0..2 {
                if let Some(row) = self.0.driver.write_returning(paired!("answer_ask"), &values).await? {
                    return Ok(AskOutcome::Run { lost: row.positive("lost")? });
                }
                match self.find(&[id]).await?.pop() {
                    Some(Question { answer: Some(answer), .. }) => return Ok(AskOutcome::Replay(answer)),
                    Some(Question { held_until: Some(until), .. }) => {
                        return Ok(AskOutcome::InFlight { until });
                    }
                    Some(Question { answer: None, held_until: None, .. }) | None => {}
                }
            }
            Err(StoreError::Busy)
        })
    }

    /// Stores the answer to a question. Returns the first stored answer, which wins.
    ///
    /// Returns `None` if the question was deleted meanwhile.
    pub fn store(self, id: QuestionId, answer: &'s [u8]) -> StoreFuture<'s, Option<StoredAnswer>> {
        Box::pin(async move {
            check::bytes("an answer", answer.len(), MAX_ANSWER_BYTES)?;
            self.0.driver.execute(paired!("answer_keep"), &[hash(&id), answer.into(), SqlValue::Now]).await?;
            Ok(self.find(&[id]).await?.pop().and_then(|question| question.answer))
        })
    }

    /// Reports a call without an answer. `lost` tells whether it may have been made anyway.
    pub fn fail(self, id: QuestionId, holder: Uuid, lost: bool) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            let values = [hash(&id), holder.into(), i64::from(lost).into()];
            self.0.driver.execute(shared!("answer_fail"), &values).await.map(drop)
        })
    }

    /// Renews the lease of the run `holder` on its questions.
    pub fn renew(self, holder: Uuid, lease: Duration) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            let values = [holder.into(), micros(lease.min(MAX_TASK_LEASE)).into(), SqlValue::Now];
            self.0.driver.execute(paired!("answer_renew"), &values).await.map(drop)
        })
    }

    /// Counts the stored questions and answers of each topic, at most [`MAX_TOPICS`](crate::answer::limits::MAX_TOPICS) of them,
    /// by name. It reads all of them, so it is for people.
    pub fn topics(self) -> StoreFuture<'s, Vec<TopicCount>> {
        Box::pin(async move {
            let values = [i64::from(MAX_TOPICS).into()];
            let rows = self.0.driver.all(shared!("answer_topics"), &values).await?;
            let count = |row: &Row| {
                let whole = |column| Ok::<_, StoreError>(u64::try_from(row.number(column)?).unwrap_or(0));
                let topic = row.text("topic")?.to_owned();
                Ok(TopicCount { topic, questions: whole("questions")?, answers: whole("answers")? })
            };
            rows.iter().map(count).collect()
        })
    }

    /// Deletes at most `limit` answers of a topic, with the record of lost calls. Questions in flight are kept. Returns how
    /// many.
    pub fn delete(self, topic: &'s str, limit: u32) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            check::name("the topic's name", topic, MAX_TOPIC_BYTES)?;
            let values = [topic.into(), i64::from(limit).into(), SqlValue::Now];
            self.0.driver.execute(paired!("answer_forget"), &values).await
        })
    }
}

fn hash(id: &QuestionId) -> SqlValue<'_> {
    SqlValue::from(&id.as_bytes()[..])
}
