//! Producers that enqueue messages over HTTP at all nodes in turn, each retried under its key until acknowledged.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::node::{QUEUE, ServeNode};
use crate::http_message::{HttpMessage, HttpReader, MessageKind};
use crate::mock_broker::broker::order;
use crate::serve::client::RawRequest;
use crate::serve::program::POLL_EVERY;

const PRODUCERS: usize = 12;
/// After this a producer tries another node: this one may be stalled.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// How long a producer waits for its message to be sent before it enqueues the next.
const SENT_WITHIN: &str = "1s";

/// An acknowledged message.
#[derive(Debug)]
pub(crate) struct Acknowledged {
    pub(crate) key: String,
    pub(crate) id: Uuid,
}

pub(crate) struct Producers {
    shared: Arc<ProducerState>,
    producers: JoinSet<Vec<Acknowledged>>,
}

struct ProducerState {
    nodes: Mutex<Vec<SocketAddr>>,
    acknowledged: watch::Sender<usize>,
    is_over: watch::Sender<bool>,
}

impl Producers {
    /// Starts producing at these nodes.
    pub(crate) fn start(nodes: &[ServeNode]) -> Self {
        let (acknowledged, is_over) = (watch::Sender::new(0), watch::Sender::new(false));
        let nodes = Mutex::new(nodes.iter().map(ServeNode::address).collect());
        let shared = Arc::new(ProducerState { nodes, acknowledged, is_over });
        let producers = (0..PRODUCERS).map(|number| produce(number, Arc::clone(&shared))).collect();
        Self { shared, producers }
    }

    /// Continues at these nodes.
    pub(crate) fn at(&self, nodes: &[ServeNode]) {
        *self.shared.nodes.lock().unwrap() = nodes.iter().map(ServeNode::address).collect();
    }

    /// Waits until this many more were acknowledged.
    pub(crate) async fn until_more(&self, count: usize) {
        let mut acknowledged = self.shared.acknowledged.subscribe();
        let wanted = *acknowledged.borrow_and_update() + count;
        acknowledged.wait_for(|acknowledged| wanted <= *acknowledged).await.unwrap();
    }

    /// Stops, and returns the acknowledged messages: all that were enqueued.
    pub(crate) async fn end(self) -> Vec<Acknowledged> {
        self.shared.is_over.send_replace(true);
        self.producers.join_all().await.into_iter().flatten().collect()
    }
}

async fn produce(producer: usize, shared: Arc<ProducerState>) -> Vec<Acknowledged> {
    let mut all = Vec::new();
    while !*shared.is_over.borrow() {
        let key = format!("p{producer}-{}", all.len());
        let id = put(&shared, &key, producer + all.len()).await;
        shared.acknowledged.send_modify(|count| *count += 1);
        // Sent again at another node, the response must be the same, and it arrives once the message is sent. That
        // keeps the backlog small.
        let again = format!("/v1/queues/{QUEUE}/messages?wait={SENT_WITHIN}");
        let node = shared.node(producer + all.len() + 1);
        if let Some(answer) = answered(node, &request(&key).to(&again)).await {
            assert_eq!(acknowledged(&answer).unwrap_or(id), id, "{answer:?}");
        }
        all.push(Acknowledged { key, id });
    }
    all
}

/// Enqueues a message at one node after another, until it is acknowledged.
async fn put(shared: &ProducerState, key: &str, first: usize) -> Uuid {
    for turn in first.. {
        if let Some(answer) = answered(shared.node(turn), &request(key)).await
            && let Some(id) = acknowledged(&answer)
        {
            return id;
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
    unreachable!("there is always a next turn")
}

impl ProducerState {
    fn node(&self, turn: usize) -> SocketAddr {
        let nodes = self.nodes.lock().unwrap();
        nodes[turn % nodes.len()]
    }
}

fn request(key: &str) -> RawRequest {
    RawRequest::put(key, &order(key).body).to(&format!("/v1/queues/{QUEUE}/messages"))
}

/// Returns the complete response, if it arrives in time.
async fn answered(node: SocketAddr, request: &RawRequest) -> Option<HttpMessage> {
    let exchange = async {
        let (read, mut write) = TcpStream::connect(node).await.ok()?.into_split();
        write.write_all(&request.bytes()).await.ok()?;
        HttpReader::new(read).message(MessageKind::Answer).await.ok()?
    };
    tokio::time::timeout(ANSWER_WITHIN, exchange).await.ok()?
}

/// Returns the acknowledged message; `None` if the client should retry.
fn acknowledged(answer: &HttpMessage) -> Option<Uuid> {
    match answer.status() {
        200..=202 => Some(answer.json()["id"].as_str().and_then(|id| id.parse().ok()).expect("an id")),
        503 => None,
        _ => panic!("neither accepted nor retryable: {answer:?}"),
    }
}
