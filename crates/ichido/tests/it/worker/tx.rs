//! Handlers that write in a transaction: their writes, their messages and the settlement commit together, or not at all.
// Spec: H1.

mod business;
mod ended_early;
mod guide;
mod kills;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ichido::destination::{Handler, Job, JobError};
use ichido::message::Draft;
use ichido::worker::{Worker, WorkerConfigError, WorkerHandle, limits};
use ichido::{Pool, Tx};
use ichido_core::lifecycle::StateName;
use ichido_core::retry::Guarantee;
use ichido_core::verdict::Effect;
use ichido_store::message::{MessageFilter, MessageRow};
use sqlx::Sqlite;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::fixture::{
    AFTER_LEASE, BACKOFF, QUEUE, WorkerFixture, both_databases, in_time, many, only, poll_pause,
};
use crate::handler_gate::HandlerGate;
use crate::once::relay::{Cut, Relay};
use crate::warnings::WarningCapture;
use business::{AnyTx, Business, Order, Receipt};

/// The timeouts of a handler and of its transaction: so long that no test reaches them.
const PATIENT: (Duration, Duration) = (Duration::from_secs(20), limits::MAX_TX_TIMEOUT);
/// The same for a handler that never ends.
const IMPATIENT: (Duration, Duration) = (Duration::from_secs(2), Duration::from_millis(200));

/// A handler of the orders that gets its run's number from 1.
fn handler<F, A>(business: &Business, handle: F) -> Handler
where
    F: Fn(usize, Job<Order>, AnyTx) -> A + Send + Sync + 'static,
    A: Future<Output = Result<(), JobError>> + Send + 'static,
{
    let runs = AtomicUsize::new(0);
    business.handler(move |job, tx| handle(runs.fetch_add(1, Ordering::SeqCst) + 1, job, tx))
}

fn start<F, A>(fixture: &WorkerFixture, business: &Business, handle: F) -> WorkerHandle
where
    F: Fn(usize, Job<Order>, AnyTx) -> A + Send + Sync + 'static,
    A: Future<Output = Result<(), JobError>> + Send + 'static,
{
    let worker = fixture.builder_with(handler(business, handle), |_| ()).pool(business.pool.clone());
    // The longest: a transaction may be slow, and one of these waits for the test.
    worker.tx_timeout(limits::MAX_TX_TIMEOUT).start().unwrap()
}

/// Starts a worker whose first run waits at the gate before its writes.
fn start_gated(fixture: &WorkerFixture, business: &Business) -> (WorkerHandle, HandlerGate) {
    let gate = HandlerGate::shut();
    let inside = gate.clone();
    let worker = start(fixture, business, move |run, job, tx| {
        let gate = inside.clone();
        async move {
            if run == 1 {
                gate.pass().await;
            }
            place(job, tx).await
        }
    });
    (worker, gate)
}

/// Records the order and the message that follows it.
async fn place(job: Job<Order>, tx: AnyTx) -> Result<(), JobError> {
    tx.order(job.payload.n).await?;
    tx.enqueue(&Receipt { order: job.payload.n }).await
}

/// The first run ends like this after its writes; later ones succeed.
async fn fails_once(
    fixture: &WorkerFixture,
    handle: impl Fn(usize, Job<Order>, AnyTx) -> HandlerRun + Send + Sync + 'static,
    (timeout, tx_timeout): (Duration, Duration),
) -> MessageRow {
    let business = Business::open(fixture).await;
    let handler = handler(&business, handle).timeout(timeout);
    let worker = fixture.builder_with(handler, |_| ()).pool(business.pool.clone());
    let _worker = worker.tx_timeout(tx_timeout).start().unwrap();
    let id = fixture.put_in(Order { n: 1 }.draft()).await;
    let row = fixture.until(id, StateName::Failed).await;
    assert_eq!((row.attempts, row.effect), (1, Effect::NotDone));
    business.assert_orders(&[]).await;
    until_sent(fixture, id).await;
    business.assert_orders(&[1]).await;
    assert_eq!(receipts(fixture).await, 1);
    row
}

