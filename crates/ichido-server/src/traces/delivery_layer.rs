//! Receives delivery attempts from the worker.
//!
//! The worker emits them as `tracing` events and knows nothing of collectors.

use std::fmt;

use ichido::worker::DELIVERY;
use ichido_core::time::Timestamp;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::Context as LayerContext;
use tracing_subscriber::registry::LookupSpan;

use super::context::Context;
use super::{SPANS, SpanKind, TraceSpan, key_attribute};

/// Returns the layer that receives delivery attempts.
pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    Deliveries.with_filter(filter_fn(|about| about.target() == DELIVERY))
}

struct Deliveries;

impl<S: Subscriber> Layer<S> for Deliveries {
    fn on_event(&self, event: &Event<'_>, _: LayerContext<'_, S>) {
        if SPANS.get().is_none() {
            return;
        }
        let mut delivery = DeliveryEvent::default();
        event.record(&mut delivery);
        if let Some(span) = delivery.span() {
            span.export();
        }
    }
}

/// The fields of one delivery attempt.
#[derive(Default)]
struct DeliveryEvent {
    trace: Option<Context>,
    began: Option<Timestamp>,
    ended: Option<Timestamp>,
    error: Option<String>,
    attributes: Vec<(&'static str, String)>,
}

impl DeliveryEvent {
    /// Builds a child of the span that the message was stored with.
    ///
    /// Returns `None` if the message has no trace, or an unrecorded one.
    fn span(self) -> Option<TraceSpan> {
        let parent = self.trace.filter(|trace| trace.is_sampled())?;
        Some(TraceSpan {
            context: parent.child(),
            parent: Some(parent.span),
            name: "deliver",
            kind: SpanKind::Client,
            began: self.began?,
            ended: self.ended?,
            attributes: self.attributes,
            error: self.error,
        })
    }
}

impl Visit for DeliveryEvent {
    fn record_i64(&mut self, field: &Field, value: i64) {
        match field.name() {
            "began_at" => self.began = Some(Timestamp::from_micros(value)),
            "ended_at" => self.ended = Some(Timestamp::from_micros(value)),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "attempt" {
            self.attributes.push(("ichido.attempt", value.to_string()));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "trace" => self.trace = Context::parse(value),
            "key" => self.attributes.push(key_attribute(value)),
            "queue" => self.attributes.push(("ichido.queue", value.to_owned())),
            "trace_id" => self.attributes.push(("ichido.trace_id", value.to_owned())),
            "code" => self.error = Some(value.to_owned()),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message_id" {
            self.attributes.push(("ichido.message_id", format!("{value:?}")));
        }
    }
}
