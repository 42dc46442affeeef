//! Logs contain the hash of a key, and never a key, a payload or an identity. Spans for traces contain the key.
// Spec: C5.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::handler_gate::HandlerGate;
use crate::once::fixture::{Mode, OnceFixture, keyed, name_of, post, respond};
use process_for_tests::own_process;

/// Captures every log line, at every level.
static LOG: Mutex<String> = Mutex::new(String::new());

/// Captures every span for traces.
static TRACED: Mutex<String> = Mutex::new(String::new());

struct RequestLogCapture;

struct LogText<'a>(&'a mut String);

impl Visit for LogText<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

fn line(metadata: &Metadata<'_>, record: impl FnOnce(&mut LogText<'_>)) {
    let text = if metadata.target() == ichido::once::REQUEST { &TRACED } else { &LOG };
    let mut log = text.lock().unwrap_or_else(PoisonError::into_inner);
    write!(log, "{} {}", metadata.target(), metadata.name()).unwrap();
    record(&mut LogText(&mut log));
    log.push('\n');
}

impl Subscriber for RequestLogCapture {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        line(span.metadata(), |text| span.record(text));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        line(event.metadata(), |text| event.record(text));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Everything that can happen to a request, with words in it that must not appear.
async fn everything(fixture: &OnceFixture) {
    let gate = HandlerGate::shut();
    let inside = gate.clone();
    let handler = fixture.handler(move |run| {
        let gate = inside.clone();
        async move {
            match run.request.uri().path() {
                "/fails" => respond(StatusCode::BAD_GATEWAY, "SECRET-ANSWER"),
                "/panics" => panic!("a fault of the handler's"),
                "/waits" => {
                    gate.pass().await;
                    run.created()
                }
                _ => respond(StatusCode::CREATED, "SECRET-ANSWER"),
            }
        }
    });
    let once = fixture.once(Mode::Opaque).in_flight_wait(Duration::ZERO);
    let once = once.reconcile(|_| async { Err("nobody answers".into()) });
    let orders = fixture.serve(once, handler);
    let call = |key: &str| keyed(key).user("SECRET-CALLER").body("SECRET-QUESTION");
    for (key, path) in [("SECRET-K1", "/"), ("SECRET-K1", "/"), ("SECRET-K1", "/other")] {
        call(key).uri(path).send(&orders).await;
    }
    for path in ["/fails", "/panics"] {
        for _ in 0..2 {
            call(&format!("SECRET-{path}")).uri(path).send(&orders).await;
        }
    }
    let waiting = call("SECRET-K2").uri("/waits").start(&orders);
    gate.reached(1).await;
    assert_eq!(call("SECRET-K2").uri("/waits").send(&orders).await.status(), 202);
    gate.open(1);
    waiting.await.unwrap();
    for bad in ["SECRET KEY", "\"SECRET", "SECRET\u{e9}"] {
        assert_eq!(call(bad).send(&orders).await.status(), 400);
    }
    let twice = post()
        .user("SECRET-CALLER")
        .field("idempotency-key", "SECRET-A")
        .field("x-idempotency-key", "SECRET-B");
    assert_eq!(twice.send(&orders).await.status(), 400);
    let json = keyed("SECRET-K3").user("SECRET-CALLER");
    assert_eq!(json.clone().json("{\"SECRET-QUESTION\":").send(&orders).await.status(), 400);
    assert_eq!(json.json(r#"{"idempotency_key":"SECRET-K4"}"#).send(&orders).await.status(), 422);
    fixture.close_store().await;
    assert_eq!(call("SECRET-K5").send(&orders).await.status(), 503);
}

#[test]
fn logs_show_key_hash_and_no_key_or_payload() {
    own_process::assert_passes("logs::child");
}

/// Not a test on its own: it changes the whole process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test above in its own process"]
async fn child() {
    if !own_process::is_own() {
        return;
    }
    tracing::subscriber::set_global_default(RequestLogCapture).unwrap();
    for fixture in [OnceFixture::postgres().await, OnceFixture::sqlite().await] {
        everything(&fixture).await;
    }
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let leaks: Vec<&str> = log.lines().filter(|line| line.contains("SECRET")).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    let hash = name_of("SECRET-CALLER", "SECRET-K1").key.log_hash();
    let span = log.lines().find(|line| line.contains("once") && line.contains(&hash));
    assert!(span.is_some_and(|span| span.contains("operation=\"orders.create\"")), "{span:?}");
    let traced = TRACED.lock().unwrap_or_else(PoisonError::into_inner);
    let span = traced.lines().find(|line| line.contains("idempotency.key=\"SECRET-K1\""));
    assert!(span.is_some_and(|span| span.contains("operation=\"orders.create\"")), "{traced}");
    assert!(!traced.contains("SECRET-QUESTION") && !traced.contains("SECRET-CALLER"), "{traced}");
    for said in [
        "handler panicked",
        "failed to claim a key",
        "failed to look up an unknown outcome",
        "refused",
        "request completed",
    ] {
        assert!(log.contains(said), "not logged: {said}");
    }
}