/// Lets a failed message be retried until it is sent: on a slow machine, a retry may fail too.
async fn until_sent(fixture: &WorkerFixture, id: Uuid) {
    let has_ended = |row: &MessageRow| matches!(row.status, StateName::Failed | StateName::Sent);
    while fixture.until_row(id, has_ended).await.status == StateName::Failed {
        fixture.pass(BACKOFF);
        poll_pause().await;
    }
}

type HandlerRun = std::pin::Pin<Box<dyn Future<Output = Result<(), JobError>> + Send>>;

/// How many receipts were enqueued.
async fn receipts(fixture: &WorkerFixture) -> usize {
    let all = fixture.store.messages().list(&MessageFilter::default(), 100).await.unwrap();
    all.iter().filter(|row| row.queue == "receipts").count()
}

/// Stops a worker, which must have deleted the claims of what it sent.
async fn assert_no_claim(fixture: &WorkerFixture, worker: WorkerHandle) {
    worker.stop();
    worker.ended().await;
    assert!(fixture.store.nodes().list().await.unwrap().iter().all(|node| node.gone));
    fixture.pass(AFTER_LEASE);
    let nothing = fixture.store.claims().list_unserved(&[], Duration::ZERO).await.unwrap();
    assert_eq!(nothing, [], "its claim is deleted");
}

