//! Listening, for every server of this program: connections in, with every clock running, until a signal says stop.
//!
//! Guarantee: no client can hold more than its share. A head, a body, an idle connection and an answer nobody
//! reads each have a time limit; connections, streams, header fields and their bytes have a count. After the first
//! signal nothing new is accepted and what is in flight may end, within a bound; after the second nothing is
//! waited for.
//!
//! Start at [`serve`]. A connection comes in by `wire` and `framing`; a server is what [`Answers`].

pub(crate) mod body;
pub(crate) mod bounds;
pub(crate) mod framing;
pub(crate) mod limits;
mod refusal;
mod streams;
mod wire;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use body::AnswerBody;
use framing::Fault;
use limits::{CLOSING, HEAD_BYTES_MAX, HEADERS_MAX, Limits, STREAMS_MAX};
use streams::{Streams, handed_on};
use wire::Wire;

/// How long to wait after the system refused to give us a connection (too many open files, mostly).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What answers requests.
pub(crate) trait Answers: Send + Sync + 'static {
    /// Answers one.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<AnswerBody>> + Send;

    /// What is said, with the status 400, to bytes that are refused before they are a request; `None` says the status alone.
    fn refused(&self, _: Fault) -> Option<Response<Bytes>> {
        None
    }

    /// Is told that nothing new is accepted any more, so that what only waits can end.
    fn stopping(&self) {}
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
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

/// Serves until it hears the first stop; the second is waited for while it drains. `detached` ends when work ends that no connection waits for any more.
pub(crate) async fn serve<A: Answers>(
    listener: TcpListener,
    answers: Arc<A>,
    limits: Limits,
    stop: &mut impl AsyncFnMut(),
    detached: impl Future<Output = ()>,
) -> Ended {
    let places = Arc::new(Semaphore::new(limits.connections_max));
    // HTTP/2 carries many requests on one connection; together they are no more than connections may be.
    let requests = Arc::new(Semaphore::new(limits.connections_max));
    let (tell, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    loop {
        // The place comes before the connection: who finds none waits in the system's queue, and costs us nothing.
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accepted => accepted,
            Some(_) = connections.join_next() => continue,
            () = stop() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let serving = serve_connection(
                    stream,
                    Arc::clone(&answers),
                    limits,
                    Arc::clone(&requests),
                    stopping.clone(),
                );
                connections.spawn(async move {
                    serving.await;
                    drop(place);
                });
            }
            Err(error) => pause_after(&error).await,
        }
    }
    // Closed first, so that whoever comes now is refused at once instead of waiting in vain.
    drop(listener);
    tell.send_replace(true);
    answers.stopping();
    drain(connections, detached, limits.drain, stop).await
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
    stop: &mut impl AsyncFnMut(),
) -> Ended {
    tracing::info!(connections = connections.len(), "stopping; what is in flight may end");
    let ended = async {
        while connections.join_next().await.is_some() {}
        detached.await;
    };
    let at_once = tokio::select! {
        () = ended => return Ended::Drained,
        () = sleep(within) => false,
        () = stop() => true,
    };
    Ended::Cut { connections: connections.len(), at_once }
}

async fn serve_connection<A: Answers>(
    stream: TcpStream,
    answers: Arc<A>,
    limits: Limits,
    requests: Arc<Semaphore>,
    mut stopping: watch::Receiver<bool>,
) {
    // Only a hint to the system: without it answers are a little later.
    drop(stream.set_nodelay(true));
    let (busy, mut idle) = watch::channel(0_usize);
    // Held here as well, so that the count outlives every request.
    let busy = Arc::new(busy);
    let counted = Arc::clone(&busy);
    let io = TokioIo::new(Wire::new(stream, Arc::clone(&answers), limits.body_idle));
    let service = service_fn(move |request| {
        let (answers, requests) = (Arc::clone(&answers), Arc::clone(&requests));
        let mut busy = Busy::begin(Arc::clone(&counted));
        async move {
            // It is never closed, so that there is always a place to wait for.
            busy.place = requests.acquire_owned().await.ok();
            let response = answers.answer(request).await;
            // An answer keeps its connection busy, and its place, until its last byte is handed on.
            Ok::<_, Infallible>(response.map(|body| busy.hold(body)))
        }
    });
    let builder = builder(&limits);
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut is_closing = false;
    let mut close_at = Instant::now() + limits.head;
    loop {
        let is_idle = *idle.borrow_and_update() == 0;
        tokio::select! {
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            Ok(()) = idle.changed() => {
                close_at = Instant::now() + if is_closing { CLOSING } else { limits.head };
            }
            true = is_told(&mut stopping), if !is_closing => {
                is_closing = true;
                close_at = Instant::now() + CLOSING;
                connection.as_mut().graceful_shutdown();
            }
            // hyper's header time-out begins once it knows the protocol, for whose bytes it waits for ever; on HTTP/2
            // there is none.
            () = sleep_until(close_at), if is_idle => {
                if is_closing {
                    return;
                }
                is_closing = true;
                close_at = Instant::now() + CLOSING;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Whether the server stops; waits until it does.
async fn is_told(stopping: &mut watch::Receiver<bool>) -> bool {
    stopping.wait_for(|stops| *stops).await.is_ok()
}

/// Every clock and every count; hyper has none of them unless it is told.
fn builder(limits: &Limits) -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(Streams { stall_max: limits.body_idle });
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .keep_alive_interval(limits.head)
        .keep_alive_timeout(limits.head);
    builder
}

/// Counts one request as in flight for as long as it lives.
struct Busy {
    count: Arc<watch::Sender<usize>>,
    place: Option<OwnedSemaphorePermit>,
}

impl Busy {
    fn begin(count: Arc<watch::Sender<usize>>) -> Self {
        count.send_modify(|count| *count += 1);
        Self { count, place: None }
    }

    fn hold(self, body: AnswerBody) -> held::Held {
        held::Held::new(body, self)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.count.send_modify(|count| *count = count.saturating_sub(1));
    }
}

mod held {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use http_body::{Body, Frame, SizeHint};

    use super::{Busy, handed_on};
    use crate::listen::body::{AnswerBody, BoxError};

    /// A body that keeps its connection counted as busy.
    pub(super) struct Held {
        body: AnswerBody,
        _busy: Busy,
    }

    impl Held {
        pub(super) fn new(body: AnswerBody, busy: Busy) -> Self {
            handed_on(true);
            Self { body, _busy: busy }
        }
    }

    impl Body for Held {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            let polled = Pin::new(&mut self.body).poll_frame(cx);
            handed_on(polled.is_ready());
            polled
        }

        fn is_end_stream(&self) -> bool {
            self.body.is_end_stream()
        }

        fn size_hint(&self) -> SizeHint {
            self.body.size_hint()
        }
    }
}

#[cfg(test)]
mod tests;
