//! Traces: spans of a message for a collector (OTLP over HTTP, as JSON).
//!
//! Guarantee: nothing waits for a collector or fails because of one; spans that it does not accept in time are dropped and
//! counted. A span carries the idempotency key (`idempotency.key`), or its hash if that is set, and never a payload or a header.
//!
//! A message is stored with a `traceparent` whose parent is the span of its acceptance, so every attempt, on whichever node and
//! however much later, is a child of that span. `context` parses that field, `delivery_layer` receives attempts from the worker,
//! `request_layer` requests from the layer, `export` sends spans, `counts` sends the counts of a batch, and `settings` finds the
//! collector.
// Spec: C5.

mod context;
pub mod counts;
mod delivery_layer;
mod export;
mod json;
mod request_layer;
mod settings;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use http::HeaderMap;
use ichido::once::REQUEST;
use ichido::worker::DELIVERY;
use ichido_core::key::IdempotencyKey;
use ichido_core::time::Timestamp;
use tokio::sync::mpsc;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;
use uuid::Uuid;

use context::Context;
#[cfg(test)]
pub(crate) use export::describe_metrics;
pub use export::start;
use ichido_http::clock;

/// Maximum spans that wait for the collector.
const MAX_QUEUED_SPANS: usize = 4_096;
/// Spans that were dropped: the buffer was full, or the collector did not accept them.
const LOST_SPANS: &str = "ichido_traces_lost_total";

/// The channel to the exporter, once there is one.
static SPANS: OnceLock<mpsc::Sender<TraceSpan>> = OnceLock::new();
/// Whether spans carry the hash of a key instead of the key.
static HASHES_KEYS: AtomicBool = AtomicBool::new(false);

/// Returns the layer that turns what the worker and the layer `ichido::once` report into spans.
pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    delivery_layer::layer().and_then(request_layer::layer())
}

/// Returns whether a target is for spans only: it carries keys, which a log must not.
pub fn is_span_target(target: &str) -> bool {
    [DELIVERY, REQUEST].contains(&target)
}

/// Returns the attribute of a key.
fn key_attribute(key: &str) -> (&'static str, String) {
    let is_hashed = HASHES_KEYS.load(Ordering::Relaxed);
    let hash = || IdempotencyKey::parse(key).map(|key| key.log_hash()).unwrap_or_default();
    ("idempotency.key", if is_hashed { hash() } else { key.to_owned() })
}

/// A span of a trace.
#[derive(Debug)]
struct TraceSpan {
    context: Context,
    parent: Option<u64>,
    name: &'static str,
    kind: SpanKind,
    began: Timestamp,
    ended: Timestamp,
    attributes: Vec<(&'static str, String)>,
    /// The code of an error, if it failed.
    error: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum SpanKind {
    /// A request to us.
    Server,
    /// A request from us.
    Client,
}

impl TraceSpan {
    fn export(self) {
        let Some(spans) = SPANS.get() else { return };
        if spans.try_send(self).is_err() {
            metrics::counter!(LOST_SPANS).increment(1);
        }
    }
}

/// The span of a message that is being accepted.
pub struct Accepting {
    context: Context,
    parent: Option<u64>,
    began: Timestamp,
}

/// Starts the span of an acceptance.
///
/// Returns `None` without an exporter, or if the caller opts out of tracing.
pub fn accept(headers: &HeaderMap) -> Option<Accepting> {
    SPANS.get()?;
    let before = Context::from_headers(headers);
    let context = before.map_or_else(Context::new_trace, Context::child);
    context.is_sampled().then(|| Accepting {
        context,
        parent: before.map(|before| before.span),
        began: clock::now(),
    })
}

impl Accepting {
    /// Returns the value to store with the message.
    ///
    /// Its attempts are then children of this span.
    pub fn traceparent(&self) -> String {
        self.context.to_string()
    }

    /// Ends the span once the message is stored.
    pub fn end(self, queue: &str, key: &IdempotencyKey, message: Uuid, is_replay: bool) {
        let Self { context, parent, began } = self;
        let attributes = vec![
            key_attribute(key.as_str()),
            ("ichido.queue", queue.to_owned()),
            ("ichido.message_id", message.to_string()),
            ("ichido.replayed", is_replay.to_string()),
        ];
        let (name, kind) = ("accept", SpanKind::Server);
        TraceSpan { context, parent, name, kind, began, ended: clock::now(), attributes, error: None }
            .export();
    }
}