both_databases! {
    #[test]
    async fn writes_messages_and_settlement_commit_together(fixture: WorkerFixture) {
        let business = Business::open(&fixture).await;
        let gate = HandlerGate::shut();
        let inside = gate.clone();
        let _worker = start(&fixture, &business, move |_, job, tx| {
            let gate = inside.clone();
            async move {
                place(job, tx).await?;
                gate.pass().await;
                Ok(())
            }
        });
        let id = fixture.put_in(Order { n: 7 }.draft()).await;
        gate.reached(1).await;
        business.assert_orders(&[]).await;
        assert_eq!((receipts(&fixture).await, fixture.row(id).await.status), (0, StateName::Sending));
        gate.open(1);
        let row = fixture.until(id, StateName::Sent).await;
        assert_eq!((row.attempts, row.effect), (1, Effect::Done));
        business.assert_orders(&[7]).await;
        assert_eq!(receipts(&fixture).await, 1);
    }

    /// A handler that writes nothing is settled in a transaction too.
    #[test]
    async fn unused_transaction_settles_its_message(fixture: WorkerFixture) {
        let business = Business::open(&fixture).await;
        let worker = start(&fixture, &business, |_, _, _| async { Ok(()) });
        let id = fixture.put_in(Order { n: 1 }.draft()).await;
        fixture.until(id, StateName::Sent).await;
        assert_no_claim(&fixture, worker).await;
    }

    #[test]
    async fn error_of_a_transactional_handler_does_nothing(fixture: WorkerFixture) {
        let row = fails_once(&fixture, |run, job, tx| Box::pin(async move {
            place(job, tx).await?;
            if run == 1 {
                Err::<(), _>(std::io::Error::other("the printer is on fire"))?;
            }
            Ok(())
        }), PATIENT).await;
        assert_eq!(row.last_error_text.as_deref(), Some("the printer is on fire"));
    }

    /// The handler overlooks the error of one, and would lose it.
    #[test]
    async fn part_of_many_messages_does_not_commit_with_its_handler(fixture: WorkerFixture) {
        let row = fails_once(&fixture, |run, job, tx| Box::pin(async move {
            place(job, tx.clone()).await?;
            if run == 1 {
                let [first, second] = [1, 2].map(|order| Draft::new(&Receipt { order }).key("same"));
                tx.enqueue_many([first, second]).await.unwrap_err();
            }
            Ok(())
        }), PATIENT).await;
        let why = row.last_error_text.unwrap();
        assert!(why.contains("enqueued only some of its messages"), "{why}");
    }

    #[test]
    async fn panic_of_a_transactional_handler_does_nothing(fixture: WorkerFixture) {
        fails_once(&fixture, |run, job, tx| Box::pin(async move {
            place(job, tx).await?;
            assert!(run != 1, "the first run panics");
            Ok(())
        }), PATIENT).await;
    }

    /// On SQLite, its time in the transaction is shorter still.
    #[test]
    async fn timeout_of_a_transactional_handler_does_nothing(fixture: WorkerFixture) {
        let row = fails_once(&fixture, |run, job, tx| Box::pin(async move {
            place(job, tx).await?;
            if run == 1 {
                std::future::pending::<()>().await;
            }
            Ok(())
        }), IMPATIENT).await;
        let why = row.last_error_text.unwrap();
        let expected = if fixture.store.is_sqlite() { "tx_timeout, 200ms" } else { "longer than 2s" };
        assert!(why.contains(expected), "{why}");
    }

    /// Others hold the lock that it needs: on its table, or on SQLite's file.
    #[test]
    async fn contended_transaction_is_retried_as_not_done(fixture: WorkerFixture) {
        let business = Business::open(&fixture).await;
        let impatient = Business::impatient(&fixture.url).await;
        let (gate, (sender, mut refused)) = (HandlerGate::shut(), mpsc::unbounded_channel());
        let inside = gate.clone();
        let _worker = start(&fixture, &impatient, move |run, job, tx| {
            let (gate, sender) = (inside.clone(), sender.clone());
            async move {
                if run == 1 {
                    gate.pass().await;
                }
                place(job, tx).await.inspect_err(|_| sender.send(()).unwrap_or_default())
            }
        });
        let id = fixture.put_in(Order { n: 1 }.draft()).await;
        gate.reached(1).await;
        let lock = business.lock().await;
        gate.open(1);
        refused.recv().await.unwrap();
        lock.release().await;
        let row = fixture.until(id, StateName::Failed).await;
        assert_eq!((row.attempts, row.effect), (1, Effect::NotDone));
        // The worker's own writes may be in the way as well.
        until_sent(&fixture, id).await;
        business.assert_orders(&[1]).await;
    }

    /// Another worker has rescued the message and done its work meanwhile.
    #[test]
    async fn worker_whose_claim_was_lost_cannot_commit(fixture: WorkerFixture) {
        let business = Business::open(&fixture).await;
        let (zombie, gate) = start_gated(&fixture, &business);
        let id = fixture.put_in(Order { n: 1 }.draft()).await;
        gate.reached(1).await;
        // It takes no more messages, so the successor gets this one.
        zombie.stop();
        let other = fixture.another_node().await;
        other.pass(AFTER_LEASE);
        let successor = start(&other, &business, |_, job, tx| place(job, tx));
        other.until(id, StateName::Failed).await;
        other.pass(BACKOFF);
        other.until(id, StateName::Sent).await;
        gate.open(1);
        zombie.ended().await;
        successor.stop();
        successor.ended().await;
        business.assert_orders(&[1]).await;
        assert_eq!((receipts(&fixture).await, fixture.row(id).await.status), (1, StateName::Sent));
    }

    /// Nobody has rescued the message yet.
    #[test]
    async fn worker_whose_claim_has_expired_cannot_commit(fixture: WorkerFixture) {
        let business = Business::open(&fixture).await;
        let (_worker, gate) = start_gated(&fixture, &business);
        let id = fixture.put_in(Order { n: 1 }.draft()).await;
        gate.reached(1).await;
        fixture.pass(AFTER_LEASE);
        gate.open(1);
        fixture.until(id, StateName::Failed).await;
        business.assert_orders(&[]).await;
        fixture.pass(BACKOFF);
        fixture.until(id, StateName::Sent).await;
        business.assert_orders(&[1]).await;
    }

    #[test]
    async fn transactional_handler_claims_one_message_per_lease(fixture: WorkerFixture) {
        let business = Business::open(&fixture).await;
        let (sender, mut fences) = mpsc::unbounded_channel();
        for n in 0..3 {
            fixture.put_in(Order { n }.draft()).await;
        }
        let _worker = start(&fixture, &business, move |_, job, _| {
            sender.send(job.fence).unwrap();
            async { Ok(()) }
        });
        fixture.until_count(StateName::Sent, 3).await;
        let fences = [fences.recv().await, fences.recv().await, fences.recv().await];
        assert!(fences[0] != fences[1] && fences[1] != fences[2] && fences[0] != fences[2], "{fences:?}");
    }

    #[test]
    async fn transactional_queue_is_published_as_such(fixture: WorkerFixture) {
        let business = Business::open(&fixture).await;
        let worker = start(&fixture, &business, |_, job, tx| place(job, tx));
        worker.started().await;
        let published = only(fixture.store.facts().list().await.unwrap());
        assert_eq!((published.facts.guarantee, published.facts.requeue), (Guarantee::Transactional, true));
    }

    #[test]
    async fn transactional_handler_needs_a_pool_on_the_stores_database(fixture: WorkerFixture) {
        let business = Business::open(&fixture).await;
        let handler = || business.handler(place);
        let errors = |worker: Worker| worker.start().unwrap_err().to_vec();
        let queue = || QUEUE.to_owned();
        let without = fixture.builder_with(handler(), |_| ());
        assert_eq!(errors(without.clone()), [WorkerConfigError::NoPool { queue: queue() }]);
        for tx_timeout in [Duration::ZERO, limits::MAX_TX_TIMEOUT + Duration::from_millis(1)] {
            let worker = without.clone().pool(business.pool.clone()).tx_timeout(tx_timeout);
            assert_eq!(errors(worker), [WorkerConfigError::TxTimeout { tx_timeout }]);
        }
        let elsewhere = if fixture.store.is_sqlite() { WorkerFixture::postgres().await } else { WorkerFixture::sqlite().await };
        let elsewhere = Business::open(&elsewhere).await;
        let other = errors(without.pool(elsewhere.pool.clone()));
        assert!(matches!(&other[..], [WorkerConfigError::OtherDatabase { .. }]), "{other:?}");
    }
}

