//! Metrics by operation: each request counts once, by its result.
// Spec: A14.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use ichido::once::{KeyNeed, SameContent};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use crate::handler_gate::HandlerGate;
use crate::once::fixture::{AFTER_LEASE, Mode, OnceFixture, keyed, post, respond};
use process_for_tests::own_process;

/// Counters by name and labels.
#[derive(Clone, Default)]
struct CounterRecorder(Arc<Mutex<BTreeMap<String, Arc<AtomicU64>>>>);

impl CounterRecorder {
    /// Returns what was counted since the last call, by metric and labels; zeros are omitted.
    fn take(&self) -> BTreeMap<String, u64> {
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = counters.iter().map(|(name, count)| (name.clone(), count.swap(0, Ordering::SeqCst)));
        taken.filter(|(_, count)| 0 < *count).collect()
    }
}

impl Recorder for CounterRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Counter::from_arc(Arc::clone(counters.entry(name).or_default()))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

fn expected(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

const REQUESTS: &str = "ichido_once_requests_total{operation=orders.create,result=";

async fn assert_counts(fixture: &OnceFixture, counts: &CounterRecorder) {
    counts.take();
    let gate = HandlerGate::shut();
    let inside = gate.clone();
    let handler = fixture.handler(move |run| {
        let gate = inside.clone();
        async move {
            match run.request.uri().path() {
                "/fails" => respond(StatusCode::BAD_GATEWAY, "failed"),
                "/same" => {
                    let mut response = run.created();
                    response.extensions_mut().insert(SameContent);
                    response
                }
                "/large" => respond(StatusCode::OK, "x".repeat(100)),
                "/waits" => {
                    gate.pass().await;
                    run.created()
                }
                _ => run.created(),
            }
        }
    });
    let once = |mode| {
        let once = fixture.once(mode).in_flight_wait(Duration::ZERO).max_response_bytes(50);
        once.key(KeyNeed::Optional)
    };
    let orders = fixture.serve(once(Mode::Opaque), handler.clone());
    keyed("k1").send(&orders).await;
    for which in ["2; auto", "3; manual"] {
        keyed("k1").field("ichido-attempt", which).send(&orders).await;
    }
    keyed("k1").body("other").send(&orders).await;
    for _ in 0..2 {
        keyed("k2").uri("/fails").send(&orders).await;
        keyed("k3").uri("/large").send(&orders).await;
    }
    keyed("").send(&orders).await;
    post().send(&orders).await;
    // The second of the two is a duplicate by its key too.
    for _ in 0..2 {
        keyed("k6").uri("/same").send(&orders).await;
    }
    let needs_key = fixture.serve(once(Mode::Opaque).key(KeyNeed::Required), handler.clone());
    post().send(&needs_key).await;
    let waits = || keyed("k4").uri("/waits");
    let keyed_mode = fixture.serve(once(Mode::Keyed), handler);
    let first = waits().start(&keyed_mode);
    gate.reached(1).await;
    waits().send(&keyed_mode).await;
    // Another node takes over from a suspended one.
    let other = fixture.another_node().await;
    other.pass(AFTER_LEASE);
    let taken = other.serve(other.once(Mode::Keyed), other.ordering());
    waits().send(&taken).await;
    gate.open(1);
    first.await.unwrap();
    other.pass(Duration::from_hours(80));
    waits().send(&taken).await;
    fixture.close_store().await;
    keyed("k5").send(&orders).await;
    let requests = |labels: &str| format!("{REQUESTS}{labels}}}");
    let all = [
        // k1, k3, k4 three times, and k2, which failed.
        (requests("first,attempt=first,success=true"), 5),
        (requests("first,attempt=first,success=false"), 1),
        (requests("same_content,attempt=first,success=true"), 1),
        (requests("replayed,attempt=first,success=true"), 1),
        (requests("replayed,attempt=auto,success=true"), 1),
        (requests("replayed,attempt=manual,success=true"), 1),
        (requests("mismatched,attempt=first,success=false"), 1),
        (requests("unknown,attempt=first,success=false"), 1),
        (requests("not_stored,attempt=first,success=false"), 1),
        (requests("refused,attempt=first,success=false"), 1),
        (requests("keyless,attempt=first,success=true"), 1),
        (requests("keyless,attempt=first,success=false"), 1),
        (requests("in_flight,attempt=first,success=false"), 1),
        (requests("unavailable,attempt=first,success=false"), 1),
        ("ichido_once_waited_total{operation=orders.create}".to_owned(), 1),
        ("ichido_once_expired_total{operation=orders.create}".to_owned(), 1),
        ("ichido_once_held_total{operation=orders.create}".to_owned(), 1),
        ("ichido_once_overtaken_total{operation=orders.create}".to_owned(), 1),
    ];
    let all: Vec<(&str, u64)> = all.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(counts.take(), expected(&all));
}

#[test]
fn every_request_is_counted_once_by_result() {
    own_process::assert_passes("meters::child");
}

/// Not a test on its own: it changes the whole process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test above in its own process"]
async fn child() {
    if !own_process::is_own() {
        return;
    }
    let counts = CounterRecorder::default();
    metrics::set_global_recorder(counts.clone()).unwrap();
    assert_counts(&OnceFixture::postgres().await, &counts).await;
    assert_counts(&OnceFixture::sqlite().await, &counts).await;
}
