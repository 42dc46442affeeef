//! Letters, on PostgreSQL: looked at by a filter, stepped many at a time, replaced.

use ichido_core::lifecycle::Event;
use ichido_core::time::Timestamp;
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::Postgres;
use super::step::apply;
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::held::lock;
use crate::letter::{LetterRow, LetterStepped, Replaced};
use crate::message::{Enqueued, Note, Numbered, QueueName};
use crate::placement::{Moves, operate_letters};
use crate::rows::letter_row;

/// How often a letter that is being changed is looked for.
const LOOKS_MAX: usize = 8;

impl Postgres {
    /// Takes letters by one kind of event, in one transaction; those that are none are not in the answer. Answers also which queues
    /// can be claimed from now.
    pub(crate) async fn letters_step(
        &self,
        ids: &[Uuid],
        event: impl Fn(&LetterRow, Timestamp) -> Event,
        note: &Note,
    ) -> Result<(Vec<(Uuid, LetterStepped)>, Vec<QueueName>), StoreError> {
        self.calls
            .talk(async |connection| {
                let mut transaction = connection.begin().await?;
                let (found, now) = self.letters_lock(&mut transaction, ids).await?;
                let (moves, answers) = operate_letters(&found, &event, note, now);
                self.letters_move(&mut transaction, &moves).await?;
                transaction.commit().await?;
                Ok((answers, self.woken_by(&moves)))
            })
            .await
    }

    /// Puts a new message in and closes the dead one that it was made from.
    pub(crate) async fn letter_replace(
        &self,
        old: Uuid,
        new: &Numbered,
        note: &Note,
    ) -> Result<Replaced, StoreError> {
        self.calls
            .talk(async |connection| {
                let mut transaction = connection.begin().await?;
                let (found, now) = self.letter_lock(&mut transaction, old).await?;
                let Some(letter) = found.first() else { return Ok(Replaced::NoLetter) };
                let (moves, answers) = operate_letters(&found, |_, _| Event::Replaced, note, now);
                if let Some((_, LetterStepped::Refused(why))) = answers.first() {
                    transaction.rollback().await?;
                    return Ok(Replaced::Refused(*why));
                }
                match self.enqueue_content(&mut transaction, new).await? {
                    Enqueued::New { id } => {
                        self.letters_move(&mut transaction, &moves).await?;
                        transaction.commit().await?;
                        Ok(Replaced::By { id, effect: letter.effect })
                    }
                    Enqueued::Same { id } | Enqueued::Different { id } | Enqueued::SameContent { id } => {
                        transaction.rollback().await?;
                        Ok(Replaced::KeyUsed { id })
                    }
                }
            })
            .await
    }

    /// A letter, nobody else's until the transaction ends. A change takes its row away and puts another there, and who waited for the
    /// first sees neither: a statement of its own, whose snapshot is newer, finds the second.
    async fn letter_lock(
        &self,
        connection: &mut PgConnection,
        id: Uuid,
    ) -> Result<(Vec<LetterRow>, Timestamp), StoreError> {
        let mut looked = self.letters_lock(connection, &[id]).await?;
        for _ in 1..LOOKS_MAX {
            if !looked.0.is_empty() {
                break;
            }
            looked = self.letters_lock(connection, &[id]).await?;
        }
        Ok(looked)
    }

    /// The letters that there are among these, nobody else's until the transaction ends; and what time it is.
    async fn letters_lock(
        &self,
        connection: &mut PgConnection,
        ids: &[Uuid],
    ) -> Result<(Vec<LetterRow>, Timestamp), StoreError> {
        let query = sqlx::query(include_str!("sql/letter_lock.sql")).bind(ids).bind(self.skew());
        let rows = query.fetch_all(connection).await?;
        let now = rows.first().map(|row| row.moment("now")).transpose()?;
        let found = rows.iter().map(letter_row).collect::<Result<_, _>>()?;
        Ok((found, now.unwrap_or(Timestamp::EPOCH)))
    }

    async fn letters_move(&self, connection: &mut PgConnection, moves: &Moves) -> Result<(), StoreError> {
        if moves.taken.is_empty() {
            return Ok(());
        }
        let query = sqlx::query(include_str!("sql/letter_take.sql")).bind(&moves.taken);
        query.execute(&mut *connection).await?;
        apply(connection, moves, self.skew()).await
    }

    fn woken_by(&self, moves: &Moves) -> Vec<QueueName> {
        let queues = moves.claimable();
        for queue in &queues {
            // What comes back is older than the mark.
            lock(&self.marks).remove(queue);
        }
        queues
    }
}
