//! The layer over a service: handles each request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use ichido_core::client_attempt::{self, ClientAttempt};
use ichido_store::ledger::KeyClaimed;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;
use tracing::{Instrument as _, Span};

use super::REQUEST;
use super::arrival::{Arrival, RequestHead, read_head, read_request};
use super::attempt::{AttemptOutcome, ResponseSender, attempt};
use super::body::Body;
use super::claim::SameContent;
use super::fields;
use super::handler;
use super::metrics;
use super::problem::{Code, Problem};
use super::reconcile::reconcile_unknown;
use super::response::replay;
use super::settings::{Settings, limits};

/// A layer that makes the requests of one operation take effect once; see [`super::Once`].
#[derive(Clone, Debug)]
pub struct OnceLayer(Arc<Settings>);

impl OnceLayer {
    pub(crate) fn new(settings: Settings) -> Self {
        Self(Arc::new(settings))
    }
}

impl<S> Layer<S> for OnceLayer {
    type Service = OnceService<S>;

    fn layer(&self, inner: S) -> OnceService<S> {
        OnceService { settings: Arc::clone(&self.0), inner }
    }
}

/// A service whose requests take effect once.
///
/// It is always ready. It polls the inner service only when a request is about to run, so duplicates get their responses
/// however busy that service is.
#[derive(Clone, Debug)]
pub struct OnceService<S> {
    settings: Arc<Settings>,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for OnceService<S>
where
    S: Service<Request<Body<B>>, Response = Response<R>, Future: Send, Error: Send> + Clone + Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Send> + Send + 'static,
    R: http_body::Body<Data = Bytes, Error: Send> + Send + 'static,
{
    type Response = Response<Body<R>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (settings, inner) = (Arc::clone(&self.settings), self.inner.clone());
        if settings.methods.contains(request.method()) {
            Box::pin(serve(settings, inner, request))
        } else {
            Box::pin(pass_through(inner, request))
        }
    }
}

/// The body of a request or response, as the layer needs it.
pub(crate) trait Payload: http_body::Body<Data = Bytes, Error: Send> + Send + 'static {}

impl<B: http_body::Body<Data = Bytes, Error: Send> + Send + 'static> Payload for B {}

/// A service that the layer can run in its own tasks.
pub(crate) trait Inner<B: Payload, R: Payload>:
    Service<Request<Body<B>>, Response = Response<R>, Future: Send, Error: Send> + Clone + Send + 'static
{
}

impl<S, B: Payload, R: Payload> Inner<B, R> for S where
    S: Service<Request<Body<B>>, Response = Response<R>, Future: Send, Error: Send> + Clone + Send + 'static
{
}

/// Passes a request through untouched.
async fn pass_through<S: Inner<B, R>, B: Payload, R: Payload>(
    mut inner: S,
    request: Request<B>,
) -> Result<Response<Body<R>>, S::Error> {
    handler::ready(&mut inner).await?;
    inner.call(request.map(Body::pass_through)).await.map(|response| response.map(Body::pass_through))
}

/// The result of a request and its response.
type ServedResponse<R, E> = (metrics::Result, Result<Response<Body<R>>, E>);

async fn serve<S: Inner<B, R>, B: Payload, R: Payload>(
    settings: Arc<Settings>,
    inner: S,
    request: Request<B>,
) -> Result<Response<Body<R>>, S::Error> {
    let (parts, body) = request.into_parts();
    let operation = settings.operation.name_for(&parts);
    let attempt_number =
        ClientAttempt::read(parts.headers.get(client_attempt::FIELD).map(HeaderValue::as_bytes));
    let (RequestHead { name, inputs, echo }, span, traced) = match read_head(&parts, &operation, &settings) {
        Ok(Some(head)) => {
            let trace = parts.headers.get("traceparent").and_then(|value| value.to_str().ok());
            let traced = tracing::trace_span!(
                target: REQUEST,
                "request",
                operation,
                idempotency.key = head.name.key.as_str(),
                trace,
                result = tracing::field::Empty,
            );
            let span = tracing::info_span!("once", operation, key = head.name.key.log_hash());
            (head, span, traced)
        }
        Ok(None) => {
            let response = pass_through(inner, Request::from_parts(parts, body)).await;
            let status = response.as_ref().ok().map(Response::status);
            metrics::count_request(&operation, attempt_number, metrics::Result::Keyless, status);
            return response;
        }
        Err(problem) => {
            let span = tracing::info_span!("once", operation);
            return span.in_scope(|| finished(&operation, attempt_number, None, refused(problem)));
        }
    };
    let served = async {
        match read_request(name, inputs, parts, body, &settings).await {
            Ok(arrival) => admit(&settings, Arc::new(arrival), inner).await,
            Err(problem) => refused(problem),
        }
    };
    let served = served.instrument(span.clone()).await;
    traced.record("result", served.0.as_str());
    if let Some(arrival) = served.0.arrival() {
        settings.store().counters().request_arrived(&operation, arrival, served.0.has_run());
    }
    span.in_scope(|| finished(&operation, attempt_number, echo, served))
}

