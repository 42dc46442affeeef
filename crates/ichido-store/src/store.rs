//! The one interface over the databases.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::ledger::{self, Phase, Policy, RecordName, Resolution, resolve};
use ichido_core::lifecycle::{Event, State};
use ichido_core::time::Timestamp;
use sqlx::sqlite::{Sqlite, SqliteConnection, SqlitePool};
use sqlx::{PgConnection, Transaction};
use uuid::Uuid;

use crate::alone::{Write, write_all};
use crate::batch::{Batcher, Bounds};
use crate::driver::{Driver, on};
use crate::error::StoreError;
use crate::ledger::{
    KeyClaim, KeyClaimed, KeyOutcome, KeyRecord, KeyResolved, KeySettle, KeySettled, Response,
};
use crate::message::{
    ClaimTerms, Count, Enqueued, Letter, LetterState, MessageFilter, MessageRow, NewMessage, Note, Numbered,
    QueueName, Settlement, Stepped, Transition, Work,
};
use crate::node::{Node, SharedPace};
use crate::placement::fitting;
use crate::postgres::Postgres;
use crate::record::Attempt;
use crate::rescue::{Lapsed, RescueTerms, judge};
use crate::wake::{Topic, Wakes};

/// How often a finding about a record looks again when the record changes under its eyes.
const RESOLVE_ROUNDS_MAX: usize = 3;

/// The ledger and the outbox of one database. Cheap to clone; all clones are the same store, and it closes with the last.
///
/// Programs that show its methods together: a request at [`crate::ledger`], a worker at [`crate::message`], a worker that dies at
/// [`crate::rescue`], the upkeep at [`crate::node`]. What to do about an error: [`crate::error`].
#[derive(Clone)]
pub struct Store {
    driver: Arc<Driver>,
    skew: Arc<AtomicI64>,
    claims: Arc<Batcher<Attempt, KeyClaimed>>,
    settles: Arc<Batcher<KeySettle, KeySettled>>,
    messages: Arc<Batcher<Numbered, Enqueued>>,
    settlements: Arc<Batcher<Settlement, Stepped>>,
    wakes: Arc<Wakes>,
}

