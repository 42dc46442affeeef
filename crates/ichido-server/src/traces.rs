//! Traces: spans of a message for a collector (OTLP over HTTP, as JSON).
//!
//! Guarantee: nothing waits for a collector or fails because of one; spans that it does not accept in time are dropped and
//! counted. A span names the queue, the message and the attempt, never a key, a payload or a header.
//!
//! A message is stored with a `traceparent` whose parent is the span of its acceptance, so every attempt, on whichever node and
//! however much later, is a child of that span. `context` parses that field, `delivery_layer` receives attempts from the worker,
//! `export` sends spans, `counts` sends the counts of a batch, and `settings` finds the collector.

mod context;
pub mod counts;
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
