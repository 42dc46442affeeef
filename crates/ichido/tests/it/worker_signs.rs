//! A worker's metrics and logs: each attempt once, by its outcome; the state of queues and destinations; and never a key or
//! a payload.
// Spec: A14, D14, E5.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ichido::Tx;
use ichido::dead_letters::{BulkAction, BulkOperation, RequeuePolicies};
use ichido::destination::{Job, JobError, JobSuccess, ReconcileOutcome};
use ichido::message::Message;
use ichido::worker::{DestinationConfig, PaceChange, Paces, QueueConfig, Worker, describe_metrics};
use ichido_core::clock::HEARTBEAT_EVERY;
use ichido_core::lifecycle::StateName;
use ichido_core::pace::{CircuitSettings, PaceSettings, PerSecond};
use ichido_core::retry::Guarantee;
use ichido_core::time::Timestamp;
use ichido_store::dead_letter::DeadLetterFilter;
use ichido_store::message::{CancelOutcome, ClaimOptions, NewMessage, Note};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

use crate::handler_gate::HandlerGate;
use crate::worker::fixture::{
    AFTER_LEASE, BACKOFF, FakeReceiver, LEASE, QUEUE, WorkerFixture, backoff, many, message_of, poll_pause,
    queue,
};
use process_for_tests::own_process;

/// Recorded values by metric and labels; for a histogram, how many values.
#[derive(Clone, Default)]
struct Signs(Arc<Mutex<BTreeMap<String, f64>>>, Arc<Mutex<BTreeSet<String>>>);

struct One {
    signs: Signs,
    name: String,
}

impl One {
    fn add(&self, value: f64) {
        let mut signs = self.signs.0.lock().unwrap_or_else(PoisonError::into_inner);
        *signs.entry(self.name.clone()).or_default() += value;
    }
}

impl CounterFn for One {
    fn increment(&self, value: u64) {
        self.add(f64::from(u32::try_from(value).unwrap()));
    }

    fn absolute(&self, _: u64) {
        panic!("nothing here is set");
    }
}

impl GaugeFn for One {
    fn increment(&self, value: f64) {
        self.add(value);
    }

    fn decrement(&self, value: f64) {
        self.add(-value);
    }

    fn set(&self, value: f64) {
        let mut signs = self.signs.0.lock().unwrap_or_else(PoisonError::into_inner);
        signs.insert(self.name.clone(), value);
    }
}

impl HistogramFn for One {
    fn record(&self, value: f64) {
        assert!(0.0 <= value, "{}: {value}", self.name);
        self.add(1.0);
    }
}

impl Signs {
    fn one(&self, key: &Key) -> Arc<One> {
        let labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        Arc::new(One { signs: self.clone(), name })
    }

    /// The recorded values of a metric.
    fn of(&self, name: &str) -> f64 {
        let signs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        signs.get(name).copied().unwrap_or(0.0)
    }

    /// Waits until a metric has the expected value.
    async fn until(&self, name: &str, is: impl Fn(f64) -> bool) {
        let all = async {
            while !is(self.of(name)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let found = tokio::time::timeout(MAX_WAIT, all).await;
        assert!(found.is_ok(), "{name} stays {}", self.of(name));
    }

    async fn until_is(&self, name: &str, expected: f64) {
        self.until(name, |value| (value - expected).abs() < 0.1).await;
    }

    /// Metrics must be described to the recorder.
    fn describe(&self, name: &KeyName) {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).insert(name.as_str().to_owned());
    }

    /// Metrics that were recorded but not described.
    fn not_described(&self) -> Vec<String> {
        let described = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        let signs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let names = signs.keys().filter_map(|name| name.split('{').next());
        names.filter(|name| !described.contains(*name)).map(str::to_owned).collect()
    }

    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Recorder for Signs {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&name);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&name);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&name);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.one(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.one(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.one(key))
    }
}

/// The longest wait for anything here.
const MAX_WAIT: Duration = Duration::from_mins(2);

/// Captures every log line, at every level.
static LOG: Mutex<String> = Mutex::new(String::new());

struct WorkerLogCapture;

struct LogFields<'a>(&'a mut String);

