//! The protobuf of an export (`opentelemetry/proto/collector/trace/v1`), written by hand: a few messages of strings and numbers, which a
//! generator and its runtime would only make heavier.

use super::{Kind, Span};

/// The wire types of protobuf.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED32: u64 = 5;

/// `SPAN_KIND_SERVER` and `SPAN_KIND_CLIENT`.
const SERVER: u64 = 2;
const CLIENT: u64 = 3;
/// `STATUS_CODE_ERROR`.
const ERROR: u64 = 2;

/// One message, as far as it is written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while 0x7f < number {
            self.0.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
            number >>= 7;
        }
        self.0.push(u8::try_from(number).unwrap_or_default());
    }

    fn number(mut self, field: u64, number: u64) -> Self {
        self.varint(field << 3 | VARINT);
        self.varint(number);
        self
    }

    fn fixed64(mut self, field: u64, number: u64) -> Self {
        self.varint(field << 3 | FIXED64);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn fixed32(mut self, field: u64, number: u32) -> Self {
        self.varint(field << 3 | FIXED32);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn inside(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }
}

/// `ExportTraceServiceRequest`.
pub(super) fn request(spans: &[Span], node: &str) -> Vec<u8> {
    let resource = Message::default()
        .inside(1, &attribute("service.name", "ichido"))
        .inside(1, &attribute("service.version", env!("CARGO_PKG_VERSION")))
        .inside(1, &attribute("service.instance.id", node));
    let scope = Message::default().bytes(1, b"ichido").bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
    let scope_spans =
        spans.iter().fold(Message::default().inside(1, &scope), |all, one| all.inside(2, &span(one)));
    let resource_spans = Message::default().inside(1, &resource).inside(2, &scope_spans);
    Message::default().inside(1, &resource_spans).0
}

fn span(span: &Span) -> Message {
    let nanos = |moment: ichido_core::time::Timestamp| {
        u64::try_from(moment.as_micros()).unwrap_or_default().saturating_mul(1_000)
    };
    let kind = match span.kind {
        Kind::Server => SERVER,
        Kind::Client => CLIENT,
    };
    let mut message = Message::default().bytes(1, &span.context.trace).bytes(2, &span.context.span);
    if let Some(parent) = span.parent {
        message = message.bytes(4, &parent);
    }
    message = message
        .bytes(5, span.name.as_bytes())
        .number(6, kind)
        .fixed64(7, nanos(span.began))
        .fixed64(8, nanos(span.ended));
    for (name, value) in &span.attributes {
        message = message.inside(9, &attribute(name, value));
    }
    if let Some(error) = &span.error {
        message = message.inside(15, &Message::default().bytes(2, error.as_bytes()).number(3, ERROR));
    }
    message.fixed32(16, u32::from(span.context.is_sampled()))
}

/// A name with a text.
fn attribute(name: &str, value: &str) -> Message {
    let value = Message::default().bytes(1, value.as_bytes());
    Message::default().bytes(1, name.as_bytes()).inside(2, &value)
}
