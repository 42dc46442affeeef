//! Dead letters: listed, and changed by what a person decides.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ichido_core::lifecycle::Event;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, ErrorCode};
use uuid::Uuid;

use super::DeadLetters;
use super::messages::check_page_size;
use crate::alert::limits::LETTERS_COUNTED_MAX;
use crate::check;
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::letter::{LetterFilter, LetterRow, LetterStepped, Replaced};
use crate::message::limits::PAGE_MAX;
use crate::message::{Enqueued, Letter, LetterState, NewMessage, Note, QueueName};
use crate::placement::{apply_to_letters, storable_note};
use crate::rows;
use crate::rows::letter_row;
use crate::statement::{SqlValue, paired, shared};
use crate::transaction::Transaction;

impl DeadLetters<'_> {
    /// Letters by a filter, without their requests, the last to become one first; `after` is [`LetterRow::since`] and the id
    /// of the last one of the page before. At most [`PAGE_MAX`].
    // SPEC E3.
    pub async fn page(
        self,
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
            i64::from(limit.min(PAGE_MAX)).into(),
        ];
        let statement = match filter.queue {
            None => paired!("letter_page"),
            Some(_) => paired!("letter_page", "letter_page_queue"),
        };
        // A plan for any filter would read all letters there are.
        self.0.driver.all(statement.planned_anew(), &values).await?.iter().map(letter_row).collect()
    }

    /// The letters among these messages, open or closed, in no order.
    pub async fn find(self, ids: &[Uuid]) -> Result<Vec<LetterRow>, StoreError> {
        check_page_size(ids)?;
        self.0.driver.all(paired!("letter_find"), &[ids.into()]).await?.iter().map(letter_row).collect()
    }

    /// Dead or parked messages with their requests, the last to become so first, less those that a person is done with;
    /// [`DeadLetters::page`] filters, and leaves requests out. `after` is [`Letter::since`] and the id of the last one of the
    /// page before. At most [`PAGE_MAX`] are listed.
    // SPEC E3.
    pub async fn list(
        self,
        state: LetterState,
        queue: Option<&QueueName>,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Letter>, StoreError> {
        let (since, id) = after.unwrap_or((Timestamp::MAX, Uuid::max()));
        let limit = i64::from(limit.min(PAGE_MAX));
        let mut values = vec![state.as_str().into(), since.into(), id.into(), limit.into()];
        values.extend(queue.map(|queue| SqlValue::from(queue.as_str())));
        let statement = if queue.is_some() { shared!("letter_list_queue") } else { shared!("letter_list") };
        // A plan for any page would read all letters there are.
        let rows = self.0.driver.all(statement.planned_anew(), &values).await?;
        rows.iter()
            .map(|row| Ok(Letter { since: row.timestamp("since")?, message: rows::message_row(row)? }))
            .collect()
    }

    /// Takes letters by an operator's event each, all in one transaction and a handful of statements; answers in the order in which
    /// they were named. At most [`PAGE_MAX`]. The example is at [`crate::letter`].
    ///
    /// The event is made for the letter as it stands and the store's time. Two who name the same letter do not both get it.
    pub async fn step(
        self,
        ids: &[Uuid],
        event: impl Fn(&LetterRow, Timestamp) -> Event,
        note: &Note,
    ) -> Result<Vec<LetterStepped>, StoreError> {
        check_page_size(ids)?;
        let note = storable_note(note.clone());
        // One that is named twice is one letter: taken twice, it would be counted and told of twice.
        let once: BTreeSet<Uuid> = ids.iter().copied().collect();
        let once: Vec<Uuid> = once.into_iter().collect();
        let work = async |transaction: &mut Transaction<'_>| {
            let (found, now) = transaction.letters(&once).await?;
            let (mut changes, answers) = apply_to_letters(&found, &event, &note, now);
            transaction.move_letters(&mut changes).await?;
            Ok(Some((answers, changes.claimable())))
        };
        let (stepped, claimable) = self.0.driver.transact(work).await?.unwrap_or_default();
        for queue in &claimable {
            self.0.driver.note_requeued(queue);
            self.0.queues().wake(queue);
        }
        let stepped: HashMap<Uuid, LetterStepped> = stepped.into_iter().collect();
        Ok(ids.iter().map(|id| stepped.get(id).copied().unwrap_or(LetterStepped::NoLetter)).collect())
    }

    /// Puts a message in that was made from a dead one, and closes that one, in one transaction. Each points to the other: the
    /// new one by [`NewMessage::made_from`], which is set here, the old one by the receipt of an entry `replaced`. Refused while the
    /// old one's effect is unknown, or when something was made from it before.
    // SPEC D17.
    pub async fn replace(self, old: Uuid, new: NewMessage, note: &Note) -> Result<Replaced, StoreError> {
        let new = NewMessage { made_from: Some(old), ..new }.checked()?;
        let id = Uuid::now_v7();
        let note = storable_note(Note { receipt: Some(id.to_string()), ..note.clone() });
        let numbered = (id, new);
        let mut not_replaced = Replaced::NoLetter;
        let work = async |transaction: &mut Transaction<'_>| {
            let (found, now) = transaction.letter(old).await?;
            let Some(letter) = found.first() else { return Ok(None) };
            let (mut changes, answers) = apply_to_letters(&found, |_, _| Event::Replaced, &note, now);
            if let Some((_, LetterStepped::Refused(why))) = answers.first() {
                not_replaced = Replaced::Refused(*why);
                return Ok(None);
            }
            match transaction.enqueue_content(&numbered).await? {
                Enqueued::New { id } => {
                    transaction.move_letters(&mut changes).await?;
                    Ok(Some(Replaced::By { id, effect: letter.effect }))
                }
                Enqueued::Same { id } | Enqueued::Different { id } | Enqueued::SameContent { id } => {
                    not_replaced = Replaced::KeyUsed { id };
                    Ok(None)
                }
            }
        };
        let Some(replaced) = self.0.driver.transact(work).await? else { return Ok(not_replaced) };
        self.0.queues().wake(&numbered.1.queue);
        Ok(replaced)
    }

    /// How many messages of each of these queues died from `since` to before `until`, and are dead still, whether or not a person is
    /// done with them. At most
    /// [`LETTERS_COUNTED_MAX`](crate::alert::limits::LETTERS_COUNTED_MAX) are counted of each kind.
    pub async fn counts(
        self,
        queues: &[QueueName],
        since: Timestamp,
        until: Timestamp,
    ) -> Result<BTreeMap<String, u64>, StoreError> {
        let queues: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
        let values = [
            SqlValue::Texts(Some(&queues)),
            since.into(),
            until.into(),
            i64::from(LETTERS_COUNTED_MAX).into(),
        ];
        let rows = self.0.driver.all(paired!("letter_counts"), &values).await?;
        rows.iter()
            .map(|row| Ok((row.text("queue")?.to_owned(), row.number("count")?.unsigned_abs())))
            .collect()
    }

    /// Since when the dead or parked message of a queue that waits longest for a person is so; `None` when none waits.
    pub async fn oldest(
        self,
        state: LetterState,
        queue: &QueueName,
    ) -> Result<Option<Timestamp>, StoreError> {
        let values = [state.as_str().into(), queue.as_str().into()];
        Ok(self.0.driver.one(shared!("letter_oldest"), &values).await?.timestamp_or_none("oldest")?)
    }
}
