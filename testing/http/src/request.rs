//! A request as it was received.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// A request, read to its end.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// The request line.
    pub line: String,
    /// The header fields, in order.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// Returns the one field of this name; panics if there are two, which no test expects.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
        let first = found.next();
        assert!(found.next().is_none(), "{name} was sent twice");
        first.map(|(_, value)| value.as_str())
    }

    /// Returns the idempotency key, which must be set.
    pub fn key(&self) -> &str {
        self.field("idempotency-key").expect("the request has a key")
    }

    /// Reads the next request of a connection; `None` when it ends. `buffer` keeps the beginning of the one after it.
    pub(crate) async fn read<S: AsyncRead + Unpin>(stream: &mut S, buffer: &mut Vec<u8>) -> Option<Self> {
        let head_end = loop {
            if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(buffer).await.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8(buffer[..head_end].to_vec()).expect("ASCII");
        let mut lines = head.trim_end().split("\r\n");
        let line = lines.next()?.to_owned();
        let field = |field: &str| {
            let (name, value) = field.split_once(':').expect("a field");
            (name.to_owned(), value.trim().to_owned())
        };
        let fields: Vec<(String, String)> = lines.map(field).collect();
        let length = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length: usize = length.map_or(0, |(_, value)| value.parse().expect("a number"));
        while buffer.len() < head_end + length {
            if stream.read_buf(buffer).await.ok()? == 0 {
                return None;
            }
        }
        let rest = buffer.split_off(head_end + length);
        let body = buffer[head_end..].to_vec();
        *buffer = rest;
        Some(Self { line, fields, body })
    }
}
