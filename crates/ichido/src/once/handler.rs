//! Calls the service behind the layer and turns everything it does into an outcome.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use tower_service::Service;

/// The outcome of a handler's call.
pub(crate) enum HandlerOutcome<R, E> {
    Responded(R),
    Failed(E),
    Panicked,
}

/// Waits until the service is ready for a request.
pub(crate) async fn ready<S: Service<Q>, Q>(service: &mut S) -> Result<(), S::Error> {
    poll_fn(|cx| service.poll_ready(cx)).await
}

/// Calls a service that is ready.
pub(crate) async fn call<S: Service<Q>, Q>(
    service: &mut S,
    request: Q,
) -> HandlerOutcome<S::Response, S::Error> {
    // State that a panic leaves inconsistent belongs to the service, and the called clone is not called again.
    let Ok(called) = catch_unwind(AssertUnwindSafe(|| service.call(request))) else {
        return HandlerOutcome::Panicked;
    };
    let mut called = pin!(called);
    match poll_fn(|cx| catch_panic(|| called.as_mut().poll(cx))).await {
        Ok(Ok(response)) => HandlerOutcome::Responded(response),
        Ok(Err(error)) => HandlerOutcome::Failed(error),
        Err(Panicked) => HandlerOutcome::Panicked,
    }
}

/// The service panicked and must not be polled again.
pub(crate) struct Panicked;

/// Polls the service's future and catches a panic.
pub(crate) fn catch_panic<T>(poll: impl FnOnce() -> Poll<T>) -> Poll<Result<T, Panicked>> {
    catch_unwind(AssertUnwindSafe(poll)).map_or(Poll::Ready(Err(Panicked)), |polled| polled.map(Ok))
}