/// The lock outlives the handler, so nobody knows whether its work is complete.
async fn kept(fixture: WorkerFixture) {
    let business = Business::open(&fixture).await;
    let (gate, warnings) = (HandlerGate::shut(), WarningCapture::default());
    // On a single thread, so it captures what the worker says.
    let _captured = tracing::subscriber::set_default(warnings.clone());
    let inside = gate.clone();
    let _worker = start(&fixture, &business, move |run, job, tx| {
        let gate = inside.clone();
        async move {
            place(job, tx.clone()).await?;
            if run == 1 {
                let hold = tx.hold().await?;
                tokio::spawn(async move {
                    gate.pass().await;
                    drop(hold);
                });
            }
            Ok(())
        }
    });
    let id = fixture.put_in(Order { n: 1 }.draft()).await;
    while !warnings.take().concat().contains("kept its transaction locked") {
        poll_pause().await;
    }
    if !fixture.store.is_sqlite() {
        // On SQLite it keeps the only writer too, so this is stored when it is released.
        fixture.until(id, StateName::Failed).await;
    }
    gate.open(1);
    let row = fixture.until(id, StateName::Failed).await;
    assert_eq!(row.effect, Effect::NotDone);
    let why = row.last_error_text.unwrap();
    assert!(why.contains("kept its transaction locked"), "{why}");
    business.assert_orders(&[]).await;
    fixture.pass(BACKOFF);
    fixture.until(id, StateName::Sent).await;
    business.assert_orders(&[1]).await;
    assert_eq!(receipts(&fixture).await, 1);
}

