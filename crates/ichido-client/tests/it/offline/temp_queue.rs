//! A queue in its own temporary folder, and helpers for many tests.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::Method;
use ichido_client::queue::{
    AcceptOutcome, DrainOutcome, Entry, EntryFilter, EntryId, Event, OfflineQueue, SendSettings, Sender,
    StepOutcome,
};
use ichido_client::{Action, Client};
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::{Jitter, Retry, Schedule};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

/// The destination of most tests.
pub(crate) const SHOP: &str = "shop";

/// Longer waits end the test.
const PATIENCE: Duration = Duration::from_secs(10);

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// A temporary folder that is removed on drop.
pub(crate) struct TempQueue(PathBuf);

impl TempQueue {
    pub(crate) fn new() -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("ichido-offline-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).expect("a temporary folder can be made");
        Self(folder)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("orders.queue")
    }

    pub(crate) async fn queue(&self) -> OfflineQueue {
        OfflineQueue::open(self.file()).await.expect("the queue opens")
    }

    /// Runs SQL on the file behind the queue's back.
    pub(crate) async fn sql(&self, sql: &str) {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(self.file());
        let mut connection = options.connect().await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// Pretends that the last clock reading was this many hours earlier.
    pub(crate) async fn hours_pass(&self, hours: i64) {
        self.sql(&format!("UPDATE watch SET last_us = last_us - {hours} * 3600 * 1000000")).await;
    }
}

impl Drop for TempQueue {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Returns settings with three attempts and hardly any wait in between.
pub(crate) fn quick() -> SendSettings {
    let schedule = Schedule::List(vec![Duration::from_millis(1)]);
    let retry = Retry { schedule, jitter: Jitter::None, max_attempts: NonZeroU32::new(3).unwrap() };
    SendSettings { retry, ..SendSettings::default() }
}

pub(crate) fn order_at(path: &str, key: &str, body: &str) -> Action {
    let key = IdempotencyKey::parse(key).unwrap();
    Action::new(Method::POST, path, key, "application/json", body.to_owned()).unwrap()
}

/// Creates an order whose body contains its key.
pub(crate) fn order(key: &str) -> Action {
    order_at("/orders", key, &format!(r#"{{"order": "{key}"}}"#))
}

pub(crate) async fn accept(queue: &OfflineQueue, keys: &[&str]) -> Vec<EntryId> {
    let actions: Vec<Action> = keys.iter().map(|key| order(key)).collect();
    let id = |accepted| match accepted {
        AcceptOutcome::New { id } => id,
        other => panic!("{other:?}"),
    };
    queue.accept(SHOP, &actions).await.unwrap().into_iter().map(id).collect()
}

pub(crate) async fn sender(queue: &OfflineQueue, client: Client) -> Sender {
    queue.sender(SHOP, Arc::new(client), quick()).await.unwrap()
}

/// Sends all waiting entries.
pub(crate) async fn drain(sender: &mut Sender) -> (DrainOutcome, Vec<Event>) {
    let mut events = Vec::new();
    let outcome = sender.drain(PATIENCE, std::future::pending(), |event| events.push(event)).await.unwrap();
    (outcome, events)
}

/// Runs steps until an event happens.
pub(crate) async fn next_event(sender: &mut Sender) -> Event {
    loop {
        match sender.step().await.unwrap() {
            StepOutcome::Event(event) => return event,
            StepOutcome::Wait(wait) => sender.rest(wait).await,
            StepOutcome::Idle => panic!("there is nothing to do"),
        }
    }
}

pub(crate) async fn all(queue: &OfflineQueue) -> Vec<Entry> {
    queue.list(&EntryFilter::default(), u32::MAX).await.unwrap()
}

pub(crate) fn keys(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.key.as_str()).collect()
}
