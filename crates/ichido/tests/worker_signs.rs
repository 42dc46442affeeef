//! What a worker counts and logs (SPEC D14, E5): each try once, by what it came to; and never a key or a payload.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

#[path = "worker/fixture.rs"]
#[allow(dead_code, unused_macros, reason = "what the other suite needs of it")]
mod fixture;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fixture::{AFTER_LEASE, BACKOFF, Far, Fixture, Gate, QUEUE, many, message_of, queue};
use ichido::destination::{Done, Failed};
use ichido_core::lifecycle::Stage;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

/// What was counted, by metric and labels; of a histogram, how many values.
#[derive(Clone, Default)]
struct Signs(Arc<Mutex<BTreeMap<String, f64>>>);

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

    /// What was counted of a metric.
    fn of(&self, name: &str) -> f64 {
        let signs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        signs.get(name).copied().unwrap_or(0.0)
    }

    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Recorder for Signs {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

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

/// Everything that anybody logs, at every level.
static LOG: Mutex<String> = Mutex::new(String::new());

struct Everything;

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Everything {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
        span.record(&mut Text(&mut log));
        log.push('\n');
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
        log.push_str(event.metadata().target());
        event.record(&mut Text(&mut log));
        log.push('\n');
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Puts in a message of a secret caller.
async fn put(fixture: &Fixture, key: &str) -> uuid::Uuid {
    fixture.put_in(message_of("SECRET-CALLER", key)).await
}

/// One of each that can happen to a message.
async fn everything(fixture: &Fixture, signs: &Signs) {
    let (far, gate) = (Far::default(), Gate::shut());
    let inside = gate.clone();
    let handler = move |far: &Far| {
        let gate = inside.clone();
        far.handler(move |_, job| {
            let gate = gate.clone();
            async move {
                let body = String::from_utf8_lossy(&job.payload).into_owned();
                match () {
                    () if body.contains("dead") => Err(Failed::dead("SECRET-ANSWER")),
                    () if body.contains("lost") => Err(Failed::unknown("SECRET-ANSWER")),
                    () if body.contains("retry") && job.attempt == 1 => Err(Failed::retry("SECRET-ANSWER")),
                    () if body.contains("panics") => panic!("SECRET-ANSWER"),
                    () if body.contains("waits") => {
                        gate.pass().await;
                        Ok(Done::default())
                    }
                    () => Ok(Done::default()),
                }
            }
        })
    };
    let worker = fixture.work_as(handler(&far), |queue| queue.parallelism = many(8));
    let retried = put(fixture, "SECRET-retry").await;
    fixture.until(retried, Stage::Failed).await;
    let sent = put(fixture, "SECRET-sent").await;
    fixture.until(sent, Stage::Sent).await;
    for (key, stage) in
        [("SECRET-dead", Stage::Dead), ("SECRET-lost", Stage::Parked), ("SECRET-panics", Stage::Parked)]
    {
        let id = put(fixture, key).await;
        fixture.until(id, stage).await;
    }
    fixture.pass(BACKOFF);
    fixture.until(retried, Stage::Sent).await;
    // One whose worker is taken for dead, and which ends after all.
    let waits = put(fixture, "SECRET-waits").await;
    gate.reached(1).await;
    assert!((signs.of("outbox_inflight{queue=orders}") - 1.0).abs() < 0.1);
    let other = fixture.another_node().await;
    other.pass(AFTER_LEASE + BACKOFF);
    let rescuer = other.work(Far::default().done());
    other.until(waits, Stage::Parked).await;
    worker.stop();
    rescuer.stop();
    gate.open(1);
    worker.ended().await;
    rescuer.ended().await;
    assert_eq!(fixture.row(waits).await.status, Stage::Sent);
    // A queue that stands still sends nothing, and shows how long its oldest message waits.
    fixture.store.queue_pause(&queue(QUEUE), true, None).await.unwrap();
    put(fixture, "SECRET-late").await;
    fixture.pass(Duration::from_hours(1));
    let worker = fixture.work(Far::default().done());
    while signs.of("outbox_oldest_waiting_seconds{queue=orders}") < 3_600.0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    worker.stop();
    worker.ended().await;
}

fn assert_counts(signs: &Signs) {
    for (name, count) in [
        // Sent, sent after a retry, and the late one.
        ("outbox_send_total{queue=orders,outcome=success}", 3.0),
        ("outbox_send_total{queue=orders,outcome=retry}", 1.0),
        ("outbox_send_total{queue=orders,outcome=dead}", 1.0),
        ("outbox_send_total{queue=orders,outcome=parked}", 3.0),
        ("outbox_send_total{queue=orders,outcome=conflict_processed}", 0.0),
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_try_is_counted_by_what_it_came_to_and_no_secret_is_logged() {
    let signs = Signs::default();
    metrics::set_global_recorder(signs.clone()).unwrap();
    tracing::subscriber::set_global_default(Everything).unwrap();
    for fixture in [Fixture::postgres().await, Fixture::sqlite().await] {
        signs.clear();
        everything(&fixture, &signs).await;
        assert_counts(&signs);
    }
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let leaks: Vec<&str> = log.lines().filter(|line| line.contains("SECRET")).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    let hash = message_of("", "SECRET-dead").key.log_hash();
    let dead: Vec<&str> = log.lines().filter(|line| line.contains("dead_letter")).collect();
    assert_eq!(dead.len(), 2, "{dead:#?}");
    for line in dead {
        assert!(line.contains(&hash) && line.contains("queue=\"orders\""), "{line}");
    }
    for said in ["parked: ", "taken back from a worker"] {
        assert!(log.contains(said), "nobody said: {said}");
    }
}
