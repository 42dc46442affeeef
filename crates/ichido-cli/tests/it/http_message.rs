//! HTTP/1.1 messages as bytes: enough for services and clients that do exactly what a test says.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// A request or a response.
#[derive(Clone, Debug)]
pub(crate) struct HttpMessage {
    /// The request line or the status line.
    pub(crate) first: String,
    /// The header fields in order, with lower-case names.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpMessage {
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.fields.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_str()).collect()
    }

    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() <= 1, "{name} came {} times", all.len());
        all.first().copied()
    }

    pub(crate) fn status(&self) -> u16 {
        let status = self.first.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("no status line: {:?}", self.first))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {:?}", self.text()))
    }

    /// Returns the code of a problem.
    pub(crate) fn code(&self) -> String {
        assert_eq!(self.one("content-type"), Some("application/problem+json"), "{self:?}");
        self.json()["code"].as_str().expect("a code").to_owned()
    }
}

/// The kind of message to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Request,
    Answer,
    /// A response to HEAD, which has a length and no body.
    AnswerToHead,
}

/// Reads consecutive messages from a stream.
pub(crate) struct HttpReader<R> {
    stream: R,
    ahead: Vec<u8>,
}

impl<R: AsyncRead + Unpin> HttpReader<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, ahead: Vec::new() }
    }

    /// Reads more bytes; returns `false` at the end of the stream.
    async fn more(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        let read = self.stream.read(&mut buffer).await?;
        self.ahead.extend_from_slice(&buffer[..read]);
        Ok(read != 0)
    }

    /// Reads up to and including `end`; `None` if the stream ends before it.
    async fn up_to(&mut self, end: &[u8]) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(at) = self.ahead.windows(end.len()).position(|window| window == end) {
                let rest = self.ahead.split_off(at + end.len());
                return Ok(Some(std::mem::replace(&mut self.ahead, rest)));
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    /// Reads exactly this many bytes.
    async fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.ahead.len() < count {
            if !self.more().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let rest = self.ahead.split_off(count);
        Ok(std::mem::replace(&mut self.ahead, rest))
    }

    /// Reads the head of the next message; `None` if the stream has ended.
    pub(crate) async fn head(&mut self) -> io::Result<Option<HttpMessage>> {
        let Some(head) = self.up_to(b"\r\n\r\n").await? else { return Ok(None) };
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.trim_end().split("\r\n");
        let first = lines.next().unwrap_or_default().to_owned();
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields =
            fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
        Ok(Some(HttpMessage { first, fields, body: Vec::new() }))
    }

    /// Reads the next message; `None` if the stream has ended. A truncated message is an error.
    pub(crate) async fn message(&mut self, kind: MessageKind) -> io::Result<Option<HttpMessage>> {
        let Some(mut message) = self.head().await? else { return Ok(None) };
        if kind == MessageKind::Answer && message.status() == 100 {
            let Some(last) = self.head().await? else { return Ok(None) };
            message = last;
        }
        let has_none = kind == MessageKind::AnswerToHead
            || matches!(kind, MessageKind::Answer if matches!(message.status(), 204 | 304));
        if !has_none {
            message.body = self.body(&message, kind).await?;
        }
        Ok(Some(message))
    }

    /// Reads the body that belongs to a head.
    pub(crate) async fn body(&mut self, head: &HttpMessage, kind: MessageKind) -> io::Result<Vec<u8>> {
        if head.one("transfer-encoding") == Some("chunked") {
            let mut body = Vec::new();
            loop {
                let chunk = self.chunk().await?;
                if chunk.is_empty() {
                    return Ok(body);
                }
                body.extend(chunk);
            }
        }
        match head.one("content-length") {
            Some(length) => self.exactly(length.parse().expect("a length")).await,
            None if kind == MessageKind::Request => Ok(Vec::new()),
            None => {
                while self.more().await? {}
                Ok(std::mem::take(&mut self.ahead))
            }
        }
    }

    /// Reads the next chunk; empty for the last.
    pub(crate) async fn chunk(&mut self) -> io::Result<Vec<u8>> {
        let line = self.up_to(b"\r\n").await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let size = usize::from_str_radix(String::from_utf8_lossy(&line).trim(), 16).expect("a size");
        let mut chunk = self.exactly(size + 2).await?;
        chunk.truncate(size);
        Ok(chunk)
    }

    /// Reads until the stream ends.
    pub(crate) async fn drain(&mut self) {
        while self.more().await.unwrap_or(false) {}
    }

    /// Returns whether the stream ends here.
    pub(crate) async fn is_at_end(&mut self) -> bool {
        // A reset is an end too: data in flight is lost.
        self.ahead.is_empty() && !self.more().await.unwrap_or(false)
    }
}
