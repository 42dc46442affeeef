//! A fresh database, opened by one node or several, and helpers for the cases.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ichido_core::json::CanonicalForm;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Event, Failure, StartMark, State};
use ichido_core::retry::{Guarantee, Safety};
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::{
    ClaimOptions, ClaimedMessage, Enqueued, MessageRow, NewMessage, Note, QueueName, RequestBody, Settlement,
    StepResult,
};
use ichido_store::rescue::RescueOptions;
use ichido_store::testing::{postgres, sqlite};
use uuid::Uuid;

pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// Longer than any lease here.
pub(crate) const AFTER_LEASE: Duration = Duration::from_secs(31);
/// The backoff of a failed message.
pub(crate) const BACKOFF: Duration = Duration::from_mins(1);
/// How long a call may be in flight after its claim.
pub(crate) const TRAVELS_FOR: Duration = Duration::from_mins(10);
/// The time limit of a case: far beyond any of them, and below the timeouts of waits that must be woken.
const MAX_CASE: Duration = Duration::from_mins(5);
pub(crate) const DAY: Duration = Duration::from_hours(24);

/// A destination that deduplicates by key for a day.
pub(crate) const KEYED: Guarantee = Guarantee::Keyed { keeps_for: DAY };

/// A fresh database and the store on it.
pub(crate) struct StoreFixture {
    pub(crate) store: Store,
    url: String,
    database: Arc<TestDatabase>,
    /// Whether the case may have written what the store would not.
    is_touched: Arc<AtomicBool>,
}

/// Removed with the fixture.
enum TestDatabase {
    Postgres { _database: postgres::PgTestDatabase },
    Sqlite { _file: sqlite::SqliteTestFile },
}

impl StoreFixture {
    pub(crate) async fn postgres() -> Self {
        let database = postgres::fresh_database().await;
        let url = database.url.clone();
        let store = Store::open(&url, 4).await.expect("a fresh database opens");
        Self::new(store, url, TestDatabase::Postgres { _database: database })
    }

    pub(crate) async fn sqlite() -> Self {
        let file = sqlite::fresh_file();
        let url = file.url.clone();
        let store = Store::open(&url, 4).await.expect("a fresh file opens");
        Self::new(store, url, TestDatabase::Sqlite { _file: file })
    }

    fn new(store: Store, url: String, database: TestDatabase) -> Self {
        Self { store, url, database: Arc::new(database), is_touched: Arc::default() }
    }

    /// Opens the same database as another node, with its own clock.
    pub(crate) async fn another_node(&self) -> Store {
        Store::open(&self.url, 4).await.expect("the database opens again")
    }

    /// Returns the database's URL.
    pub(crate) fn url(&self) -> &str {
        self.touch();
        &self.url
    }

    /// Notes that the case writes what no worker would: an audit may find something.
    pub(crate) fn touch(&self) {
        self.is_touched.store(true, Ordering::Relaxed);
    }

    /// Returns whether the database carries wake-ups between nodes.
    pub(crate) fn notifies_other_nodes(&self) -> bool {
        matches!(*self.database, TestDatabase::Postgres { .. })
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, time: Duration) {
        self.store.advance_clock(time);
    }

    pub(crate) async fn put(&self, message: NewMessage) -> Enqueued {
        self.store.messages().enqueue(message).await.expect("an answer")
    }

    /// Enqueues a message whose key was used for another. Returns the first one.
    pub(crate) async fn conflict(&self, message: NewMessage) -> Uuid {
        match self.store.messages().enqueue(message).await {
            Err(StoreError::KeyConflict { id }) => id,
            other => panic!("not a conflict: {other:?}"),
        }
    }

    pub(crate) async fn enqueue(&self, key: &str) -> Uuid {
        new_id(self.put(message(key)).await)
    }

    /// Enqueues `count` messages, in the order of their ids.
    pub(crate) async fn enqueue_many(&self, count: usize) -> Vec<Uuid> {
        let messages = (0..count).map(|number| message(&format!("m{number}"))).collect();
        let answers = self.store.messages().enqueue_all(messages).await;
        answers.into_iter().map(|answer| new_id(answer.expect("an answer"))).collect()
    }

    pub(crate) async fn claim(&self, count: u32) -> Vec<ClaimedMessage> {
        self.store.claims().claim(&queue(), many(count), terms()).await.expect("a claim")
    }

    /// Claims when exactly one message is available.
    pub(crate) async fn claim_one(&self) -> ClaimedMessage {
        only(self.claim(10).await)
    }

