//! The dashboard with a long history: how long the server takes for each page.
//!
//! The store is filled through its own interface: nine of ten messages are sent, the others are dead letters of three causes. Then
//! `ichido serve` runs on it, and one viewer opens every page several times.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::ops::Range;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Event, Failure};
use ichido_core::retry::{Guarantee, Safety};
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::Store;
use ichido_store::message::{ClaimOptions, ClaimedMessage, NewMessage, Note, QueueName, Settlement};
use ichido_store::testing::postgres::Cluster;
use ichido_store::testing::sqlite::fresh_file;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::sleep;
use uuid::Uuid;

use crate::floor::SERVER;
use crate::load::quantile;
use crate::report::{Stopwatch, joined};
use crate::serve::{ServerProcess, ichido};

/// How many messages there are unless the command says otherwise.
pub(crate) const MESSAGES: usize = 10_000_000;
/// One of so many messages is a dead letter.
const DEAD_EVERY: usize = 10;
/// How many messages are enqueued before they are claimed.
const PART: usize = 200_000;
const BATCH: usize = 1_000;
const WRITERS: usize = 2;
const VISITS: usize = 20;
const CAUSES: [&str; 3] = ["unknown symbol \"ACMEE\"", "account A-9999 is suspended", "the lot size is 100"];
/// The goal for the 95th percentile of all visits.
const GOAL: Duration = Duration::from_millis(100);

pub(crate) async fn on_postgres(messages: usize) {
    let cluster = Cluster::start(&SERVER).expect("a PostgreSQL server");
    let database = cluster.database().await.expect("a database");
    println!("PostgreSQL");
    measure(&database.url, messages).await;
}

pub(crate) async fn on_sqlite(messages: usize) {
    println!("SQLite");
    measure(&fresh_file().url, messages).await;
}

async fn measure(url: &str, messages: usize) {
    let store = Store::open(url, 8).await.expect("the store opens");
    let watch = Stopwatch::start();
    for first in (0..messages).step_by(PART) {
        enqueue(&store, first..messages.min(first + PART)).await;
        settle(&store).await;
    }
    println!("{messages} messages after {:.0} s", watch.elapsed().as_secs_f64());
    store.close(Duration::from_mins(1)).await;
    let folder = fresh_file();
    let folder = folder.path().parent().expect("a folder").to_path_buf();
    let server = ServerProcess::start(
        Command::new(ichido()).args(["serve", "--listen", "127.0.0.1:0", "--store", url]),
        &folder,
    );
    let mut viewer = Viewer::new(server.address).await;
    let group = viewer.group().await;
    println!("grouped after {:.0} s", watch.elapsed().as_secs_f64());
    let mut all = Vec::new();
    println!("| page | p50 ms | p95 ms |\n|---|---:|---:|");
    for target in viewer.pages(&group).await {
        let mut times = Vec::new();
        for _ in 0..VISITS {
            let visit = Stopwatch::start();
            viewer.get(&target).await;
            times.push(visit.elapsed());
        }
        all.extend_from_slice(&times);
        row(&target, times);
    }
    row("all", all);
}

fn row(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let [middle, late] = [0.5, 0.95].map(|share| quantile(&times, share));
    let missed = if GOAL < late { " (missed)" } else { "" };
    println!("| {name} | {:.1} | {:.1}{missed} |", 1e3 * middle.as_secs_f64(), 1e3 * late.as_secs_f64());
}

async fn enqueue(store: &Store, part: Range<usize>) {
    let writers = (0..WRITERS).map(|writer| {
        let (store, part) = (store.clone(), part.clone());
        tokio::spawn(async move {
            for first in (part.start + writer * BATCH..part.end).step_by(WRITERS * BATCH) {
                let messages = (first..part.end.min(first + BATCH)).map(message).collect();
                assert!(store.messages().enqueue_all(messages).await.iter().all(Result::is_ok));
            }
        })
    });
    joined(writers).await;
}

