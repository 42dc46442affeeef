//! A client that knows how to call each API, and nothing more.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use fake_llm::api::Provider;
use fake_llm::{Fake, Script, SeenRequests};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

pub(crate) const APIS: [Provider; 3] = [Provider::Bedrock, Provider::Openai, Provider::Anthropic];
pub(crate) const BEDROCK: &str = "/model/anthropic.claude-x%3A0/converse";
pub(crate) const OPENAI: &str = "/v1/chat/completions";
pub(crate) const ANTHROPIC: &str = "/v1/messages";
pub(crate) const SIGNED: &str = "AWS4-HMAC-SHA256 Credential=AKID/20261115/eu-west-1/bedrock/aws4_request, \
     SignedHeaders=content-type;host;x-amz-date, \
     Signature=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Timeout for what a test waits for.
const MAX_WAIT: Duration = Duration::from_mins(2);

/// A request that can be changed before it is sent.
#[derive(Clone)]
pub(crate) struct SentRequest {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
}

/// A response.
#[derive(Debug)]
pub(crate) struct ReceivedResponse {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
    pub(crate) body: Value,
}

/// A minimal request of each API, about an item.
pub(crate) fn request_to(api: Provider, item: &str) -> SentRequest {
    let text = format!("Judge item-{item} please.");
    let json = ("content-type", "application/json".to_owned());
    let (path, headers, body) = match api {
        Provider::Bedrock => (
            BEDROCK,
            vec![json, ("authorization", SIGNED.to_owned()), ("x-amz-date", "20261115T211500Z".to_owned())],
            json!({ "messages": [{ "role": "user", "content": [{ "text": text }] }] }),
        ),
        Provider::Openai => (
            OPENAI,
            vec![json, ("authorization", "Bearer sk-secret".to_owned())],
            json!({ "model": "gpt-x", "messages": [{ "role": "user", "content": text }] }),
        ),
        Provider::Anthropic => (
            ANTHROPIC,
            vec![json, ("x-api-key", "sk-secret".to_owned()), ("anthropic-version", "2023-06-01".to_owned())],
            json!({ "model": "claude-x", "max_tokens": 100, "messages": [{ "role": "user", "content": text }] }),
        ),
    };
    SentRequest { method: "POST", path: path.to_owned(), headers, body }
}

impl SentRequest {
    /// Uses another endpoint of the same server.
    pub(crate) fn at(mut self, endpoint: &str) -> Self {
        self.path = format!("{endpoint}{}", self.path);
        self
    }

    /// Sets a member of the body.
    pub(crate) fn with(mut self, member: &str, value: Value) -> Self {
        self.body[member] = value;
        self
    }

    /// Removes a member of the body.
    pub(crate) fn without(mut self, member: &str) -> Self {
        self.body.as_object_mut().expect("an object").remove(member).expect(member);
        self
    }

    /// Replaces a header; an empty value removes it.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(other, _)| *other != name);
        if !value.is_empty() {
            self.headers.push((name, value.to_owned()));
        }
        self
    }

    /// Sends it and returns the connection, so the caller can close it before the response.
    pub(crate) async fn send_only(self, to: SocketAddr) -> TcpStream {
        let body = self.body.to_string();
        let mut lines = vec![format!("{} {} HTTP/1.1", self.method, self.path), format!("host: {to}")];
        lines.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        if self.headers.iter().all(|(name, _)| *name != "content-length") {
            lines.push(format!("content-length: {}", body.len()));
        }
        lines.extend([String::new(), body]);
        let request = lines.join("\r\n");
        let mut stream = TcpStream::connect(to).await.expect("connected");
        stream.write_all(request.as_bytes()).await.expect("sent");
        stream
    }

    /// Sends it and returns the response.
    pub(crate) async fn send(self, to: SocketAddr) -> ReceivedResponse {
        self.try_send(to).await.expect("an answer")
    }

    /// Sends it; the connection may end without a response.
    pub(crate) async fn try_send(self, to: SocketAddr) -> Result<ReceivedResponse, hyper::Error> {
        let mut request =
            Request::builder().method(self.method).uri(self.path).header("host", to.to_string());
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        // A string is sent as it is, so invalid JSON can be sent too.
        let body = self.body.as_str().map_or_else(|| self.body.to_string(), str::to_owned);
        received(exchange(to, request.body(Full::from(body)).expect("a request")).await?).await
    }
}

async fn exchange(
    to: SocketAddr,
    request: Request<Full<Bytes>>,
) -> Result<Response<hyper::body::Incoming>, hyper::Error> {
    let stream = TcpStream::connect(to).await.expect("connected");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    sender.send_request(request).await
}

async fn received(response: Response<hyper::body::Incoming>) -> Result<ReceivedResponse, hyper::Error> {
    let (head, body) = response.into_parts();
    let text = String::from_utf8(body.collect().await?.to_bytes().into()).expect("UTF-8");
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    Ok(ReceivedResponse { status: head.status.as_u16(), headers: head.headers, text, body })
}

impl ReceivedResponse {
    /// Returns a header's text, or an empty one.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().expect("text")).unwrap_or_default()
    }

    /// Returns what the model says.
    pub(crate) fn reply_text(&self, api: Provider) -> &str {
        let reply_text = match api {
            Provider::Bedrock => &self.body["output"]["message"]["content"][0]["text"],
            Provider::Openai => &self.body["choices"][0]["message"]["content"],
            Provider::Anthropic => &self.body["content"][0]["text"],
        };
        reply_text.as_str().unwrap_or_else(|| panic!("the model says nothing: {}", self.text))
    }

    /// Returns why the model stopped.
    pub(crate) fn stop(&self, api: Provider) -> &str {
        let stop = match api {
            Provider::Bedrock => &self.body["stopReason"],
            Provider::Openai => &self.body["choices"][0]["finish_reason"],
            Provider::Anthropic => &self.body["stop_reason"],
        };
        stop.as_str().unwrap_or_else(|| panic!("no reason: {}", self.text))
    }
}

/// Waits until something is true of what was seen.
pub(crate) async fn until(fake: &Fake, what: &str, is_true: impl Fn(&SeenRequests) -> bool) {
    let poll = async {
        while !is_true(&fake.seen()) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(MAX_WAIT, poll).await.unwrap_or_else(|_| panic!("never: {what}"));
}

pub(crate) fn script(json: &Value) -> Script {
    Script::parse(json.to_string().as_bytes()).expect("a script")
}
