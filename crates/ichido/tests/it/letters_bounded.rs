//! A bulk operation over many letters costs a limited number of statements and rows at a time. Counted at the database,
//! without a clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ichido::dead_letters::{BulkAction, BulkEnd, BulkOperation, RequeuePolicies, RequeuePolicy, limits};
use ichido_core::lifecycle::{Event, Failure};
use ichido_core::retry::{Guarantee, Safety};
use ichido_core::verdict::Effect;
use ichido_store::dead_letter::DeadLetterFilter;
use ichido_store::message::limits::MAX_PAGE;
use ichido_store::message::{ClaimOptions, NewMessage, Note, Settlement};
use uuid::Uuid;

use crate::worker::fixture::{QUEUE, WorkerFixture, key, many, queue};
use process_for_tests::own_process;
use process_for_tests::statement_log::{Logged, for_each_statement};

const LETTERS: u32 = 10_500;
/// The statements of a preview: the time, the counts, and the store's own.
const MAX_TO_COUNT: u64 = 3;
/// The statements of one batch: the stop check, a page, the queues' facts; begin, lock, take, events, ready, requests to cancel,
/// failure groups, counts, commit, and the store's own.
const MAX_PER_BATCH: u64 = 15;

static STATEMENTS: AtomicU64 = AtomicU64::new(0);
static MAX_ROWS: AtomicU64 = AtomicU64::new(0);

fn add(statement: &Logged) {
    STATEMENTS.fetch_add(1, Ordering::SeqCst);
    MAX_ROWS.fetch_max(statement.rows, Ordering::SeqCst);
}

async fn many_dead(fixture: &WorkerFixture) {
    let new = |_| NewMessage::new(queue(QUEUE), "alice", key(&Uuid::now_v7().to_string()), b"{}".to_vec());
    for put in fixture.store.messages().enqueue_all((0..LETTERS).map(new).collect()).await {
        put.unwrap();
    }
    let terms = ClaimOptions {
        node: Uuid::nil(),
        lease: Duration::from_hours(1),
        start_marks: false,
        guarantee: Guarantee::Idempotent,
        max_time_in_flight: Duration::ZERO,
    };
    loop {
        let works = fixture.store.claims().claim(&queue(QUEUE), many(5_000), terms).await.unwrap();
        if works.is_empty() {
            return;
        }
        let died = works.iter().map(|work| {
            let (failure, effect, safety) = (Failure::Permanent, Effect::NotDone, Safety::None);
            let event = Event::Failed {
                fence: work.fence,
                failure,
                effect,
                safety,
                in_flight_until: work.claimed_at,
            };
            Settlement::new(work, event, Note::default())
        });
        for settled in fixture.store.claims().settle_all(died.collect()).await {
            let _ = settled.unwrap();
        }
    }
}

async fn case(fixture: WorkerFixture) {
    many_dead(&fixture).await;
    let policy = RequeuePolicy { requeue: true, guarantee: Guarantee::None };
    let bulk = BulkOperation {
        store: fixture.store.clone(),
        policies: RequeuePolicies::default().with(queue(QUEUE), policy),
        action: BulkAction::Requeue { canary: None },
        filter: DeadLetterFilter::default(),
        actor: "olivia".to_owned(),
        reason: None,
    };
    let count = || STATEMENTS.load(Ordering::SeqCst);
    let before = count();
    MAX_ROWS.store(0, Ordering::SeqCst);
    let found = bulk.preflight().await.unwrap();
    let statements = count() - before;
    assert_eq!(found.eligible, u64::from(LETTERS));
    assert!((1..=MAX_TO_COUNT).contains(&statements), "{statements} statements to count {LETTERS} letters");
    let rows = MAX_ROWS.swap(0, Ordering::SeqCst);
    assert_eq!(rows, 1, "all letters are alike, so the database returns one count of them");
    let before = count();
    let report = bulk.run(&found, || false, |_| ()).await.unwrap();
    let went = count() - before;
    assert_eq!((report.moved, report.ended), (u64::from(LETTERS), BulkEnd::Done));
    let batches = u64::from(LETTERS.div_ceil(limits::MAX_BATCH)) + 1;
    assert!(batches < went && went <= batches * MAX_PER_BATCH, "{went} statements for {batches} batches");
    let max_rows = MAX_ROWS.load(Ordering::SeqCst);
    assert!(0 < max_rows && max_rows <= u64::from(MAX_PAGE), "{max_rows} rows at once");
}

#[test]
fn bulk_operation_over_ten_thousand_uses_few_queries_and_rows() {
    own_process::assert_passes("letters_bounded::child");
}

/// Not a test on its own: it changes the whole process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test above in its own process"]
async fn child() {
    if !own_process::is_own() {
        return;
    }
    for_each_statement(add);
    // One after the other: the counts belong to the process.
    case(WorkerFixture::sqlite().await).await;
    case(WorkerFixture::postgres().await).await;
}
