//! Wake-ups: immediate in this process, soon on other nodes, with polling as the fallback.
//!
//! A caller that waits for work, or for the outcome of a key, waits with a timeout and then checks again. A wake-up only shortens the
//! wait, so a lost one costs nothing but time. Between nodes, wake-ups use PostgreSQL's NOTIFY, never inside a caller's
//! transaction. Those of a few milliseconds are combined into one notification, because every notifying commit takes a lock
//! that all of them share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::hex;
use ichido_core::ledger::RecordName;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use uuid::Uuid;

use crate::message::QueueName;
use crate::postgres::connections::ConnectionPool;
use crate::waiters::Waiters;

/// The channel that all nodes listen on.
const CHANNEL: &str = "ichido";
/// Wake-ups within this time are sent together.
const GATHER_FOR: Duration = Duration::from_millis(5);
/// The maximum size of a notification; PostgreSQL allows 8,000 bytes.
const MAX_MESSAGE_BYTES: usize = 7_500;
/// The maximum number of wake-ups waiting to be sent. More are dropped, and polling finds the work.
const MAX_WAITING: usize = 10_000;
/// The maximum number of topics with a remembered wake-up. Beyond it a wake-up without a waiter is dropped.
const MAX_REMEMBERED: usize = 10_000;
/// After this long without a notification the server is pinged. A dead connection is as silent as an idle one.
const MAX_SILENT: Duration = Duration::from_secs(30);
/// The timeout of the ping, and of connecting.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The wait before listening again after the connection was lost.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Something that can be waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Topic(String);

impl Topic {
    /// Work of a queue.
    pub(crate) fn queue(queue: &QueueName) -> Self {
        Self(format!("q:{}", queue.as_str()))
    }

    /// The outcome of a key.
    pub(crate) fn key(name: &RecordName) -> Self {
        Self(format!("k:{}", hex(&name.hash())))
    }

    /// Returns whether a wake-up is remembered for the next waiter. There are few queues and their workers return; a key is
    /// waited for once, and its waiter checks first.
    fn is_remembered(&self) -> bool {
        self.0.starts_with("q:")
    }
}

/// The wake-ups of one store.
pub(crate) struct WakeUps {
    local: Arc<Waiters<Topic>>,
    remote: Option<mpsc::Sender<Topic>>,
    tasks: Vec<AbortHandle>,
}

/// Ends the tasks with the store, because they hold connections.
impl Drop for WakeUps {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl WakeUps {
    /// Creates wake-ups for this process only.
    pub(crate) fn local() -> Self {
        Self { local: waiters(), remote: None, tasks: Vec::new() }
    }

    /// Creates wake-ups for this process and the other nodes on the same database. It listens from now on.
    pub(crate) async fn across_nodes(pool: ConnectionPool, options: PgConnectOptions) -> Self {
        let local = waiters();
        let (remote, waiting) = mpsc::channel(MAX_WAITING);
        let origin = Uuid::now_v7();
        let listener = listener(&options).await;
        let tasks = vec![
            tokio::spawn(send_wake_ups(pool, origin, waiting)).abort_handle(),
            tokio::spawn(listen(options, listener, origin, Arc::clone(&local))).abort_handle(),
        ];
        Self { local, remote: Some(remote), tasks }
    }

    /// Wakes those who wait for `topic`.
    pub(crate) fn wake(&self, topic: Topic) {
        self.local.wake(&topic);
        if let Some(remote) = &self.remote {
            // Full: the other nodes poll.
            drop(remote.try_send(topic));
        }
    }

    /// Waits up to `at_most` for a wake-up about `topic`. Returns whether there was one.
    ///
    /// `look` runs after the wait has begun and returns whether it has happened already, so nothing in between is missed.
    pub(crate) async fn wait(
        &self,
        topic: &Topic,
        at_most: Duration,
        look: impl AsyncFnOnce() -> bool,
    ) -> bool {
        let mut waiting = self.local.join(topic);
        look().await || timeout(at_most, waiting.woken()).await.is_ok()
    }
}

fn waiters() -> Arc<Waiters<Topic>> {
    Arc::new(Waiters::with_remembered(Topic::is_remembered, MAX_REMEMBERED))
}

/// Sends gathered wake-ups, one notification at a time, until the store is gone. A notification begins with the sender.
async fn send_wake_ups(pool: ConnectionPool, origin: Uuid, mut waiting: mpsc::Receiver<Topic>) {
    while let Some(first) = waiting.recv().await {
        let mut topics = BTreeSet::from([first]);
        let mut bytes = 0;
        while bytes < MAX_MESSAGE_BYTES {
            let Ok(next) = waiting.try_recv() else { break };
            bytes += next.0.len() + 1;
            topics.insert(next);
        }
        let mut message = origin.simple().to_string();
        for Topic(topic) in &topics {
            message.push(' ');
            message.push_str(topic);
        }
        let notify = sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(message);
        if let Err(error) = pool.execute(notify).await {
            tracing::debug!(%error, "wake-up not sent; other nodes poll");
        }
        tokio::time::sleep(GATHER_FOR).await;
    }
}

/// Receives other nodes' wake-ups, until it is aborted with the store.
async fn listen(
    options: PgConnectOptions,
    mut listening: Result<PgListener, sqlx::Error>,
    origin: Uuid,
    local: Arc<Waiters<Topic>>,
) {
    let origin = origin.simple().to_string();
    loop {
        let heard = match &mut listening {
            Ok(listener) => receive(listener, &origin, &local).await,
            Err(error) => {
                tracing::debug!(%error, "wake-ups from other nodes not received; polling");
                Err(())
            }
        };
        if heard.is_err() {
            tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
            listening = listener(&options).await;
        }
    }
}

/// Opens a connection that listens. It has its own pool, so a dead one does not reduce the store's connections.
async fn listener(options: &PgConnectOptions) -> Result<PgListener, sqlx::Error> {
    let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(ANSWER_TIMEOUT);
    let mut listener = PgListener::connect_with(&pool.connect_lazy_with(options.clone())).await?;
    let listening = timeout(ANSWER_TIMEOUT, listener.listen(CHANNEL)).await;
    listening.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
    Ok(listener)
}

/// Receives one notification, or pings the server. Our own notifications are ignored.
async fn receive(listener: &mut PgListener, origin: &str, local: &Waiters<Topic>) -> Result<(), ()> {
    let lost = |error: sqlx::Error| tracing::debug!(%error, "lost connection for wake-ups from other nodes");
    let Ok(heard) = timeout(MAX_SILENT, listener.recv()).await else {
        let asked = timeout(ANSWER_TIMEOUT, sqlx::query("SELECT 1").execute(listener)).await;
        return asked.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map(drop).map_err(lost);
    };
    let message = heard.map_err(lost)?;
    let mut words = message.payload().split(' ');
    if words.next() != Some(origin) {
        words.for_each(|topic| local.wake(&Topic(topic.to_owned())));
    }
    Ok(())
}
