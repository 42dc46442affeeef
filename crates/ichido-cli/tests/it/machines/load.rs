//! The load: producers that put messages in over HTTP, at all nodes in turn, each again under its key until it is acknowledged.

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
use crate::paper::broker::order;
use crate::serve::client::RawRequest;
use crate::serve::program::POLL_EVERY;

const PRODUCERS: usize = 12;
/// After so long a producer asks another node: this one may stand still.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// How long a producer waits for its message to be sent before it puts in the next.
const SENT_WITHIN: &str = "1s";

/// A message that was acknowledged.
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
    /// Begins, at these nodes.
    pub(crate) fn start(nodes: &[ServeNode]) -> Self {
        let (acknowledged, is_over) = (watch::Sender::new(0), watch::Sender::new(false));
        let nodes = Mutex::new(nodes.iter().map(ServeNode::address).collect());
        let shared = Arc::new(ProducerState { nodes, acknowledged, is_over });
        let producers = (0..PRODUCERS).map(|number| produce(number, Arc::clone(&shared))).collect();
        Self { shared, producers }
    }

    /// Goes on at these nodes.
    pub(crate) fn at(&self, nodes: &[ServeNode]) {
        *self.shared.nodes.lock().unwrap() = nodes.iter().map(ServeNode::address).collect();
    }

    /// Waits until so many more were acknowledged.
    pub(crate) async fn until_more(&self, count: usize) {
        let mut acknowledged = self.shared.acknowledged.subscribe();
        let wanted = *acknowledged.borrow_and_update() + count;
        acknowledged.wait_for(|acknowledged| wanted <= *acknowledged).await.unwrap();
    }

    /// Ends it, and tells what was acknowledged: all that was put in.
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
        // Once more, at another node: the answer must be the same, and it comes when the message was sent. So what waits stays little.
        let again = format!("/v1/queues/{QUEUE}/messages?wait={SENT_WITHIN}");
        let node = shared.node(producer + all.len() + 1);
        if let Some(answer) = answered(node, &request(&key).to(&again)).await {
            assert_eq!(acknowledged(&answer).unwrap_or(id), id, "{answer:?}");
        }
        all.push(Acknowledged { key, id });
    }
    all
}

/// Puts a message in, at one node after another, until it is acknowledged.
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

/// The whole answer, where one comes in time.
async fn answered(node: SocketAddr, request: &RawRequest) -> Option<HttpMessage> {
    let exchange = async {
        let (read, mut write) = TcpStream::connect(node).await.ok()?.into_split();
        write.write_all(&request.bytes()).await.ok()?;
        HttpReader::new(read).message(MessageKind::Answer).await.ok()?
    };
    tokio::time::timeout(ANSWER_WITHIN, exchange).await.ok()?
}

/// The message that was acknowledged; `None` where the client is told to ask again.
fn acknowledged(answer: &HttpMessage) -> Option<Uuid> {
    match answer.status() {
        200..=202 => Some(answer.json()["id"].as_str().and_then(|id| id.parse().ok()).expect("an id")),
        503 => None,
        _ => panic!("neither taken nor to be sent again: {answer:?}"),
    }
}
