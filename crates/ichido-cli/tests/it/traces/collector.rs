//! A small collector: takes exports over HTTP, and reads the protobuf by the field numbers that OpenTelemetry publishes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::http_message::{Kind, Reader};

/// A span as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) kind: u64,
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) status: u64,
}

pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let spans = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&spans);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                tokio::spawn(async move {
                    let (read, mut write) = stream.into_split();
                    let mut reader = Reader::new(read);
                    while let Ok(Some(request)) = reader.message(Kind::Request).await {
                        assert_eq!(request.first, "POST /v1/traces HTTP/1.1");
                        assert_eq!(request.one("content-type"), Some("application/x-protobuf"));
                        kept.lock().unwrap().extend(spans_of(&request.body));
                        let answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
                        // Whoever asked may have gone.
                        drop(write.write_all(answer).await);
                    }
                });
            }
        });
        Self { address, spans }
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap().clone()
    }
}

/// What a field holds.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(number) => panic!("a number where bytes are due: {number}"),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }

    fn hex(&self) -> String {
        let mut text = String::new();
        for byte in self.bytes() {
            write!(text, "{byte:02x}").expect("a string takes all");
        }
        text
    }

    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(_) => panic!("bytes where a number is due"),
        }
    }
}

/// The fields of a message, in order.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let (byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return number;
            }
        }
        unreachable!("a number ends")
    }
    fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
        let (taken, rest) = bytes.split_at(count);
        *bytes = rest;
        taken
    }
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => Value::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
            2 => {
                let length = varint(&mut bytes);
                Value::Bytes(take(&mut bytes, usize::try_from(length).unwrap()))
            }
            5 => Value::Number(u32::from_le_bytes(take(&mut bytes, 4).try_into().unwrap()).into()),
            other => panic!("no wire type: {other}"),
        };
        all.push((tag >> 3, value));
    }
    all
}

/// The members of a field that is a message, one after another.
fn inside(bytes: &[u8], field: u64) -> Vec<&[u8]> {
    fields(bytes).into_iter().filter(|(number, _)| *number == field).map(|(_, value)| value.bytes()).collect()
}

/// `ExportTraceServiceRequest`: `resource_spans` 1, `scope_spans` 2, `spans` 2.
fn spans_of(request: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for resource_spans in inside(request, 1) {
        let resource = inside(resource_spans, 1)[0];
        let attributes: BTreeMap<String, String> = inside(resource, 1).into_iter().map(attribute).collect();
        assert_eq!(attributes["service.name"], "ichido");
        for scope_spans in inside(resource_spans, 2) {
            spans.extend(inside(scope_spans, 2).into_iter().map(span));
        }
    }
    spans
}

fn span(bytes: &[u8]) -> Span {
    let mut span = Span::default();
    for (field, value) in fields(bytes) {
        match field {
            1 => span.trace = value.hex(),
            2 => span.id = value.hex(),
            4 => span.parent = value.hex(),
            5 => span.name = value.text(),
            6 => span.kind = value.number(),
            7 => span.began = value.number(),
            8 => span.ended = value.number(),
            9 => span.attributes.extend([attribute(value.bytes())]),
            15 => {
                let code = fields(value.bytes()).into_iter().find(|(field, _)| *field == 3);
                span.status = code.map_or(0, |(_, value)| value.number());
            }
            16 => assert_eq!(value.number(), 1, "it is recorded"),
            other => panic!("no field of a span: {other}"),
        }
    }
    span
}

/// `KeyValue`: key 1, value 2, which is an `AnyValue` with a string 1.
fn attribute(bytes: &[u8]) -> (String, String) {
    let name = String::from_utf8(inside(bytes, 1)[0].to_vec()).unwrap();
    (name, String::from_utf8(inside(inside(bytes, 2)[0], 1)[0].to_vec()).unwrap())
}
