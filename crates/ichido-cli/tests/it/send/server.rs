//! A server that accepts messages as `ichido serve` does, each key once, and misbehaves as a test says.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::program::send;

/// What is done with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Accepts the message, and answers.
    Accept,
    /// Accepts it, and resets the connection without an answer.
    AcceptAndReset,
    /// Does nothing, and answers with this status and a problem of this code.
    Refuse(u16, &'static str),
    /// Does nothing, and says where else to go.
    Redirect(u16, &'static str),
    /// Does nothing, and answers that a message stands under this key.
    About(&'static str),
    /// Does nothing, and says nothing for ever.
    Silence,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) line: String,
    fields: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
        let first = found.next();
        assert!(found.next().is_none(), "{name} was sent twice");
        first.map(|(_, value)| value.as_str())
    }

    pub(crate) fn key(&self) -> &str {
        self.field("idempotency-key").expect("every request has a key")
    }
}

#[derive(Default)]
struct Book {
    seen: Vec<Request>,
    /// What stands under each key, and how often it was put in.
    messages: HashMap<String, (String, u32)>,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    book: Arc<Mutex<Book>>,
}

type Script = dyn Fn(usize, &Request) -> Act + Send + Sync;

/// How often a condition is looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(5);

impl Server {
    /// Does as `script` says, which is told how many requests of the same key came before this one.
    pub(crate) async fn start(script: impl Fn(usize, &Request) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let book = Arc::new(Mutex::new(Book::default()));
        let (kept, script): (_, Arc<Script>) = (Arc::clone(&book), Arc::new(script));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&kept)));
            }
        });
        Self { address, book }
    }

    pub(crate) async fn accepting() -> Self {
        Self::start(|_, _| Act::Accept).await
    }

    /// `ichido send orders` to it.
    pub(crate) fn send(&self, folder: &Path, flags: &[&str]) -> Command {
        let mut command = send(folder);
        command.args(["--server", &format!("http://{}", self.address)]).args(flags);
        command
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.book.lock().expect("no test panics in here").seen.clone()
    }

    /// Waits until a request with this key came.
    pub(crate) async fn until_seen(&self, key: &str) {
        while !self.seen().iter().any(|request| request.key() == key) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What stands under a key, and how often it was put in.
    pub(crate) fn message(&self, key: &str) -> Option<(String, u32)> {
        self.book.lock().expect("no test panics in here").messages.get(key).cloned()
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Script>, book: Arc<Mutex<Book>>) {
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut stream, &mut buffer).await {
        let (act, answer) = {
            let mut book = book.lock().expect("no test panics in here");
            let before = book.seen.iter().filter(|seen| seen.key() == request.key()).count();
            book.seen.push(request.clone());
            let act = script(before, &request);
            let answer = match act {
                Act::Accept | Act::AcceptAndReset => accept(&mut book, &request),
                Act::Refuse(status, code) => problem(status, code),
                Act::Redirect(status, location) => {
                    format!(
                        "HTTP/1.1 {status} Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
                    )
                }
                Act::About(key) => {
                    let body =
                        format!(r#"{{"id":"id-of-another","queue":"orders","idempotency_key":"{key}"}}"#);
                    format!("HTTP/1.1 201 Created\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                }
                Act::Silence => String::new(),
            };
            (act, answer)
        };
        match act {
            Act::AcceptAndReset => return stream.set_zero_linger().expect("a socket"),
            Act::Silence => {
                let mut rest = [0; 64];
                while stream.read(&mut rest).await.is_ok_and(|count| 0 < count) {}
                return;
            }
            // Whoever asked may have gone.
            Act::Accept | Act::Refuse(..) | Act::Redirect(..) | Act::About(_) => {
                drop(stream.write_all(answer.as_bytes()).await);
            }
        }
    }
}

fn accept(book: &mut Book, request: &Request) -> String {
    let key = request.key().to_owned();
    let id = format!("id-of-{}", key.len());
    let answer = |status: &str| {
        let body = format!(r#"{{"id":"{id}","queue":"orders","status":"queued"}}"#);
        format!("HTTP/1.1 201 Created\r\n{status}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    match book.messages.get(&key) {
        Some((body, _)) if *body == request.body => answer("Idempotency-Replayed: true\r\n"),
        Some(_) => problem(409, "key_conflict"),
        None => {
            book.messages.entry(key).or_insert((request.body.clone(), 0)).1 += 1;
            answer("")
        }
    }
}

fn problem(status: u16, code: &str) -> String {
    let body = format!(r#"{{"code":"{code}","title":"No","detail":"words of the server\u001b[2J"}}"#);
    format!(
        "HTTP/1.1 {status} Problem\r\nContent-Type: application/problem+json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The next request; `None` when the connection ends.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Request> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer[..head_end].to_vec()).expect("ASCII");
    let mut lines = head.trim_end().split("\r\n");
    let line = lines.next()?.to_owned();
    let field = |field: &str| {
        let (name, value) = field.split_once(':').expect("a field");
        (name.to_owned(), value.trim().to_owned())
    };
    let fields: Vec<(String, String)> = lines.map(field).collect();
    let length = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.map_or(0, |(_, value)| value.parse().expect("a number"));
    while buffer.len() < head_end + length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let rest = buffer.split_off(head_end + length);
    let body = String::from_utf8(buffer[head_end..].to_vec()).expect("text");
    *buffer = rest;
    Some(Request { line, fields, body })
}
