//! A store that goes away while the server runs, and comes back.

use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::client::{RawRequest, problem};
use super::program::{DatabaseKind, POLL_EVERY, ServeProcess, ServerFixture};

/// A connection to the database that can be closed.
struct DatabaseGate {
    url: String,
    is_open: Arc<watch::Sender<bool>>,
}

impl DatabaseGate {
    async fn to(url: &str) -> Self {
        let (before, rest) = url.split_once('@').expect("a user");
        let (host, after) = rest.split_once('/').expect("a database");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (database, is_open) = (host.to_owned(), Arc::new(watch::channel(true).0));
        let gate = Arc::clone(&is_open);
        tokio::spawn(async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                let (database, mut gate) = (database.clone(), gate.subscribe());
                tokio::spawn(async move {
                    if !*gate.borrow() {
                        return;
                    }
                    let mut far = TcpStream::connect(database).await.unwrap();
                    // The first side to end closes both.
                    tokio::select! {
                        ended = copy_bidirectional(&mut near, &mut far) => drop(ended),
                        closed = gate.wait_for(|is_open| !is_open) => drop(closed),
                    }
                });
            }
        });
        Self { url: format!("{before}@{address}/{after}"), is_open }
    }
}

async fn until_ready(server: &ServeProcess, status: u16) -> serde_json::Value {
    loop {
        let ready = server.get("/readyz?verbose").await;
        if ready.status() == status {
            return ready.json();
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unavailable_store_returns_503_and_accepts_nothing() {
    let fixture = ServerFixture::new(DatabaseKind::Postgres).await;
    let gate = DatabaseGate::to(&fixture.url).await;
    let server = ServeProcess::start(fixture.folder.path(), &["--store", &gate.url]);
    let before = server.send(&RawRequest::put("k-1", "{}")).await;
    assert_eq!(before.status(), 201);
    server.until_status(before.one("location").unwrap(), "sent").await;

    gate.is_open.send_replace(false);
    let unready = until_ready(&server, 503).await;
    assert_eq!(
        (&unready["code"], &unready["checks"][0]["ok"]),
        (&"not_ready".into(), &false.into()),
        "{unready}"
    );
    let refused = server.send(&RawRequest::put("k-2", "{}")).await;
    assert_eq!(problem(&refused), (503, "store_unavailable".to_owned()));
    assert_eq!(refused.one("retry-after"), Some("1"));
    assert_eq!(server.get("/livez").await.status(), 200, "a restart would not bring it back");

    gate.is_open.send_replace(true);
    until_ready(&server, 200).await;
    let again = server.send(&RawRequest::put("k-1", "{}")).await;
    assert_eq!((&again.body, again.one("idempotency-replayed")), (&before.body, Some("true")));
    let after = server.send(&RawRequest::put("k-2", "{}").to("/v1/queues/demo/messages?wait=30s")).await;
    assert_eq!((after.status(), &after.json()["status"]), (200, &"sent".into()), "{after:?}");
}
