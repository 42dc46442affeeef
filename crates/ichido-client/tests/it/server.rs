//! A scripted server that does the work of each key once.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use http_for_tests::Receiver;
pub(crate) use http_for_tests::{ReceivedRequest, plain, with};
use ichido_client::{Action, Client, ClientSettings};
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::{Jitter, Retry, Schedule};
use tokio_rustls::TlsAcceptor;

/// The action of the server on a complete request.
#[derive(Clone, Debug)]
pub(crate) enum ServerAction {
    /// Does the work of its key once and responds with 201, marking a replay. Without a key it does the work each
    /// time.
    Work,
    /// Does the same, and resets the connection before the first byte of the response.
    WorkAndReset,
    /// Does the same, and closes the connection in the middle of the response.
    WorkAndCut,
    /// Does nothing and responds with these bytes.
    Say(String),
    /// Does nothing, responds with these bytes, and closes properly.
    ///
    /// It waits until the peer has closed the connection too.
    SayAndClose(String),
    /// Does nothing, responds with these bytes, and then stays silent.
    SayAndHold(String),
    /// Does nothing and never responds.
    Silence,
}

/// The key under which effects of requests without a key are counted. No real key is empty.
pub(crate) const NO_KEY: &str = "";

/// The calls that the server received, and their effects.
#[derive(Default)]
struct RecordedCalls {
    /// The key of each request, in order.
    keys: Vec<Option<String>>,
    /// How often the work of each key was done.
    effects: HashMap<String, u32>,
}

/// A running server.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    receiver: Receiver,
    calls: Arc<Mutex<RecordedCalls>>,
}

impl TestServer {
    /// Starts a server that follows `script`.
    ///
    /// The script gets the number of earlier requests with the same key.
    pub(crate) async fn start(
        script: impl Fn(usize, &ReceivedRequest) -> ServerAction + Send + Sync + 'static,
    ) -> Self {
        let calls = Arc::new(Mutex::new(RecordedCalls::default()));
        let receiver = Receiver::start(scripted_handler(Arc::clone(&calls), script)).await;
        Self { address: receiver.address, receiver, calls }
    }

    /// Starts the same server behind TLS.
    pub(crate) async fn start_tls(
        acceptor: TlsAcceptor,
        script: impl Fn(usize, &ReceivedRequest) -> ServerAction + Send + Sync + 'static,
    ) -> Self {
        let calls = Arc::new(Mutex::new(RecordedCalls::default()));
        let receiver = Receiver::start_tls(acceptor, scripted_handler(Arc::clone(&calls), script)).await;
        Self { address: receiver.address, receiver, calls }
    }

    /// Starts a server that applies these actions to each key in order.
    ///
    /// It repeats the last one.
    pub(crate) async fn with_actions(acts: Vec<ServerAction>) -> Self {
        Self::start(move |nth, _| acts[nth.min(acts.len() - 1)].clone()).await
    }

    pub(crate) fn seen(&self) -> Vec<ReceivedRequest> {
        self.receiver.seen()
    }

    /// Returns the attempt fields of all requests, such as `["1; manual", "2; auto"]`.
    pub(crate) fn attempts(&self) -> Vec<String> {
        let field =
            |request: &ReceivedRequest| request.field("ichido-attempt").expect("it is there").to_owned();
        self.seen().iter().map(field).collect()
    }

    /// Returns how often the work of a key was done.
    pub(crate) fn effects(&self, key: &str) -> u32 {
        let calls = self.calls.lock().expect("no test panics in here");
        calls.effects.get(key).copied().unwrap_or(0)
    }

    pub(crate) fn connections(&self) -> usize {
        self.receiver.connections()
    }

    /// Waits until the server has ended this many connections.
    pub(crate) async fn until_closed(&self, count: usize) {
        self.receiver.until_closed(count).await;
    }

    /// Creates a client of this server with waits of a millisecond.
    pub(crate) fn client(&self) -> Client {
        build_client(self.settings())
    }

    pub(crate) fn settings(&self) -> ClientSettings {
        quick(format!("http://{}", self.address))
    }
}

/// Returns settings with three attempts and hardly any wait in between.
pub(crate) fn quick(base_url: String) -> ClientSettings {
    let schedule = Schedule::List(vec![Duration::from_millis(1)]);
    let retry = Retry { schedule, jitter: Jitter::None, max_attempts: Retry::CLIENT.max_attempts };
    ClientSettings { retry, ..ClientSettings::new(base_url) }
}

pub(crate) fn build_client(settings: ClientSettings) -> Client {
    settings.resolve().expect("valid settings")
}

pub(crate) fn order(key: &str) -> Action {
    let key = IdempotencyKey::parse(key).expect("a key");
    Action::new(Method::POST, "/orders", key, "application/json", r#"{"qty": 1.0}"#).expect("an action")
}

pub(crate) fn unkeyed(method: Method) -> Action {
    Action::without_key(method, "/orders", "application/json", r#"{"qty": 1.0}"#).expect("an action")
}

/// Turns the script into actions on the connection and records the work.
fn scripted_handler(
    calls: Arc<Mutex<RecordedCalls>>,
    script: impl Fn(usize, &ReceivedRequest) -> ServerAction + Send + Sync + 'static,
) -> impl Fn(usize, &ReceivedRequest) -> http_for_tests::ServerAction + Send + Sync + 'static {
    move |_, request| {
        let mut calls = calls.lock().expect("no test panics in here");
        // A read has no key and is counted with all other requests without one.
        let key = request.field("idempotency-key").map(str::to_owned);
        let before = calls.keys.iter().filter(|seen| **seen == key).count();
        calls.keys.push(key);
        match script(before, request) {
            ServerAction::Work => http_for_tests::ServerAction::Answer(calls.work(request)),
            ServerAction::WorkAndReset => {
                calls.work(request);
                http_for_tests::ServerAction::Reset
            }
            ServerAction::WorkAndCut => {
                let mut answer = calls.work(request);
                answer.truncate(answer.len() - 3);
                http_for_tests::ServerAction::AnswerAndDrop(answer)
            }
            ServerAction::Say(bytes) => http_for_tests::ServerAction::Answer(bytes),
            ServerAction::SayAndClose(bytes) => http_for_tests::ServerAction::AnswerAndEnd(bytes),
            ServerAction::SayAndHold(bytes) => http_for_tests::ServerAction::AnswerAndHold(bytes),
            ServerAction::Silence => http_for_tests::ServerAction::Silence,
        }
    }
}

impl RecordedCalls {
    /// Does the work of a key once, and of a request without a key every time.
    fn work(&mut self, request: &ReceivedRequest) -> String {
        let key = request.field("idempotency-key").unwrap_or(NO_KEY);
        let is_replay = key != NO_KEY && self.effects.contains_key(key);
        if !is_replay {
            *self.effects.entry(key.to_owned()).or_default() += 1;
        }
        let status: &[(&str, &str)] = if is_replay { &[("Idempotency-Replayed", "true")] } else { &[] };
        with("201 Created", status, r#"{"id":"order-1"}"#)
    }
}
