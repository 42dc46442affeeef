//! A server that does with each request exactly what a test says, and does the work of each key once.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use ichido_client::{Action, Client, ClientSettings};
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::{Jitter, Retry, Schedule};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// What is done with a request that was read to its end.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Does the work of its key unless it was done before, and answers 201, a replay with its marker. Without a key it does it each time.
    Work,
    /// Does the same, and resets the connection before a byte of the answer.
    WorkAndReset,
    /// Does the same, and closes the connection in the middle of the answer.
    WorkAndCut,
    /// Does nothing, and answers with these bytes.
    Say(String),
    /// Does nothing, answers with these bytes, closes the connection in good order, and waits until the other side has closed it too.
    SayAndClose(String),
    /// Does nothing, answers with these bytes, and then says no more.
    SayAndHold(String),
    /// Does nothing and says nothing, for ever.
    Silence,
}

/// Where the effects of requests without a key are counted: no key is empty.
pub(crate) const NO_KEY: &str = "";

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The one field of this name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
        let first = found.next();
        assert!(found.next().is_none(), "{name} was sent twice");
        first.map(|(_, value)| value.as_str())
    }

    pub(crate) fn key(&self) -> &str {
        self.field("idempotency-key").expect("every action has a key")
    }
}

/// What happened at the server.
#[derive(Default)]
struct Book {
    seen: Vec<Request>,
    /// How often the work of each key was done.
    effects: HashMap<String, u32>,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    book: Arc<Mutex<Book>>,
    accepted: watch::Receiver<usize>,
    closed: watch::Receiver<usize>,
}

type Script = dyn Fn(usize, &Request) -> Act + Send + Sync;

impl Server {
    /// Does as `script` says, which is told how many requests of the same key came before this one.
    pub(crate) async fn start(script: impl Fn(usize, &Request) -> Act + Send + Sync + 'static) -> Self {
        Self::launch(None, Arc::new(script)).await
    }

    /// The same behind TLS.
    pub(crate) async fn start_tls(
        acceptor: TlsAcceptor,
        script: impl Fn(usize, &Request) -> Act + Send + Sync + 'static,
    ) -> Self {
        Self::launch(Some(acceptor), Arc::new(script)).await
    }

    /// Does one thing after the other with the requests of a key, and the last again when they run out.
    pub(crate) async fn doing(acts: Vec<Act>) -> Self {
        Self::start(move |nth, _| acts[nth.min(acts.len() - 1)].clone()).await
    }

    async fn launch(acceptor: Option<TlsAcceptor>, script: Arc<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let book = Arc::new(Mutex::new(Book::default()));
        let (count, accepted) = watch::channel(0);
        let (ends, closed) = watch::channel(0);
        let ends = Arc::new(ends);
        let kept = Arc::clone(&book);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.send_modify(|count| *count += 1);
                let connection = Connection { script: Arc::clone(&script), book: Arc::clone(&kept) };
                let (acceptor, ends) = (acceptor.clone(), Arc::clone(&ends));
                tokio::spawn(async move {
                    match acceptor {
                        None => connection.serve(stream).await,
                        // A client that does not trust us ends here.
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                connection.serve(stream).await;
                            }
                        }
                    }
                    ends.send_modify(|count| *count += 1);
                });
            }
        });
        Self { address, book, accepted, closed }
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.book.lock().expect("no test panics in here").seen.clone()
    }

    /// The tries as the client counts them: `["1; manual", "2; auto"]`.
    pub(crate) fn tries(&self) -> Vec<String> {
        let field = |request: &Request| request.field("ichido-try").expect("it is there").to_owned();
        self.seen().iter().map(field).collect()
    }

    /// How often the work of a key was done.
    pub(crate) fn effects(&self, key: &str) -> u32 {
        let book = self.book.lock().expect("no test panics in here");
        book.effects.get(key).copied().unwrap_or(0)
    }

    pub(crate) fn connections(&self) -> usize {
        *self.accepted.borrow()
    }

    /// Waits until it has ended this many connections.
    pub(crate) async fn until_closed(&self, count: usize) {
        self.closed.clone().wait_for(|closed| count <= *closed).await.expect("it runs");
    }

    /// A client of it that waits a millisecond where it waits.
    pub(crate) fn client(&self) -> Client {
        resolved(self.settings())
    }

    pub(crate) fn settings(&self) -> ClientSettings {
        quick(format!("http://{}", self.address))
    }
}