impl Visit for LogFields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for WorkerLogCapture {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        // Traces carry the key.
        metadata.target() != ichido::worker::DELIVERY
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
        span.record(&mut LogFields(&mut log));
        log.push('\n');
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
        log.push_str(event.metadata().target());
        event.record(&mut LogFields(&mut log));
        log.push('\n');
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Enqueues a message of a secret caller.
async fn put(fixture: &WorkerFixture, key: &str) -> uuid::Uuid {
    let (item, trace_id) = (Some("A title".to_owned()), Some("t-1".to_owned()));
    fixture.put_in(NewMessage { item, trace_id, ..message_of("SECRET-CALLER", key) }).await
}

/// One of each thing that can happen to a message.
async fn everything(fixture: &WorkerFixture, signs: &Signs) {
    let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
    let inside = gate.clone();
    let handler = move |receiver: &FakeReceiver| {
        let gate = inside.clone();
        receiver.handler(move |_, job| {
            let gate = gate.clone();
            async move {
                let body = String::from_utf8_lossy(&job.payload).into_owned();
                match () {
                    () if body.contains("dead") => Err(JobError::dead("no such\naccount")),
                    () if body.contains("lost") => Err(JobError::unknown("SECRET-ANSWER")),
                    () if body.contains("retry") && job.attempt == 1 => Err(JobError::retry("SECRET-ANSWER")),
                    () if body.contains("panics") => panic!("SECRET-ANSWER"),
                    () if body.contains("waits") => {
                        gate.pass().await;
                        Ok(JobSuccess::default())
                    }
                    () => Ok(JobSuccess::default()),
                }
            }
        })
    };
    let worker = fixture.work_as(handler(&receiver), |queue| queue.parallelism = many(8));
    let retried = put(fixture, "SECRET-retry").await;
    fixture.until(retried, StateName::Failed).await;
    let sent = put(fixture, "SECRET-sent").await;
    fixture.until(sent, StateName::Sent).await;
    for (key, stage) in [
        ("SECRET-dead", StateName::Dead),
        ("SECRET-lost", StateName::Parked),
        ("SECRET-panics", StateName::Parked),
    ] {
        let id = put(fixture, key).await;
        fixture.until(id, stage).await;
    }
    fixture.pass(BACKOFF);
    fixture.until(retried, StateName::Sent).await;
    // One whose worker is considered dead, and which ends after all.
    let waits = put(fixture, "SECRET-waits").await;
    gate.reached(1).await;
    assert!((signs.of("outbox_inflight{queue=orders}") - 1.0).abs() < 0.1);
    let other = fixture.another_node().await;
    other.pass(AFTER_LEASE + BACKOFF);
    let rescuer = other.work(FakeReceiver::default().done());
    other.until(waits, StateName::Parked).await;
    // A worker that is stopped between the rescue and its count does not count it any more.
    signs.until_is("ichido_worker_rescued_total{queue=orders}", 1.0).await;
    worker.stop();
    rescuer.stop();
    gate.open(1);
    worker.ended().await;
    rescuer.ended().await;
    assert_eq!(fixture.row(waits).await.status, StateName::Sent);
    // A stalled queue sends nothing, and shows how long its oldest message waits.
    fixture.store.queues().pause(&queue(QUEUE), true, None).await.unwrap();
    put(fixture, "SECRET-late").await;
    fixture.pass(Duration::from_hours(1));
    let worker = fixture.work(FakeReceiver::default().done());
    signs.until("outbox_oldest_waiting_seconds{queue=orders}", |age| 3_600.0 <= age).await;
    for (state, count) in [("queued", 1.0), ("failed", 0.0), ("sending", 0.0), ("parked", 2.0), ("dead", 1.0)]
    {
        signs.until_is(&format!("outbox_messages{{queue=orders,state={state}}}"), count).await;
    }
    for state in ["dead", "parked"] {
        let oldest = format!("outbox_dead_letter_oldest_seconds{{queue=orders,state={state}}}");
        signs.until(&oldest, |age| 3_600.0 <= age).await;
    }
    worker.stop();
    worker.ended().await;
}

/// Dead and parked messages are resolved, by a person and by their destination.
// Spec: A14.
async fn resolutions(fixture: &WorkerFixture, signs: &Signs) {
    let bulk = BulkOperation {
        store: fixture.store.clone(),
        policies: RequeuePolicies::default(),
        action: BulkAction::Discard,
        filter: DeadLetterFilter::default(),
        actor: "olivia".to_owned(),
        reason: None,
    };
    // A message that became a letter at the moment of the count is not part of the operation.
    fixture.pass(Duration::from_secs(1));
    let found = bulk.preflight().await.unwrap();
    assert_eq!(bulk.run(&found, || false, |_| ()).await.unwrap().moved, 1);
    signs.until_is("outbox_dead_letter_resolve_seconds{queue=orders,by=discarded}", 1.0).await;
    let asked = FakeReceiver::default().done().reconcile(|_| async { ReconcileOutcome::done() });
    let worker = fixture.work(asked);
    signs.until_is("outbox_dead_letter_resolve_seconds{queue=orders,by=reconciled}", 2.0).await;
    signs.until_is("outbox_messages{queue=orders,state=parked}", 0.0).await;
    signs.until_is("outbox_dead_letter_oldest_seconds{queue=orders,state=parked}", 0.0).await;
    signs.until_is("outbox_messages{queue=orders,state=dead}", 0.0).await;
    worker.stop();
    worker.ended().await;
    fixture.store.queues().pause(&queue(QUEUE), false, None).await.unwrap();
}

/// An attempt may have done it, and the receiver has forgotten the key when the next one is due.
// Spec: F2.
async fn suppressed(fixture: &WorkerFixture, signs: &Signs) {
    let lost = FakeReceiver::default().handler(|_, _| async { Err(JobError::unknown("SECRET-ANSWER")) });
    let worker = fixture.work(lost.keyed(BACKOFF * 2));
    let id = put(fixture, "SECRET-doubt").await;
    // With it the one that was stalled, as long as its queue was.
    fixture.until_count(StateName::Failed, 2).await;
    fixture.pass(BACKOFF * 3);
    fixture.until(id, StateName::Parked).await;
    signs.until_is("ichido_worker_suppressed_total{queue=orders}", 2.0).await;
    signs.until_is("ichido_worker_attempts_total{queue=orders,retry=yes,outcome=parked}", 2.0).await;
    worker.stop();
    worker.ended().await;
}

/// A handler keeps its transaction open for too long, on a database of its own.
// Spec: H1.
async fn overdue(signs: &Signs) {
    let fixture = WorkerFixture::sqlite().await;
    let pool = sqlx::SqlitePool::connect(&fixture.url).await.unwrap();
    let worker = Worker::new(fixture.store.clone())
        .pool(pool)
        .tx_timeout(Duration::from_millis(20))
        .handle_tx(|_: Job<LateOrder>, tx: Tx<sqlx::Sqlite>| async move {
            let _open = tx.lock().await?;
            std::future::pending::<Result<(), JobError>>().await
        })
        .start()
        .unwrap();
    let id = put(&fixture, "SECRET-overdue").await;
    fixture.until(id, StateName::Failed).await;
    assert!((signs.of("ichido_worker_tx_timeouts_total{queue=orders}") - 1.0).abs() < 0.1);
    worker.stop();
    worker.ended().await;
}

/// A handler stops on request.
// Spec: D14, H5.
async fn cancelled(fixture: &WorkerFixture, signs: &Signs) {
    let gate = HandlerGate::shut();
    let inside = gate.clone();
    let handler = FakeReceiver::default().handler(move |_, job| {
        let gate = inside.clone();
        async move {
            gate.pass().await;
            job.cancel.cancelled().await;
            Err(JobError::cancelled())
        }
    });
    let worker = fixture.work(handler);
    gate.open(1);
    let id = put(fixture, "SECRET-cancelled").await;
    gate.reached(1).await;
    let asked = fixture.store.messages().cancel(id, &Note::default()).await.unwrap();
    assert_eq!(asked, CancelOutcome::Requested);
    fixture.pass(HEARTBEAT_EVERY);
    for name in ["outbox_send_total{queue=orders", "ichido_worker_attempts_total{queue=orders,retry=no"] {
        signs.until_is(&format!("{name},outcome=cancelled}}"), 1.0).await;
    }
    worker.stop();
    worker.ended().await;
}

#[derive(serde::Serialize, serde::Deserialize)]
struct LateOrder {}

impl Message for LateOrder {
    const QUEUE: &str = QUEUE;
}

/// A destination goes down, comes back, requests a pause, and is slowed down by an operator.
// Spec: D6.
async fn standings(fixture: &WorkerFixture, signs: &Signs) {
    let handler = FakeReceiver::default().handler(|number, _| async move {
        match number {
            1 | 2 => Err(JobError::unreachable("SECRET-ANSWER")),
            4 | 5 => Err(JobError::throttled(Some(Duration::from_mins(30)), "SECRET-ANSWER")),
            _ => Ok(JobSuccess::default()),
        }
    });
    let circuit =
        CircuitSettings { failures: many(2), rest: Duration::from_mins(1), ..CircuitSettings::DEFAULT };
    let mut target = DestinationConfig::new("broker", handler);
    target.pace = PaceSettings { circuit, ..PaceSettings::DEFAULT };
    let settings = QueueConfig {
        lease: LEASE,
        parallelism: many(1),
        retry: backoff(),
        ..QueueConfig::new(QUEUE, "broker")
    };
    let worker = fixture.builder().destination(target).queue(settings).start().unwrap();
    let is = |state: &str| format!("ichido_destination_circuit{{destination=broker,state={state}}}");
    let (paused, rate) = (
        "ichido_destination_paused{destination=broker}",
        "ichido_destination_max_calls_per_second{destination=broker}",
    );
    signs.until_is(&is("closed"), 1.0).await;
    signs.until(rate, f64::is_infinite).await;
    let (first, second) = (put(fixture, "SECRET-k1").await, put(fixture, "SECRET-k2").await);
    signs.until_is(&is("open"), 1.0).await;
    signs.until_is(&is("closed"), 0.0).await;
    for id in [first, second] {
        fixture.until(id, StateName::Failed).await;
    }
    fixture.pass(BACKOFF);
    // One of them is the probe, the other one is refused, and so is a third.
    let third = put(fixture, "SECRET-k3").await;
    signs.until_is(paused, 1.0).await;
    signs.until_is(&is("closed"), 1.0).await;
    signs.until(rate, f64::is_finite).await;
    fixture.pass(Duration::from_mins(40));
    for id in [first, second, third] {
        fixture.until(id, StateName::Sent).await;
    }
    signs.until_is(paused, 0.0).await;
    let paces = Paces::new(fixture.store.clone());
    paces
        .set_max_rate(
            "broker",
            Some(PerSecond::clamped(0.2)),
            &PaceChange { by: "ann".to_owned(), at: Timestamp::EPOCH },
        )
        .await
        .unwrap();
    signs.until(rate, |rate| (rate - 0.2).abs() < 0.01).await;
    worker.stop();
    worker.ended().await;
}

/// A worker dies with messages of a queue that nobody serves any more; later somebody does.
async fn unserved(fixture: &WorkerFixture, signs: &Signs) {
    const GAUGE: &str = "ichido_worker_unserved{queue=elsewhere}";
    let elsewhere = queue("elsewhere");
    for key in ["one", "two"] {
        fixture.put_in(NewMessage { queue: elsewhere.clone(), ..message_of("alice", key) }).await;
    }
    let terms = ClaimOptions {
        node: uuid::Uuid::nil(),
        lease: LEASE,
        start_marks: false,
        guarantee: Guarantee::Idempotent,
        max_time_in_flight: Duration::ZERO,
    };
    assert_eq!(fixture.store.claims().claim(&elsewhere, many(10), terms).await.unwrap().len(), 2);
    fixture.pass(AFTER_LEASE * 3);
    let worker = fixture.work(FakeReceiver::default().done());
    while signs.of(GAUGE) < 2.0 {
        fixture.pass(Duration::from_secs(6));
        poll_pause().await;
    }
    // It is reported once, however often it is checked; and a worker that serves the queue rescues them.
    let serves =
        fixture.builder().handler("elsewhere", FakeReceiver::default().done().idempotent()).start().unwrap();
    while 0.0 < signs.of(GAUGE) {
        fixture.pass(Duration::from_secs(6));
        poll_pause().await;
    }
    for worker in [worker, serves] {
        worker.stop();
        worker.ended().await;
    }
}

fn assert_counts(signs: &Signs) {
    for (name, count) in [
        // Sent, sent after a retry, and the late one.
        ("outbox_send_total{queue=orders,outcome=success}", 3.0),
        ("outbox_send_total{queue=orders,outcome=retry}", 1.0),
        ("outbox_send_total{queue=orders,outcome=dead}", 1.0),
        ("outbox_send_total{queue=orders,outcome=parked}", 3.0),
        ("outbox_send_total{queue=orders,outcome=conflict_processed}", 0.0),
        ("ichido_worker_attempts_total{queue=orders,retry=no,outcome=success}", 2.0),
        ("ichido_worker_attempts_total{queue=orders,retry=yes,outcome=success}", 1.0),
        ("ichido_worker_attempts_total{queue=orders,retry=no,outcome=retry}", 1.0),
        ("ichido_worker_attempts_total{queue=orders,retry=no,outcome=dead}", 1.0),
        // The third was rescued, without an attempt.
        ("ichido_worker_attempts_total{queue=orders,retry=no,outcome=parked}", 2.0),
        ("outbox_inflight{queue=orders}", 0.0),
        ("outbox_dequeue_total{queue=orders,result=success}", 7.0),
        // The sent and the dead.
        ("outbox_lag_seconds{queue=orders}", 4.0),
        ("outbox_retry_count{queue=orders}", 4.0),
        ("ichido_worker_executed_total{queue=orders}", 7.0),
        ("ichido_worker_unknown_total{queue=orders}", 2.0),
        ("ichido_worker_rescued_total{queue=orders}", 1.0),
        ("ichido_worker_suppressed_total{queue=orders}", 0.0),
    ] {
        assert!((signs.of(name) - count).abs() < 0.1, "{name}: {} instead of {count}", signs.of(name));
    }
    assert!(0.0 < signs.of("outbox_dequeue_total{queue=orders,result=empty}"));
}

#[test]
fn every_attempt_is_counted_by_outcome_and_no_secret_is_logged() {
    own_process::assert_passes("worker_signs::child");
}

/// Not a test on its own: it changes the whole process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test above in its own process"]
async fn child() {
    if !own_process::is_own() {
        return;
    }
    let signs = Signs::default();
    metrics::set_global_recorder(signs.clone()).unwrap();
    tracing::subscriber::set_global_default(WorkerLogCapture).unwrap();
    describe_metrics();
    for fixture in [WorkerFixture::postgres().await, WorkerFixture::sqlite().await] {
        signs.clear();
        everything(&fixture, &signs).await;
        assert_counts(&signs);
        resolutions(&fixture, &signs).await;
        signs.clear();
        suppressed(&fixture, &signs).await;
        unserved(&fixture, &signs).await;
    }
    for fixture in [WorkerFixture::postgres().await, WorkerFixture::sqlite().await] {
        standings(&fixture, &signs).await;
    }
    for fixture in [WorkerFixture::postgres().await, WorkerFixture::sqlite().await] {
        signs.clear();
        cancelled(&fixture, &signs).await;
    }
    signs.clear();
    overdue(&signs).await;
    assert_eq!(signs.not_described(), Vec::<String>::new());
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let leaks: Vec<&str> = log.lines().filter(|line| line.contains("SECRET")).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    let hash = message_of("", "SECRET-dead").key.log_hash();
    let dead: Vec<&str> = log.lines().filter(|line| line.contains("dead_letter:")).collect();
    assert_eq!(dead.len(), 2, "{dead:#?}");
    for line in dead {
        assert!(line.contains(&hash) && line.contains("queue=\"orders\""), "{line}");
        assert!(line.contains(" message_id="), "{line}");
        // Spec: E3.
        let named = [" item=\"A title\"", " error=\"no such\\\\naccount\"", " trace_id=\"t-1\""];
        assert!(named.iter().all(|field| line.contains(field)), "{line}");
    }
    // Each line has one text: a field of that name would replace it.
    for line in log.lines() {
        assert!(line.matches(" message=").count() <= 1, "{line}");
    }
    let unserved: Vec<&str> = log.lines().filter(|line| line.contains("unserved queue;")).collect();
    assert_eq!(unserved.len(), 2, "once on each database: {unserved:#?}");
    for line in unserved {
        assert!(line.contains("queue=\"elsewhere\"") && line.contains("max_messages=2"), "{line}");
    }
    for said in ["parked: ", "rescued messages from a dead worker"] {
        assert!(log.contains(said), "not logged: {said}");
    }
    for said in [
        "asked for a pause",
        "asked for ended",
        "circuit breaker opened",
        "circuit breaker half-opened",
        "circuit breaker closed",
        "all workers slowed down",
        "operator set a destination's pace",
    ] {
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(said)).collect();
        // Once per change, on each of two databases.
        assert_eq!(lines.len(), 2, "{said}: {lines:#?}");
        assert!(lines.iter().all(|line| line.contains("destination=\"broker\"")), "{lines:#?}");
    }
}
