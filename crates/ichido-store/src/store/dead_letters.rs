//! Dead letters: listing them, and applying a person's decisions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use ichido_core::clock::AGREE_WITHIN;
use ichido_core::lifecycle::{Decision, Event};
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, ErrorCode};
use uuid::Uuid;

use super::DeadLetters;
use super::messages::check_page_size;
use crate::alert::limits::MAX_LETTERS_COUNTED;
use crate::check;
use crate::columns::Columns as _;
use crate::db_timestamp::DbTimestamp;
use crate::dead_letter::limits::MAX_CLASSES;
use crate::dead_letter::{
    DeadLetterFilter, DeadLetterRow, DeadLetterStep, LetterClass, LetterClasses, ReplaceOutcome,
    RequeuePolicy,
};
use crate::error::StoreError;
use crate::future::StoreFuture;
use crate::message::limits::MAX_PAGE;
use crate::message::{DeadLetter, DeadLetterState, Enqueued, KeyConflict, NewMessage, Note, QueueName};
use crate::placement::{apply_to_letters, storable_note};
use crate::rows;
use crate::rows::{letter_class, letter_row};
use crate::statement::{SqlValue, column, paired, shared};
use crate::transaction::Transaction;

impl<'s> DeadLetters<'s> {
    /// Lists dead letters that match a filter, without their requests, newest first.
    ///
    /// `after` is [`DeadLetterRow::since`] and the id of the last one of the previous page. At most [`MAX_PAGE`].
    // SPEC E3.
    pub fn page(
        self,
        filter: &'s DeadLetterFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> StoreFuture<'s, Vec<DeadLetterRow>> {
        Box::pin(async move {
            check::no_nul("the identity", filter.identity.as_deref().unwrap_or_default())?;
            check::no_nul("the text", filter.text.as_deref().unwrap_or_default())?;
            let (since, id) = filter.begin(after).unwrap_or((Timestamp::MAX, Uuid::max()));
            let values = [
                filter.state.as_str().into(),
                filter.disposition.as_str().into(),
                filter.queue.as_ref().map(QueueName::as_str).into(),
                since.into(),
                id.into(),
                filter.since_from.unwrap_or(Timestamp::from_micros(i64::MIN)).into(),
                filter.code.map(ErrorCode::as_str).into(),
                filter.effect.map(Effect::as_str).into(),
                filter.identity.as_deref().into(),
                filter.text.as_deref().into(),
                i64::from(limit.min(MAX_PAGE)).into(),
                SqlValue::Id(filter.group),
            ];
            // SQLite plans a statement once for all values, so each index has its own.
            let statement = match (filter.group, filter.code, &filter.queue) {
                (Some(_), ..) => paired!("dead_letter_page", "dead_letter_page_group"),
                (None, Some(_), _) => paired!("dead_letter_page", "dead_letter_page_code"),
                (None, None, Some(_)) => paired!("dead_letter_page", "dead_letter_page_queue"),
                (None, None, None) => paired!("dead_letter_page"),
            };
            // A generic plan would read all letters.
            self.0.driver.all(statement.with_custom_plan(), &values).await?.iter().map(letter_row).collect()
        })
    }

    /// Counts the letters that match a filter, by what decides about them. The database counts; no letter is read into the program.
    ///
    /// `keeps_for` says how long the receiver of a queue remembers keys, for queues whose guarantee is keyed. At most `max_counted`
    /// letters are counted, any of those that match. At most [`MAX_CLASSES`].
    // SPEC E4.
    pub fn classes(
        self,
        filter: &'s DeadLetterFilter,
        keeps_for: &'s [(QueueName, Duration)],
        now: Timestamp,
        max_counted: u32,
    ) -> StoreFuture<'s, LetterClasses> {
        Box::pin(async move {
            check::no_nul("the identity", filter.identity.as_deref().unwrap_or_default())?;
            check::no_nul("the text", filter.text.as_deref().unwrap_or_default())?;
            let forgotten = |keeps_for: Duration| {
                let micros = i64::try_from(keeps_for.as_micros()).unwrap_or(i64::MAX);
                DbTimestamp(Timestamp::from_micros(now.as_micros().saturating_sub(micros)))
            };
            let columns = [
                column(keeps_for, |(queue, _)| queue.as_str()),
                column(keeps_for, |(_, keeps_for)| forgotten(*keeps_for)),
            ];
            let values = [
                filter.state.as_str().into(),
                filter.disposition.as_str().into(),
                filter.queue.as_ref().map(QueueName::as_str).into(),
                filter.since_before.unwrap_or(Timestamp::MAX).into(),
                filter.since_from.unwrap_or(Timestamp::from_micros(i64::MIN)).into(),
                filter.code.map(ErrorCode::as_str).into(),
                filter.effect.map(Effect::as_str).into(),
                filter.identity.as_deref().into(),
                filter.text.as_deref().into(),
                SqlValue::Id(filter.group),
                now.into(),
                now.plus(AGREE_WITHIN).into(),
                (i64::from(MAX_CLASSES) + 1).into(),
                SqlValue::Rows(&columns),
                (i64::from(max_counted) + 1).into(),
            ];
            let statement = paired!("dead_letter_classes").with_custom_plan();
            let rows = self.0.driver.all(statement, &values).await?;
            let found = u32::try_from(rows.len()).unwrap_or(u32::MAX);
            check::number(
                "the number of kinds of matching letters (choose a queue)",
                found,
                0..=MAX_CLASSES,
            )?;
            let classes = rows.iter().map(|row| letter_class(row, filter)).collect::<Result<Vec<_>, _>>()?;
            Ok(counted(classes, max_counted))
        })
    }

