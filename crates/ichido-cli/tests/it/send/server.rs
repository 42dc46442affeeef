//! A server that accepts messages like `ichido serve`, each key once, and misbehaves as a test says.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_for_tests::{ReceivedRequest, Receiver, with};

use super::program::send;

/// What to do with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FakeReply {
    /// Accepts the message, and responds.
    Accept,
    /// Accepts it, and resets the connection without a response.
    AcceptAndReset,
    /// Does nothing, and responds with this status and problem code.
    Refuse(u16, &'static str),
    /// Does nothing, and redirects elsewhere.
    Redirect(u16, &'static str),
    /// Does nothing, and responds that a message exists under this key.
    About(&'static str),
    /// Does nothing, and never responds.
    Silence,
}

#[derive(Default)]
struct AcceptedMessages {
    /// The key of each request, in order.
    keys: Vec<String>,
    /// The message under each key, and how often it was enqueued.
    messages: HashMap<String, (String, u32)>,
}

pub(crate) struct FakeServer {
    pub(crate) address: SocketAddr,
    receiver: Receiver,
    book: Arc<Mutex<AcceptedMessages>>,
}

/// The interval between polls.
pub(crate) const POLL_EVERY: Duration = Duration::from_millis(5);

impl FakeServer {
    /// Starts a server that acts as `script` says, given the number of earlier requests with the same key.
    pub(crate) async fn start(
        script: impl Fn(usize, &ReceivedRequest) -> FakeReply + Send + Sync + 'static,
    ) -> Self {
        let book = Arc::new(Mutex::new(AcceptedMessages::default()));
        let shared = Arc::clone(&book);
        let receiver = Receiver::start(move |_, request| {
            let mut book = shared.lock().expect("no test panics in here");
            let before = book.keys.iter().filter(|seen| *seen == request.key()).count();
            book.keys.push(request.key().to_owned());
            match script(before, request) {
                FakeReply::Accept => http_for_tests::ServerAction::Answer(accept(&mut book, request)),
                FakeReply::AcceptAndReset => {
                    accept(&mut book, request);
                    http_for_tests::ServerAction::Reset
                }
                FakeReply::Refuse(status, code) => {
                    http_for_tests::ServerAction::Answer(problem(status, code))
                }
                FakeReply::Redirect(status, location) => {
                    let status = format!("{status} Elsewhere");
                    http_for_tests::ServerAction::Answer(with(&status, &[("Location", location)], ""))
                }
                FakeReply::About(key) => {
                    let body =
                        format!(r#"{{"id":"id-of-another","queue":"orders","idempotency_key":"{key}"}}"#);
                    http_for_tests::ServerAction::Answer(with("201 Created", &[], &body))
                }
                FakeReply::Silence => http_for_tests::ServerAction::Silence,
            }
        })
        .await;
        Self { address: receiver.address, receiver, book }
    }

    pub(crate) async fn accepting() -> Self {
        Self::start(|_, _| FakeReply::Accept).await
    }

    /// Returns `ichido send orders` to this server.
    pub(crate) fn send(&self, folder: &Path, flags: &[&str]) -> Command {
        let mut command = send(folder);
        command.args(["--server", &format!("http://{}", self.address)]).args(flags);
        command
    }

    pub(crate) fn seen(&self) -> Vec<ReceivedRequest> {
        self.receiver.seen()
    }

    /// Waits until a request with this key has arrived.
    pub(crate) async fn until_seen(&self, key: &str) {
        while !self.seen().iter().any(|request| request.key() == key) {
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// Returns the message under a key, and how often it was enqueued.
    pub(crate) fn message(&self, key: &str) -> Option<(String, u32)> {
        self.book.lock().expect("no test panics in here").messages.get(key).cloned()
    }
}

fn accept(book: &mut AcceptedMessages, request: &ReceivedRequest) -> String {
    let (key, body) = (request.key().to_owned(), text(request));
    let id = format!("id-of-{}", key.len());
    let answer = |fields: &[(&str, &str)]| {
        with("201 Created", fields, &format!(r#"{{"id":"{id}","queue":"orders","status":"queued"}}"#))
    };
    match book.messages.get(&key) {
        Some((before, _)) if *before == body => answer(&[("Idempotency-Replayed", "true")]),
        Some(_) => problem(409, "key_conflict"),
        None => {
            book.messages.entry(key).or_insert((body, 0)).1 += 1;
            answer(&[])
        }
    }
}

/// Returns a request's body.
pub(crate) fn text(request: &ReceivedRequest) -> String {
    String::from_utf8(request.body.clone()).expect("text")
}

fn problem(status: u16, code: &str) -> String {
    let body = format!(r#"{{"code":"{code}","title":"No","detail":"words of the server\u001b[2J"}}"#);
    with(&format!("{status} Problem"), &[("Content-Type", "application/problem+json")], &body)
}