fn message(number: usize) -> NewMessage {
    let key = IdempotencyKey::parse(&format!("order-{number}")).expect("a key");
    let body =
        format!(r#"{{"symbol":"ACME","intent":"buy","qty":"{number}","account":"A-{}"}}"#, number % 977);
    NewMessage::new(queue(), "alice", key, body.into_bytes())
}

fn queue() -> QueueName {
    QueueName::parse("demo").expect("a name")
}

async fn settle(store: &Store) {
    let workers = (0..WRITERS).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            let options = ClaimOptions {
                node: Uuid::now_v7(),
                lease: Duration::from_mins(1),
                start_marks: false,
                guarantee: Guarantee::Idempotent,
                max_time_in_flight: Duration::ZERO,
            };
            let batch = NonZeroU32::new(1_000).expect("not zero");
            loop {
                let claimed = store.claims().claim(&queue(), batch, options).await.expect("claimed");
                if claimed.is_empty() {
                    return;
                }
                let settlements = claimed.iter().enumerate().map(|(at, message)| settlement(at, message));
                let settled = store.claims().settle_all(settlements.collect()).await;
                assert!(settled.iter().all(Result::is_ok));
            }
        })
    });
    joined(workers).await;
}

fn settlement(at: usize, message: &ClaimedMessage) -> Settlement {
    let fence = message.fence;
    if !at.is_multiple_of(DEAD_EVERY) {
        return Settlement::new(message, Event::Succeeded { fence }, Note::default());
    }
    let failed = Event::Failed {
        fence,
        failure: Failure::Permanent,
        effect: Effect::NotDone,
        safety: Safety::None,
        in_flight_until: message.claimed_at,
    };
    let cause = CAUSES[at / DEAD_EVERY % CAUSES.len()];
    let note = Note {
        code: Some(ErrorCode::BadRequest),
        status: Some(400),
        excerpt: Some(cause.to_owned()),
        ..Note::default()
    };
    Settlement::new(message, failed, note)
}

struct Viewer(SendRequest<Empty<Bytes>>);

impl Viewer {
    async fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("connected");
        let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("a connection");
        tokio::spawn(connection);
        Self(sender)
    }

    async fn get(&mut self, target: &str) -> Bytes {
        let request = Request::get(target).header("host", "localhost").body(Empty::new()).expect("a request");
        self.0.ready().await.expect("the connection is open");
        let response = self.0.send_request(request).await.expect("a response");
        assert_eq!(response.status(), StatusCode::OK, "{target}");
        response.into_body().collect().await.expect("a page").to_bytes()
    }

    async fn first(&mut self, target: &str, list: &str) -> Option<Value> {
        let found: Value = serde_json::from_slice(&self.get(target).await).expect("JSON");
        found[list].get(0).cloned()
    }

    /// Waits until the worker has grouped all dead letters. Returns the first group.
    async fn group(&mut self) -> String {
        // About one in ten: each claimed batch begins to count anew.
        let queue = self.first("/v1/queues", "queues").await.expect("a queue");
        loop {
            let found: Value = serde_json::from_slice(&self.get("/v1/failure-groups").await).expect("JSON");
            let groups = found["failure_groups"].as_array().cloned().unwrap_or_default();
            let count: u64 = groups.iter().filter_map(|group| group["count"].as_u64()).sum();
            if Some(count) == queue["counts"]["dead"].as_u64() {
                return text(&groups[0]["id"]);
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Returns the pages of people, with ids of this store.
    async fn pages(&mut self, group: &str) -> Vec<String> {
        let dead = self.first("/v1/messages?queue=demo&state=dead&limit=1", "messages").await;
        let sent = self.first("/v1/messages?queue=demo&state=sent&limit=1", "messages").await;
        let [dead, sent] = [dead, sent].map(|message| text(&message.expect("a message")["id"]));
        [
            "/".to_owned(),
            "/?range=24h".to_owned(),
            "/messages".to_owned(),
            "/messages?q=state:dead".to_owned(),
            "/messages?q=queue:demo+state:dead+code:BAD_REQUEST".to_owned(),
            "/messages?q=queue:demo+payload./account:A-5".to_owned(),
            "/messages?q=payload./symbol:NONE".to_owned(),
            "/messages?q=key:order-77".to_owned(),
            format!("/messages?q=id:{}", &sent[..8]),
            format!("/messages/{dead}"),
            format!("/messages/{sent}"),
            "/dead-letters".to_owned(),
            "/dead-letters?state=dead".to_owned(),
            format!("/dead-letters/groups/{group}"),
            format!("/operations/new?action=requeue&group={group}"),
            "/operations".to_owned(),
            "/queues".to_owned(),
            "/queues/demo".to_owned(),
            "/destinations".to_owned(),
            "/models".to_owned(),
            "/nodes".to_owned(),
            "/alerts".to_owned(),
            "/keys?key=order-5000".to_owned(),
            "/audit".to_owned(),
        ]
        .into()
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
