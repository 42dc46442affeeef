//! Calling the service behind the layer so that whatever it does is an outcome.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use tower_service::Service;

/// What came of a call.
pub(crate) enum Ran<R, E> {
    Responded(R),
    Failed(E),
    Panicked,
}

/// Waits until the service can take a request.
pub(crate) async fn ready<S: Service<Q>, Q>(service: &mut S) -> Result<(), S::Error> {
    poll_fn(|cx| service.poll_ready(cx)).await
}

/// Calls a service that is ready.
pub(crate) async fn call<S: Service<Q>, Q>(service: &mut S, request: Q) -> Ran<S::Response, S::Error> {
    // What a panic leaves half changed belongs to the service, and the clone of it that was called is not called again.
    let Ok(called) = catch_unwind(AssertUnwindSafe(|| service.call(request))) else {
        return Ran::Panicked;
    };
    let mut called = pin!(called);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| called.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(Ok(response))) => Poll::Ready(Ran::Responded(response)),
        Ok(Poll::Ready(Err(error))) => Poll::Ready(Ran::Failed(error)),
        Err(_) => Poll::Ready(Ran::Panicked),
    })
    .await
}
