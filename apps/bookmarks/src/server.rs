//! Connections in, each bounded, until it is told to stop.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower_service::Service as _;

use crate::problem::Problem;
use crate::settings::limits;

/// How long to wait after the system refused to give us a connection (too many open files, mostly).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` ends, and then until what is in flight is answered, in time.
pub(crate) async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(limits::CLIENTS_MAX));
    let (tell, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        // The place comes before the connection: who finds none waits in the system's queue, and costs us nothing.
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place.ok(), listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accepted => accepted,
            Some(_) = connections.join_next() => continue,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(serve_connection(stream, router.clone(), stopping.clone(), place));
            }
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted for the moment");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    tell.send_replace(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    if timeout(limits::DRAIN_WITHIN, drained).await.is_err() {
        tracing::warn!("some connections were cut, because the time to drain was over");
    }
}

async fn serve_connection(
    stream: TcpStream,
    router: Router,
    mut stopping: watch::Receiver<bool>,
    _place: Option<OwnedSemaphorePermit>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let mut router = router.clone();
        async move {
            let answered = timeout(limits::REQUEST_WAIT, router.call(request.map(Body::new))).await;
            Ok::<_, Infallible>(answered.map_or_else(|_| late(), |Ok(response)| response))
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits::HEAD_WAIT);
    builder.max_buf_size(limits::HEAD_BYTES_MAX);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = &mut connection => Ok(ended),
        () = until_over(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            timeout(limits::REQUEST_WAIT, connection).await
        }
    };
    match ended {
        Ok(Ok(())) => (),
        Ok(Err(error)) => tracing::debug!(%error, "a connection ended early"),
        Err(_) => tracing::debug!("a connection was cut, because its client did not read"),
    }
}

/// Waits until the server stops, or the connection is too old.
async fn until_over(stopping: &mut watch::Receiver<bool>) {
    let stopped = stopping.wait_for(|is_stopping| *is_stopping);
    drop(timeout(limits::CONNECTION_FOR, stopped).await);
}

/// What was begun goes on, and the same key gets its outcome.
fn late() -> Response {
    let detail =
        "the request took too long to come or to be done; send the same request again, under the same key";
    Problem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", detail).into_response()
}
