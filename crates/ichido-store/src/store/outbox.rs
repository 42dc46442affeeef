//! Messages: put in, claimed, settled, rescued.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, State};
use ichido_core::time::Timestamp;
use sqlx::sqlite::{Sqlite, SqliteConnection, SqlitePool};
use sqlx::{PgConnection, Transaction};
use uuid::Uuid;

use super::Store;
use crate::alone::write_all;
use crate::batch::Bounds;
use crate::driver::on;
use crate::error::StoreError;
use crate::held::lock;
use crate::message::limits::LEASE_MAX;
use crate::message::{
    ClaimTerms, Enqueued, LetterState, NewMessage, Note, Numbered, QueueName, Settlement, Stepped, Work,
};
use crate::placement::fitting;
use crate::postgres::wake::Topic;
use crate::rescue::{Lapsed, RescueTerms, Rescued, judge};

impl Store {
    /// Puts a message in; when this answers, it is durable. Those who wait for its queue are woken. The example is at
    /// [`crate::message`].
    ///
    /// To put it in together with your own rows, see [`Store::message_enqueue_in_postgres`] and
    /// [`Store::message_enqueue_in_sqlite`].
    pub async fn message_enqueue(&self, message: NewMessage) -> Result<Enqueued, StoreError> {
        let message = message.checked()?;
        let (queue, is_claimable) = (message.queue.clone(), message.delay.is_zero());
        let enqueued = if message.same_content.is_some() {
            let numbered = (Uuid::now_v7(), message);
            self.noted(on!(&*self.driver, driver => driver.enqueue_same_content(numbered).await))?
        } else {
            let bytes = message.request.len() + 500;
            self.noted(self.batches.message((Uuid::now_v7(), message), bytes).await)?
        };
        self.tally.message_arrived(queue.as_str(), enqueued.is_repeated());
        if is_claimable && matches!(enqueued, Enqueued::New { .. }) {
            self.queue_wake(&queue);
        }
        Ok(enqueued)
    }

    /// Puts many messages in; each is answered on its own, in the order they were given. Quicker than one by one; not one
    /// transaction.
    pub async fn messages_enqueue(&self, messages: Vec<NewMessage>) -> Vec<Result<Enqueued, StoreError>> {
        let mut answers: Vec<Option<Result<Enqueued, StoreError>>> = Vec::with_capacity(messages.len());
        let mut plain = Vec::with_capacity(messages.len());
        for message in messages {
            answers.push(match message.checked() {
                Err(error) => Some(Err(error)),
                Ok(message) if message.same_content.is_some() => Some(self.message_enqueue(message).await),
                Ok(message) => {
                    plain.push((Uuid::now_v7(), message));
                    None
                }
            });
        }
        let queues: BTreeSet<&QueueName> =
            plain.iter().filter(|(_, new)| new.delay.is_zero()).map(|(_, new)| &new.queue).collect();
        let mut written = Vec::with_capacity(plain.len());
        for part in Bounds::DEFAULT.parts(&plain, |(_, message)| message.request.len()) {
            written.extend(on!(&*self.driver, driver => write_all(&**driver, part).await));
        }
        for queue in queues {
            self.queue_wake(queue);
        }
        for ((_, new), answer) in plain.iter().zip(&written) {
            self.room.note(self.skew.monotonic(), answer);
            if let Ok(enqueued) = answer {
                self.tally.message_arrived(new.queue.as_str(), enqueued.is_repeated());
            }
        }
        let mut written = written.into_iter();
        answers.into_iter().filter_map(|answer| answer.or_else(|| written.next())).collect()
    }

