//! Traces: the way of a message as a collector shows it (OTLP over HTTP, as JSON).
//!
//! Guarantee: nothing waits for a collector, and nothing fails because of one: what it does not take in time is dropped and counted.
//! A span says which queue, which message and which try, never a key, a payload or a header.
//!
//! A message is stored with a `traceparent` whose parent is the span of its acceptance, so that every try of it, on whichever node and
//! however much later, is a child of that. `context` is that field, `listen` hears of tries from the worker, `export` sends, `settings` reads where to.

mod context;
mod delivery_layer;
mod export;
mod json;
mod settings;

use std::sync::OnceLock;

use http::HeaderMap;
use ichido_core::time::Timestamp;
use tokio::sync::mpsc;
use uuid::Uuid;

use context::Context;
pub use delivery_layer::layer;
pub use export::start;
use ichido_http::clock;

/// The most spans that wait for the collector.
const QUEUED_SPANS_MAX: usize = 4_096;
/// Spans that were not handed on: there was no room for them, or nobody took them.
const LOST_SPANS: &str = "ichido_traces_lost_total";

/// Where spans go, once somebody exports them.
static SPANS: OnceLock<mpsc::Sender<TraceSpan>> = OnceLock::new();

/// What happened, from when to when.
#[derive(Debug)]
struct TraceSpan {
    context: Context,
    parent: Option<u64>,
    name: &'static str,
    kind: SpanKind,
    began: Timestamp,
    ended: Timestamp,
    attributes: Vec<(&'static str, String)>,
    /// The code of an error, where it is one.
    error: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum SpanKind {
    /// Somebody asked us.
    Server,
    /// We asked somebody.
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

/// A message that is being accepted.
pub struct Accepting {
    context: Context,
    parent: Option<u64>,
    began: Timestamp,
}

/// Begins the span of an acceptance; `None` where nobody exports, or whoever asks does not want this traced.
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
    /// What is stored with the message, so that its tries are children of this.
    pub fn traceparent(&self) -> String {
        self.context.to_string()
    }

    /// It stands.
    pub fn end(self, queue: &str, message: Uuid, is_replay: bool) {
        let Self { context, parent, began } = self;
        let attributes = vec![
            ("ichido.queue", queue.to_owned()),
            ("ichido.message_id", message.to_string()),
            ("ichido.replayed", is_replay.to_string()),
        ];
        let (name, kind) = ("accept", SpanKind::Server);
        TraceSpan { context, parent, name, kind, began, ended: clock::now(), attributes, error: None }
            .export();
    }
}
