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

/// The ledger and the outbox of one database. Cheap to clone; all clones are the same store.
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

    /// Claims a key for a request, or says what stands in its way.
    pub async fn key_claim(&self, claim: KeyClaim) -> Result<KeyClaimed, StoreError> {
        claim.check()?;
        let bytes = claim.name.operation.len()
            + claim.name.identity.len()
            + claim.hops.as_ref().map_or(0, String::len)
            + 400;
        self.claims.submit(Attempt { claim, claim_id: Uuid::now_v7() }, bytes).await
    }

    /// Reports what came of a claim.
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
    /// sooner: on SQLite it comes from this process only.
    pub async fn key_wait(&self, name: &RecordName, at_most: Duration) -> bool {
        let settled = async || match self.key_look_up(name).await {
            Ok(Some(found)) => !matches!(found.record.phase, Phase::Claimed { .. }),
            Ok(None) => true,
            // Whoever looks again is told.
            Err(_) => false,
        };
        self.wakes.wait(&Topic::key(name), at_most, settled).await
    }

    /// Prolongs claims; answers which of them still stand.
    pub async fn key_renew(&self, claims: &[(RecordName, Fence, Duration)]) -> Result<Vec<bool>, StoreError> {
        on!(&*self.driver, driver => driver.key_renew(claims).await)
    }

    /// What is stored under a key.
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

    /// Forgets expired keys, at most `limit`; answers how many.
    pub async fn key_sweep(&self, limit: u32) -> Result<u64, StoreError> {
        on!(&*self.driver, driver => driver.key_sweep(limit).await)
    }

    /// Puts a message in.
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

    /// Puts many messages in; each is answered on its own.
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
    pub async fn message_enqueue_in_postgres(
        &self,
        connection: &mut PgConnection,
        message: NewMessage,
    ) -> Result<Enqueued, StoreError> {
        message.check()?;
        self.postgres()?.enqueue_content(connection, &(Uuid::now_v7(), message)).await
    }

    /// The same for many messages; all are put in or none is. None is compared by content.
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
    /// it is open nobody else writes.
    pub async fn message_enqueue_in_sqlite(
        &self,
        connection: &mut SqliteConnection,
        message: NewMessage,
    ) -> Result<Enqueued, StoreError> {
        message.check()?;
        self.sqlite()?.enqueue_content(connection, &(Uuid::now_v7(), message)).await
    }

    /// The same for many messages; all are put in or none is. None is compared by content.
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

    /// Takes up to `count` messages of a queue, most urgent and oldest first.
    pub async fn work_claim(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimTerms,
    ) -> Result<Vec<Work>, StoreError> {
        on!(&*self.driver, driver => driver.claim(queue, count, terms).await)
    }

    /// Marks that these calls are about to begin; answers which of them may.
    pub async fn work_begin(&self, calls: &[(Uuid, Fence)]) -> Result<Vec<bool>, StoreError> {
        on!(&*self.driver, driver => driver.begin(calls).await)
    }

    /// Reports what came of a message.
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

    /// Reports what came of many messages; each is answered on its own.
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

    /// Prolongs claims of messages; answers which of them still stand.
    pub async fn work_renew(&self, fences: &[Fence], lease: Duration) -> Result<Vec<bool>, StoreError> {
        on!(&*self.driver, driver => driver.renew(fences, lease).await)
    }

    /// Rescues the messages of one lapsed claim; answers how many, or `None` when no claim has lapsed.
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

    /// Makes what has come due claimable; answers which queues got something.
    pub async fn work_promote(&self, limit: u32) -> Result<Vec<(QueueName, u64)>, StoreError> {
        let promoted = on!(&*self.driver, driver => driver.promote(limit).await)?;
        for (queue, _) in &promoted {
            self.queue_wake(queue);
        }
        Ok(promoted)
    }

    /// Takes one message by an operator's event: requeue, cancel, decide, reconcile. The event is made for the store's time.
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

    /// Messages, newest first.
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

    /// Stops or resumes the claiming of a queue.
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

    /// Dead or parked messages, newest first (SPEC E3); `after` is the last one of the page before.
    pub async fn letter_list(
        &self,
        state: LetterState,
        queue: Option<&QueueName>,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Letter>, StoreError> {
        on!(&*self.driver, driver => driver.letters(state, queue, after, limit).await)
    }

    /// Forgets at most `limit` messages that were sent or cancelled before a moment; answers how many.
    pub async fn message_forget(&self, finished_before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        on!(&*self.driver, driver => driver.forget(finished_before, limit).await)
    }

    /// Folds at most `limit` changes of counts into the counts; answers how many. The counts stay what they are.
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

    /// All nodes ever heard of, the last heard of first.
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
