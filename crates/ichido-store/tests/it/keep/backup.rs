use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use ichido_core::key::IdempotencyKey;
use ichido_store::Store;
use ichido_store::backup::{BackupError, take};
use ichido_store::error::StoreError;
use ichido_store::message::{Enqueued, NewMessage, QueueName};
use ichido_store::testing::sqlite::{SqliteTestFile, fresh_file};
use sqlx::{Connection as _, Row as _, SqliteConnection};
use uuid::Uuid;

async fn put(store: &Store, key: &str) -> Uuid {
    let queue = QueueName::parse("orders").unwrap();
    let key = IdempotencyKey::parse(key).unwrap();
    match store.messages().enqueue(NewMessage::new(queue, "alice", key, b"{}".to_vec())).await.unwrap() {
        Enqueued::New { id } => id,
        other => panic!("it is not new: {other:?}"),
    }
}

/// Lists everything in the folder.
fn files(file: &SqliteTestFile) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(file.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("ichido.db"))
        .collect();
    names.sort();
    names
}

fn copy_of(file: &SqliteTestFile) -> PathBuf {
    file.folder().join("copy.db")
}

#[tokio::test]
async fn copy_is_complete_private_and_includes_the_log() {
    let file = fresh_file();
    let store = Store::open(&file.url, 2).await.unwrap();
    let id = put(&store, "k1").await;
    let nowhere = take(&file.url, &file.folder().join("no/such/copy.db")).await;
    assert!(matches!(nowhere, Err(BackupError::File { .. })), "{nowhere:?}");
    let taken = take(&file.url, &copy_of(&file)).await.unwrap();
    assert_eq!(taken.file, copy_of(&file));
    let found = std::fs::metadata(&taken.file).unwrap();
    assert_eq!((found.len(), found.permissions().mode() & 0o777), (taken.bytes, 0o600));
    assert_eq!(files(&file), ["copy.db"], "nothing else is left");
    let mut connection =
        SqliteConnection::connect(&format!("sqlite:{}", taken.file.display())).await.unwrap();
    let judged = sqlx::query("PRAGMA integrity_check").fetch_one(&mut connection).await.unwrap();
    assert_eq!(judged.get::<String, _>(0), "ok");
    drop(connection);
    // The two are separate from now on.
    let copy = Store::open(&format!("sqlite:{}", taken.file.display()), 2).await.unwrap();
    let later = put(&store, "k2").await;
    assert!(copy.messages().get(id).await.unwrap().is_some());
    assert!(copy.messages().get(later).await.unwrap().is_none());
}

#[tokio::test]
async fn existing_file_is_not_changed() {
    let file = fresh_file();
    let _store = Store::open(&file.url, 2).await.unwrap();
    std::fs::write(copy_of(&file), "somebody's").unwrap();
    let refused = take(&file.url, &copy_of(&file)).await;
    assert!(matches!(&refused, Err(BackupError::Exists(found)) if *found == copy_of(&file)), "{refused:?}");
    assert_eq!(std::fs::read_to_string(copy_of(&file)).unwrap(), "somebody's");
    // Not even an empty one, which SQLite itself would overwrite; nor a dangling link.
    std::fs::write(copy_of(&file), "").unwrap();
    assert!(matches!(take(&file.url, &copy_of(&file)).await, Err(BackupError::Exists(_))));
    std::fs::remove_file(copy_of(&file)).unwrap();
    std::os::unix::fs::symlink(file.folder().join("nowhere"), copy_of(&file)).unwrap();
    assert!(matches!(take(&file.url, &copy_of(&file)).await, Err(BackupError::Exists(_))));
    assert_eq!(files(&file), ["copy.db"]);
}

#[tokio::test]
async fn running_or_interrupted_backup_is_not_overwritten() {
    let file = fresh_file();
    let _store = Store::open(&file.url, 2).await.unwrap();
    let partial = file.folder().join("copy.db.partial");
    std::fs::write(&partial, "half").unwrap();
    let refused = take(&file.url, &copy_of(&file)).await.unwrap_err();
    assert!(matches!(&refused, BackupError::UnderWay(file) if *file == partial), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&partial).unwrap(), "half");
    std::fs::remove_file(&partial).unwrap();
    take(&file.url, &copy_of(&file)).await.unwrap();
}

#[tokio::test]
async fn non_store_gives_no_copy_and_no_file() {
    let file = fresh_file();
    let missing = take(&file.url, &copy_of(&file)).await;
    assert!(matches!(missing, Err(BackupError::Store(StoreError::Unavailable(_)))), "{missing:?}");
    assert!(!file.path().exists());
    std::fs::write(file.path(), "").unwrap();
    assert!(matches!(take(&file.url, &copy_of(&file)).await, Err(BackupError::NoStore)));
    let elsewhere = take("postgres://ichido@localhost/ichido", &copy_of(&file)).await;
    assert!(matches!(elsewhere, Err(BackupError::Postgres)), "{elsewhere:?}");
    let nonsense = take("mysql://root@localhost/shop", &copy_of(&file)).await;
    assert!(matches!(nonsense, Err(BackupError::Store(StoreError::Address(_)))), "{nonsense:?}");
    assert!(files(&file).is_empty(), "{:?}", files(&file));
}

/// A backup is made before an upgrade: it must neither migrate the store nor be refused because of its version.
#[tokio::test]
async fn the_schema_is_copied_as_it_is() {
    let file = fresh_file();
    let store = Store::open(&file.url, 2).await.unwrap();
    let later = "INSERT INTO ichido_migrations (version, description, success, checksum, execution_time) VALUES (99, 'later', 1, x'00', 0)";
    sqlx::query(later).execute(store.sqlite_writer().unwrap()).await.unwrap();
    assert_eq!(take(&file.url, &copy_of(&file)).await.unwrap().schema, 99);
}