    /// Claims messages with start marks.
    pub(crate) async fn claim_with_marks(&self, count: u32) -> Vec<ClaimedMessage> {
        let terms = ClaimOptions { start_marks: true, ..terms() };
        self.store.claims().claim(&queue(), many(count), terms).await.expect("a claim")
    }

    /// Marks that the call of a message is about to start, if its claim requires that.
    pub(crate) async fn start(&self, work: &ClaimedMessage) {
        if work.start_mark == StartMark::NotYet {
            let marked = self.store.claims().mark_started(&[(work.id, work.fence)]).await.expect("an answer");
            assert_eq!(marked, [true]);
        }
    }

    pub(crate) async fn settle(&self, work: &ClaimedMessage, event: Event) -> StepResult {
        self.settle_with_note(work, event, Note::default()).await
    }

    pub(crate) async fn settle_with_note(
        &self,
        work: &ClaimedMessage,
        event: Event,
        note: Note,
    ) -> StepResult {
        self.store.claims().settle(Settlement::new(work, event, note)).await.expect("an answer")
    }

    pub(crate) async fn send(&self, work: &ClaimedMessage) {
        assert_eq!(self.settle(work, succeeded(work)).await, StepResult::Now(State::Sent));
    }

    /// Enqueues one message and lets its first attempt be the last.
    pub(crate) async fn dead(&self, key: &str, effect: Effect) -> Uuid {
        let id = self.enqueue(key).await;
        let work = self.claim_one().await;
        let settled = self.settle_with_note(&work, final_failure(&work, effect), bad_request()).await;
        assert!(matches!(settled, StepResult::Now(State::Dead { .. })), "{settled:?}");
        id
    }

    /// Enqueues one message and lets its first attempt end in doubt.
    pub(crate) async fn parked(&self, key: &str) -> (Uuid, ClaimedMessage) {
        let id = self.enqueue(key).await;
        let work = self.claim_one().await;
        let settled = self.settle(&work, in_doubt(&work)).await;
        assert!(matches!(settled, StepResult::Now(State::Parked { .. })), "{settled:?}");
        (id, work)
    }

    pub(crate) async fn rescue(&self, guarantee: Guarantee) -> Option<usize> {
        rescue(&self.store, guarantee).await
    }

    pub(crate) async fn promote(&self) -> u64 {
        self.store
            .claims()
            .promote(10_000)
            .await
            .expect("an answer")
            .into_iter()
            .map(|(_, count)| count)
            .sum()
    }

    /// Applies an operator's event to a message.
    pub(crate) async fn step(&self, id: Uuid, event: Event) -> StepResult {
        let note = Note { actor: Some("olivia".to_owned()), ..Note::default() };
        self.store.messages().step(id, |_| event, &note).await.expect("an answer")
    }

    pub(crate) async fn row(&self, id: Uuid) -> MessageRow {
        self.store.messages().get(id).await.expect("an answer").expect("it is there")
    }

    pub(crate) async fn status(&self, id: Uuid) -> &'static str {
        self.row(id).await.status.as_str()
    }

    /// Returns a message's transitions, each as `from>to`.
    pub(crate) async fn steps(&self, id: Uuid) -> Vec<String> {
        let transitions = self.store.messages().transitions(id).await.expect("an answer");
        transitions.into_iter().map(|step| format!("{}>{}", step.from, step.to)).collect()
    }

    /// Counts the messages of the queue by state, without empty states.
    pub(crate) async fn counts(&self) -> BTreeMap<String, i64> {
        let counts = self.store.queues().counts().await.expect("an answer");
        counts
            .into_iter()
            .filter(|count| count.queue == queue().as_str())
            .map(|count| (count.state.as_str().to_owned(), count.count))
            .collect()
    }

    pub(crate) async fn assert_counts(&self, expected: &[(&str, i64)]) {
        let expected: BTreeMap<String, i64> =
            expected.iter().map(|(state, count)| ((*state).to_owned(), *count)).collect();
        assert_eq!(self.counts().await, expected);
    }
}

pub(crate) async fn rescue(store: &Store, guarantee: Guarantee) -> Option<usize> {
    store.claims().rescue(|_| rescue_terms(guarantee)).await.expect("an answer")
}

pub(crate) fn rescue_terms(guarantee: Guarantee) -> RescueOptions {
    RescueOptions { guarantee, wait: BACKOFF, max_time_in_flight: TRAVELS_FOR }
}

