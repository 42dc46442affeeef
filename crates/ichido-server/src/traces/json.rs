//! The body of an export (OTLP/JSON).
//!
//! Ids are hexadecimal digits, 64-bit integers are strings, and enums are integers.

use std::collections::BTreeMap;

use ichido_core::time::Timestamp;
use serde_json::{Value, json};

use super::{SpanKind, TraceSpan};

/// `SPAN_KIND_SERVER` and `SPAN_KIND_CLIENT`.
const SERVER: u8 = 2;
const CLIENT: u8 = 3;
/// `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;

/// Writes an `ExportTraceServiceRequest`.
pub(super) fn request(spans: &[TraceSpan], resource: &BTreeMap<String, String>) -> String {
    let scope_spans = json!({
        "scope": { "name": "ichido", "version": env!("CARGO_PKG_VERSION") },
        "spans": spans.iter().map(span).collect::<Vec<_>>(),
    });
    let resource = json!({ "attributes": attributes(resource) });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [scope_spans] }] }).to_string()
}

/// Reads how many spans an `ExportTraceServiceResponse` rejects.
pub(super) fn rejected(response: &[u8]) -> u64 {
    let response: Value = serde_json::from_slice(response).unwrap_or_default();
    let count = &response["partialSuccess"]["rejectedSpans"];
    count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or_default()
}

fn span(span: &TraceSpan) -> Value {
    let kind = match span.kind {
        SpanKind::Server => SERVER,
        SpanKind::Client => CLIENT,
    };
    let mut json = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "flags": u8::from(span.context.is_sampled()),
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": nanos(span.began),
        "endTimeUnixNano": nanos(span.ended),
        "attributes": attributes(span.attributes.iter().map(|(name, value)| (name, value))),
    });
    if let Some(parent) = span.parent {
        json["parentSpanId"] = format!("{parent:016x}").into();
    }
    if let Some(error) = &span.error {
        json["status"] = json!({ "code": ERROR, "message": error });
    }
    json
}

pub(super) fn nanos(moment: Timestamp) -> String {
    u64::try_from(moment.as_micros()).unwrap_or_default().saturating_mul(1_000).to_string()
}

pub(super) fn attributes<'a, N: AsRef<str>>(all: impl IntoIterator<Item = (N, &'a String)>) -> Vec<Value> {
    let attribute =
        |(name, value): (N, _)| json!({ "key": name.as_ref(), "value": { "stringValue": value } });
    all.into_iter().map(attribute).collect()
}

#[cfg(test)]
mod tests {
    use super::super::context::Context;
    use super::*;

    /// The shape of OpenTelemetry's own example, `examples/trace.json` of opentelemetry-proto.
    #[test]
    fn a_span_is_written_as_otlp_json() {
        let context = Context::parse("00-5b8efff798038103d269b633813fc60c-eee19b7ec3c1b174-01").unwrap();
        let span = |name, kind| TraceSpan {
            context,
            parent: None,
            name,
            kind,
            began: Timestamp::from_micros(1_544_712_660_000_001),
            ended: Timestamp::from_micros(1_544_712_661_000_000),
            attributes: Vec::new(),
            error: None,
        };
        let root = span("accept", SpanKind::Server);
        let child = TraceSpan {
            parent: Some(0x00e1_9b7e_c3c1_b173),
            attributes: vec![("ichido.queue", "orders".to_owned())],
            error: Some("BROKER_5XX".to_owned()),
            ..span("deliver", SpanKind::Client)
        };
        let resource = BTreeMap::from([("service.name".to_owned(), "shop".to_owned())]);
        let written: Value = serde_json::from_str(&request(&[child, root], &resource)).unwrap();
        let expected = json!({ "resourceSpans": [{
            "resource": { "attributes": [{ "key": "service.name", "value": { "stringValue": "shop" } }] },
            "scopeSpans": [{
                "scope": { "name": "ichido", "version": env!("CARGO_PKG_VERSION") },
                "spans": [{
                    "traceId": "5b8efff798038103d269b633813fc60c",
                    "spanId": "eee19b7ec3c1b174",
                    "parentSpanId": "00e19b7ec3c1b173",
                    "flags": 1,
                    "name": "deliver",
                    "kind": 3,
                    "startTimeUnixNano": "1544712660000001000",
                    "endTimeUnixNano": "1544712661000000000",
                    "attributes": [{ "key": "ichido.queue", "value": { "stringValue": "orders" } }],
                    "status": { "code": 2, "message": "BROKER_5XX" },
                }, {
                    "traceId": "5b8efff798038103d269b633813fc60c",
                    "spanId": "eee19b7ec3c1b174",
                    "flags": 1,
                    "name": "accept",
                    "kind": 2,
                    "startTimeUnixNano": "1544712660000001000",
                    "endTimeUnixNano": "1544712661000000000",
                    "attributes": [],
                }],
            }],
        }] });
        assert_eq!(written, expected);
    }

    #[test]
    fn a_partial_success_says_how_many_spans_were_rejected() {
        for (response, count) in [
            ("", 0),
            ("{}", 0),
            (r#"{"partialSuccess":{}}"#, 0),
            (r#"{"partialSuccess":{"errorMessage":"use v2"}}"#, 0),
            (r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#, 3),
            (r#"{"partialSuccess":{"rejectedSpans":3}}"#, 3),
            (r#"{"partialSuccess":{"rejectedSpans":"-3"}}"#, 0),
        ] {
            assert_eq!(rejected(response.as_bytes()), count, "{response}");
        }
    }
}
