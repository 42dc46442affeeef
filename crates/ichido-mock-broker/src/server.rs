//! The broker's accept loop.
//!
//! Guarantee: the number of connections is limited, and request heads have a timeout. After the first signal the
//! broker accepts nothing new, ends the calls that were to get no response, and drains requests in flight up to a
//! timeout. After the second signal it stops at once.

use std::future::{pending, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ichido_http::server::{ServerEnd, Stops, accept};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::response::BrokerReply;
use super::service::Broker;

/// The maximum number of connections served at once; more wait.
const MAX_CONNECTIONS: usize = 1_024;
/// The timeout of a request head and of an idle connection.
const HEAD_WAIT: Duration = Duration::from_mins(1);
/// How long requests in flight may continue after a signal.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves until it is asked to stop. Returns the number of connections that were cut.
///
/// Connections are cut at the second request to stop or when the drain timeout expires.
pub async fn serve(listener: TcpListener, broker: Broker, stops: &Stops) -> usize {
    let broker = Arc::new(broker);
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connection = |stream, _, stopping| {
        let (broker, permits) = (Arc::clone(&broker), Arc::clone(&permits));
        async move {
            let _permit = permits.acquire().await;
            serve_connection(stream, broker, stopping).await;
        }
    };
    match accept(listener, DRAIN, stops, pending(), || (), ready(()), connection).await {
        ServerEnd::Drained => 0,
        ServerEnd::Interrupted { connections, .. } => connections,
    }
}

/// The connection ends without a response.
#[derive(Debug, thiserror::Error)]
#[error("connection closed on purpose")]
struct HungUp;

async fn serve_connection(stream: TcpStream, broker: Arc<Broker>, mut stopping: watch::Receiver<bool>) {
    // Only a hint to the system: without it responses are slightly delayed.
    drop(stream.set_nodelay(true));
    let resets = Arc::new(AtomicBool::new(false));
    let (must_reset, stop) = (Arc::clone(&resets), stopping.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let (broker, resets, mut stop) = (Arc::clone(&broker), Arc::clone(&must_reset), stop.clone());
        async move {
            match broker.handle(request).await {
                BrokerReply::Answer(answer) => Ok(answer),
                BrokerReply::Reset => {
                    resets.store(true, Ordering::Release);
                    Err(HungUp)
                }
                BrokerReply::Silence => {
                    until_stopped(&mut stop).await;
                    Err(HungUp)
                }
            }
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT);
    let mut connection = builder.serve_connection(TokioIo::new(stream), service);
    let ended = tokio::select! {
        ended = &mut connection => Some(ended),
        () = until_stopped(&mut stopping) => None,
    };
    let ended = if let Some(ended) = ended {
        ended
    } else {
        Pin::new(&mut connection).graceful_shutdown();
        (&mut connection).await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
    if resets.load(Ordering::Acquire) {
        // If the system refuses, the connection is closed normally, which breaks the call as well.
        drop(connection.into_parts().io.into_inner().set_zero_linger());
    }
}

async fn until_stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the server has stopped, which is equivalent.
    drop(stopping.wait_for(|stops| *stops).await.map(|_| ()));
}
