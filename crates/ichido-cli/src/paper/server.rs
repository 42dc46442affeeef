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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::answer::Reply;
use super::service::Broker;
use super::wire::Wire;

/// The most connections at once; more wait in the system's queue.
const CONNECTIONS_MAX: usize = 1_024;
/// How long a head may take to come, and a connection be idle.
const HEAD_WAIT: Duration = Duration::from_mins(1);
/// How long requests in flight may go on after a signal.
const DRAIN: Duration = Duration::from_secs(5);
/// How long to wait after the system refused to give us a connection (too many open files, mostly).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until it hears the first stop; gives back how many connections were cut by the second, or when the time was over.
pub(crate) async fn serve(listener: TcpListener, broker: Broker, mut stop: impl AsyncFnMut()) -> usize {
    let broker = Arc::new(broker);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (tell, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    loop {
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
                let serving = serve_connection(stream, Arc::clone(&broker), stopping.clone());
                connections.spawn(async move {
                    serving.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted for the moment");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    tell.send_replace(true);
    let ended = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        () = ended => return 0,
        () = sleep(DRAIN) => {}
        () = stop() => {}
    }
    connections.len()
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