/// Returns the state after a step that was not refused.
pub(crate) fn now(stepped: StepResult) -> State {
    match stepped {
        StepResult::Now(state) => state,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn queue() -> QueueName {
    queue_named("orders")
}

pub(crate) fn queue_named(name: &str) -> QueueName {
    QueueName::parse(name).expect("a name")
}

pub(crate) fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::parse(text).expect("a key")
}

pub(crate) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("at least one")
}

/// A message with three attempts, whose request is its key.
pub(crate) fn message(text: &str) -> NewMessage {
    NewMessage {
        max_attempts: many(3),
        ..NewMessage::new(queue(), "alice", key(text), text.as_bytes().to_vec())
    }
}

/// A request of a media type other than JSON.
pub(crate) fn body(content_type: &str, bytes: &[u8]) -> RequestBody {
    RequestBody::new(content_type, bytes.to_vec(), CanonicalForm::default()).expect("not JSON")
}

pub(crate) fn terms() -> ClaimOptions {
    ClaimOptions {
        node: Uuid::from_u128(1),
        lease: LEASE,
        start_marks: false,
        guarantee: Guarantee::Idempotent,
        max_time_in_flight: Duration::ZERO,
    }
}

pub(crate) fn new_id(enqueued: Enqueued) -> Uuid {
    match enqueued {
        Enqueued::New { id } => id,
        other => panic!("not new: {other:?}"),
    }
}

pub(crate) fn only<T: std::fmt::Debug>(mut all: Vec<T>) -> T {
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

pub(crate) fn ids(work: &[ClaimedMessage]) -> Vec<Uuid> {
    work.iter().map(|work| work.id).collect()
}

pub(crate) fn succeeded(work: &ClaimedMessage) -> Event {
    Event::Succeeded { fence: work.fence }
}

fn failed(work: &ClaimedMessage, failure: Failure, effect: Effect) -> Event {
    let in_flight_until = work.claimed_at.plus(TRAVELS_FOR);
    Event::Failed { fence: work.fence, failure, effect, safety: Safety::Keyed, in_flight_until }
}

/// A failure that will be retried after the backoff.
pub(crate) fn will_retry(work: &ClaimedMessage) -> Event {
    failed(work, Failure::Retry { due: work.claimed_at.plus(BACKOFF) }, Effect::NotDone)
}

/// A failure that no retry can fix.
pub(crate) fn final_failure(work: &ClaimedMessage, effect: Effect) -> Event {
    failed(work, Failure::Permanent, effect)
}

/// A failure with an unknown effect.
pub(crate) fn in_doubt(work: &ClaimedMessage) -> Event {
    failed(work, Failure::InDoubt, Effect::Unknown)
}

/// A call that was never started.
pub(crate) fn given_back(work: &ClaimedMessage) -> Event {
    Event::GivenBack { fence: work.fence, due: work.claimed_at }
}

pub(crate) fn bad_request() -> Note {
    Note {
        code: Some(ErrorCode::BadRequest),
        status: Some(400),
        excerpt: Some("no such symbol".to_owned()),
        ..Note::default()
    }
}

/// Fails a case that never ends.
pub(crate) async fn with_time_limit(case: impl Future<Output = ()>) {
    tokio::time::timeout(MAX_CASE, case).await.expect("the case ends");
}

/// Runs a case with a time limit. Everything it does through the store follows the rules, so an audit finds nothing.
// SPEC F5.
pub(crate) async fn audited<A: Future<Output = ()>>(
    fixture: StoreFixture,
    case: impl FnOnce(StoreFixture) -> A,
) {
    let (store, is_touched) = (fixture.store.clone(), Arc::clone(&fixture.is_touched));
    let _database = Arc::clone(&fixture.database);
    with_time_limit(case(fixture)).await;
    if !is_touched.load(Ordering::Relaxed) {
        // Not opened again: on PostgreSQL that is four connections, a third of what most cases cost.
        let report = store.audit().verify(None, None).await.expect("it can be read");
        assert_eq!((report.findings, report.keys), (vec![], vec![]), "an audit has no findings");
    }
}

/// One behaviour, one test for each database.
#[macro_export]
macro_rules! both_databases {
    ($($(#[doc = $doc:literal])* #[test] async fn $name:ident($fixture:ident: StoreFixture) $body:block)+) => { $(
        $(#[doc = $doc])*
        mod $name {
            use super::*;

            async fn case($fixture: StoreFixture) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                $crate::fixture::audited(StoreFixture::postgres().await, case).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                $crate::fixture::audited(StoreFixture::sqlite().await, case).await;
            }
        }
    )+ };
}
