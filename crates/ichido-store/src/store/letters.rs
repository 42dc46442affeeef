//! Letters: looked at, and taken by what a person decides.

use std::collections::{BTreeSet, HashMap};

use ichido_core::lifecycle::{Event, Stage};
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, ErrorCode};
use uuid::Uuid;

use super::Store;
use crate::check;
use crate::error::StoreError;
use crate::letter::{LetterFilter, LetterRow, LetterStepped, Replaced};
use crate::message::{Enqueued, NewMessage, Note, QueueName, limits};
use crate::placement::{fitting, operate_letters};
use crate::rows::{letter_row, stage_row};
use crate::statement::paired;
use crate::transaction::Transaction;

impl Store {
    /// Letters by a filter, without their requests, the last to become one first (SPEC E3); `after` is [`LetterRow::since`] and the id
    /// of the last one of the page before. At most [`limits::PAGE_MAX`].
    pub async fn letter_page(
        &self,
        filter: &LetterFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> Result<Vec<LetterRow>, StoreError> {
        check::no_nul("the identity", filter.identity.as_deref().unwrap_or_default())?;
        check::no_nul("the text", filter.text.as_deref().unwrap_or_default())?;
        let (since, id) = filter.begin(after).unwrap_or((Timestamp::MAX, Uuid::max()));
        let values = [
            filter.state.as_str().into(),
            filter.standing.as_str().into(),
            filter.queue.as_ref().map(QueueName::as_str).into(),
            since.into(),
            id.into(),
            filter.since_from.unwrap_or(Timestamp::from_micros(i64::MIN)).into(),
            filter.code.map(ErrorCode::as_str).into(),
            filter.effect.map(Effect::as_str).into(),
            filter.identity.as_deref().into(),
            filter.text.as_deref().into(),
            i64::from(limit.min(limits::PAGE_MAX)).into(),
        ];
        let statement = match filter.queue {
            None => paired!("letter_page"),
            Some(_) => paired!("letter_page", "letter_page_queue"),
        };
        // A plan for any filter would read all letters there are.
        self.driver.all(statement.planned_anew(), &values).await?.iter().map(letter_row).collect()
    }

    /// The letters among these messages, open or closed, in no order.
    pub async fn letter_find(&self, ids: &[Uuid]) -> Result<Vec<LetterRow>, StoreError> {
        few(ids)?;
        self.driver.all(paired!("letter_find"), &[ids.into()]).await?.iter().map(letter_row).collect()
    }

    /// Takes letters by an operator's event each, all in one transaction and a handful of statements; answers in the order in which
    /// they were named. At most [`limits::PAGE_MAX`]. The example is at [`crate::letter`].
    ///
    /// The event is made for the letter as it stands and the store's time. Two who name the same letter do not both get it.
    pub async fn letters_step(
        &self,
        ids: &[Uuid],
        event: impl Fn(&LetterRow, Timestamp) -> Event,
        note: &Note,
    ) -> Result<Vec<LetterStepped>, StoreError> {
        few(ids)?;
        let note = fitting(note.clone());
        // One that is named twice is one letter: taken twice, it would be counted and told of twice.
        let once: BTreeSet<Uuid> = ids.iter().copied().collect();
        let once: Vec<Uuid> = once.into_iter().collect();
        let work = async |transaction: &mut Transaction<'_>| {
            let (found, now) = transaction.letters(&once).await?;
            let (moves, answers) = operate_letters(&found, &event, &note, now);
            transaction.move_letters(&moves).await?;
            Ok(Some((answers, moves.claimable())))
        };
        let (stepped, claimable) = self.driver.transact(work).await?.unwrap_or_default();
        for queue in &claimable {
            self.driver.came_back(queue);
            self.queue_wake(queue);
        }
        let stepped: HashMap<Uuid, LetterStepped> = stepped.into_iter().collect();
        Ok(ids.iter().map(|id| stepped.get(id).copied().unwrap_or(LetterStepped::NoLetter)).collect())
    }

    /// Puts a message in that was made from a dead one, and closes that one, in one transaction (SPEC D17). Each points to the other: the
    /// new one by [`NewMessage::made_from`], which is set here, the old one by the receipt of an entry `replaced`. Refused while the
    /// old one's effect is unknown, or when something was made from it before.
    pub async fn letter_replace(
        &self,
        old: Uuid,
        new: NewMessage,
        note: &Note,
    ) -> Result<Replaced, StoreError> {
        let new = NewMessage { made_from: Some(old), ..new }.checked()?;
        let id = Uuid::now_v7();
        let note = fitting(Note { receipt: Some(id.to_string()), ..note.clone() });
        let numbered = (id, new);
        let mut not_replaced = Replaced::NoLetter;
        let work = async |transaction: &mut Transaction<'_>| {
            let (found, now) = transaction.letter(old).await?;
            let Some(letter) = found.first() else { return Ok(None) };
            let (moves, answers) = operate_letters(&found, |_, _| Event::Replaced, &note, now);
            if let Some((_, LetterStepped::Refused(why))) = answers.first() {
                not_replaced = Replaced::Refused(*why);
                return Ok(None);
            }
            match transaction.enqueue_content(&numbered).await? {
                Enqueued::New { id } => {
                    transaction.move_letters(&moves).await?;
                    Ok(Some(Replaced::By { id, effect: letter.effect }))
                }
                Enqueued::Same { id } | Enqueued::Different { id } | Enqueued::SameContent { id } => {
                    not_replaced = Replaced::KeyUsed { id };
                    Ok(None)
                }
            }
        };
        let Some(replaced) = self.driver.transact(work).await? else { return Ok(not_replaced) };
        self.queue_wake(&numbered.1.queue);
        Ok(replaced)
    }

    /// Where messages are and how often each was tried, in no order; what is not there is left out. At most [`limits::PAGE_MAX`].
    pub async fn message_stages(&self, ids: &[Uuid]) -> Result<Vec<(Uuid, Stage, u32)>, StoreError> {
        few(ids)?;
        self.driver.all(paired!("message_stages"), &[ids.into()]).await?.iter().map(stage_row).collect()
    }
}

fn few(ids: &[Uuid]) -> Result<(), StoreError> {
    let found = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    check::number("the number of messages", found, 0..=limits::PAGE_MAX)
}
