//! A client that sends exactly the bytes that a test specifies.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::http_message::{HttpMessage, HttpReader, MessageKind};

/// After this a test hangs. It measures nothing.
pub(crate) const HUNG: Duration = Duration::from_mins(2);

/// One connection.
pub(crate) struct ProxyClient {
    pub(crate) reader: HttpReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

impl ProxyClient {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let (read, write) = TcpStream::connect(address).await.expect("somebody listens").into_split();
        Self { reader: HttpReader::new(read), write }
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.write.write_all(bytes.as_ref()).await.expect("the other side reads");
    }

    /// Reads the next response; `None` if the connection ends without one.
    pub(crate) async fn try_answer(&mut self) -> Option<HttpMessage> {
        let answer = tokio::time::timeout(HUNG, self.reader.message(MessageKind::Answer)).await;
        answer.expect("an answer, or an end").ok().flatten()
    }

    pub(crate) async fn answer(&mut self) -> HttpMessage {
        self.try_answer().await.expect("an answer")
    }

    /// Closes the sending side.
    pub(crate) async fn write_end(&mut self) {
        // The other side may already have closed.
        drop(self.write.shutdown().await);
    }

    /// Reads until the connection ends.
    pub(crate) async fn until_end(&mut self) {
        tokio::time::timeout(HUNG, self.reader.drain()).await.expect("an end");
    }

    pub(crate) async fn send(&mut self, request: &ProxyRequest) -> HttpMessage {
        self.write(request.bytes()).await;
        self.answer().await
    }
}

/// Sends one request on its own connection.
pub(crate) async fn send(address: SocketAddr, request: &ProxyRequest) -> HttpMessage {
    ProxyClient::connect(address).await.send(request).await
}

/// Sends bytes; returns the response, if there is one.
pub(crate) async fn send_bytes(address: SocketAddr, bytes: impl AsRef<[u8]>) -> Option<HttpMessage> {
    let mut client = ProxyClient::connect(address).await;
    client.write(bytes).await;
    client.try_answer().await
}

/// A request with a length and a host.
#[derive(Clone, Debug)]
pub(crate) struct ProxyRequest {
    method: String,
    target: String,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl ProxyRequest {
    pub(crate) fn new(method: &str, target: &str) -> Self {
        Self { method: method.to_owned(), target: target.to_owned(), fields: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn post(target: &str) -> Self {
        Self::new("POST", target)
    }

    pub(crate) fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    pub(crate) fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.field("Idempotency-Key", key)
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\nHost: example.test\r\n", self.method, self.target);
        for (name, value) in &self.fields {
            write!(text, "{name}: {value}\r\n").expect("a string takes all");
        }
        if !self.body.is_empty() || self.method != "GET" {
            write!(text, "Content-Length: {}\r\n", self.body.len()).expect("a string takes all");
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}
