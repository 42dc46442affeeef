//! Listening, for every server of this program: connections in, with every clock running, until a signal says stop.
//!
//! Guarantee: no client can hold more than its share. A head, a body, an idle connection and an answer nobody
//! reads each have a time limit, and a body a rate; connections, those of one peer, streams, header fields and their bytes have a
//! count. Health and metrics are answered even when all of that is taken. After the first
//! signal nothing new is accepted and what is in flight may end, within a bound; after the second nothing is
//! waited for.
//!
//! Start at [`serve`]. A connection gets its seat from `seats`, and comes in by `wire` and `framing`; a server is what [`Answers`].

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

use body::AnswerBody;
use connection::ServerConnection;
use framing::Fault;
use limits::Limits;
use permits::Permits;
pub use seats::Peer;
use seats::Seats;
pub use stops::Stops;

/// How long to wait after the system refused to give us a connection (too many open files, mostly).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What answers requests.
pub trait Answers: Send + Sync + 'static {
    /// Answers one. Its [`Peer`] is among its extensions.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<AnswerBody>> + Send;

    /// Whether a request is for the health or the metrics of the server itself, which is answered even when no seat is left.
    fn is_health(&self, _: &Request<Incoming>) -> bool {
        false
    }

    /// What is said to a request for which no seat became free.
    fn overloaded(&self, request: &Request<Incoming>) -> Response<AnswerBody>;

    /// What is said, with the status 400, to bytes that are refused before they are a request; `None` says the status alone.
    fn refused(&self, _: Fault) -> Option<Response<Bytes>> {
        None
    }

    /// Is told that nothing new is accepted any more, so that what only waits can end.
    fn stopping(&self) {}
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything in flight was answered.
    Drained,
    /// Some connections were cut, because the time to drain was over or a second signal came.
    Cut {
        /// How many.
        connections: usize,
        /// Whether a second signal came: nothing else is to be waited for either.
        at_once: bool,
    },
}

/// Serves until it is asked to stop, and then until everything in flight has ended, the time to drain is over, or it is asked again.
/// `loss` ends when the server loses what it cannot work without, such as its database file, which counts as the first request to
/// stop. `detached` ends when work ends that no connection waits for any more.
pub async fn serve<A: Answers>(
    listener: TcpListener,
    answers: Arc<A>,
    limits: Limits,
    stops: &Stops,
    loss: impl Future<Output = ()>,
    detached: impl Future<Output = ()>,
) -> Ended {
    let seats = Seats::new(limits.connections_max, limits.of_peer());
    // HTTP/2 carries many requests on one connection; together they are no more than connections may be.
    let requests = || Arc::new(Permits::new(limits.connections_max, limits.of_peer()));
    let (requests, waiting) = (requests(), requests());
    let connection = |stream: TcpStream, address: SocketAddr, stopping: watch::Receiver<bool>| {
        let connection = ServerConnection {
            answers: Arc::clone(&answers),
            limits,
            seat: seats.admit(Peer::new(address.ip())),
            requests: Arc::clone(&requests),
            waiting: Arc::clone(&waiting),
        };
        Arc::new(connection).serve(stream, stopping)
    };
    accept(listener, limits.drain, stops, loss, || answers.stopping(), detached, connection).await
}

/// Accepts connections until it is asked to stop; see [`serve`]. Then `stopping` is called, and each connection is told.
pub async fn accept<F: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    within: Duration,
    stops: &Stops,
    loss: impl Future<Output = ()>,
    stopping: impl FnOnce(),
    detached: impl Future<Output = ()>,
    connection: impl Fn(TcpStream, SocketAddr, watch::Receiver<bool>) -> F,
) -> Ended {
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
    // Closed first, so a new client is refused at once and does not wait for nothing.
    drop(listener);
    stop_sender.send_replace(true);
    stopping();
    drain(connections, detached, within, stops).await
}

async fn pause_after(error: &io::Error) {
    // These concern the one client that is gone already.
    if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
        return;
    }
    tracing::error!(%error, "no connection can be accepted for the moment");
    sleep(ACCEPT_PAUSE).await;
}

async fn drain(
    mut connections: JoinSet<()>,
    detached: impl Future<Output = ()>,
    within: Duration,
    stops: &Stops,
) -> Ended {
    tracing::info!(connections = connections.len(), "stopping; what is in flight may end");
    let ended = async {
        while connections.join_next().await.is_some() {}
        detached.await;
    };
    let at_once = tokio::select! {
        () = ended => return Ended::Drained,
        () = sleep(within) => false,
        () = stops.second() => true,
    };
    Ended::Cut { connections: connections.len(), at_once }
}

#[cfg(test)]
mod tests;