    /// Puts a message in within the caller's open PostgreSQL transaction: both commit, or neither (SPEC D4). Call
    /// [`Store::queue_wake`] after the commit.
    ///
    /// The transaction must be on the store's own database; on a connection without one, the message is put in at once. Two
    /// transactions that put in the same key wait for each other, so keep them short. A message that is out of bounds is refused
    /// before the database sees it and leaves the transaction usable; an error of the database ends it.
    ///
    /// ```
    /// use ichido_core::key::IdempotencyKey;
    /// use ichido_store::Store;
    /// use ichido_store::message::{NewMessage, QueueName};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let database = ichido_store::testing::postgres::fresh_database().await;
    /// # let url = &database.url;
    /// let store = Store::open(url, 4).await?;
    /// let pool = sqlx::PgPool::connect(url).await?; // Your own.
    /// # sqlx::query("CREATE TABLE orders (what text)").execute(&pool).await?;
    /// let queue = QueueName::parse("mail").ok_or("a name")?;
    /// let key = IdempotencyKey::parse("order-4711")?;
    ///
    /// let mut transaction = pool.begin().await?;
    /// sqlx::query("INSERT INTO orders VALUES ('apple')").execute(&mut *transaction).await?;
    /// let message = NewMessage::new(queue.clone(), "ann", key, b"thanks!".to_vec());
    /// store.message_enqueue_in_postgres(&mut transaction, message).await?;
    /// transaction.commit().await?;
    /// store.queue_wake(&queue);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn message_enqueue_in_postgres(
        &self,
        connection: &mut PgConnection,
        message: NewMessage,
    ) -> Result<Enqueued, StoreError> {
        let message = message.checked()?;
        self.postgres()?.enqueue_content(connection, &(Uuid::now_v7(), message)).await
    }

    /// The same as [`Store::message_enqueue_in_postgres`] for many messages, answered in the order they were given; all that are
    /// new are put in or none is. With any that is compared by content they go in one after another: slower, and after an error only
    /// a rollback takes back what went before.
    pub async fn messages_enqueue_in_postgres(
        &self,
        connection: &mut PgConnection,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Enqueued>, StoreError> {
        let (postgres, messages) = (self.postgres()?, numbered(messages)?);
        if !any_by_content(&messages) {
            return postgres.enqueue_in(connection, &messages).await;
        }
        let mut answers = Vec::with_capacity(messages.len());
        for message in &messages {
            answers.push(postgres.enqueue_content(connection, message).await?);
        }
        Ok(answers)
    }

    /// Puts a message in within the caller's open SQLite transaction: both commit, or neither (SPEC D4). Call
    /// [`Store::queue_wake`] after the commit.
    ///
    /// Begin that transaction by [`Store::begin_immediate`], keep it short, and await nothing else of this store inside it: while
    /// it is open nobody else writes, and a write of this store waits 5 seconds and is then [`StoreError::Busy`].
    ///
    /// ```
    /// use ichido_core::key::IdempotencyKey;
    /// use ichido_store::Store;
    /// use ichido_store::message::{NewMessage, QueueName};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let file = ichido_store::testing::sqlite::fresh_file();
    /// # let url = &file.url;
    /// let store = Store::open(url, 4).await?;
    /// let pool = sqlx::SqlitePool::connect(url).await?; // Your own, on the same file.
    /// # sqlx::query("CREATE TABLE orders (what TEXT)").execute(&pool).await?;
    /// let queue = QueueName::parse("mail").ok_or("a name")?;
    /// let key = IdempotencyKey::parse("order-4711")?;
    ///
    /// let mut transaction = Store::begin_immediate(&pool).await?;
    /// sqlx::query("INSERT INTO orders VALUES ('apple')").execute(&mut *transaction).await?;
    /// let message = NewMessage::new(queue.clone(), "ann", key, b"thanks!".to_vec());
    /// store.message_enqueue_in_sqlite(&mut transaction, message).await?;
    /// transaction.commit().await?;
    /// store.queue_wake(&queue);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn message_enqueue_in_sqlite(
        &self,
        connection: &mut SqliteConnection,
        message: NewMessage,
    ) -> Result<Enqueued, StoreError> {
        let message = message.checked()?;
        self.sqlite()?.enqueue_content(connection, &(Uuid::now_v7(), message)).await
    }

    /// The same as [`Store::message_enqueue_in_sqlite`] for many messages, answered in the order they were given; all that are
    /// new are put in or none is. With any that is compared by content they go in one after another: slower, and after an error only
    /// a rollback takes back what went before.
    pub async fn messages_enqueue_in_sqlite(
        &self,
        connection: &mut SqliteConnection,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Enqueued>, StoreError> {
        let (sqlite, messages) = (self.sqlite()?, numbered(messages)?);
        if !any_by_content(&messages) {
            return sqlite.enqueue_in(connection, &messages).await;
        }
        let mut answers = Vec::with_capacity(messages.len());
        for message in &messages {
            answers.push(sqlite.enqueue_content(connection, message).await?);
        }
        Ok(answers)
    }

    /// Begins a transaction on the caller's own pool that may read and then write. SQLite's plain `BEGIN` takes its lock with the
    /// first write, and fails at once, however long it may wait, when somebody else wrote since its first read.
    pub async fn begin_immediate(pool: &SqlitePool) -> Result<Transaction<'static, Sqlite>, StoreError> {
        crate::sqlite::begin_immediate(pool).await
    }

    /// Wakes those who wait for work of a queue: to be called after the commit of a transaction that put messages in. On PostgreSQL
    /// other nodes hear it too.
    pub fn queue_wake(&self, queue: &QueueName) {
        self.driver.woken(queue);
        self.wakes.wake(Topic::queue(queue));
    }

    /// Waits until a queue gets work, at most so long; answers whether it was woken. A hint that makes the next claim sooner: on
    /// SQLite it comes from this process only, and what another one puts in is found by claiming now and then.
    ///
    /// One wake-up is remembered while nobody waits, so that what comes between a claim and this call is not missed.
    pub async fn queue_wait(&self, queue: &QueueName, at_most: Duration) -> bool {
        let woken = self.wakes.wait(&Topic::queue(queue), at_most, async || false).await;
        if woken {
            // By another node, perhaps, of which the driver has not heard.
            self.driver.woken(queue);
        }
        woken
    }

    /// Takes up to `count` messages of a queue, most urgent and oldest first; the example is at [`crate::message`].
    ///
    /// All of one answer are one claim with one fence, so one [`Store::work_renew`] keeps them all. There may be more although fewer
    /// came: a message that was held when a worker died is claimed alone (SPEC E2). At most [`limits::CLAIM_MAX`] are taken. What is
    /// delayed or waits for its next try comes only after [`Store::work_promote`].
    ///
    /// [`limits::CLAIM_MAX`]: crate::message::limits::CLAIM_MAX
    pub async fn work_claim(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimTerms,
    ) -> Result<Vec<Work>, StoreError> {
        let terms = ClaimTerms { lease: terms.lease.min(LEASE_MAX), ..terms };
        on!(&*self.driver, driver => driver.claim(queue, count, terms, true).await)
    }

    /// The same as [`Store::work_claim`], but leaves alone the messages that were held when a worker died: for a worker that has one
    /// of them in hand already. Were there two, the next death would be charged to both (SPEC E2).
    pub async fn work_claim_unsuspected(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimTerms,
    ) -> Result<Vec<Work>, StoreError> {
        let terms = ClaimTerms { lease: terms.lease.min(LEASE_MAX), ..terms };
        on!(&*self.driver, driver => driver.claim(queue, count, terms, false).await)
    }

    /// Marks that these calls are about to begin; answers which of them may: not where the claim was lost, and not where an earlier
    /// try has meanwhile proven to have done it, which a report of any kind then settles. For claims with [`ClaimTerms::marks`]; the example is
    /// at [`crate::rescue`].
    pub async fn work_begin(&self, calls: &[(Uuid, Fence)]) -> Result<Vec<bool>, StoreError> {
        on!(&*self.driver, driver => driver.begin(calls).await)
    }

    /// Reports what came of a message; the example is at [`crate::message`].
    ///
    /// A report that comes after the claim was lost is refused, unless it is a success: that one is kept as proof, and the message
    /// is sent. Where somebody else is sending it again by then, the success is refused as well, but its proof is kept: however that
    /// try ends, the message is sent. The same success reported twice stands twice.
    pub async fn work_settle(&self, settlement: Settlement) -> Result<Stepped, StoreError> {
        let settlement = Settlement { note: fitting(settlement.note), ..settlement };
        let bytes = settlement.note.excerpt.as_ref().map_or(0, String::len) + 300;
        let queue = settlement.queue.clone();
        let stepped = self.noted(self.batches.settlement(settlement, bytes).await)?;
        if matches!(stepped, Stepped::Now(State::Queued { .. })) {
            self.queue_wake(&queue);
        }
        Ok(stepped)
    }

    /// Reports what came of many messages; each is answered on its own, in the order they were given.
    pub async fn works_settle(&self, settlements: Vec<Settlement>) -> Vec<Result<Stepped, StoreError>> {
        let settlements: Vec<Settlement> = settlements
            .into_iter()
            .map(|settlement| Settlement { note: fitting(settlement.note), ..settlement })
            .collect();
        let mut stepped = Vec::with_capacity(settlements.len());
        let bytes_of =
            |settlement: &Settlement| settlement.note.excerpt.as_ref().map_or(0, String::len) + 300;
        for part in Bounds::DEFAULT.parts(&settlements, bytes_of) {
            stepped.extend(on!(&*self.driver, driver => write_all(&**driver, part).await));
        }
        let back: BTreeSet<&QueueName> = settlements
            .iter()
            .zip(&stepped)
            .filter(|(_, stepped)| matches!(stepped, Ok(Stepped::Now(State::Queued { .. }))))
            .map(|(settlement, _)| &settlement.queue)
            .collect();
        for queue in back {
            self.queue_wake(queue);
        }
        stepped
    }

    /// Prolongs claims of messages by so much from now; answers which of them still stand, in the order they were given. Messages
    /// of one [`Store::work_claim`] share a fence: name it once.
    pub async fn work_renew(&self, fences: &[Fence], lease: Duration) -> Result<Vec<bool>, StoreError> {
        on!(&*self.driver, driver => driver.renew(fences, lease.min(LEASE_MAX)).await)
    }

    /// Rescues the messages of one lapsed claim; answers how many, or `None` when no claim has lapsed. Call it again until it does;
    /// the example is at [`crate::rescue`].
    pub async fn work_rescue(
        &self,
        terms: impl Fn(&QueueName) -> RescueTerms + Send + Sync,
    ) -> Result<Option<usize>, StoreError> {
        Ok(self.rescue(None, &terms).await?.map(|rescued| rescued.count))
    }

    /// The same as [`Store::work_rescue`] for the claims of these queues alone: for a node that knows the destinations of some
    /// queues, and must not decide about others.
    pub async fn work_rescue_of(
        &self,
        queues: &[QueueName],
        terms: impl Fn(&QueueName) -> RescueTerms + Send + Sync,
    ) -> Result<Option<Rescued>, StoreError> {
        self.rescue(Some(queues), &terms).await
    }

    async fn rescue(
        &self,
        queues: Option<&[QueueName]>,
        terms: &(dyn Fn(&QueueName) -> RescueTerms + Send + Sync),
    ) -> Result<Option<Rescued>, StoreError> {
        let seen = Mutex::new(None);
        let judge = |lapsed: &Lapsed| {
            let moves = judge(lapsed, &terms(&lapsed.queue));
            let letters = moves.letters.iter().map(|letter| (letter.moving.id, letter.place.state));
            *lock(&seen) = Some((lapsed.queue.clone(), letters.collect::<Vec<_>>()));
            moves
        };
        let count = on!(&*self.driver, driver => driver.rescue(queues, &judge).await)?;
        let (Some(count), Some((queue, letters))) =
            (count, seen.into_inner().unwrap_or_else(PoisonError::into_inner))
        else {
            return Ok(None);
        };
        if 0 < count {
            self.queue_wake(&queue);
        }
        let of = |state: LetterState| {
            letters.iter().filter(|(_, name)| *name == state.as_str()).map(|(id, _)| *id).collect()
        };
        let (dead, parked) = (of(LetterState::Dead), of(LetterState::Parked));
        Ok(Some(Rescued { queue, count, dead, parked }))
    }

    /// Makes what has come due claimable, at most `limit` messages; answers which queues got how many. Without it nothing that was
    /// delayed, and no second try, is ever claimed: call it often, on any node.
    pub async fn work_promote(&self, limit: u32) -> Result<Vec<(QueueName, u64)>, StoreError> {
        let promoted = on!(&*self.driver, driver => driver.promote(limit).await)?;
        for (queue, _) in &promoted {
            self.queue_wake(queue);
        }
        Ok(promoted)
    }

    /// Takes one message by an operator's event: requeue, cancel, decide, reconcile. The event is made for the store's time, and may
    /// be made more than once. The example is at [`crate::message`].
    ///
    /// A message that is being sent is a worker's: such an event is refused until that has ended.
    pub async fn message_step(
        &self,
        id: Uuid,
        event: impl Fn(Timestamp) -> Event,
        note: &Note,
    ) -> Result<Stepped, StoreError> {
        let note = fitting(note.clone());
        let (stepped, claimable) = on!(&*self.driver, driver => driver.step(id, event, &note).await)?;
        if let Some(queue) = claimable {
            self.queue_wake(&queue);
        }
        Ok(stepped)
    }
}

pub(super) fn numbered(messages: Vec<NewMessage>) -> Result<Vec<Numbered>, StoreError> {
    let number = |message: NewMessage| Ok((Uuid::now_v7(), message.checked()?));
    messages.into_iter().map(number).collect()
}

fn any_by_content(messages: &[Numbered]) -> bool {
    messages.iter().any(|(_, new)| new.same_content.is_some())
}
