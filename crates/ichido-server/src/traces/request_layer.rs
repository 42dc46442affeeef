//! Receives requests from the layer `ichido::once`, in this process or in the proxy.
//!
//! The layer opens a `tracing` span for each request with a key and knows nothing of collectors.

use std::fmt;

use ichido::once::REQUEST;
use ichido_core::time::Timestamp;
use ichido_http::clock;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::Context as LayerContext;
use tracing_subscriber::registry::LookupSpan;

use super::context::Context;
use super::{SPANS, SpanKind, TraceSpan, key_attribute};

/// Returns the layer that receives requests.
pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    Requests.with_filter(filter_fn(|about| about.target() == REQUEST))
}

struct Requests;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Requests {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: LayerContext<'_, S>) {
        let Some(span) = context.span(id).filter(|_| SPANS.get().is_some()) else { return };
        let mut request = RequestSpan { began: clock::now(), trace: None, attributes: Vec::new() };
        attributes.record(&mut request);
        span.extensions_mut().insert(request);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: LayerContext<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(request) = span.extensions_mut().get_mut::<RequestSpan>()
        {
            values.record(request);
        }
    }

    fn on_close(&self, id: Id, context: LayerContext<'_, S>) {
        let request = context.span(&id).and_then(|span| span.extensions_mut().remove::<RequestSpan>());
        if let Some(span) = request.and_then(RequestSpan::ended) {
            span.export();
        }
    }
}

/// A request with a key.
struct RequestSpan {
    began: Timestamp,
    trace: Option<Context>,
    attributes: Vec<(&'static str, String)>,
}

impl RequestSpan {
    /// Builds a child of the caller's span; `None` if the caller opts out of tracing.
    fn ended(self) -> Option<TraceSpan> {
        let context = self.trace.map_or_else(Context::new_trace, Context::child);
        context.is_sampled().then(|| TraceSpan {
            context,
            parent: self.trace.map(|trace| trace.span),
            name: "request",
            kind: SpanKind::Server,
            began: self.began,
            ended: clock::now(),
            attributes: self.attributes,
            error: None,
        })
    }
}

impl Visit for RequestSpan {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "trace" => self.trace = Context::parse(value),
            "idempotency.key" => self.attributes.push(key_attribute(value)),
            "operation" => self.attributes.push(("ichido.operation", value.to_owned())),
            "result" => self.attributes.push(("ichido.result", value.to_owned())),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