#[tokio::test]
async fn transaction_kept_after_the_handler_is_rolled_back_on_postgres() {
    in_time(WorkerFixture::postgres().await, kept).await;
}

#[tokio::test]
async fn transaction_kept_after_the_handler_is_rolled_back_on_sqlite() {
    in_time(WorkerFixture::sqlite().await, kept).await;
}

/// The response to COMMIT is lost, or COMMIT itself.
#[tokio::test]
async fn commit_of_unknown_fate_is_read_back() {
    let warnings = WarningCapture::default();
    // On a single thread, so it captures what the worker says.
    let _captured = tracing::subscriber::set_default(warnings.clone());
    for (cut, runs) in [(Cut::After, 1), (Cut::Before, 2)] {
        let fixture = WorkerFixture::postgres().await;
        let direct = Business::open(&fixture).await;
        let relay = Relay::before(&fixture.url).await;
        let pool = PgPoolOptions::new().connect_with(relay.options(&fixture.url)).await.unwrap();
        let business = Business { pool: Pool::Postgres(pool) };
        let count = Arc::new(AtomicUsize::new(0));
        let (counted, armed) = (Arc::clone(&count), relay.clone());
        let worker = start(&fixture, &business, move |run, job, tx| {
            counted.store(run, Ordering::SeqCst);
            let relay = armed.clone();
            async move {
                place(job, tx).await?;
                if run == 1 {
                    // The statement itself, not a text that mentions it.
                    relay.arm("COMMIT\0", cut);
                }
                Ok(())
            }
        });
        let id = fixture.put_in(Order { n: 1 }.draft()).await;
        if cut == Cut::Before {
            let row = fixture.until(id, StateName::Failed).await;
            assert_eq!(row.effect, Effect::NotDone);
            fixture.pass(BACKOFF);
        }
        fixture.until(id, StateName::Sent).await;
        assert!(relay.has_cut());
        direct.assert_orders(&[1]).await;
        assert_eq!((count.load(Ordering::SeqCst), receipts(&fixture).await), (runs, 1), "{cut:?}");
        let kinds = fixture.kinds(id).await;
        assert_eq!(kinds.iter().filter(|kind| *kind == "succeeded").count(), 1, "{kinds:?}");
        assert_no_claim(&fixture, worker).await;
        let said = warnings.take().concat();
        let (is_read_back, is_fenced) =
            (said.contains("reading it back"), said.contains("after its claim was lost"));
        assert!(is_read_back && !is_fenced, "{cut:?}: {said}");
    }
}

/// As an application registers it: by the type of the message and of the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follow_up_messages_wake_their_queue_after_the_commit() {
    let fixture = WorkerFixture::sqlite().await;
    let business = Business::open(&fixture).await;
    let (sender, mut sent) = mpsc::unbounded_channel();
    let _worker = Worker::new(fixture.store.clone())
        // Without a wake-up, the receipt would be found after an hour.
        .idle_sleep(Duration::from_hours(1))
        .pool(business.pool.clone())
        .handle_tx(|job: Job<Order>, tx: Tx<Sqlite>| place(job, AnyTx::Sqlite(tx)))
        .handle_tx(move |job: Job<Receipt>, tx: Tx<Sqlite>| {
            let sender = sender.clone();
            async move {
                AnyTx::Sqlite(tx).order(100 + job.payload.order).await?;
                sender.send(job.message)?;
                Ok(())
            }
        })
        .tune(QUEUE, |queue| queue.parallelism = many(1))
        .start()
        .unwrap();
    fixture.put_in(Order { n: 1 }.draft()).await;
    let receipt = sent.recv().await.unwrap();
    while fixture.row(receipt).await.status != StateName::Sent {
        poll_pause().await;
    }
    business.assert_orders(&[1, 101]).await;
}
