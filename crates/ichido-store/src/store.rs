//! The one interface over the databases.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::ledger::RecordName;
use ichido_core::lifecycle::Event;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::alone::{Write, write_all};
use crate::batch::{Batcher, Bounds};
use crate::error::StoreError;
use crate::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeyRecord, KeySettle, KeySettled};
use crate::message::{
    ClaimTerms, Count, Enqueued, Letter, LetterState, MessageFilter, MessageRow, NewMessage, Note, QueueName,
    Settlement, Stepped, Transition, Work,
};
use crate::node::{Node, SharedPace};
use crate::placement::fitting;
use crate::postgres::Postgres;
use crate::postgres::enqueue::Numbered;
use crate::postgres::ledger::Attempt;
use crate::rescue::{RescueTerms, judge};

/// The ledger and the outbox of one database. Cheap to clone; all clones are the same store.
#[derive(Clone)]
pub struct Store {
    driver: Arc<Postgres>,
    skew: Arc<AtomicI64>,
    claims: Arc<Batcher<Attempt, KeyClaimed>>,
    settles: Arc<Batcher<KeySettle, KeySettled>>,
    messages: Arc<Batcher<Numbered, Enqueued>>,
    settlements: Arc<Batcher<Settlement, Stepped>>,
}

impl Store {
    /// Opens a database by its address and brings its schema up to date.
    pub async fn open(url: &str, connections_max: u32) -> Result<Self, StoreError> {
        let skew = Arc::new(AtomicI64::new(0));
        let driver = Arc::new(Postgres::connect(url, connections_max, Arc::clone(&skew)).await?);
        driver.migrate().await?;
        let bounds = Bounds::DEFAULT;
        // Two reports about one message must not pass each other, so these go one batch at a time.
        let in_turn = Bounds { flights: 1, ..bounds };
        Ok(Self {
            claims: Arc::new(Batcher::start(bounds, Arc::new(Claims(Arc::clone(&driver))))),
            settles: Arc::new(Batcher::start(bounds, Arc::new(Settles(Arc::clone(&driver))))),
            messages: Arc::new(Batcher::start(bounds, Arc::new(Messages(Arc::clone(&driver))))),
            settlements: Arc::new(Batcher::start(in_turn, Arc::new(Settlements(Arc::clone(&driver))))),
            driver,
            skew,
        })
    }

    /// Moves the store's clock ahead of the database's. For tests: leases, backoffs and expiries pass without sleeping.
    pub fn skew_by(&self, ahead: Duration) {
        let micros = i64::try_from(ahead.as_micros()).unwrap_or(i64::MAX);
        self.skew.fetch_add(micros, Ordering::Relaxed);
    }

    /// Claims a key for a request, or says what stands in its way.
    pub async fn key_claim(&self, claim: KeyClaim) -> Result<KeyClaimed, StoreError> {
        let bytes = claim.name.operation.len() + claim.name.identity.len() + 400;
        self.claims.submit(Attempt { claim, claim_id: Uuid::now_v7() }, bytes).await
    }

    /// Reports what came of a claim.
    pub async fn key_settle(&self, settle: KeySettle) -> Result<KeySettled, StoreError> {
        let bytes = match &settle.outcome {
            KeyOutcome::Keep { response, .. } => response.body.as_ref().map_or(0, Vec::len) + 1_000,
            KeyOutcome::Release | KeyOutcome::Hold => 100,
        };
        self.settles.submit(settle, bytes).await
    }

    /// Prolongs claims; answers which of them still stand.
    pub async fn key_renew(&self, claims: &[(RecordName, Fence, Duration)]) -> Result<Vec<bool>, StoreError> {
        self.driver.key_renew(claims).await
    }

    /// What is stored under a key.
    pub async fn key_look_up(&self, name: &RecordName) -> Result<Option<KeyRecord>, StoreError> {
        self.driver.key_look_up(name).await
    }

    /// Forgets expired keys, at most `limit`; answers how many.
    pub async fn key_sweep(&self, limit: u32) -> Result<u64, StoreError> {
        self.driver.key_sweep(limit).await
    }

    /// Puts a message in.
    pub async fn message_enqueue(&self, message: NewMessage) -> Result<Enqueued, StoreError> {
        message.check()?;
        if message.same_content.is_some() {
            return self.driver.enqueue_same_content((Uuid::now_v7(), message)).await;
        }
        let bytes = message.request.len() + 500;
        self.messages.submit((Uuid::now_v7(), message), bytes).await
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
        let mut written = Vec::with_capacity(plain.len());
        for part in Bounds::DEFAULT.parts(&plain, |(_, message)| message.request.len()) {
            written.extend(write_all(&writer, part).await);
        }
        let mut written = written.into_iter();
        answers.into_iter().filter_map(|answer| answer.or_else(|| written.next())).collect()
    }

    /// Takes up to `count` messages of a queue, most urgent and oldest first.
    pub async fn work_claim(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimTerms,
    ) -> Result<Vec<Work>, StoreError> {
        self.driver.claim(queue, count, terms).await
    }

    /// Marks that these calls are about to begin; answers which of them may.
    pub async fn work_begin(&self, calls: &[(Uuid, Fence)]) -> Result<Vec<bool>, StoreError> {
        self.driver.begin(calls).await
    }

    /// Reports what came of a message.
    pub async fn work_settle(&self, settlement: Settlement) -> Result<Stepped, StoreError> {
        let settlement = Settlement { note: fitting(settlement.note), ..settlement };
        let bytes = settlement.note.excerpt.as_ref().map_or(0, String::len) + 300;
        self.settlements.submit(settlement, bytes).await
    }

