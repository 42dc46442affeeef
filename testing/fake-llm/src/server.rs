//! The server: accepts connections and sends responses.

mod call;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::play::Play;
use crate::reply::HttpReply;
use crate::script::Script;
use crate::seen::{FormatFault, SeenRequests};
use call::Dropped;

/// Maximum size of a request.
const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// What all calls share.
#[derive(Debug)]
pub(crate) struct ServerShared {
    started: Instant,
    state: Mutex<State>,
}

/// What changes with each call.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) play: Play,
    pub(crate) seen: SeenRequests,
    /// How many requests arrived, valid or not: each has a number for its identifiers.
    pub(crate) number: u64,
}

impl ServerShared {
    pub(crate) fn new(script: Script) -> Self {
        let state = State { play: Play::new(script), seen: SeenRequests::default(), number: 0 };
        Self { started: Instant::now(), state: Mutex::new(state) }
    }

    /// Returns the time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seen(&self) -> SeenRequests {
        self.lock().seen.clone()
    }

    pub(crate) fn script(&self, script: Script) {
        self.lock().play = Play::new(script);
    }
}

/// Accepts connections until the other end of `stopped` is dropped.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    shared: Arc<ServerShared>,
    mut stopped: oneshot::Receiver<()>,
) {
    let listener = TcpListener::from_std(listener).expect("a listener of this machine");
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stopped => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let shared = Arc::clone(&shared);
                let service = service_fn(move |request| respond(Arc::clone(&shared), request));
                // A client that disconnects does not end the call: a model that has started continues, and is billed.
                let connection =
                    http1::Builder::new().half_close(true).serve_connection(TokioIo::new(stream), service);
                // It ends with an error if the script drops it, or if the client disconnects.
                tokio::spawn(async move { connection.await.unwrap_or_default() });
            }
            // The client is already gone; the next one may be there.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => (),
            Err(error) => panic!("the fake provider failed to accept a connection: {error}"),
        }
    }
}

async fn respond(
    shared: Arc<ServerShared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Dropped> {
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            let why = format!("it is longer than {MAX_BODY_BYTES} bytes");
            let (path, at) = (head.uri.path().to_owned(), "body".to_owned());
            shared.lock().seen.not_understood(FormatFault { path, at, why: why.clone() });
            return Ok(HttpReply::json(413, &json!({ "error": { "message": why } })).into_response());
        }
        // The client disconnected before its request was complete; to the provider it has sent nothing.
        Err(_) => return Err(Dropped),
    };
    if let Some(reply) = control(&shared, &head, &body) {
        return Ok(reply.into_response());
    }
    call::take(&shared, &head, &body).await.map(HttpReply::into_response)
}

/// Handles requests to the server itself, by the test.
fn control(shared: &ServerShared, head: &Parts, body: &[u8]) -> Option<HttpReply> {
    Some(match (&head.method, head.uri.path()) {
        (&Method::GET, "/_seen") => HttpReply::json(200, &json!(shared.seen())),
        (&Method::POST, "/_script") => match Script::parse(body) {
            Ok(script) => {
                shared.script(script);
                HttpReply::json(200, &json!({ "playing": true }))
            }
            Err(error) => HttpReply::json(400, &json!({ "error": error.to_string() })),
        },
        (_, "/_seen" | "/_script") => {
            HttpReply::json(405, &json!({ "error": "GET /_seen or POST /_script" }))
        }
        _ => return None,
    })
}