fn refused<R: Payload, E>(problem: Problem) -> ServedResponse<R, E> {
    tracing::debug!(code = problem.code.as_str(), "request refused");
    let result =
        if problem.code == Code::KeyMissing { metrics::Result::Keyless } else { metrics::Result::Refused };
    problem_response(result, problem)
}

fn problem_response<R: Payload, E>(result: metrics::Result, problem: Problem) -> ServedResponse<R, E> {
    (result, Ok(problem.into_response()))
}

/// Counts the response and adds the common headers.
fn finished<R: http_body::Body, E>(
    operation: &str,
    attempt_number: ClientAttempt,
    echo: Option<(HeaderName, HeaderValue)>,
    (result, mut response): ServedResponse<R, E>,
) -> Result<Response<Body<R>>, E> {
    metrics::count_request(operation, attempt_number, result, response.as_ref().ok().map(Response::status));
    tracing::debug!(result = result.as_str(), "request completed");
    if let Ok(response) = &mut response {
        fields::ensure_request_id(response.headers_mut());
        if let Some((name, value)) = echo {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Says what the handler found out: the request is the first, or repeats the content of another.
fn ran<R: Payload, E>(mut response: Result<Response<Body<R>>, E>) -> ServedResponse<R, E> {
    let same = response.as_mut().ok().and_then(|response| response.extensions_mut().remove::<SameContent>());
    (if same.is_some() { metrics::Result::SameContent } else { metrics::Result::First }, response)
}

/// Runs a request, or responds with what prevents it.
async fn admit<S: Inner<B, R>, B: Payload, R: Payload>(
    settings: &Arc<Settings>,
    arrival: Arc<Arrival>,
    inner: S,
) -> ServedResponse<R, S::Error> {
    let numbers = settings.numbers();
    let mut wait_until = None;
    let mut rounds = 0;
    let mut has_waited = false;
    loop {
        let (sender, receiver) = oneshot::channel();
        let in_flight = settings.keeper.track_request();
        // Boxed once: until its task runs it is moved several times, and it is as large as its rarest step.
        let reply = ResponseSender::new(sender);
        let work =
            Box::pin(attempt(Arc::clone(settings), Arc::clone(&arrival), inner.clone(), has_waited, reply));
        let work = async move {
            work.await;
            drop(in_flight);
        };
        tokio::spawn(work.instrument(Span::current()));
        let found = match receiver.await {
            Ok(AttemptOutcome::Responded(response)) => return ran(response),
            Ok(AttemptOutcome::Blocked(found)) => Some(found),
            Ok(AttemptOutcome::RunsHere) => None,
            Ok(AttemptOutcome::StoreFailed(error)) => {
                tracing::error!(error = error.with_causes(), "failed to claim a key; nothing was run");
                return problem_response(metrics::Result::Unavailable, Problem::of_store(&error));
            }
            Ok(AttemptOutcome::StoreTimedOut) => {
                tracing::error!("claiming a key timed out; nothing was run");
                return problem_response(metrics::Result::Unavailable, Problem::unavailable());
            }
            Ok(AttemptOutcome::ClaimLapsed) => {
                rounds += 1;
                if rounds < limits::MAX_ROUNDS {
                    continue;
                }
                return problem_response(metrics::Result::Unavailable, Problem::unavailable());
            }
            // The task ended with the runtime, or panicked.
            Err(_) => {
                let detail = "the service stopped while handling the request";
                return problem_response(
                    metrics::Result::Unavailable,
                    Problem::new(Code::HandlerFailed, detail),
                );
            }
        };
        match found {
            Some(KeyClaimed::Replay(response)) => {
                settings.store().counters().request_replayed(&arrival.name);
                let response = replay(response, numbers.replay_marker);
                return (metrics::Result::Replayed, Ok(response.unwrap_or_else(Problem::into_response)));
            }
            Some(KeyClaimed::ReplayNotStored { status }) => {
                return problem_response(metrics::Result::NotStored, Problem::not_stored(numbers, status));
            }
            Some(KeyClaimed::Conflict) => {
                return problem_response(metrics::Result::Mismatched, Problem::conflict(numbers));
            }
            Some(KeyClaimed::Unknown { .. }) => {
                rounds += 1;
                if rounds < limits::MAX_ROUNDS && reconcile_unknown(&arrival.name, settings).await {
                    continue;
                }
                return problem_response(metrics::Result::Unknown, Problem::unknown(numbers));
            }
            None | Some(KeyClaimed::InFlight { .. }) => {
                let until = *wait_until.get_or_insert_with(|| {
                    metrics::count(metrics::WAITED, &arrival.name.operation);
                    Instant::now() + settings.policy.in_flight_wait()
                });
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return problem_response(metrics::Result::InFlight, Problem::in_flight(numbers));
                }
                match found {
                    None => settings.keeper.wait_for_reserved(&arrival.name, left).await,
                    Some(_) => settings.keeper.wait_for(&arrival.name, left).await,
                }
                has_waited = true;
            }
            // The attempt itself runs what it claimed.
            Some(KeyClaimed::Run { .. }) => (),
        }
    }
}
