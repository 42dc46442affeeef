//! A folder with a configuration, a database with letters, and the binary.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ichido_core::json::CanonicalForm;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Event, Failure};
use ichido_core::retry::{Guarantee, Retry, Safety};
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::Store;
use ichido_store::facts::QueueFacts;
use ichido_store::message::{ClaimOptions, NewMessage, Note, QueueName, RequestBody, Settlement};
use ichido_store::testing::{postgres, sqlite};
use serde_json::Value;
use uuid::Uuid;

/// A queue that allows a requeue, one that does not, and one whose receiver gives no guarantee. Workers have
/// published all.
const CONFIG: &str = r#"
[queues.orders]
destination = "broker"
requeue = true
[queues.ledger]
destination = "broker"
requeue = false
outbound_key = "own"
[queues.mail]
destination = "mail"
requeue = true
[destinations.broker]
kind = "http"
url = "http://127.0.0.1:9/"
guarantee = "keyed"
keeps_keys_for = "24h"
[destinations.mail]
kind = "http"
url = "http://127.0.0.1:9/"
guarantee = "none"
"#;

/// The broker's guarantee.
pub(crate) const KEYED: Guarantee = Guarantee::Keyed { keeps_for: Duration::from_hours(24) };

/// Publishes the queues of the configuration as a worker does, with the broker's guarantee.
pub(crate) async fn publish(store: &Store, node: Uuid, broker: Guarantee) {
    let (max_attempts, horizon) = (Retry::ORDER.max_attempts, Duration::from_mins(20));
    let mut facts = Vec::new();
    for (queue, kind, guarantee, requeue) in [
        ("orders", "derived", broker, true),
        ("ledger", "own", broker, false),
        ("mail", "derived", Guarantee::None, true),
    ] {
        let queue = QueueName::parse(queue).expect("a name");
        store.queues().key_kind(&queue, kind).await.expect("its kind of key");
        facts.push((queue, QueueFacts { guarantee, requeue, max_attempts, retry_horizon: horizon }));
    }
    store.nodes().heartbeat(node, "worker").await.expect("it lives");
    store.facts().publish(node, &facts).await.expect("published");
}

pub(crate) struct StoreFixture {
    folder: PathBuf,
    pub(crate) url: String,
    pub(crate) store: Store,
    _database: DatabaseGuard,
}

enum DatabaseGuard {
    Postgres { _database: postgres::PgTestDatabase },
    Sqlite { _file: sqlite::SqliteTestFile },
}

/// The exit code and output of a command.
#[derive(Debug)]
pub(crate) struct DeadOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl StoreFixture {
    pub(crate) async fn on_postgres() -> Self {
        let database = postgres::fresh_database().await;
        Self::at(database.url.clone(), DatabaseGuard::Postgres { _database: database }).await
    }

    pub(crate) async fn on_sqlite() -> Self {
        let file = sqlite::fresh_file();
        Self::at(file.url.clone(), DatabaseGuard::Sqlite { _file: file }).await
    }

    async fn at(url: String, database: DatabaseGuard) -> Self {
        let folder = std::env::temp_dir().join(format!("ichido-dead-{}", Uuid::now_v7()));
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join("ichido.toml"), CONFIG).expect("a file");
        let store = Store::open(&url, 2).await.expect("the store");
        publish(&store, Uuid::from_u128(1), KEYED).await;
        Self { folder, url, store, _database: database }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
        command
            .arg("dead")
            .args(arguments)
            .current_dir(&self.folder)
            .env_remove("ICHIDO_CONFIG")
            .env("ICHIDO_STORE", &self.url)
            .env("USER", "olivia")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end, without standard input.
    pub(crate) fn run(&self, arguments: &[&str]) -> DeadOutput {
        let output = self.command(arguments).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        DeadOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Returns the JSON objects that a command prints, one per line.
    pub(crate) fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let left = self.run(&[arguments, &["--json"]].concat());
        left.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Lets this many messages of a queue end this way; their calls may still be in flight.
    pub(crate) async fn letters(
        &self,
        queue: &str,
        count: u32,
        failure: Failure,
        effect: Effect,
    ) -> Vec<Uuid> {
        self.ended(queue, count, Duration::from_hours(1), (failure, effect)).await
    }

    /// Lets one message of unknown effect end this way, its call no longer in flight.
    pub(crate) async fn arrived(&self, queue: &str, failure: Failure) -> Uuid {
        self.ended(queue, 1, Duration::ZERO, (failure, Effect::Unknown)).await[0]
    }

    async fn ended(
        &self,
        queue: &str,
        count: u32,
        max_time_in_flight: Duration,
        (failure, effect): (Failure, Effect),
    ) -> Vec<Uuid> {
        let queue = QueueName::parse(queue).expect("a name");
        let new = |_| {
            let key = IdempotencyKey::parse(&Uuid::now_v7().to_string()).expect("a key");
            let body =
                RequestBody::new("application/json", b"{\"qty\":1}".to_vec(), CanonicalForm::default());
            NewMessage::new(queue.clone(), "alice", key, body.expect("JSON"))
        };
        for put in self.store.messages().enqueue_all((0..count).map(new).collect()).await {
            put.expect("put in");
        }
        let terms = ClaimOptions {
            node: Uuid::nil(),
            lease: Duration::from_hours(1),
            start_marks: false,
            guarantee: Guarantee::Idempotent,
            max_time_in_flight: Duration::ZERO,
        };
        let many = NonZeroU32::new(count).expect("some");
        let works = self.store.claims().claim(&queue, many, terms).await.expect("claimed");
        let note = Note {
            code: Some(ErrorCode::BadRequest),
            excerpt: Some("no such symbol".to_owned()),
            ..Note::default()
        };
        let settlements = works.iter().map(|work| {
            let in_flight_until = work.claimed_at.plus(max_time_in_flight);
            let event =
                Event::Failed { fence: work.fence, failure, effect, safety: Safety::None, in_flight_until };
            Settlement::new(work, event, note.clone())
        });
        for settled in self.store.claims().settle_all(settlements.collect()).await {
            let _ = settled.expect("settled");
        }
        works.into_iter().map(|work| work.id).collect()
    }

    pub(crate) async fn dead(&self, queue: &str, count: u32) -> Vec<Uuid> {
        self.letters(queue, count, Failure::Permanent, Effect::NotDone).await
    }

    pub(crate) async fn status(&self, id: Uuid) -> &'static str {
        self.store.messages().get(id).await.expect("read").expect("there").status.as_str()
    }
}

impl Drop for StoreFixture {
    fn drop(&mut self) {
        // It may already be gone.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// Defines one test per database for each behaviour.
macro_rules! both_databases {
    ($($(#[doc = $doc:literal])* #[test] async fn $name:ident($fixture:ident: StoreFixture) $body:block)+) => { $(
        $(#[doc = $doc])*
        mod $name {
            use super::*;

            async fn case($fixture: StoreFixture) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                case(StoreFixture::on_postgres().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                case(StoreFixture::on_sqlite().await).await;
            }
        }
    )+ };
}

pub(crate) use both_databases;