impl Store {
    /// Opens a database by its address, `sqlite:path` or `postgres://…`, and brings its schema up to date. A file that is not there
    /// is made; a database in memory is refused, because it forgets what it acknowledged.
    ///
    /// Must be called within a tokio runtime, which the store's own tasks then run on.
    ///
    /// - **SQLite**: the path is taken as it is written, without parameters and without `%` escapes, and its folder must be there.
    ///   `connections_max` bounds the readers; there is one writer.
    /// - **PostgreSQL**: 14 or later. The first start must be allowed to create the schema `ichido`. `connections_max` should be at
    ///   least 1; one more connection listens for other nodes. TLS is not built in: `sslmode=require` is an error, and without an
    ///   `sslmode` all travels in the clear. A server that does not answer is given up on after 5 seconds.
    ///
    /// ```
    /// use ichido_store::Store;
    /// use ichido_store::error::StoreError;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let file = ichido_store::testing::sqlite::fresh_file();
    /// # let path = file.path();
    /// let store = Store::open(&format!("sqlite:{}", path.display()), 4).await?;
    /// # drop(store);
    /// let refused = Store::open("mysql://root@localhost/shop", 4).await;
    /// assert!(matches!(refused, Err(StoreError::Address(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open(url: &str, connections_max: u32) -> Result<Self, StoreError> {
        let skew = Arc::new(AtomicI64::new(0));
        let driver = Arc::new(Driver::open(url, connections_max, Arc::clone(&skew)).await?);
        let bounds = Bounds::DEFAULT;
        let wakes = Arc::new(driver.wakes().await);
        Ok(Self {
            claims: Arc::new(Batcher::start(bounds, Arc::new(Claims(Arc::clone(&driver))))),
            settles: Arc::new(Batcher::start(bounds, Arc::new(Settles(Arc::clone(&driver))))),
            messages: Arc::new(Batcher::start(bounds, Arc::new(Messages(Arc::clone(&driver))))),
            settlements: Arc::new(Batcher::start(bounds, Arc::new(Settlements(Arc::clone(&driver))))),
            driver,
            skew,
            wakes,
        })
    }

    /// Moves the store's clock ahead of the database's. For tests: leases, backoffs and expiries pass without sleeping.
    pub fn skew_by(&self, ahead: Duration) {
        let micros = i64::try_from(ahead.as_micros()).unwrap_or(i64::MAX);
        self.skew.fetch_add(micros, Ordering::Relaxed);
    }

    /// How far the store's clock was moved. Whoever measures a lease by a clock of its own adds it.
    pub fn skewed_by(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.skew.load(Ordering::Relaxed)).unwrap_or(0))
    }

    /// Whether the database is an SQLite file; else it is PostgreSQL.
    pub fn is_sqlite(&self) -> bool {
        matches!(&*self.driver, Driver::Sqlite(_))
    }

    /// Claims a key for a request, or says what stands in its way. The example is at [`crate::ledger`].
    ///
    /// Whoever is told to run it must settle it, and renew it ([`Store::key_renew`]) before the policy's lease is over.
    pub async fn key_claim(&self, claim: KeyClaim) -> Result<KeyClaimed, StoreError> {
        claim.check()?;
        let bytes = claim.name.operation.len()
            + claim.name.identity.len()
            + claim.hops.as_ref().map_or(0, String::len)
            + 400;
        self.claims.submit(Attempt { claim, claim_id: Uuid::now_v7() }, bytes).await
    }

    /// Reports what came of a claim; the example is at [`crate::ledger`].
    ///
    /// It is heard for as long as nobody else took the key over, even after its lease, and after the outcome was marked unknown.
    /// `ichido_core::ledger::settle` decides what to report, `resolve` in the case of an unknown outcome: neither is asked here.
    pub async fn key_settle(&self, settle: KeySettle) -> Result<KeySettled, StoreError> {
        let bytes = match &settle.outcome {
            KeyOutcome::Keep { response, .. } => response.body.as_ref().map_or(0, Vec::len) + 1_000,
            KeyOutcome::Release | KeyOutcome::Hold => 100,
        };
        let topic = Topic::key(&settle.name);
        let settled = self.settles.submit(settle, bytes).await?;
        if settled == KeySettled::Stands {
            self.wakes.wake(topic);
        }
        Ok(settled)
    }

    /// Settles a claim within the caller's open PostgreSQL transaction: its writes and the outcome commit together, or not at all.
    /// Unless the answer is that it stands, roll back. Call [`Store::key_wake`] after the commit.
    pub async fn key_settle_in_postgres(
        &self,
        connection: &mut PgConnection,
        settle: &KeySettle,
    ) -> Result<KeySettled, StoreError> {
        self.postgres()?.settle_in(connection, settle).await
    }

    /// The same within the caller's open SQLite transaction, begun by [`Store::begin_immediate`].
    pub async fn key_settle_in_sqlite(
        &self,
        connection: &mut SqliteConnection,
        settle: &KeySettle,
    ) -> Result<KeySettled, StoreError> {
        self.sqlite()?.settle_in(connection, settle).await
    }

    /// Wakes those who wait for a key: to be called after the commit of a transaction that settled it.
    pub fn key_wake(&self, name: &RecordName, fence: Fence) {
        if let Driver::Sqlite(sqlite) = &*self.driver {
            sqlite.settled(fence);
        }
        self.wakes.wake(Topic::key(name));
    }

    /// Waits until a claimed key is settled, at most so long; answers whether something happened. A hint that makes the next look
    /// sooner: on SQLite it comes from this process only. It does not end with the lease: wait no longer than `lease_until`, and claim
    /// again whatever the answer.
    pub async fn key_wait(&self, name: &RecordName, at_most: Duration) -> bool {
        let settled = async || match self.key_look_up(name).await {
            Ok(Some(found)) => !matches!(found.record.phase, Phase::Claimed { .. }),
            Ok(None) => true,
            // Whoever looks again is told.
            Err(_) => false,
        };
        self.wakes.wait(&Topic::key(name), at_most, settled).await
    }

    /// Prolongs claims by so much from now; answers which of them still stand, in the order they were given.
    pub async fn key_renew(&self, claims: &[(RecordName, Fence, Duration)]) -> Result<Vec<bool>, StoreError> {
        on!(&*self.driver, driver => driver.key_renew(claims).await)
    }

    /// What is stored under a key; an expired record is there until it is swept.
    pub async fn key_look_up(&self, name: &RecordName) -> Result<Option<KeyRecord>, StoreError> {
        Ok(on!(&*self.driver, driver => driver.key_find(name).await)?.map(|(record, _)| record))
    }

    /// Records of unknown outcome, oldest first (SPEC F2); `after` is when the last one of the page before was first claimed, and the
    /// hash of its name.
    pub async fn key_unknown_list(
        &self,
        after: Option<(Timestamp, [u8; 32])>,
        limit: u32,
    ) -> Result<Vec<KeyRecord>, StoreError> {
        on!(&*self.driver, driver => driver.key_unknown(after, limit).await)
    }

    /// Settles an action of unknown outcome by what a reconcile call or a person found out (SPEC F2). The response is what its
    /// requests get from now on; without one they are told that it was done and its response not kept.
    pub async fn key_resolve(
        &self,
        name: &RecordName,
        resolution: Resolution,
        response: Option<Response>,
        policy: &Policy,
    ) -> Result<KeyResolved, StoreError> {
        for _ in 0..RESOLVE_ROUNDS_MAX {
            let Some((found, now)) = on!(&*self.driver, driver => driver.key_find(name).await)? else {
                return Ok(KeyResolved::Missing);
            };
            let settlement = match resolve(&found.record, resolution, policy, now) {
                Ok(settlement) => settlement,
                Err(error) => return Ok(KeyResolved::Refused(error)),
            };
            let outcome = resolved_outcome(settlement, resolution, response.clone(), policy);
            let settle = KeySettle { name: name.clone(), fence: found.record.fence, outcome };
            // Not ours to settle: its owner reported late, or somebody took it over. The next look sees it.
            if self.key_settle(settle).await? == KeySettled::Stands {
                return Ok(KeyResolved::Stands);
            }
        }
        Err(StoreError::Busy)
    }

    /// Looks at `limit` expired keys at most and forgets them, less those that a living message still uses (SPEC A5); answers how
    /// many were forgotten. Fewer than `limit` may still mean that there is more.
    pub async fn key_sweep(&self, limit: u32) -> Result<u64, StoreError> {
        on!(&*self.driver, driver => driver.key_sweep(limit).await)
    }

    /// Puts a message in; when this answers, it is durable. Those who wait for its queue are woken. The example is at
    /// [`crate::message`].
    ///
    /// To put it in together with your own rows, see [`Store::message_enqueue_in_postgres`] and
    /// [`Store::message_enqueue_in_sqlite`].
    pub async fn message_enqueue(&self, message: NewMessage) -> Result<Enqueued, StoreError> {
        message.check()?;
        let claimable = message.delay.is_zero().then(|| message.queue.clone());
        let enqueued = if message.same_content.is_some() {
            let numbered = (Uuid::now_v7(), message);
            on!(&*self.driver, driver => driver.enqueue_same_content(numbered).await)?
        } else {
            let bytes = message.request.len() + 500;
            self.messages.submit((Uuid::now_v7(), message), bytes).await?
        };
        if let (Some(queue), Enqueued::New { .. }) = (claimable, enqueued) {
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
            answers.push(match message.check() {
                Err(error) => Some(Err(error)),
                Ok(()) if message.same_content.is_some() => Some(self.message_enqueue(message).await),
                Ok(()) => {
                    plain.push((Uuid::now_v7(), message));
                    None
                }
            });
        }
        let writer = Messages(Arc::clone(&self.driver));
        let queues: BTreeSet<&QueueName> =
            plain.iter().filter(|(_, new)| new.delay.is_zero()).map(|(_, new)| &new.queue).collect();
        let mut written = Vec::with_capacity(plain.len());
        for part in Bounds::DEFAULT.parts(&plain, |(_, message)| message.request.len()) {
            written.extend(write_all(&writer, part).await);
        }
        for queue in queues {
            self.queue_wake(queue);
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
        message.check()?;
        self.postgres()?.enqueue_content(connection, &(Uuid::now_v7(), message)).await
    }

    /// The same as [`Store::message_enqueue_in_postgres`] for many messages, answered in the order they were given; all that are
    /// new are put in or none is. None is compared by content: `same_content` is not looked at.
    pub async fn messages_enqueue_in_postgres(
        &self,
        connection: &mut PgConnection,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Enqueued>, StoreError> {
        self.postgres()?.enqueue_in(connection, &numbered(messages)?).await
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
        message.check()?;
        self.sqlite()?.enqueue_content(connection, &(Uuid::now_v7(), message)).await
    }

    /// The same as [`Store::message_enqueue_in_sqlite`] for many messages, answered in the order they were given; all that are
    /// new are put in or none is. None is compared by content: `same_content` is not looked at.
    pub async fn messages_enqueue_in_sqlite(
        &self,
        connection: &mut SqliteConnection,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Enqueued>, StoreError> {
        self.sqlite()?.enqueue_in(connection, &numbered(messages)?).await
    }

    /// Begins a transaction on the caller's own pool that may read and then write. SQLite's plain `BEGIN` takes its lock with the
    /// first write, and fails at once, however long it may wait, when somebody else wrote since its first read.
    pub async fn begin_immediate(pool: &SqlitePool) -> Result<Transaction<'static, Sqlite>, StoreError> {
        crate::sqlite::begin_immediate(pool).await
    }

    /// Wakes those who wait for work of a queue: to be called after the commit of a transaction that put messages in. On PostgreSQL
    /// other nodes hear it too.
    pub fn queue_wake(&self, queue: &QueueName) {
        self.wakes.wake(Topic::queue(queue));
    }

    /// Waits until a queue gets work, at most so long; answers whether it was woken. A hint that makes the next claim sooner: on
    /// SQLite it comes from this process only, and what another one puts in is found by claiming now and then.
    ///
    /// One wake-up is remembered while nobody waits, so that what comes between a claim and this call is not missed.
    pub async fn queue_wait(&self, queue: &QueueName, at_most: Duration) -> bool {
        self.wakes.wait(&Topic::queue(queue), at_most, async || false).await
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
        on!(&*self.driver, driver => driver.claim(queue, count, terms).await)
    }

    /// Marks that these calls are about to begin; answers which of them may. For claims with [`ClaimTerms::marks`]; the example is
    /// at [`crate::rescue`].
    pub async fn work_begin(&self, calls: &[(Uuid, Fence)]) -> Result<Vec<bool>, StoreError> {
        on!(&*self.driver, driver => driver.begin(calls).await)
    }

    /// Reports what came of a message; the example is at [`crate::message`].
    ///
    /// A report that comes after the claim was lost is refused, unless it is a success: that one is kept as proof, and the message
    /// is sent. The same success reported twice stands twice.
    pub async fn work_settle(&self, settlement: Settlement) -> Result<Stepped, StoreError> {
        let settlement = Settlement { note: fitting(settlement.note), ..settlement };
        let bytes = settlement.note.excerpt.as_ref().map_or(0, String::len) + 300;
        let queue = settlement.queue.clone();
        let stepped = self.settlements.submit(settlement, bytes).await?;
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
        let writer = Settlements(Arc::clone(&self.driver));
        let mut stepped = Vec::with_capacity(settlements.len());
        let bytes_of =
            |settlement: &Settlement| settlement.note.excerpt.as_ref().map_or(0, String::len) + 300;
        for part in Bounds::DEFAULT.parts(&settlements, bytes_of) {
            stepped.extend(write_all(&writer, part).await);
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
        on!(&*self.driver, driver => driver.renew(fences, lease).await)
    }

    /// Rescues the messages of one lapsed claim; answers how many, or `None` when no claim has lapsed. Call it again until it does;
    /// the example is at [`crate::rescue`].
    pub async fn work_rescue(
        &self,
        terms: impl Fn(&QueueName) -> RescueTerms + Send + Sync,
    ) -> Result<Option<usize>, StoreError> {
        let queue = OnceLock::new();
        let judge = |lapsed: &Lapsed| {
            queue.get_or_init(|| lapsed.queue.clone());
            judge(lapsed, &terms(&lapsed.queue))
        };
        let rescued = on!(&*self.driver, driver => driver.rescue(&judge).await)?;
        if let (Some(1..), Some(queue)) = (rescued, queue.get()) {
            self.queue_wake(queue);
        }
        Ok(rescued)
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

    /// One message.
    pub async fn message_get(&self, id: Uuid) -> Result<Option<MessageRow>, StoreError> {
        on!(&*self.driver, driver => driver.message(id).await)
    }

    /// Messages, newest first, whole requests included; at most [`limits::PAGE_MAX`](crate::message::limits::PAGE_MAX), whatever
    /// `limit` says. The next page is had by [`MessageFilter::after`].
    pub async fn message_list(
        &self,
        filter: &MessageFilter,
        limit: u32,
    ) -> Result<Vec<MessageRow>, StoreError> {
        on!(&*self.driver, driver => driver.messages(filter, limit).await)
    }

    /// Every transition of a message, in order.
    pub async fn message_transitions(&self, id: Uuid) -> Result<Vec<Transition>, StoreError> {
        on!(&*self.driver, driver => driver.transitions(id).await)
    }

    /// How many messages of each queue are in each state.
    pub async fn queue_counts(&self) -> Result<Vec<Count>, StoreError> {
        on!(&*self.driver, driver => driver.counts().await)
    }

    /// Stops (`paused`) or resumes the claiming of a queue, on all nodes. What is claimed goes on; messages are still taken in.
    pub async fn queue_pause(
        &self,
        queue: &QueueName,
        paused: bool,
        by: Option<&str>,
    ) -> Result<(), StoreError> {
        on!(&*self.driver, driver => driver.pause(queue, paused, by).await)?;
        if !paused {
            self.queue_wake(queue);
        }
        Ok(())
    }

    /// Dead or parked messages, the last to become so first (SPEC E3); `after` is [`Letter::since`] and the id of the last one of the
    /// page before. At most [`limits::PAGE_MAX`](crate::message::limits::PAGE_MAX) are listed.
    pub async fn letter_list(
        &self,
        state: LetterState,
        queue: Option<&QueueName>,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Letter>, StoreError> {
        on!(&*self.driver, driver => driver.letters(state, queue, after, limit).await)
    }

    /// Forgets at most `limit` messages that were sent or cancelled before a moment, with their history; answers how many. Dead and
    /// parked ones are kept (SPEC E3). The key of a message that is forgotten is new again.
    pub async fn message_forget(&self, finished_before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        on!(&*self.driver, driver => driver.forget(finished_before, limit).await)
    }

    /// Folds at most `limit` changes of counts into the counts; answers how many. The counts stay what they are, and are read
    /// quicker. On SQLite there is nothing to fold.
    pub async fn queue_counts_fold(&self, limit: u32) -> Result<u64, StoreError> {
        on!(&*self.driver, driver => driver.fold_counts(limit).await)
    }

    /// A destination's pace; `None` when nobody has written one.
    pub async fn pace_read(&self, destination: &str) -> Result<Option<SharedPace>, StoreError> {
        on!(&*self.driver, driver => driver.pace_read(destination).await)
    }

    /// Writes a destination's pace over the version that was read; `false` when somebody else was quicker.
    pub async fn pace_write(&self, destination: &str, version: i64, pace: &[u8]) -> Result<bool, StoreError> {
        on!(&*self.driver, driver => driver.pace_write(destination, version, pace).await)
    }

    /// Says that a node lives.
    pub async fn node_beat(&self, node: Uuid, name: &str) -> Result<(), StoreError> {
        on!(&*self.driver, driver => driver.beat(node, name).await)
    }

    /// All nodes ever heard of, the last heard of first. None is ever forgotten; [`Node::seen_at`] tells which still live.
    pub async fn node_list(&self) -> Result<Vec<Node>, StoreError> {
        on!(&*self.driver, driver => driver.nodes().await)
    }

    /// Asks for the upkeep, or to keep it: `true` for one node at a time, until its lease lapses.
    pub async fn caretaker_claim(&self, node: Uuid, lease: Duration) -> Result<bool, StoreError> {
        on!(&*self.driver, driver => driver.take_care(node, lease).await)
    }

    /// The pool of SQLite's one writer, to ask how it is set up.
    #[cfg(feature = "testing")]
    pub fn sqlite_writer(&self) -> Option<&SqlitePool> {
        self.sqlite().ok().map(crate::sqlite::Sqlite::writer)
    }

    /// PostgreSQL's connections, to ask how they are set up.
    #[cfg(feature = "testing")]
    pub fn postgres_pool(&self) -> Option<&sqlx::PgPool> {
        self.postgres().ok().map(Postgres::pool)
    }

    fn postgres(&self) -> Result<&Postgres, StoreError> {
        match &*self.driver {
            Driver::Postgres(postgres) => Ok(postgres),
            Driver::Sqlite(_) => {
                Err(StoreError::Address("this store is on SQLite: give it an SQLite transaction"))
            }
        }
    }

    fn sqlite(&self) -> Result<&crate::sqlite::Sqlite, StoreError> {
        match &*self.driver {
            Driver::Sqlite(sqlite) => Ok(sqlite),
            Driver::Postgres(_) => {
                Err(StoreError::Address("this store is on PostgreSQL: give it a PostgreSQL transaction"))
            }
        }
    }
}

fn resolved_outcome(
    settlement: ledger::Settlement,
    resolution: Resolution,
    response: Option<Response>,
    policy: &Policy,
) -> KeyOutcome {
    /// What is told of an action whose response nobody has.
    const APPLIED_STATUS: u16 = 200;
    const REFUSED_STATUS: u16 = 400;
    let status = if resolution == Resolution::Refused { REFUSED_STATUS } else { APPLIED_STATUS };
    let response = response.unwrap_or(Response { status, headers: Vec::new(), body: None });
    match settlement {
        ledger::Settlement::Keep { outcome: settled, .. } => {
            KeyOutcome::Keep { settled, response, result_digest: None, message_id: None, ttl: policy.ttl() }
        }
        ledger::Settlement::Release => KeyOutcome::Release,
        ledger::Settlement::Hold => KeyOutcome::Hold,
    }
}

fn numbered(messages: Vec<NewMessage>) -> Result<Vec<Numbered>, StoreError> {
    let number = |message: NewMessage| message.check().map(|()| (Uuid::now_v7(), message));
    messages.into_iter().map(number).collect()
}

struct Claims(Arc<Driver>);

impl Write<Attempt, KeyClaimed> for Claims {
    async fn write(&self, jobs: &[Attempt], _again: bool) -> Result<Vec<KeyClaimed>, StoreError> {
        on!(&*self.0, driver => driver.key_claim(jobs).await)
    }

    fn busy_for_all(&self) -> bool {
        self.0.busy_for_all()
    }
}

struct Settles(Arc<Driver>);

impl Write<KeySettle, KeySettled> for Settles {
    async fn write(&self, jobs: &[KeySettle], again: bool) -> Result<Vec<KeySettled>, StoreError> {
        on!(&*self.0, driver => driver.key_settle(jobs, again).await)
    }

    fn busy_for_all(&self) -> bool {
        self.0.busy_for_all()
    }
}

struct Messages(Arc<Driver>);

impl Write<Numbered, Enqueued> for Messages {
    async fn write(&self, jobs: &[Numbered], _again: bool) -> Result<Vec<Enqueued>, StoreError> {
        on!(&*self.0, driver => driver.enqueue(jobs).await)
    }

    fn busy_for_all(&self) -> bool {
        self.0.busy_for_all()
    }
}

struct Settlements(Arc<Driver>);

impl Write<Settlement, Stepped> for Settlements {
    async fn write(&self, jobs: &[Settlement], _again: bool) -> Result<Vec<Stepped>, StoreError> {
        on!(&*self.0, driver => driver.settle(jobs).await)
    }

    fn busy_for_all(&self) -> bool {
        self.0.busy_for_all()
    }
}
