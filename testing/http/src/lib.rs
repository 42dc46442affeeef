//! An HTTP server for tests that works on the bytes of a connection, so it can misbehave in every way.
//!
//! Guarantee: it does with each request what the test's script says and nothing else, and it records every request
//! before the client can know that it arrived.
//!
//! Start at [`Receiver`]; [`Authority`] makes certificates for it. [`CommandServer`] lets a program's commands act on the test.

#![expect(clippy::missing_panics_doc, reason = "for tests: whatever fails here ends the test, and says so")]

mod commands;
mod request;
mod tls;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;

pub use commands::CommandServer;
pub use request::ReceivedRequest;
pub use tls::Authority;

/// What the server does with a request that was read to its end.
#[derive(Clone, Debug)]
pub enum ServerAction {
    /// Responds with these bytes and keeps the connection.
    Answer(String),
    /// Responds with these bytes and closes the connection cleanly.
    AnswerAndClose(String),
    /// The same, and waits until the client has closed it too.
    AnswerAndEnd(String),
    /// Responds with these bytes and drops the connection: under TLS, without a close notification.
    AnswerAndDrop(String),
    /// Responds with these bytes, then sends and does nothing more.
    AnswerAndHold(String),
    /// Resets the connection.
    Reset,
    /// Never sends anything.
    Silence,
    /// Waits for the signal first.
    After(Arc<Notify>, Box<ServerAction>),
}

/// A running server. It ends with the test's runtime.
pub struct Receiver {
    /// The address it listens on.
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    accepted: watch::Receiver<usize>,
    closed: watch::Receiver<usize>,
}

type RequestScript = dyn Fn(usize, &ReceivedRequest) -> ServerAction + Send + Sync;

impl Receiver {
    /// Starts a server that does what `script` returns.
    ///
    /// `script` gets the number of requests before this one.
    pub async fn start(
        script: impl Fn(usize, &ReceivedRequest) -> ServerAction + Send + Sync + 'static,
    ) -> Self {
        Self::launch(None, Arc::new(script)).await
    }

    /// The same, over TLS.
    pub async fn start_tls(
        acceptor: TlsAcceptor,
        script: impl Fn(usize, &ReceivedRequest) -> ServerAction + Send + Sync + 'static,
    ) -> Self {
        Self::launch(Some(acceptor), Arc::new(script)).await
    }

    /// Starts a server that always responds with the same bytes.
    pub async fn answering(answer: impl Into<String>) -> Self {
        let answer = answer.into();
        Self::start(move |_, _| ServerAction::Answer(answer.clone())).await
    }

    async fn launch(acceptor: Option<TlsAcceptor>, script: Arc<RequestScript>) -> Self {
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
                let connection =
                    ServerConnection { script: Arc::clone(&script), seen: Arc::clone(&requests) };
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

    /// Returns a URL of the server, without TLS.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the requests so far, in order.
    pub fn seen(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns how many connections were accepted.
    pub fn connections(&self) -> usize {
        *self.accepted.borrow()
    }

    /// Waits until it has ended this many connections.
    pub async fn until_closed(&self, count: usize) {
        self.closed.clone().wait_for(|closed| count <= *closed).await.expect("it runs");
    }
}

/// A stream that can be reset.
trait Resets {
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

struct ServerConnection {
    script: Arc<RequestScript>,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl ServerConnection {
    async fn serve<S: AsyncRead + AsyncWrite + Unpin + Resets>(&self, mut stream: S) {
        let mut buffer = Vec::new();
        while let Some(request) = ReceivedRequest::read(&mut stream, &mut buffer).await {
            let mut act = self.act(request);
            while let ServerAction::After(signal, then) = act {
                signal.notified().await;
                act = *then;
            }
            match act {
                ServerAction::Answer(bytes) => write(&mut stream, &bytes).await,
                ServerAction::AnswerAndClose(bytes) => {
                    write(&mut stream, &bytes).await;
                    // The client may have closed it before us.
                    drop(stream.shutdown().await);
                    return;
                }
                ServerAction::AnswerAndEnd(bytes) => {
                    write(&mut stream, &bytes).await;
                    drop(stream.shutdown().await);
                    return hold(&mut stream).await;
                }
                ServerAction::AnswerAndDrop(bytes) => return write(&mut stream, &bytes).await,
                ServerAction::AnswerAndHold(bytes) => {
                    write(&mut stream, &bytes).await;
                    return hold(&mut stream).await;
                }
                ServerAction::Reset => return stream.reset(),
                ServerAction::Silence | ServerAction::After(..) => return hold(&mut stream).await,
            }
        }
    }

    fn act(&self, request: ReceivedRequest) -> ServerAction {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let act = (self.script)(seen.len(), &request);
        seen.push(request);
        act
    }
}

async fn write<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &str) {
    // The client may have gone.
    drop(stream.write_all(bytes.as_bytes()).await);
    drop(stream.flush().await);
}

/// Waits until the client has gone.
async fn hold<S: AsyncRead + Unpin>(stream: &mut S) {
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await.is_ok_and(|count| 0 < count) {}
}

/// Formats a response with these header fields.
pub fn with(status: &str, fields: &[(&str, &str)], body: &str) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let fields = fields.concat();
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Formats a response with a JSON body.
pub fn json(status: &str, body: &str) -> String {
    with(status, &[("Content-Type", "application/json")], body)
}

/// Formats a response with only a status.
pub fn plain(status: &str) -> String {
    with(status, &[], "")
}
