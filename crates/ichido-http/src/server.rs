//! The accept loop of every Ichido server, with timeouts, limits and graceful shutdown.
//!
//! Guarantee: no client can hold more than its share. A request head, a body, an idle connection and a response that
//! the client does not read each have a timeout, and a request body has a minimum rate. The number of connections,
//! connections per peer, streams, header fields and header bytes is limited. Health and metrics requests are served
//! even when every limit is reached. After the first signal the server accepts nothing new and drains requests in
//! flight up to a timeout. After the second signal it stops at once.
//!
//! Start at [`serve`]. A connection gets a seat from `seats` and is read through `wire` and `framing`. A server
//! implements [`RequestHandler`].

pub mod body;
pub mod bounds;
mod connection;
pub mod framing;
pub mod limits;
pub mod metered;
pub mod permits;
mod refusal;
mod seats;
mod stops;
mod streams;
pub mod tls;
mod wire;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use body::ResponseBody;
use connection::ServerConnection;
use framing::FramingError;
use limits::{Limits, MAX_HEAD_BYTES, MAX_HEADERS};
use permits::Permits;
pub use seats::Peer;
use seats::Seats;
pub use stops::Stops;
use tls::ServerTls;

/// How long to pause after a failed accept, mostly for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Handles the requests of a server.
pub trait RequestHandler: Send + Sync + 'static {
    /// Handles one request. The extensions contain its [`Peer`].
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<ResponseBody>> + Send;

    /// Whether the request asks for health or metrics, which need no seat.
    fn is_health(&self, _: &Request<Incoming>) -> bool {
        false
    }

    /// Builds the response to a request for which no seat became free.
    fn overloaded(&self, request: &Request<Incoming>) -> Response<ResponseBody>;

    /// Builds the response to bytes that are rejected before they form a request. `None` sends the status without a
    /// body.
    fn malformed(&self, _: MalformedRequest) -> Option<Response<Bytes>> {
        None
    }

    /// Runs when the server stops accepting connections, so long waits can end.
    fn stopping(&self) {}
}

/// Why bytes are rejected before they form a request: 400, or 431 if the head is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedRequest {
    /// Two readers could split the bytes into different requests.
    #[error(
        "the request's framing is ambiguous: it has {0}; nothing was done, and the connection is closed; send valid \
         HTTP/1.1 (RFC 9112)"
    )]
    Framing(FramingError),
    /// The parser cannot read the head.
    #[error(
        "the request's line or a header field is not valid; nothing was done, and the connection is closed; send valid \
         HTTP/1.1 (RFC 9112)"
    )]
    Head,
    /// The head is larger than the parser reads.
    #[error(
        "the request has more than {MAX_HEADERS} header fields, or a head of more than {} KiB; nothing was done, and \
         the connection is closed; send fewer",
        MAX_HEAD_BYTES / 1024
    )]
    HeadTooLarge,
}

/// How the server stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEnd {
    /// Every request in flight was answered.
    Drained,
    /// Some connections were cut, because the drain timeout expired or a second signal arrived.
    Interrupted {
        /// The number of cut connections.
        connections: usize,
        /// Whether a second signal arrived, so the caller must not wait for anything else.
        at_once: bool,
    },
}

/// Serves requests until it is asked to stop, then drains.
///
/// Draining ends when nothing is in flight, when the drain timeout expires, or at the second request to stop. `loss`
/// completes when the server loses something it needs, such as its database file; that counts as the first request to
/// stop. `detached` completes when work that no connection waits for has finished.
pub async fn serve<A: RequestHandler>(
    listener: TcpListener,
    answers: Arc<A>,
    limits: Limits,
    stops: &Stops,
    loss: impl Future<Output = ()>,
    detached: impl Future<Output = ()>,
) -> ServerEnd {
    serve_encrypted(listener, None, answers, limits, stops, loss, detached).await
}

/// Serves requests like [`serve`], over TLS if it is given.
pub async fn serve_encrypted<A: RequestHandler>(
    listener: TcpListener,
    tls: Option<Arc<ServerTls>>,
    answers: Arc<A>,
    limits: Limits,
    stops: &Stops,
    loss: impl Future<Output = ()>,
    detached: impl Future<Output = ()>,
) -> ServerEnd {
    let seats = Seats::new(limits.max_connections, limits.of_peer());
    // HTTP/2 carries many requests on one connection, so requests have the same limit as connections.
    let requests = || Arc::new(Permits::new(limits.max_connections, limits.of_peer()));
    let (requests, waiting) = (requests(), requests());
    let connection = |stream: TcpStream, address: SocketAddr, mut stopping: watch::Receiver<bool>| {
        // Only a hint to the system: without it responses are slightly delayed.
        drop(stream.set_nodelay(true));
        let acceptor = tls.as_ref().map(|tls| tls.acceptor());
        let connection = Arc::new(ServerConnection {
            answers: Arc::clone(&answers),
            limits,
            seat: seats.admit(Peer::new(address.ip())),
            requests: Arc::clone(&requests),
            waiting: Arc::clone(&waiting),
        });
        async move {
            let stream = match acceptor {
                None => Some(stream.into()),
                Some(acceptor) => connection.encrypt(stream, acceptor, &mut stopping).await,
            };
            if let Some(stream) = stream {
                connection.serve(stream, stopping).await;
            }
        }
    };
    accept(listener, limits.drain, stops, loss, || answers.stopping(), detached, connection).await
}

/// Accepts connections until it is asked to stop; see [`serve`].
///
/// It then calls `stopping` and notifies each connection.
pub async fn accept<F: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    within: Duration,
    stops: &Stops,
    loss: impl Future<Output = ()>,
    stopping: impl FnOnce(),
    detached: impl Future<Output = ()>,
    connection: impl Fn(TcpStream, SocketAddr, watch::Receiver<bool>) -> F,
) -> ServerEnd {
    let (stop_sender, stop_receiver) = watch::channel(false);
    let mut stop = pin!(stops.first_or(loss));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, address)) => {
                connections.spawn(connection(stream, address, stop_receiver.clone()));
            }
            Err(error) => pause_after(&error).await,
        }
    }
    // Close the listener first, so new clients are refused at once instead of waiting.
    drop(listener);
    stop_sender.send_replace(true);
    stopping();
    drain(connections, detached, within, stops).await
}

async fn pause_after(error: &io::Error) {
    // These errors concern one client, which is already gone.
    if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
        return;
    }
    tracing::error!(%error, "failed to accept a connection");
    sleep(ACCEPT_PAUSE).await;
}

async fn drain(
    mut connections: JoinSet<()>,
    detached: impl Future<Output = ()>,
    within: Duration,
    stops: &Stops,
) -> ServerEnd {
    tracing::info!(connections = connections.len(), "stopped accepting connections; draining");
    let ended = async {
        while connections.join_next().await.is_some() {}
        detached.await;
    };
    let at_once = tokio::select! {
        () = ended => return ServerEnd::Drained,
        () = sleep(within) => false,
        () = stops.second() => true,
    };
    ServerEnd::Interrupted { connections: connections.len(), at_once }
}

#[cfg(test)]
mod tests;
