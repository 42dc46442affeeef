//! Listening: connections in, until a signal says stop.
//!
//! Guarantee: connections have a count and heads a time. After the first signal nothing new is accepted, who was to get no answer
//! gets none, and what is in flight may end, within a bound; after the second nothing is waited for.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ichido_http::server::{Ended, accept};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::answer::Reply;
use super::service::Broker;
use super::wire::Wire;

/// The most connections that are served at once; more wait.
const CONNECTIONS_MAX: usize = 1_024;
/// How long a head may take to come, and a connection be idle.
const HEAD_WAIT: Duration = Duration::from_mins(1);
/// How long requests in flight may go on after a signal.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves until the first stop. Returns how many connections were cut by the second, or when the time was over.
pub async fn serve(listener: TcpListener, broker: Broker, mut stop: impl AsyncFnMut()) -> usize {
    let broker = Arc::new(broker);
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let connection = |stream, _, stopping| {
        let (broker, permits) = (Arc::clone(&broker), Arc::clone(&permits));
        async move {
            let _permit = permits.acquire().await;
            serve_connection(stream, broker, stopping).await;
        }
    };
    match accept(listener, DRAIN, &mut stop, || (), std::future::ready(()), connection).await {
        Ended::Drained => 0,
        Ended::Cut { connections, .. } => connections,
    }
}

/// The connection is over without an answer.
#[derive(Debug, thiserror::Error)]
#[error("hung up on purpose")]
struct HungUp;

async fn serve_connection(stream: TcpStream, broker: Arc<Broker>, mut stopping: watch::Receiver<bool>) {
    // Only a hint to the system: without it answers are a little later.
    drop(stream.set_nodelay(true));
    let resets = Arc::new(AtomicBool::new(false));
    let wire = TokioIo::new(Wire { stream, resets: Arc::clone(&resets) });
    let stop = stopping.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (broker, resets, mut stop) = (Arc::clone(&broker), Arc::clone(&resets), stop.clone());
        async move {
            match broker.answer(request).await {
                Reply::Answer(answer) => Ok(answer),
                Reply::Reset => {
                    resets.store(true, Ordering::Release);
                    Err(HungUp)
                }
                Reply::Silence => {
                    until_stopped(&mut stop).await;
                    Err(HungUp)
                }
            }
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT);
    let mut connection = pin!(builder.serve_connection(wire, service));
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = until_stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn until_stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the server has gone, which is as good.
    drop(stopping.wait_for(|stops| *stops).await.map(|_| ()));
}
