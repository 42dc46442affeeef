//! Copies a store while a server works on it, and restores the copy.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ichido_store::Store;
use serde_json::Value;
use sqlx::{Connection as _, Row as _, SqliteConnection};
use uuid::Uuid;

use crate::serve::client::{RawRequest, send};
use crate::serve::program::{DatabaseKind, POLL_EVERY, ServeProcess, ServerFixture};

/// Clients that enqueue messages until dropped, and the ids they got.
struct BackupWriters {
    is_over: Arc<AtomicBool>,
    taken: Arc<Mutex<Vec<Uuid>>>,
    clients: Vec<tokio::task::JoinHandle<()>>,
}

impl BackupWriters {
    fn on(server: &ServeProcess) -> Self {
        let (is_over, taken) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<Uuid>>>::default());
        let begin = |client: usize| {
            let (is_over, taken, address) = (Arc::clone(&is_over), Arc::clone(&taken), server.address);
            tokio::spawn(async move {
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let body = format!(r#"{{"symbol":"ACME","intent":"buy","qty":"{number}"}}"#);
                    let answer =
                        send(address, &RawRequest::put(&format!("k-{client}-{number}"), &body)).await;
                    assert_eq!(answer.status(), 201);
                    let id = answer.json()["id"].as_str().unwrap().parse().unwrap();
                    taken.lock().unwrap().push(id);
                    number += 1;
                }
            })
        };
        let clients = (0..2).map(begin).collect();
        Self { is_over, taken, clients }
    }

    /// Returns what was acknowledged so far.
    fn taken(&self) -> Vec<Uuid> {
        self.taken.lock().unwrap().clone()
    }

    async fn until(&self, count: usize) {
        while self.taken.lock().unwrap().len() < count {
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    async fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.unwrap();
        }
    }
}

/// Copies until something was acknowledged during a copy; returns what was there before, and the copy.
fn copy_under_load(fixture: &ServerFixture, load: &BackupWriters) -> (Vec<Uuid>, String) {
    for number in 0..50 {
        let name = format!("copy-{number}.db");
        let before = load.taken();
        let (code, out, err) = tokio::task::block_in_place(|| fixture.run(&["backup", &name, "--json"]));
        let after = load.taken().len();
        assert_eq!(code, Some(0), "{err}");
        let report: Value = serde_json::from_str(&out).unwrap();
        let file = fixture.folder.path().join(&name);
        assert_eq!(report["file"], file.to_str().unwrap());
        assert_eq!(report["bytes"], std::fs::metadata(&file).unwrap().len());
        if before.len() < after {
            return (before, name);
        }
    }
    panic!("nothing was accepted during a copy");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_under_load_contains_all_acknowledged_messages() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let mut server = fixture.serve(&[]);
    let load = BackupWriters::on(&server);
    load.until(100).await;
    let (acknowledged, name) = copy_under_load(&fixture, &load);
    load.end().await;
    assert!(100 <= acknowledged.len());

    let copy = fixture.folder.path().join(&name);
    let mut connection = SqliteConnection::connect(&format!("sqlite:{}", copy.display())).await.unwrap();
    let judged = sqlx::query("PRAGMA integrity_check").fetch_all(&mut connection).await.unwrap();
    assert_eq!(judged.iter().map(|row| row.get(0)).collect::<Vec<String>>(), ["ok"]);
    connection.close().await.unwrap();

    // The restore procedure of the help.
    server.signal("TERM");
    assert_eq!(server.wait().await.0, Some(0));
    for end in ["", "-wal", "-shm"] {
        let name = |new: &str| fixture.folder.path().join(format!("{new}ichido.db{end}"));
        match std::fs::rename(name(""), name("old-")) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !end.is_empty() => {}
            moved => moved.unwrap(),
        }
    }
    std::fs::rename(copy, fixture.folder.path().join("ichido.db")).unwrap();
    let server = fixture.serve(&[]);
    let store = Store::open(&fixture.url, 2).await.unwrap();
    for id in acknowledged {
        assert!(store.messages().get(id).await.unwrap().is_some(), "{id} is lost");
    }
    let answer =
        server.send(&RawRequest::put("after", r#"{"symbol":"ACME","intent":"buy","qty":"1"}"#)).await;
    assert_eq!(answer.status(), 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_backup_explains_why_and_how_to_fix_it() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let (code, _, err) = fixture.run(&["backup", "copy.db"]);
    assert_eq!(code, Some(3));
    assert!(err.contains("no store at") && err.contains("fix the path"), "{err}");
    drop(Store::open(&fixture.url, 2).await.unwrap());
    let (code, out, err) = fixture.run(&["backup", "copy.db"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("copied the store to ") && out.contains("copy.db, "), "{out}");
    let (code, _, err) = fixture.run(&["backup", "copy.db"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("copy.db already exists and was not changed; name another file"), "{err}");

    let mut command = crate::serve::program::ichido(fixture.folder.path());
    command.args(["backup", "other.db", "--store", "postgres://ichido:s3cret@127.0.0.1:1/ichido"]);
    let output = command.output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("pg_dump") && err.contains("pg_basebackup") && !err.contains("s3cret"), "{err}");
    assert!(!fixture.folder.path().join("other.db").exists());
}