/// Three tries with hardly a wait in between.
pub(crate) fn quick(base_url: String) -> ClientSettings {
    let schedule = Schedule::List(vec![Duration::from_millis(1)]);
    let retry = Retry { schedule, jitter: Jitter::None, tries: Retry::CLIENT.tries };
    ClientSettings { retry, ..ClientSettings::new(base_url) }
}

pub(crate) fn resolved(settings: ClientSettings) -> Client {
    settings.resolve().expect("the settings make sense")
}

pub(crate) fn order(key: &str) -> Action {
    let key = IdempotencyKey::parse(key).expect("a key");
    Action::new(Method::POST, "/orders", key, "application/json", r#"{"qty": 1.0}"#).expect("an action")
}

pub(crate) fn unkeyed(method: Method) -> Action {
    Action::unkeyed(method, "/orders", "application/json", r#"{"qty": 1.0}"#).expect("an action")
}

struct Connection {
    script: Arc<Script>,
    book: Arc<Mutex<Book>>,
}

/// What can be reset.
pub(crate) trait Resets {
    fn reset(self);
}

impl Resets for TcpStream {
    fn reset(self) {
        self.set_zero_linger().expect("a socket");
    }
}

impl Resets for tokio_rustls::server::TlsStream<TcpStream> {
    fn reset(self) {
        self.into_inner().0.reset();
    }
}

impl Connection {
    async fn serve<S: AsyncRead + AsyncWrite + Unpin + Resets>(&self, mut stream: S) {
        let mut buffer = Vec::new();
        while let Some(request) = read(&mut stream, &mut buffer).await {
            match self.act(&request) {
                Act::Work => {
                    let answer = self.work(&request);
                    write(&mut stream, &answer).await;
                }
                Act::WorkAndReset => {
                    self.work(&request);
                    return stream.reset();
                }
                Act::WorkAndCut => {
                    let answer = self.work(&request);
                    return write(&mut stream, &answer[..answer.len() - 3]).await;
                }
                Act::Say(bytes) => write(&mut stream, &bytes).await,
                Act::SayAndClose(bytes) => {
                    write(&mut stream, &bytes).await;
                    drop(stream.shutdown().await);
                    return hold(&mut stream).await;
                }
                Act::SayAndHold(bytes) => {
                    write(&mut stream, &bytes).await;
                    return hold(&mut stream).await;
                }
                Act::Silence => return hold(&mut stream).await,
            }
        }
    }

    fn act(&self, request: &Request) -> Act {
        let mut book = self.book.lock().expect("no test panics in here");
        // A read has no key, and belongs to all others that have none.
        let key = |request: &Request| request.field("idempotency-key").map(str::to_owned);
        let before = book.seen.iter().filter(|seen| key(seen) == key(request)).count();
        book.seen.push(request.clone());
        (self.script)(before, request)
    }

    /// Does the work of a key, once; of a request without a key, as often as it comes.
    fn work(&self, request: &Request) -> String {
        let mut book = self.book.lock().expect("no test panics in here");
        let key = request.field("idempotency-key").unwrap_or(NO_KEY);
        let is_replay = key != NO_KEY && book.effects.contains_key(key);
        if !is_replay {
            *book.effects.entry(key.to_owned()).or_default() += 1;
        }
        let status: &[(&str, &str)] = if is_replay { &[("Idempotency-Replayed", "true")] } else { &[] };
        with("201 Created", status, r#"{"id":"order-1"}"#)
    }
}

async fn write<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &str) {
    // Whoever asked may have gone.
    drop(stream.write_all(bytes.as_bytes()).await);
    drop(stream.flush().await);
}

/// Until the other side has gone.
async fn hold<S: AsyncRead + Unpin>(stream: &mut S) {
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await.is_ok_and(|count| 0 < count) {}
}

/// The next request; `None` when the connection ends.
async fn read<S: AsyncRead + Unpin>(stream: &mut S, buffer: &mut Vec<u8>) -> Option<Request> {
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
    Some(Request { line, fields, body })
}

/// An answer with these fields.
pub(crate) fn with(status: &str, fields: &[(&str, &str)], body: &str) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let fields = fields.concat();
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// An answer with a status alone.
pub(crate) fn plain(status: &str) -> String {
    with(status, &[], "")
}
