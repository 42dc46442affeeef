//! Letters, on SQLite: looked at by a filter, stepped many at a time, replaced.

use ichido_core::lifecycle::Event;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::step::apply;
use super::{Sqlite, Writing, json};
use crate::error::StoreError;
use crate::letter::{LetterRow, LetterStepped, Replaced};
use crate::message::{Enqueued, Note, Numbered, QueueName};
use crate::placement::{Moves, operate_letters};
use crate::rows::letter_row;

impl Sqlite {
    /// Takes letters by one kind of event, in one transaction; those that are none are not in the answer. Answers also which queues
    /// can be claimed from now.
    pub(crate) async fn letters_step(
        &self,
        ids: &[Uuid],
        event: impl Fn(&LetterRow, Timestamp) -> Event,
        note: &Note,
    ) -> Result<(Vec<(Uuid, LetterStepped)>, Vec<QueueName>), StoreError> {
        let mut writing = self.write().await?;
        let found = letters(&mut writing, ids).await?;
        let (moves, answers) = operate_letters(&found, event, note, writing.now);
        letters_move(&mut writing, &moves).await?;
        writing.commit().await?;
        Ok((answers, moves.claimable()))
    }

    /// Puts a new message in and closes the dead one that it was made from.
    pub(crate) async fn letter_replace(
        &self,
        old: Uuid,
        new: &Numbered,
        note: &Note,
    ) -> Result<Replaced, StoreError> {
        let mut writing = self.write().await?;
        let found = letters(&mut writing, &[old]).await?;
        let Some(letter) = found.first() else { return Ok(Replaced::NoLetter) };
        let (moves, answers) = operate_letters(&found, |_, _| Event::Replaced, note, writing.now);
        if let Some((_, LetterStepped::Refused(why))) = answers.first() {
            writing.rollback().await?;
            return Ok(Replaced::Refused(*why));
        }
        match self.enqueue_content(writing.connection(), new).await? {
            Enqueued::New { id } => {
                letters_move(&mut writing, &moves).await?;
                writing.commit().await?;
                Ok(Replaced::By { id, effect: letter.effect })
            }
            Enqueued::Same { id } | Enqueued::Different { id } | Enqueued::SameContent { id } => {
                writing.rollback().await?;
                Ok(Replaced::KeyUsed { id })
            }
        }
    }
}

/// The letters that there are among these.
async fn letters(writing: &mut Writing, ids: &[Uuid]) -> Result<Vec<LetterRow>, StoreError> {
    let query = sqlx::query(include_str!("sql/letter_find.sql")).bind(named(ids));
    query.fetch_all(writing.connection()).await?.iter().map(letter_row).collect()
}

async fn letters_move(writing: &mut Writing, moves: &Moves) -> Result<(), StoreError> {
    if moves.taken.is_empty() {
        return Ok(());
    }
    writing.run(include_str!("sql/letter_take.sql"), named(&moves.taken)).await?;
    apply(writing, moves).await
}

fn named(ids: &[Uuid]) -> String {
    json::text(ids.iter().map(|id| json::id(*id)))
}
