//! A service on a real socket that does exactly what its test says, and records its requests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::client::HUNG;
use crate::http_message::{HttpMessage, HttpReader, MessageKind};

/// What the service does with a request.
#[derive(Clone, Debug)]
pub(crate) enum ServiceAction {
    /// Sends these bytes as the response; the connection stays open.
    Answer(Vec<u8>),
    /// Sends these bytes, and then cuts the connection.
    Cut(Vec<u8>),
    /// Sends the response once the gate is open.
    AnswerWhen(ReleaseGate, Vec<u8>),
    /// Sends the response after this time.
    AnswerAfter(Duration, Vec<u8>),
}

/// Closed until a test opens it; then it stays open.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReleaseGate(Arc<watch::Sender<bool>>);

impl ReleaseGate {
    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn opened(&self) {
        self.0.subscribe().wait_for(|is_open| *is_open).await.expect("the gate outlives its waiters");
    }
}

impl ServiceAction {
    pub(crate) fn ok(body: &str) -> Self {
        Self::Answer(answer("200 OK", &[], body))
    }

    pub(crate) fn status(status: &str) -> Self {
        Self::Answer(answer(status, &[], ""))
    }
}

/// Returns a response as bytes.
pub(crate) fn answer(status: &str, fields: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in fields {
        write!(text, "{name}: {value}\r\n").expect("a string takes all");
    }
    text.push_str("\r\n");
    text.push_str(body);
    text.into_bytes()
}

/// A running service.
pub(crate) struct FakeService {
    pub(crate) address: SocketAddr,
    seen: watch::Receiver<Vec<HttpMessage>>,
    connections: watch::Receiver<usize>,
    task: tokio::task::JoinHandle<()>,
}

impl FakeService {
    /// Starts a service that acts as `script` says, given the request and the number of earlier ones.
    pub(crate) async fn start(
        script: impl Fn(&HttpMessage, usize) -> ServiceAction + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("an address");
        let (record, seen) = watch::channel(Vec::new());
        let (count, connections) = watch::channel(0);
        let (script, record) = (Arc::new(script), Arc::new(record));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.send_modify(|count| *count += 1);
                tokio::spawn(handle_connection(stream, Arc::clone(&script), Arc::clone(&record)));
            }
        });
        Self { address, seen, connections, task }
    }

    /// Starts a service that answers 200 and `ok` to everything.
    pub(crate) async fn plain() -> Self {
        Self::start(|_, _| ServiceAction::ok("ok")).await
    }

    /// Returns the requests so far.
    pub(crate) fn seen(&self) -> Vec<HttpMessage> {
        self.seen.borrow().clone()
    }

    /// Returns the only request.
    pub(crate) fn only(&self) -> HttpMessage {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].clone()
    }

    /// Waits until this many requests have arrived.
    pub(crate) async fn until_seen(&self, count: usize) {
        let mut seen = self.seen.clone();
        let asked = tokio::time::timeout(HUNG, seen.wait_for(|seen| count <= seen.len())).await;
        asked.expect("it is asked so often").expect("it runs");
    }

    pub(crate) fn connections(&self) -> usize {
        *self.connections.borrow()
    }
}

impl Drop for FakeService {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn handle_connection(
    stream: TcpStream,
    script: Arc<impl Fn(&HttpMessage, usize) -> ServiceAction>,
    record: Arc<watch::Sender<Vec<HttpMessage>>>,
) {
    let (read, mut write) = stream.into_split();
    let mut reader = HttpReader::new(read);
    while let Ok(Some(request)) = reader.message(MessageKind::Request).await {
        let mut before = 0;
        record.send_modify(|seen| {
            before = seen.len();
            seen.push(request.clone());
        });
        let written = match script(&request, before) {
            ServiceAction::Answer(bytes) => write.write_all(&bytes).await,
            ServiceAction::AnswerWhen(gate, bytes) => {
                gate.opened().await;
                write.write_all(&bytes).await
            }
            ServiceAction::AnswerAfter(time, bytes) => {
                tokio::time::sleep(time).await;
                write.write_all(&bytes).await
            }
            ServiceAction::Cut(bytes) => {
                // The client may be gone; the connection ends here either way.
                drop(write.write_all(&bytes).await);
                return;
            }
        };
        if written.is_err() {
            return;
        }
    }
}

/// How often each action took effect.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects(Arc<watch::Sender<BTreeMap<String, usize>>>);

impl Effects {
    /// Records one more effect; returns how often the action took effect.
    pub(crate) fn apply(&self, action: &str) -> usize {
        let mut count = 0;
        self.0.send_modify(|effects| {
            let of_action = effects.entry(action.to_owned()).or_default();
            *of_action += 1;
            count = *of_action;
        });
        count
    }

    pub(crate) fn count(&self, action: &str) -> usize {
        self.0.borrow().get(action).copied().unwrap_or(0)
    }

    /// Waits until an action has taken effect.
    pub(crate) async fn until(&self, action: &str) {
        let mut effects = self.0.subscribe();
        let happened =
            tokio::time::timeout(HUNG, effects.wait_for(|effects| effects.contains_key(action))).await;
        happened.unwrap_or_else(|_| panic!("{action} takes effect")).expect("we hold the sender");
    }
}
