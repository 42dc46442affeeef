//! An SQLite database whose file is removed, moved or replaced while in use: nothing is acknowledged any more.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::OperationGuarantee;
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::{KeyClaimed, KeySettle};
use ichido_store::message::{
    ClaimOptions, ClaimedMessage, Enqueued, NewMessage, Note, QueueName, Settlement,
};
use ichido_store::testing::sqlite::{SqliteTestFile, fresh_file};
use sqlx::SqlitePool;
use uuid::Uuid;

use crate::conformance::ledger::{keep, name, request, response};
use crate::fixture::{message, succeeded};

/// Damage to the folder of a database.
type FileDamage = (&'static str, fn(&Path));

const FILE_DAMAGE: [FileDamage; 7] = [
    ("all of it is removed", |folder| {
        for file in ["ichido.db", "ichido.db-wal", "ichido.db-shm"] {
            std::fs::remove_file(folder.join(file)).unwrap();
        }
    }),
    ("the file is removed", |folder| std::fs::remove_file(folder.join("ichido.db")).unwrap()),
    ("the file is emptied", |folder| {
        drop(std::fs::File::create(folder.join("ichido.db")).unwrap());
    }),
    ("the file is moved", |folder| {
        std::fs::rename(folder.join("ichido.db"), folder.join("moved.db")).unwrap();
    }),
    ("the log is removed", |folder| std::fs::remove_file(folder.join("ichido.db-wal")).unwrap()),
    ("the log's index is removed", |folder| std::fs::remove_file(folder.join("ichido.db-shm")).unwrap()),
    ("a copy replaces it", |folder| {
        std::fs::copy(folder.join("ichido.db"), folder.join("copy.db")).unwrap();
        std::fs::rename(folder.join("copy.db"), folder.join("ichido.db")).unwrap();
    }),
];

async fn opened() -> (SqliteTestFile, Store) {
    let file = fresh_file();
    let store = Store::open(&file.url, 2).await.unwrap();
    (file, store)
}

fn lost<T: std::fmt::Debug>(what: &str, path: &str, outcome: Result<T, StoreError>) {
    match outcome {
        Err(StoreError::FileLost { .. }) => {}
        other => panic!("{what}: {path}: {other:?}"),
    }
}

async fn claimed(store: &Store) -> ClaimedMessage {
    store.messages().enqueue(message("held")).await.unwrap();
    let terms = ClaimOptions {
        node: Uuid::nil(),
        lease: Duration::from_mins(1),
        start_marks: true,
        guarantee: Guarantee::None,
        max_time_in_flight: Duration::ZERO,
    };
    store.claims().claim(&message("held").queue, NonZeroU32::MIN, terms).await.unwrap().remove(0)
}

/// The operations that acknowledge something, or let a call start.
const PATHS: [&str; 11] = [
    "put",
    "batch",
    "content",
    "content again",
    "claim",
    "settle",
    "mark",
    "report",
    "in a transaction",
    "many in a transaction",
    "settle in a transaction",
];

/// A message that is compared by content.
fn by_content(key: &str) -> NewMessage {
    let queue = QueueName::parse("mail").unwrap();
    let same = ichido_store::message::SameContent {
        content: ichido_core::digest::Digest::of_bytes(b"x"),
        window: Duration::from_mins(1),
    };
    let new = NewMessage::new(queue, "alice", IdempotencyKey::parse(key).unwrap(), b"x".to_vec());
    NewMessage { same_content: Some(same), ..new }
}

#[tokio::test]
async fn moved_file_acknowledges_nothing() {
    for (what, harm) in FILE_DAMAGE {
        for path in PATHS {
            let (file, store) = opened().await;
            let pool = SqlitePool::connect(&file.url).await.unwrap();
            let work = claimed(&store).await;
            let run = store.keys().claim(request("held", OperationGuarantee::None)).await.unwrap();
            let KeyClaimed::Run { fence, .. } = run else { panic!("{run:?}") };
            let settle = KeySettle { name: name("held"), fence, outcome: keep(response(b"done")) };
            if path == "content again" {
                store.messages().enqueue(by_content("first")).await.unwrap();
            }
            let mut open = pool.begin().await.unwrap();
            store.check_ready().await.unwrap();

            harm(file.folder());
            match path {
                "put" => lost(what, path, store.messages().enqueue(message("new")).await),
                "batch" => {
                    for answer in store.messages().enqueue_all(vec![message("one"), message("two")]).await {
                        lost(what, path, answer);
                    }
                }
                "content" => lost(what, path, store.messages().enqueue(by_content("new")).await),
                "content again" => lost(what, path, store.messages().enqueue(by_content("other")).await),
                "claim" => {
                    lost(what, path, store.keys().claim(request("new", OperationGuarantee::None)).await);
                }
                "settle" => lost(what, path, store.keys().settle(settle).await),
                "settle in a transaction" => {
                    lost(what, path, store.keys().settle_in(&mut *open, &settle).await);
                }
                "mark" => lost(what, path, store.claims().mark_started(&[(work.id, work.fence)]).await),
                "report" => {
                    let report = Settlement::new(&work, succeeded(&work), Note::default());
                    lost(what, path, store.claims().settle(report).await);
                }
                "many in a transaction" => {
                    lost(what, path, store.messages().enqueue_all_in(&mut *open, vec![message("new")]).await);
                }
                _ => lost(what, path, store.messages().enqueue_in(&mut *open, message("new")).await),
            }
            lost(what, path, store.check_ready().await);
            lost(what, path, store.messages().enqueue(message("later")).await);
            assert!(matches!(store.files_lost().await, StoreError::FileLost { .. }));
        }
    }
}

/// A readiness check reports the loss, though nothing was written since.
#[tokio::test]
async fn readiness_check_finds_a_lost_file_before_a_write() {
    for (what, harm) in FILE_DAMAGE {
        let (file, store) = opened().await;
        harm(file.folder());
        lost(what, "a look", store.check_ready().await);
        lost(what, "put", store.messages().enqueue(message("new")).await);
    }
}

/// Others may have created a new file meanwhile. Nothing more is written, so the next start finds only what was acknowledged.
#[tokio::test]
async fn lost_file_stays_lost_after_its_return() {
    let (file, store) = opened().await;
    store.messages().enqueue(message("before")).await.unwrap();
    let moved = file.folder().join("moved.db");
    std::fs::rename(file.path(), &moved).unwrap();
    lost("the file is moved", "put", store.messages().enqueue(message("meanwhile")).await);
    std::fs::rename(&moved, file.path()).unwrap();
    lost("the file is back", "put", store.messages().enqueue(message("after")).await);
    store.close(Duration::from_mins(1)).await;
    drop(store);
    let next = Store::open(&file.url, 2).await.unwrap();
    assert!(matches!(next.messages().enqueue(message("before")).await.unwrap(), Enqueued::Replay { .. }));
    assert!(matches!(next.messages().enqueue(message("after")).await.unwrap(), Enqueued::New { .. }));
}

/// SQLite still has the log open, and moves it into the file.
#[tokio::test]
async fn acknowledged_writes_survive_a_removed_log() {
    let (file, store) = opened().await;
    store.messages().enqueue(message("before")).await.unwrap();
    std::fs::remove_file(file.folder().join("ichido.db-wal")).unwrap();
    lost("the log is removed", "put", store.messages().enqueue(message("after")).await);
    // Another connection creates a new, empty log. What it reads there does not matter.
    let pool = SqlitePool::connect(&file.url).await.unwrap();
    drop(sqlx::query("SELECT count(*) FROM ichido_messages").fetch_one(&pool).await);
    assert!(file.folder().join("ichido.db-wal").exists());
    pool.close().await;
    store.close(Duration::from_mins(1)).await;
    drop(store);
    let next = Store::open(&file.url, 2).await.unwrap();
    assert!(matches!(next.messages().enqueue(message("before")).await.unwrap(), Enqueued::Replay { .. }));
}

/// SQLite removes its log by name when it closes, but not once its database is elsewhere: that name is now another one's log.
#[tokio::test]
async fn log_of_a_replacement_database_is_untouched() {
    let (file, store) = opened().await;
    let (other, restored) = opened().await;
    restored.messages().enqueue(message("restored")).await.unwrap();
    for name in ["ichido.db", "ichido.db-wal", "ichido.db-shm"] {
        let copy = file.folder().join("copy");
        std::fs::copy(other.folder().join(name), &copy).unwrap();
        std::fs::rename(copy, file.folder().join(name)).unwrap();
    }
    lost("all of it is replaced", "put", store.messages().enqueue(message("new")).await);
    store.close(Duration::from_mins(1)).await;
    drop(store);
    assert!(file.folder().join("ichido.db-wal").exists());
    let next = Store::open(&file.url, 2).await.unwrap();
    assert!(matches!(next.messages().enqueue(message("restored")).await.unwrap(), Enqueued::Replay { .. }));
}

/// The next start opens the link's name.
#[tokio::test]
async fn link_is_followed_and_a_changed_link_is_detected() {
    let (real, other) = (fresh_file(), fresh_file());
    let link = real.folder().join("link.db");
    std::os::unix::fs::symlink(real.path(), &link).unwrap();
    let store = Store::open(&format!("sqlite:{}", link.display()), 2).await.unwrap();
    store.messages().enqueue(message("before")).await.unwrap();
    drop(Store::open(&other.url, 2).await.unwrap());
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(other.path(), &link).unwrap();
    lost("the link leads elsewhere", "put", store.messages().enqueue(message("after")).await);
}

/// Closing any descriptor of a file drops this process's locks on it. Another process would then consider itself the last one
/// and remove the log.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn opening_a_store_again_leaves_the_locks_of_the_first_one() {
    use std::os::unix::fs::MetadataExt as _;
    let (file, store) = opened().await;
    let inode = std::fs::metadata(file.path()).unwrap().ino();
    let is_locked = || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|line| line.contains(&format!(":{inode} ")))
    };
    assert!(is_locked(), "a database in WAL mode is locked while it is open");
    let again = Store::open(&file.url, 2).await.unwrap();
    assert!(is_locked());
    drop((store, again));
}
