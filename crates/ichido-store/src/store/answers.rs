//! What models answered.

use std::time::Duration;

use uuid::Uuid;

use super::Store;
use crate::answer::limits::{ANSWER_BYTES_MAX, FIND_MAX, TOPIC_BYTES_MAX};
use crate::answer::{Answer, Asking, Question, QuestionId};
use crate::check;
use crate::driver::{on, read};
use crate::error::StoreError;
use crate::node::DUTY_LEASE_MAX;

impl Store {
    /// What is known of these questions, in no order; of those that were never asked, nothing. At most
    /// [`FIND_MAX`](crate::answer::limits::FIND_MAX) at once.
    pub async fn answer_find(&self, ids: &[QuestionId]) -> Result<Vec<Question>, StoreError> {
        check::bytes("the list of questions", ids.len(), FIND_MAX)?;
        read(|| async { on!(&*self.driver, driver => driver.answer_find(ids).await) }).await
    }

    /// A call is about to be made for a question, by the run `holder`. The example is at [`crate::answer`].
    ///
    /// Whoever gets it makes one call, and then says what came of it: [`Store::answer_keep`] or [`Store::answer_fail`]. Until then it
    /// is [renewed](Store::answer_renew).
    pub async fn answer_ask(
        &self,
        id: QuestionId,
        topic: &str,
        holder: Uuid,
        lease: Duration,
    ) -> Result<Asking, StoreError> {
        check::name("the name of a topic", topic, TOPIC_BYTES_MAX)?;
        // A question that is forgotten between the two looks is asked for once more.
        for _ in 0..2 {
            let asked = on!(&*self.driver, driver => driver.answer_ask(id, topic, holder, lease.min(DUTY_LEASE_MAX)).await)?;
            if let Some(lost) = asked {
                return Ok(Asking::Ours { lost });
            }
            match self.answer_find(&[id]).await?.pop() {
                Some(Question { answer: Some(answer), .. }) => return Ok(Asking::Answered(answer)),
                Some(Question { held_until: Some(until), .. }) => return Ok(Asking::Theirs { until }),
                Some(Question { answer: None, held_until: None, .. }) | None => {}
            }
        }
        Err(StoreError::Busy)
    }

    /// Keeps the answer of a question that was asked for, and hands back the one that stands: the first. `None` is that the question
    /// was forgotten meanwhile.
    pub async fn answer_keep(&self, id: QuestionId, answer: &[u8]) -> Result<Option<Answer>, StoreError> {
        check::bytes("an answer", answer.len(), ANSWER_BYTES_MAX)?;
        on!(&*self.driver, driver => driver.answer_keep(id, answer).await)?;
        Ok(self.answer_find(&[id]).await?.pop().and_then(|question| question.answer))
    }

    /// No answer came of a call; `lost` says that nobody knows whether it was made all the same.
    pub async fn answer_fail(&self, id: QuestionId, holder: Uuid, lost: bool) -> Result<(), StoreError> {
        on!(&*self.driver, driver => driver.answer_fail(id, holder, lost).await)
    }

    /// The run `holder` lives: what it has is its own for this long from now.
    pub async fn answer_renew(&self, holder: Uuid, lease: Duration) -> Result<(), StoreError> {
        on!(&*self.driver, driver => driver.answer_renew(holder, lease.min(DUTY_LEASE_MAX)).await)
    }

    /// Forgets the answers of a topic, and with them which calls were lost; at most so many, and not what a run is asking now. Answers
    /// how many.
    pub async fn answer_forget(&self, topic: &str, limit: u32) -> Result<u64, StoreError> {
        check::name("the name of a topic", topic, TOPIC_BYTES_MAX)?;
        on!(&*self.driver, driver => driver.answer_forget(topic, limit).await)
    }
}
