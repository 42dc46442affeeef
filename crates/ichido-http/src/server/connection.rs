//! Serves one connection from its first byte to its last.
//!
//! Guarantee: everything on a connection has a timeout: the head, idle time and the response. A request is handled
//! once its connection has a seat and its peer has a request permit. Health and metrics requests need neither.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use super::RequestHandler;
use super::body::ResponseBody;
use super::limits::{CLOSING, Limits, MAX_HEAD_BYTES, MAX_HEADERS, MAX_STREAMS, SEAT_WAIT, WINDOW_BYTES};
use super::permits::{Permit, Permits};
use super::seats::{InFlightRequest, Peer, Seat};
use super::streams::{Streams, body_yielded};
use super::tls::ServerStream;
use super::wire::Wire;
use guarded_body::GuardedBody;

/// One connection, and the state it shares with the others.
pub(super) struct ServerConnection<A> {
    pub(super) answers: Arc<A>,
    pub(super) limits: Limits,
    pub(super) seat: Arc<Seat>,
    /// Permits for requests in flight and for waiting ones. HTTP/2 carries many on one connection.
    pub(super) requests: Arc<Permits<Peer>>,
    pub(super) waiting: Arc<Permits<Peer>>,
}

impl<A: RequestHandler> ServerConnection<A> {
    /// Encrypts the connection; `None` if that fails or takes too long, its seat is needed, or the server stops.
    pub(super) async fn encrypt(
        &self,
        stream: TcpStream,
        tls: TlsAcceptor,
        stopping: &mut watch::Receiver<bool>,
    ) -> Option<ServerStream> {
        let encrypted = tokio::select! {
            encrypted = timeout(self.max_idle(), tls.accept(stream)) => encrypted,
            () = self.seat.evicted() => return None,
            _ = wait_for_stop(stopping) => return None,
        };
        match encrypted {
            Ok(Ok(stream)) => return Some(ServerStream::Encrypted(Box::new(stream))),
            Ok(Err(error)) => tracing::debug!(%error, "connection ended before it was encrypted"),
            Err(_) => tracing::debug!("connection was not encrypted in time"),
        }
        None
    }

    /// Serves the connection until it ends.
    ///
    /// It ends when the client closes it, a timeout expires, another connection needs its seat, or the server stops
    /// and nothing is in flight on it.
    pub(super) async fn serve(
        self: Arc<Self>,
        stream: impl Into<ServerStream>,
        mut stopping: watch::Receiver<bool>,
    ) {
        let (busy, mut idle) = watch::channel(RequestCount::default());
        // Keep a reference here too, so the count outlives every request.
        let busy = Arc::new(busy);
        let counted = Arc::clone(&busy);
        let wire = Wire::new(stream.into(), Arc::clone(&self.answers), self.limits.body_idle, idle.clone());
        let io = TokioIo::new(wire);
        let this = Arc::clone(&self);
        let service = service_fn(move |request| {
            let answered = Arc::clone(&this).answer(request, RequestGuard::new(Arc::clone(&counted)));
            async { Ok::<_, Infallible>(answered.await) }
        });
        let builder = builder(&self.limits);
        let mut connection = pin!(builder.serve_connection(io, service));
        let (mut is_closing, mut has_served) = (false, false);
        let mut close_at = Instant::now() + self.max_idle();
        loop {
            let is_idle = idle.borrow_and_update().in_flight == 0;
            let must_close = tokio::select! {
                ended = &mut connection => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "connection ended early");
                    }
                    return;
                }
                () = self.seat.evicted(), if !is_closing => {
                    tracing::debug!("closed idle connection to free its seat");
                    // The end of a response may still be in transit; a client that never sent a request waits for
                    // nothing.
                    if !has_served && idle.borrow().in_flight == 0 {
                        return;
                    }
                    true
                }
                Ok(()) = idle.changed() => {
                    has_served = true;
                    close_at = Instant::now() + if is_closing { CLOSING } else { self.max_idle() };
                    false
                }
                true = wait_for_stop(&mut stopping), if !is_closing => true,
                // hyper's header timeout starts only once it knows the protocol, and it waits forever for those
                // bytes. HTTP/2 has no such timeout.
                () = sleep_until(close_at), if is_idle => {
                    if is_closing {
                        return;
                    }
                    true
                }
            };
            if must_close {
                is_closing = true;
                close_at = Instant::now() + CLOSING;
                connection.as_mut().graceful_shutdown();
            }
        }
    }

    /// The idle timeout, which is shorter without a seat.
    fn max_idle(&self) -> Duration {
        if self.seat.is_spare() { self.limits.head.min(SEAT_WAIT) } else { self.limits.head }
    }

    async fn answer(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        mut guard: RequestGuard,
    ) -> Response<GuardedBody> {
        let peer = self.seat.peer();
        let is_health = self.answers.is_health(&request);
        let Ok(in_flight) = Arc::clone(&self.seat).start_request(is_health).await else {
            tracing::info!("rejected request: no seat became free");
            return self.answers.overloaded(&request).map(|body| guard.attach(body));
        };
        guard.in_flight = Some(in_flight);
        if !is_health {
            let Some(permit) = self.permit(peer).await else {
                tracing::info!("rejected request: too many in flight");
                return self.answers.overloaded(&request).map(|body| guard.attach(body));
            };
            guard.permit = Some(permit);
        }
        request.extensions_mut().insert(peer);
        // A response keeps its connection busy, and its permit, until its last byte is passed on.
        self.answers.handle(request).await.map(|body| guard.attach(body))
    }

    /// Waits briefly for a request permit. Waiting requests hold their heads in memory, so their number is limited
    /// too.
    async fn permit(&self, peer: Peer) -> Option<Permit<Peer>> {
        let _waiting = self.waiting.try_take(Some(peer)).ok()?;
        timeout(SEAT_WAIT, self.requests.take(Some(peer))).await.ok()
    }
}