    /// Reports what came of many messages; each is answered on its own.
    pub async fn works_settle(&self, settlements: Vec<Settlement>) -> Vec<Result<Stepped, StoreError>> {
        write_all(&Settlements(Arc::clone(&self.driver)), &settlements).await
    }

    /// Prolongs claims of messages; answers which of them still stand.
    pub async fn work_renew(&self, fences: &[Fence], lease: Duration) -> Result<Vec<bool>, StoreError> {
        self.driver.renew(fences, lease).await
    }

    /// Rescues the messages of one lapsed claim; answers how many, or `None` when no claim has lapsed.
    pub async fn work_rescue(
        &self,
        terms: impl Fn(&QueueName) -> RescueTerms + Send + Sync,
    ) -> Result<Option<usize>, StoreError> {
        self.driver.rescue(&|lapsed| judge(lapsed, &terms(&lapsed.queue))).await
    }

    /// Makes what has come due claimable; answers which queues got something.
    pub async fn work_promote(&self, limit: u32) -> Result<Vec<(QueueName, u64)>, StoreError> {
        self.driver.promote(limit).await
    }

    /// Takes one message by an operator's event: requeue, cancel, decide, reconcile. The event is made for the store's time.
    pub async fn message_step(
        &self,
        id: Uuid,
        event: impl Fn(Timestamp) -> Event,
        note: &Note,
    ) -> Result<Stepped, StoreError> {
        self.driver.step(id, event, &fitting(note.clone())).await
    }

    /// One message.
    pub async fn message_get(&self, id: Uuid) -> Result<Option<MessageRow>, StoreError> {
        self.driver.message(id).await
    }

    /// Messages, newest first.
    pub async fn message_list(
        &self,
        filter: &MessageFilter,
        limit: u32,
    ) -> Result<Vec<MessageRow>, StoreError> {
        self.driver.messages(filter, limit).await
    }

    /// Every transition of a message, in order.
    pub async fn message_transitions(&self, id: Uuid) -> Result<Vec<Transition>, StoreError> {
        self.driver.transitions(id).await
    }

    /// How many messages of each queue are in each state.
    pub async fn queue_counts(&self) -> Result<Vec<Count>, StoreError> {
        self.driver.counts().await
    }

    /// Stops or resumes the claiming of a queue.
    pub async fn queue_pause(
        &self,
        queue: &QueueName,
        paused: bool,
        by: Option<&str>,
    ) -> Result<(), StoreError> {
        self.driver.pause(queue, paused, by).await
    }

    /// Dead or parked messages, newest first (SPEC E3); `after` is the last one of the page before.
    pub async fn letter_list(
        &self,
        state: LetterState,
        queue: Option<&QueueName>,
        after: Option<(Timestamp, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Letter>, StoreError> {
        self.driver.letters(state, queue, after, limit).await
    }

    /// Forgets at most `limit` messages that were sent or cancelled before a moment; answers how many.
    pub async fn message_forget(&self, finished_before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.driver.forget(finished_before, limit).await
    }

    /// Folds at most `limit` changes of counts into the counts; answers how many. The counts stay what they are.
    pub async fn queue_counts_fold(&self, limit: u32) -> Result<u64, StoreError> {
        self.driver.fold_counts(limit).await
    }

    /// A destination's pace; `None` when nobody has written one.
    pub async fn pace_read(&self, destination: &str) -> Result<Option<SharedPace>, StoreError> {
        self.driver.pace_read(destination).await
    }

    /// Writes a destination's pace over the version that was read; `false` when somebody else was quicker.
    pub async fn pace_write(&self, destination: &str, version: i64, pace: &[u8]) -> Result<bool, StoreError> {
        self.driver.pace_write(destination, version, pace).await
    }

    /// Says that a node lives.
    pub async fn node_beat(&self, node: Uuid, name: &str) -> Result<(), StoreError> {
        self.driver.beat(node, name).await
    }

    /// All nodes ever heard of, the last heard of first.
    pub async fn node_list(&self) -> Result<Vec<Node>, StoreError> {
        self.driver.nodes().await
    }

    /// Asks for the upkeep, or to keep it: `true` for one node at a time, until its lease lapses.
    pub async fn caretaker_claim(&self, node: Uuid, lease: Duration) -> Result<bool, StoreError> {
        self.driver.take_care(node, lease).await
    }
}

struct Claims(Arc<Postgres>);

impl Write<Attempt, KeyClaimed> for Claims {
    async fn write(&self, jobs: &[Attempt], _again: bool) -> Result<Vec<KeyClaimed>, StoreError> {
        self.0.key_claim(jobs).await
    }
}

struct Settles(Arc<Postgres>);

impl Write<KeySettle, KeySettled> for Settles {
    async fn write(&self, jobs: &[KeySettle], again: bool) -> Result<Vec<KeySettled>, StoreError> {
        self.0.key_settle(jobs, again).await
    }
}

struct Messages(Arc<Postgres>);

impl Write<Numbered, Enqueued> for Messages {
    async fn write(&self, jobs: &[Numbered], _again: bool) -> Result<Vec<Enqueued>, StoreError> {
        self.0.enqueue(jobs).await
    }
}

struct Settlements(Arc<Postgres>);

impl Write<Settlement, Stepped> for Settlements {
    async fn write(&self, jobs: &[Settlement], _again: bool) -> Result<Vec<Stepped>, StoreError> {
        self.0.settle(jobs).await
    }
}
