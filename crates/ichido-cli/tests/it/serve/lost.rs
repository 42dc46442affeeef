//! A database file that is removed, moved or replaced under a running server.

use std::path::Path;

use tokio::net::TcpStream;

use super::client::{RawClient, RawRequest};
use super::program::{DatabaseKind, POLL_EVERY, ServeProcess, ServerFixture};

/// A server that has not ended by then never does.
const MAX_SAMPLES: u32 = 2_000;

/// Returns the status of a request, or none from a server that no longer listens.
async fn status(server: &ServeProcess, request: &RawRequest) -> Option<u16> {
    let mut client = RawClient::over(TcpStream::connect(server.address).await.ok()?);
    client.write(request.bytes()).await;
    client.try_answer().await.map(|answer| answer.status())
}

/// Damages the file of a server that has accepted a message; returns its fixture.
async fn after(harm: fn(&Path)) -> ServerFixture {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let mut server = fixture.serve(&[]);
    assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
    assert_eq!(server.send(&RawRequest::put("before", "{}")).await.status(), 201);
    assert_eq!(status(&server, &RawRequest::get("/readyz")).await, Some(200));

    harm(fixture.folder.path());
    for number in 0.. {
        assert!(number < MAX_SAMPLES, "the server goes on: {:?}", server.address);
        let put = RawRequest::put(&format!("after-{number}"), "{}");
        let Some(put) = status(&server, &put).await else { break };
        assert_eq!(put, 503, "nothing is accepted");
        if let Some(ready) = status(&server, &RawRequest::get("/readyz")).await {
            assert_eq!(ready, 503, "nor is it ready");
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
    let (code, log) = server.wait().await;
    assert_eq!(code, Some(5), "{log}");
    assert!(log.contains("database file removed, moved or replaced; nothing more is accepted"), "{log}");
    let last = log.lines().last().unwrap_or_default();
    assert!(last.contains("was removed, moved or replaced while it was in use"), "{log}");
    assert!(last.contains("put it back or restore a backup before the next start"), "{log}");
    fixture
}

/// Checks that the accepted message is there.
///
/// A message whose commit found the loss may be there too: its client was not told that it was accepted, and retries
/// under its key.
async fn assert_kept(fixture: &ServerFixture) {
    let next = fixture.serve(&[]);
    let again = next.send(&RawRequest::put("before", "{}")).await;
    assert_eq!(again.one("idempotency-replayed"), Some("true"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_stops_when_its_database_is_removed() {
    let removed = |folder: &Path| {
        for file in ["ichido.db", "ichido.db-wal", "ichido.db-shm"] {
            // A server that has already found the loss removes the other two files as it closes.
            drop(std::fs::remove_file(folder.join(file)));
        }
    };
    let fixture = after(removed).await;
    assert!(!fixture.folder.path().join("ichido.db").exists(), "no new one was made");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moved_database_is_complete_when_restored() {
    let fixture =
        after(|folder| std::fs::rename(folder.join("ichido.db"), folder.join("moved.db")).unwrap()).await;
    let folder = fixture.folder.path();
    assert!(!folder.join("ichido.db").exists(), "no new one was made");
    std::fs::rename(folder.join("moved.db"), folder.join("ichido.db")).unwrap();
    assert_kept(&fixture).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn database_keeps_messages_when_its_wal_is_removed() {
    let fixture = after(|folder| std::fs::remove_file(folder.join("ichido.db-wal")).unwrap()).await;
    assert_kept(&fixture).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_database_is_served_after_restart() {
    let copied = |folder: &Path| {
        let backup = std::process::Command::new(env!("CARGO_BIN_EXE_ichido"))
            .args(["backup", "copy.db", "--store", "sqlite:ichido.db"])
            .current_dir(folder)
            .output();
        let backup = backup.unwrap();
        assert!(backup.status.success(), "{backup:?}");
        std::fs::rename(folder.join("copy.db"), folder.join("ichido.db")).unwrap();
    };
    assert_kept(&after(copied).await).await;
}
