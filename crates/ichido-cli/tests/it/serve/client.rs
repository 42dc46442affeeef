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
pub(crate) struct RawClient {
    pub(crate) reader: HttpReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

impl RawClient {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.expect("somebody listens"))
    }

    /// Uses an existing connection.
    pub(crate) fn over(stream: TcpStream) -> Self {
        let (read, write) = stream.into_split();
        Self { reader: HttpReader::new(read), write }
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        // The server may have responded early and closed; its response tells.
        drop(self.write.write_all(bytes.as_ref()).await);
    }

    /// Reads the next response; `None` if the connection ends without one.
    pub(crate) async fn try_answer(&mut self) -> Option<HttpMessage> {
        let answer = tokio::time::timeout(HUNG, self.reader.message(MessageKind::Answer)).await;
        answer.expect("an answer, or an end").ok().flatten()
    }

    pub(crate) async fn answer(&mut self) -> HttpMessage {
        self.try_answer().await.expect("an answer")
    }

    pub(crate) async fn send(&mut self, request: &RawRequest) -> HttpMessage {
        self.write(request.bytes()).await;
        self.answer().await
    }
}

/// A request with a length and a host.
#[derive(Clone, Debug)]
pub(crate) struct RawRequest {
    method: String,
    target: String,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl RawRequest {
    pub(crate) fn new(method: &str, target: &str) -> Self {
        Self { method: method.to_owned(), target: target.to_owned(), fields: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    pub(crate) fn post(target: &str) -> Self {
        Self::new("POST", target)
    }

    /// Creates a JSON message for the built-in queue.
    pub(crate) fn put(key: &str, body: &str) -> Self {
        Self::post("/v1/queues/demo/messages").key(key).field("Content-Type", "application/json").body(body)
    }

    /// Changes the target.
    pub(crate) fn to(self, target: &str) -> Self {
        Self { target: target.to_owned(), ..self }
    }

    pub(crate) fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.field("Idempotency-Key", key)
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.field("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if !self.fields.iter().any(|(name, _)| name == "Host") {
            text.push_str("Host: localhost\r\n");
        }
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

/// Sends one request on its own connection.
pub(crate) async fn send(address: SocketAddr, request: &RawRequest) -> HttpMessage {
    RawClient::connect(address).await.send(request).await
}

/// Returns the status and the code of a problem.
pub(crate) fn problem(answer: &HttpMessage) -> (u16, String) {
    let code = answer.code();
    let body = answer.json();
    assert_eq!(body["type"], format!("/errors/{code}"));
    assert_eq!(body["status"], answer.status());
    assert!(body["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{body}");
    (answer.status(), code)
}
