//! Tests which files are accepted as a queue, and the errors for all others.

use ichido_client::queue::{OfflineQueue, QueueError};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::task::JoinSet;

use super::temp_queue::{SHOP, TempQueue, accept, all, keys, order};

#[cfg(unix)]
#[tokio::test]
async fn file_is_readable_only_by_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let temp = TempQueue::new();
    let queue = temp.queue().await;
    accept(&queue, &["k1"]).await;
    for file in std::fs::read_dir(temp.folder()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.path());
    }
}

#[tokio::test]
async fn foreign_file_is_not_changed() {
    let temp = TempQueue::new();
    for text in [
        "my diary\n",
        "SQLite format 3 is a fine thing to write about, at some length, in a file of one's own",
    ] {
        std::fs::write(temp.file(), text).unwrap();
        assert!(matches!(OfflineQueue::open(temp.file()).await, Err(QueueError::NotAQueue)), "{text}");
        assert_eq!(std::fs::read_to_string(temp.file()).unwrap(), text);
    }
    std::fs::remove_file(temp.file()).unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(temp.file()).create_if_missing(true);
    let mut theirs = options.connect().await.unwrap();
    sqlx::raw_sql("CREATE TABLE diary (text)").execute(&mut theirs).await.unwrap();
    theirs.close().await.unwrap();
    let before = std::fs::read(temp.file()).unwrap();
    assert!(matches!(OfflineQueue::open(temp.file()).await, Err(QueueError::NotAQueue)));
    assert_eq!(std::fs::read(temp.file()).unwrap(), before);
    assert!(matches!(OfflineQueue::open(temp.folder()).await, Err(QueueError::Unusable(_))));
}

#[tokio::test]
async fn newer_file_is_rejected_with_both_versions() {
    let temp = TempQueue::new();
    temp.queue().await.close().await;
    temp.sql("PRAGMA user_version = 7").await;
    let refused = OfflineQueue::open(temp.file()).await.unwrap_err();
    assert!(matches!(refused, QueueError::TooNew { found: 7, known: 1 }), "{refused:?}");
    assert!(refused.to_string().contains("use a newer ichido"), "{refused}");
}

#[tokio::test]
async fn missing_or_uncreatable_file_is_reported() {
    let temp = TempQueue::new();
    let nowhere = temp.folder().join("no/such/folder/orders.queue");
    assert!(matches!(OfflineQueue::open(&nowhere).await, Err(QueueError::Unusable(_))));
    assert!(matches!(OfflineQueue::open_existing(temp.file()).await, Err(QueueError::Unusable(_))));
    assert!(!temp.file().exists(), "looking makes none");
}

#[tokio::test]
async fn damaged_file_is_reported() {
    let temp = TempQueue::new();
    let queue = temp.queue().await;
    let keys: Vec<String> = (0..500).map(|number| format!("k{number}")).collect();
    accept(&queue, &keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
    queue.close().await;
    let mut bytes = std::fs::read(temp.file()).unwrap();
    // The header stays, so the file is still recognized.
    let from = 4_096;
    bytes[from..].fill(0xa5);
    std::fs::write(temp.file(), &bytes).unwrap();
    let queue = temp.queue().await;
    let refused = queue.accept(SHOP, &[order("k1")]).await.unwrap_err();
    assert!(matches!(refused, QueueError::Damaged(_)), "{refused:?}");
    assert!(refused.to_string().contains("copy it"), "{refused}");
}

#[tokio::test]
async fn invalid_row_is_an_error_not_a_default() {
    let temp = TempQueue::new();
    let queue = temp.queue().await;
    accept(&queue, &["k1"]).await;
    temp.sql("UPDATE entry SET key = 'no key'").await;
    assert!(matches!(
        queue.list(&ichido_client::queue::EntryFilter::default(), 10).await,
        Err(QueueError::Damaged(_))
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_processes_create_and_use_one_file() {
    let temp = TempQueue::new();
    let mut tasks = JoinSet::new();
    for number in 0..16 {
        let file = temp.file();
        tasks.spawn(async move {
            let queue = OfflineQueue::open(file).await.unwrap();
            accept(&queue, &[&format!("k{number}")]).await;
        });
    }
    tasks.join_all().await;
    let queue = temp.queue().await;
    let entries = all(&queue).await;
    let mut found = keys(&entries);
    found.sort_unstable();
    let mut expected: Vec<String> = (0..16).map(|number| format!("k{number}")).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// Not even root can write there.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn unwritable_folder_is_reported() {
    let refused = OfflineQueue::open("/proc/orders.queue").await.unwrap_err();
    assert!(
        matches!(refused, QueueError::Unusable(_)) && refused.to_string().contains("can write to it"),
        "{refused}"
    );
}
