//! Waking those who wait: at once in this process, soon on other nodes, and by polling in any case.
//!
//! Whoever waits for work, or for the outcome of a key, waits with a bound and looks again when it is over. A wake-up only
//! makes that sooner, so one that is lost costs time and nothing else. Between nodes wake-ups travel by PostgreSQL's NOTIFY,
//! gathered into one message for all that happened within a few milliseconds, because every notifying commit takes a lock
//! that all of them share; and never inside a caller's transaction.

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
/// Wake-ups of this long travel together.
const GATHER_FOR: Duration = Duration::from_millis(5);
/// The most that one message between nodes carries; PostgreSQL allows 8,000 bytes.
const MESSAGE_BYTES_MAX: usize = 7_500;
/// Wake-ups that may wait to travel; beyond it they are dropped, and polling finds what they were about.
const WAITING_MAX: usize = 10_000;
/// Topics that are remembered though nobody waits for them; beyond it a wake-up that nobody waits for is forgotten.
const REMEMBERED_MAX: usize = 10_000;
/// After so long without a word the server is asked whether it is still there: a dead wire is as silent as a quiet night.
const SILENT_MAX: Duration = Duration::from_secs(30);
/// How long it may take to say so, and how long it may take to be reached.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait before listening again after the connection was lost.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What can be waited for.
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

    /// Whether a wake-up waits for whoever comes next. There are few queues and their workers come again; a key is waited for
    /// once, and whoever waits for it looks first.
    fn is_remembered(&self) -> bool {
        self.0.starts_with("q:")
    }
}

/// The wake-ups of one store.
pub(crate) struct Wakes {
    here: Arc<Waiters<Topic>>,
    elsewhere: Option<mpsc::Sender<Topic>>,
    tasks: Vec<AbortHandle>,
}

/// The tasks hold connections; they end with the store.
impl Drop for Wakes {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Wakes {
    /// For this process only.
    pub(crate) fn here() -> Self {
        Self { here: waiters(), elsewhere: None, tasks: Vec::new() }
    }

    /// For this process and for the other nodes on the same database, which are heard from now on.
    pub(crate) async fn everywhere(pool: ConnectionPool, options: PgConnectOptions) -> Self {
        let here = waiters();
        let (elsewhere, waiting) = mpsc::channel(WAITING_MAX);
        let origin = Uuid::now_v7();
        let listener = listener(&options).await;
        let tasks = vec![
            tokio::spawn(send_wake_ups(pool, origin, waiting)).abort_handle(),
            tokio::spawn(listen(options, listener, origin, Arc::clone(&here))).abort_handle(),
        ];
        Self { here, elsewhere: Some(elsewhere), tasks }
    }

    /// Something happened about `topic`.
    pub(crate) fn wake(&self, topic: Topic) {
        self.here.wake(&topic);
        if let Some(elsewhere) = &self.elsewhere {
            // Full: the others poll.
            drop(elsewhere.try_send(topic));
        }
    }

    /// Waits until something happens about `topic`, at most so long; answers whether it did.
    ///
    /// `look` is asked after the waiting has begun: whether it has happened already. So nothing that happens in between is missed.
    pub(crate) async fn wait(
        &self,
        topic: &Topic,
        at_most: Duration,
        look: impl AsyncFnOnce() -> bool,
    ) -> bool {
        let mut waiting = self.here.join(topic);
        look().await || timeout(at_most, waiting.woken()).await.is_ok()
    }
}

fn waiters() -> Arc<Waiters<Topic>> {
    Arc::new(Waiters::with_remembered(Topic::is_remembered, REMEMBERED_MAX))
}

/// Sends what gathers, one message at a time, until the store is gone. A message begins with who sends it.
async fn send_wake_ups(pool: ConnectionPool, origin: Uuid, mut waiting: mpsc::Receiver<Topic>) {
    while let Some(first) = waiting.recv().await {
        let mut topics = BTreeSet::from([first]);
        let mut bytes = 0;
        while bytes < MESSAGE_BYTES_MAX {
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
            tracing::debug!(%error, "a wake-up was not sent; the other nodes poll");
        }
        tokio::time::sleep(GATHER_FOR).await;
    }
}

/// Hears what other nodes say, until it is aborted with the store.
async fn listen(
    options: PgConnectOptions,
    mut listening: Result<PgListener, sqlx::Error>,
    origin: Uuid,
    here: Arc<Waiters<Topic>>,
) {
    let origin = origin.simple().to_string();
    loop {
        let heard = match &mut listening {
            Ok(listener) => receive(listener, &origin, &here).await,
            Err(error) => {
                tracing::debug!(%error, "wake-ups of other nodes are not heard; polling goes on");
                Err(())
            }
        };
        if heard.is_err() {
            tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
            listening = listener(&options).await;
        }
    }
}

/// A connection that listens, from a pool of its own: a dead one is given up without the store having one less.
async fn listener(options: &PgConnectOptions) -> Result<PgListener, sqlx::Error> {
    let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(ANSWER_TIMEOUT);
    let mut listener = PgListener::connect_with(&pool.connect_lazy_with(options.clone())).await?;
    let listening = timeout(ANSWER_TIMEOUT, listener.listen(CHANNEL)).await;
    listening.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
    Ok(listener)
}

/// Hears one message, or that the server is still there; our own messages are no news.
async fn receive(listener: &mut PgListener, origin: &str, here: &Waiters<Topic>) -> Result<(), ()> {
    let lost = |error: sqlx::Error| tracing::debug!(%error, "the connection that hears other nodes was lost");
    let Ok(heard) = timeout(SILENT_MAX, listener.recv()).await else {
        let asked = timeout(ANSWER_TIMEOUT, sqlx::query("SELECT 1").execute(listener)).await;
        return asked.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map(drop).map_err(lost);
    };
    let message = heard.map_err(lost)?;
    let mut words = message.payload().split(' ');
    if words.next() != Some(origin) {
        words.for_each(|topic| here.wake(&Topic(topic.to_owned())));
    }
    Ok(())
}