/// Waits until the server stops. Returns whether it does.
async fn wait_for_stop(stopping: &mut watch::Receiver<bool>) -> bool {
    stopping.wait_for(|stops| *stops).await.is_ok()
}

/// Sets every timeout and limit; hyper has none of them by default.
fn builder(limits: &Limits) -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(Streams { max_stall: limits.body_idle });
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .initial_connection_window_size(WINDOW_BYTES)
        .initial_stream_window_size(WINDOW_BYTES)
        .max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX))
        .keep_alive_interval(limits.head)
        .keep_alive_timeout(limits.head);
    builder
}

/// The requests of one connection that reached the handler.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestCount {
    /// All of them so far.
    pub(super) started: u64,
    /// Those whose response has not ended.
    pub(super) in_flight: usize,
}

/// Counts one request as in flight until it is dropped.
struct RequestGuard {
    count: Arc<watch::Sender<RequestCount>>,
    in_flight: Option<InFlightRequest>,
    permit: Option<Permit<Peer>>,
}

impl RequestGuard {
    fn new(count: Arc<watch::Sender<RequestCount>>) -> Self {
        count.send_modify(|count| {
            count.started += 1;
            count.in_flight += 1;
        });
        Self { count, in_flight: None, permit: None }
    }

    fn attach(self, body: ResponseBody) -> GuardedBody {
        GuardedBody::new(body, self)
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.count.send_modify(|count| count.in_flight = count.in_flight.saturating_sub(1));
    }
}

mod guarded_body {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use http_body::{Body, Frame, SizeHint};

    use super::{RequestGuard, body_yielded};
    use crate::server::body::{BoxError, ResponseBody};

    /// A body that keeps its connection counted as busy.
    pub(super) struct GuardedBody {
        body: ResponseBody,
        _guard: RequestGuard,
    }

    impl GuardedBody {
        pub(super) fn new(body: ResponseBody, guard: RequestGuard) -> Self {
            body_yielded(true);
            Self { body, _guard: guard }
        }
    }

    impl Body for GuardedBody {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            let polled = Pin::new(&mut self.body).poll_frame(cx);
            body_yielded(polled.is_ready());
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