    /// Finds the dead letters among these messages, open or closed, in no order.
    pub fn find(self, ids: &'s [Uuid]) -> StoreFuture<'s, Vec<DeadLetterRow>> {
        Box::pin(async move {
            check_page_size(ids)?;
            self.0
                .driver
                .all(paired!("dead_letter_find"), &[ids.into()])
                .await?
                .iter()
                .map(letter_row)
                .collect()
        })
    }

    /// Notes that the receiver was asked about the unknown effect of these letters, and that nothing was learned.
    // SPEC F2.
    pub fn note_asked(self, ids: &'s [Uuid]) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            check_page_size(ids)?;
            self.0.driver.execute(paired!("dead_letter_asked"), &[ids.into(), SqlValue::Now]).await.map(drop)
        })
    }

    /// Lists open dead or parked messages with their requests, newest first.
    ///
    /// [`DeadLetters::page`] filters, and omits requests. `after` is [`DeadLetter::since`] and the id of the last one of the
    /// previous page. At most [`MAX_PAGE`].
    // SPEC E3.
    pub fn list(
        self,
        state: DeadLetterState,
        queue: Option<&'s QueueName>,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> StoreFuture<'s, Vec<DeadLetter>> {
        Box::pin(async move {
            let (since, id) = after.unwrap_or((Timestamp::MAX, Uuid::max()));
            let limit = i64::from(limit.min(MAX_PAGE));
            let mut values = vec![state.as_str().into(), since.into(), id.into(), limit.into()];
            values.extend(queue.map(|queue| SqlValue::from(queue.as_str())));
            let statement =
                if queue.is_some() { shared!("dead_letter_list_queue") } else { shared!("dead_letter_list") };
            // A generic plan would read all letters.
            let rows = self.0.driver.all(statement.with_custom_plan(), &values).await?;
            rows.iter()
                .map(|row| {
                    Ok(DeadLetter { since: row.timestamp("since")?, message: rows::message_row(row)? })
                })
                .collect()
        })
    }

    /// Requeues dead letters, or parked ones whose destination's guarantee covers them by now, in one transaction.
    ///
    /// `policy` gets the current letter. Returns the outcomes in the same order. At most [`MAX_PAGE`]. Of two callers that name the
    /// same letter, only one gets it. [`crate::dead_letter`] has an example.
    // SPEC D17.
    pub async fn requeue(
        self,
        ids: &[Uuid],
        policy: impl Fn(&DeadLetterRow) -> RequeuePolicy + Send + Sync,
        note: &Note,
    ) -> Result<Vec<DeadLetterStep>, StoreError> {
        self.apply(ids, &|letter, now| letter.requeued(policy(letter), now), note).await
    }

    /// Discards dead letters, in one transaction: they stay dead, and need no more attention.
    pub fn discard(self, ids: &'s [Uuid], note: &'s Note) -> StoreFuture<'s, Vec<DeadLetterStep>> {
        self.apply(ids, &|_, _| Event::Discarded, note)
    }

    /// Decides the unknown effect of letters, in one transaction. A dead one stays dead, and its effect becomes known.
    // SPEC F2.
    pub fn decide(
        self,
        ids: &'s [Uuid],
        decision: Decision,
        note: &'s Note,
    ) -> StoreFuture<'s, Vec<DeadLetterStep>> {
        Box::pin(async move { self.apply(ids, &|letter, now| letter.decided(decision, now), note).await })
    }

    /// Applies an event to each of these dead letters, in one transaction. `event` gets the current letter and the store's time.
    pub(crate) fn apply(
        self,
        ids: &'s [Uuid],
        event: &'s (dyn Fn(&DeadLetterRow, Timestamp) -> Event + Send + Sync),
        note: &'s Note,
    ) -> StoreFuture<'s, Vec<DeadLetterStep>> {
        Box::pin(async move {
            check_page_size(ids)?;
            let note = storable_note(note.clone());
            // A letter that is named twice is taken once: otherwise it would be counted and recorded twice.
            let once: BTreeSet<Uuid> = ids.iter().copied().collect();
            let once: Vec<Uuid> = once.into_iter().collect();
            let work = async |transaction: &mut Transaction<'_>| {
                let (found, now) = transaction.letters(&once).await?;
                let (mut changes, answers) = apply_to_letters(&found, event, &note, now);
                transaction.move_letters(&mut changes).await?;
                Ok(Some((answers, changes.claimable())))
            };
            let (stepped, claimable) = self.0.driver.transact(work).await?.unwrap_or_default();
            for queue in &claimable {
                self.0.driver.note_requeued(queue);
                self.0.queues().wake(queue);
            }
            let stepped: HashMap<Uuid, DeadLetterStep> = stepped.into_iter().collect();
            Ok(ids.iter().map(|id| stepped.get(id).copied().unwrap_or(DeadLetterStep::NoLetter)).collect())
        })
    }

    /// Enqueues a message that replaces a dead letter, and closes that letter, in one transaction.
    ///
    /// Each points to the other: the new one with [`NewMessage::replacement_of`], which is set here, the old one with the receipt of
    /// an entry `replaced`. It is refused while the old one's effect is unknown, or if the old one was replaced before.
    // SPEC D17.
    pub fn replace(self, old: Uuid, new: NewMessage, note: &'s Note) -> StoreFuture<'s, ReplaceOutcome> {
        Box::pin(async move {
            let new = NewMessage { replacement_of: Some(old), ..new }.checked()?;
            let id = Uuid::now_v7();
            let note = storable_note(Note { receipt: Some(id.to_string()), ..note.clone() });
            let numbered = (id, new);
            let mut not_replaced = ReplaceOutcome::NoLetter;
            let work = async |transaction: &mut Transaction<'_>| {
                let (found, now) = transaction.letter(old).await?;
                let Some(letter) = found.first() else { return Ok(None) };
                let (mut changes, answers) = apply_to_letters(&found, |_, _| Event::Replaced, &note, now);
                if let Some((_, DeadLetterStep::Refused(why))) = answers.first() {
                    not_replaced = ReplaceOutcome::Refused(*why);
                    return Ok(None);
                }
                match transaction.enqueue_content(&numbered).await? {
                    Ok(Enqueued::New { id }) => {
                        transaction.move_letters(&mut changes).await?;
                        Ok(Some(ReplaceOutcome::By { id, effect: letter.effect }))
                    }
                    Ok(Enqueued::Replay { id } | Enqueued::SameContent { id }) | Err(KeyConflict { id }) => {
                        not_replaced = ReplaceOutcome::KeyUsed { id };
                        Ok(None)
                    }
                }
            };
            let Some(replaced) = self.0.driver.transact(work).await? else { return Ok(not_replaced) };
            self.0.queues().wake(&numbered.1.queue);
            Ok(replaced)
        })
    }

    /// Counts the messages of these queues that died from `since` to before `until`. Only those still dead are counted, open or
    /// closed.
    ///
    /// At most [`MAX_LETTERS_COUNTED`](crate::alert::limits::MAX_LETTERS_COUNTED) of each kind are counted.
    pub fn counts(
        self,
        queues: &'s [QueueName],
        since: Timestamp,
        until: Timestamp,
    ) -> StoreFuture<'s, BTreeMap<String, u64>> {
        Box::pin(async move {
            let queues: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
            let values = [
                SqlValue::Texts(Some(&queues)),
                since.into(),
                until.into(),
                i64::from(MAX_LETTERS_COUNTED).into(),
            ];
            let rows = self.0.driver.all(paired!("dead_letter_counts"), &values).await?;
            rows.iter()
                .map(|row| Ok((row.text("queue")?.to_owned(), row.number("count")?.unsigned_abs())))
                .collect()
        })
    }

    /// Returns since when the oldest open letter of a queue waits for a person, or `None`.
    pub fn oldest(self, state: DeadLetterState, queue: &'s QueueName) -> StoreFuture<'s, Option<Timestamp>> {
        Box::pin(async move {
            let values = [state.as_str().into(), queue.as_str().into()];
            Ok(self
                .0
                .driver
                .one(shared!("dead_letter_oldest"), &values)
                .await?
                .timestamp_or_none("oldest")?)
        })
    }
}

/// Leaves out the letter that was counted only to know that there are more. It may be any of them.
fn counted(mut classes: Vec<LetterClass>, max_counted: u32) -> LetterClasses {
    let has_more = u64::from(max_counted) < classes.iter().map(|class| class.count).sum();
    if let Some(class) = classes.first_mut().filter(|_| has_more) {
        class.count -= 1;
    }
    classes.retain(|class| 0 < class.count);
    LetterClasses { classes, has_more }
}
