//! A receiver that does with each request exactly what a test says, on the bytes of the connection.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// What is done with a request that was read to its end.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Answers with these bytes, and keeps the connection.
    Answer(String),
    /// Answers with these bytes, and closes the connection in good order.
    AnswerAndClose(String),
    /// The same, and waits until the other side has closed it too.
    AnswerAndEnd(String),
    /// Answers with these bytes, and drops the connection: under TLS, without saying that this is the end.
    AnswerAndDrop(String),
    /// Answers with these bytes, and then says and does nothing more.
    AnswerAndHold(String),
    /// Resets the connection.
    Reset,
    /// Says nothing, for ever.
    Silence,
}

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
}

/// A running receiver.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
    accepted: watch::Receiver<usize>,
    closed: watch::Receiver<usize>,
}

type Script = dyn Fn(usize, &Request) -> Act + Send + Sync;

impl Receiver {
    /// Does as `script` says, which is told how many requests came before this one.
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

    /// Answers everything with the same bytes.
    pub(crate) async fn answering(answer: impl Into<String>) -> Self {
        let answer = answer.into();
        Self::start(move |_, _| Act::Answer(answer.clone())).await
    }

    async fn launch(acceptor: Option<TlsAcceptor>, script: Arc<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (count, accepted) = watch::channel(0);
        let (ends, closed) = watch::channel(0);
        let ends = Arc::new(ends);
        let requests = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.send_modify(|count| *count += 1);
                let connection = Connection { script: Arc::clone(&script), seen: Arc::clone(&requests) };
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
        Self { address, seen, accepted, closed }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().expect("no test panics in here").clone()
    }

    /// How many connections came.
    pub(crate) fn connections(&self) -> usize {
        *self.accepted.borrow()
    }

    /// Waits until it has ended this many connections.
    pub(crate) async fn until_closed(&self, count: usize) {
        self.closed.clone().wait_for(|closed| count <= *closed).await.expect("it runs");
    }
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

struct Connection {
    script: Arc<Script>,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Connection {
    async fn serve<S: AsyncRead + AsyncWrite + Unpin + Resets>(&self, mut stream: S) {
        let mut buffer = Vec::new();
        while let Some(request) = read(&mut stream, &mut buffer).await {
            let act = {
                let mut seen = self.seen.lock().expect("no test panics in here");
                let act = (self.script)(seen.len(), &request);
                seen.push(request);
                act
            };
            match act {
                Act::Answer(bytes) => write(&mut stream, &bytes).await,
                Act::AnswerAndClose(bytes) => {
                    write(&mut stream, &bytes).await;
                    // The other side may have closed before us.
                    drop(stream.shutdown().await);
                    return;
                }
                Act::AnswerAndEnd(bytes) => {
                    write(&mut stream, &bytes).await;
                    drop(stream.shutdown().await);
                    return hold(&mut stream).await;
                }
                Act::AnswerAndDrop(bytes) => return write(&mut stream, &bytes).await,
                Act::AnswerAndHold(bytes) => {
                    write(&mut stream, &bytes).await;
                    return hold(&mut stream).await;
                }
                Act::Reset => return stream.reset(),
                Act::Silence => return hold(&mut stream).await,
            }
        }
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
    let fields: Vec<(String, String)> = lines
        .map(|field| {
            let (name, value) = field.split_once(':').expect("a field");
            (name.to_owned(), value.trim().to_owned())
        })
        .collect();
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

/// An answer with a JSON body.
pub(crate) fn json(status: &str, body: &str) -> String {
    with(status, &[("Content-Type", "application/json")], body)
}

/// An answer with these fields.
pub(crate) fn with(status: &str, fields: &[(&str, &str)], body: &str) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let fields = fields.concat();
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}
