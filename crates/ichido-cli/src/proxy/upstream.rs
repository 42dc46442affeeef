//! The one upstream: calls over kept connections, and what is known when a call fails.
//!
//! Guarantee: a request goes out once. It is put on another connection only where the client proves that not a
//! byte of it was written (SPEC C4); the client library's own silent retries are off. Every failure says whether
//! the upstream may have seen the request.

use std::error::Error;
use std::time::Duration;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Response, Uri, Version};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use ichido_core::verdict::NetworkFault;
use tokio::time::{Instant, timeout_at};

use super::body::{Lender, Lent, Upload, lend};
use super::limits::{ANSWER_HEADERS_MAX, UNUSED_CONNECTIONS_MAX, UPSTREAM_IDLE, UPSTREAM_IDLE_MAX};
use crate::listen::body::BodyFault;
use crate::listen::limits::Limits;

/// Where requests go.
pub(crate) struct Upstream {
    client: Client<HttpConnector, Lent>,
    authority: Authority,
    /// How long an upload may take in all, beyond the time for the answer.
    upload_max: Duration,
}

/// A request without its body, as often as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) target: PathAndQuery,
    pub(crate) headers: HeaderMap,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The way to the upstream, or the upstream, failed.
    Network(NetworkFault),
    /// The client's own body did not come to its end, so that the upstream got a part of it at most.
    Upload(BodyFault),
}

impl Upstream {
    /// Connects to nobody yet.
    pub(crate) fn new(authority: Authority, limits: &Limits, connect: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(connect));
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(UPSTREAM_IDLE)
            .pool_max_idle_per_host(UPSTREAM_IDLE_MAX)
            .retry_canceled_requests(false)
            .set_host(true)
            .http1_max_headers(ANSWER_HEADERS_MAX)
            .build(connector);
        Self { client, authority, upload_max: limits.body }
    }

    /// Sends one request, and waits for the head of its answer: `within` this time from when the client has sent its
    /// body to the end.
    pub(crate) async fn send(
        &self,
        call: &Call,
        upload: Upload,
        within: Duration,
    ) -> Result<Response<Incoming>, Failure> {
        let mut upload = upload;
        let mut unused = 0;
        loop {
            let (mut lender, lent) = lend(upload);
            let failure = match self.send_once(call, &mut lender, lent, within).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            unused += 1;
            match lender.take_back() {
                Some(back)
                    if failure == Failure::Network(NetworkFault::ClosedUnused)
                        && unused <= UNUSED_CONNECTIONS_MAX =>
                {
                    upload = back;
                }
                _ => return Err(failure),
            }
        }
    }

    async fn send_once(
        &self,
        call: &Call,
        lender: &mut Lender,
        lent: Lent,
        within: Duration,
    ) -> Result<Response<Incoming>, Failure> {
        let request = self.request(call, lent);
        let mut answer = std::pin::pin!(self.client.request(request));
        let started = Instant::now();
        let answered = tokio::select! {
            answered = &mut answer => Some(answered),
            () = lender.sent() => None,
            () = tokio::time::sleep_until(started + self.upload_max + within) => {
                return Err(Failure::Network(NetworkFault::Timeout));
            }
        };
        let answered = match answered {
            Some(answered) => answered,
            None => timeout_at(Instant::now() + within, answer)
                .await
                .map_err(|_| Failure::Network(NetworkFault::Timeout))?,
        };
        match (answered, lender.fault()) {
            // It would change the protocol, which nobody asked it to.
            (Ok(answer), _) if answer.status().is_informational() => {
                Err(Failure::Network(NetworkFault::AnswerCut))
            }
            (Ok(mut answer), _) => {
                // The version is the connection's, and this one ends here.
                *answer.version_mut() = Version::HTTP_11;
                Ok(answer)
            }
            (Err(_), Some(fault)) => Err(Failure::Upload(fault)),
            (Err(error), None) => Err(Failure::Network(fault_of(&error))),
        }
    }

    fn request(&self, call: &Call, lent: Lent) -> Request<Lent> {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(call.target.clone());
        let mut request = Request::new(lent);
        // Scheme, authority and path are all there, so that nothing is left to fail.
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
        *request.method_mut() = call.method.clone();
        *request.version_mut() = Version::HTTP_11;
        request.headers_mut().clone_from(&call.headers);
        request
    }
}

/// What an error of the client says of the request.
fn fault_of(error: &legacy::Error) -> NetworkFault {
    let causes = || std::iter::successors(error.source(), |cause| (*cause).source());
    let is_timeout = |cause: &(dyn Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::TimedOut)
    };
    if error.is_connect() {
        return if causes().any(is_timeout) {
            NetworkFault::ConnectTimeout
        } else {
            NetworkFault::ConnectRefused
        };
    }
    // hyper says "canceled" only of a request that it hands back whole, unsent.
    let protocol = causes().find_map(|cause| cause.downcast_ref::<hyper::Error>());
    match protocol {
        Some(error) if error.is_canceled() => NetworkFault::ClosedUnused,
        Some(error) if error.is_parse() => NetworkFault::AnswerCut,
        _ => NetworkFault::Broken,
    }
}
