//! A small collector that accepts exports over HTTP or HTTPS and parses their JSON.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::http_message::{HttpMessage, HttpReader, MessageKind};

/// The response to an accepted export.
const TAKEN: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 21\r\n\r\n{\"partialSuccess\":{}}";

/// A span as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct ExportedSpan {
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
    requests: Arc<Mutex<Vec<HttpMessage>>>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        Self::launch(None, Vec::new()).await
    }

    /// Starts a collector behind TLS.
    pub(crate) async fn start_tls(acceptor: TlsAcceptor) -> Self {
        Self::launch(Some(acceptor), Vec::new()).await
    }

    /// Starts a collector that gives these responses first, and accepts nothing with them.
    pub(crate) async fn answering(answers: &[&'static str]) -> Self {
        Self::launch(None, answers.to_vec()).await
    }

    async fn launch(acceptor: Option<TlsAcceptor>, mut answers: Vec<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        answers.reverse();
        let (taken, answers) = (Arc::clone(&requests), Arc::new(Mutex::new(answers)));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, taken, answers) = (acceptor.clone(), Arc::clone(&taken), Arc::clone(&answers));
                tokio::spawn(async move {
                    match acceptor {
                        None => take(stream, &taken, &answers).await,
                        Some(acceptor) => {
                            let stream = acceptor.accept(stream).await.expect("the certificate is trusted");
                            take(stream, &taken, &answers).await;
                        }
                    }
                });
            }
        });
        Self { address, requests }
    }

    /// Returns the accepted exports.
    pub(crate) fn requests(&self) -> Vec<HttpMessage> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn spans(&self) -> Vec<ExportedSpan> {
        self.requests().iter().flat_map(|request| spans_of(&request.json())).collect()
    }
}

async fn take(
    stream: impl AsyncRead + AsyncWrite,
    taken: &Mutex<Vec<HttpMessage>>,
    answers: &Mutex<Vec<&'static str>>,
) {
    let (read, mut write) = tokio::io::split(stream);
    let mut reader = HttpReader::new(read);
    while let Ok(Some(request)) = reader.message(MessageKind::Request).await {
        assert_eq!(request.one("content-type"), Some("application/json"));
        let answer = answers.lock().unwrap().pop();
        if answer.is_none() {
            taken.lock().unwrap().push(request);
        }
        // The exporter may have gone.
        drop(write.write_all(answer.unwrap_or(TAKEN).as_bytes()).await);
    }
}

/// Returns the attributes of the process in an `ExportTraceServiceRequest`.
pub(crate) fn resource_of(request: &Value) -> BTreeMap<String, String> {
    attributes(&request["resourceSpans"][0]["resource"]["attributes"])
}

fn spans_of(request: &Value) -> Vec<ExportedSpan> {
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let scopes = list(&request["resourceSpans"]).into_iter().flat_map(|spans| list(&spans["scopeSpans"]));
    scopes.flat_map(|scope| list(&scope["spans"])).map(|span| read(&span)).collect()
}

fn read(span: &Value) -> ExportedSpan {
    let text = |name: &str| span[name].as_str().unwrap_or_default().to_owned();
    let nanos = |name: &str| text(name).parse().expect("a number in a string");
    assert_eq!(span["flags"], 1, "it is recorded");
    ExportedSpan {
        trace: text("traceId"),
        id: text("spanId"),
        parent: text("parentSpanId"),
        name: text("name"),
        kind: span["kind"].as_u64().expect("a number"),
        began: nanos("startTimeUnixNano"),
        ended: nanos("endTimeUnixNano"),
        attributes: attributes(&span["attributes"]),
        status: span["status"]["code"].as_u64().unwrap_or_default(),
    }
}

fn attributes(list: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let attribute = |one: &Value| (text(&one["key"]), text(&one["value"]["stringValue"]));
    list.as_array().expect("a list").iter().map(attribute).collect()
}
