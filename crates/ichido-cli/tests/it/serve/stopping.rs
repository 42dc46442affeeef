//! Stopping: requests in flight finish, and no accepted message is lost.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use tokio::net::TcpStream;

use super::client::{RawClient, RawRequest, send};
use super::program::{DatabaseKind, ServeProcess, ServerFixture, ichido, on_both};
use crate::folder;
use crate::send::program::signal;

on_both! {
    #[test]
    async fn accepted_messages_are_delivered_after_a_restart(fixture) {
        let mut first = fixture.serve(&[]);
        assert_eq!(first.post("/v1/queues/demo/pause").await.status(), 200);
        let put = first.send(&RawRequest::put("k", "{}")).await;
        first.signal("TERM");
        assert_eq!(first.wait().await.0, Some(0));
        let next = fixture.serve(&[]);
        let again = next.send(&RawRequest::put("k", "{}")).await;
        assert_eq!((&again.body, again.one("idempotency-replayed")), (&put.body, Some("true")));
        assert_eq!(next.post("/v1/queues/demo/resume").await.status(), 200);
        next.until_status(put.one("location").unwrap(), "sent").await;
        assert_eq!(next.effects().await["effects"], 1);
    }

    /// A message answered with 201 exists, whatever happens to the process.
    #[test]
    async fn accepted_messages_survive_a_kill(fixture) {
        let mut first = fixture.serve(&[]);
        assert_eq!(first.post("/v1/queues/demo/pause").await.status(), 200);
        let put = first.send(&RawRequest::put("k", "{}")).await;
        assert_eq!(put.status(), 201);
        first.signal("KILL");
        first.wait().await;
        let next = fixture.serve(&[]);
        assert_eq!(next.get(put.one("location").unwrap()).await.json()["status"], "queued");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_is_announced() {
    let folder = folder::fresh();
    let mut command = ichido(folder.path());
    let mut child =
        command.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("serving on http://") && line.ends_with(", using SQLite")));
    signal("TERM", child.id());
    let left: Vec<String> = lines.collect();
    assert!(left.len() == 2 && left[0].starts_with("ichido: stopping: "), "{left:?}");
    assert_eq!(left[1], "ichido: stopped");
    assert!(child.wait().unwrap().success());
}

/// A copy of `ichido.db` after a stop is complete: nothing is left in a log beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn database_file_is_complete_after_shutdown() {
    let folder = folder::fresh();
    let mut server = ServeProcess::start(folder.path(), &[]);
    let put = server.send(&RawRequest::put("k", "{}").to("/v1/queues/demo/messages?wait=30s")).await;
    assert_eq!(put.json()["status"], "sent");
    server.signal("TERM");
    assert_eq!(server.wait().await.0, Some(0));
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["ichido.db"]);
    let copy = folder::fresh();
    std::fs::copy(folder.path().join("ichido.db"), copy.path().join("ichido.db")).unwrap();
    let next = ServeProcess::start(copy.path(), &[]);
    assert_eq!(next.queue("demo").await["counts"]["sent"], 1);
}

/// A request whose body still arrives is answered; new connections are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_completes_requests_and_refuses_new_connections() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let mut server = fixture.serve(&["--log", "info"]);
    let mut client = RawClient::connect(server.address).await;
    let head = "POST /v1/queues/demo/messages HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\nContent-Length: 4\r\n\r\n";
    // The first response shows that the connection is served; the second request is started and not finished.
    assert_eq!(client.send(&RawRequest::get("/livez")).await.status(), 200);
    client.write(format!("{head}ab")).await;
    // A response to another request shows that the head above was read; the drain waits for what was started by then.
    while !begun(&server).await {}
    server.signal("TERM");
    while TcpStream::connect(server.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    client.write("cd").await;
    assert_eq!(client.answer().await.status(), 201);
    assert_eq!(server.wait().await.0, Some(0));
}

/// Returns whether the server has read the head of the hanging request, as its gauge shows.
async fn begun(server: &ServeProcess) -> bool {
    let metrics = server.get("/metrics").await;
    // The hanging request, and this one.
    metrics.text().lines().any(|line| line == "ichido_http_in_flight 2")
}

/// The worker's calls may finish too: a slow receiver is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_in_flight_ends_before_the_process() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let mut server = fixture.serve(&[]);
    let slow = RawRequest::new("PUT", "/mock/faults").body(r#"{"latency_ms":500}"#);
    assert_eq!(send(server.broker(), &slow).await.status(), 200);
    let put = server.send(&RawRequest::put("k", "{}")).await;
    while server.effects().await["effects"] != 1 {
        tokio::task::yield_now().await;
    }
    server.signal("TERM");
    assert_eq!(server.wait().await.0, Some(0));
    let next = fixture.serve(&[]);
    let message = next.get(put.one("location").unwrap()).await.json();
    assert_eq!((&message["status"], &message["attempts"]), (&"sent".into(), &1.into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_signal_stops_server_immediately() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let mut server =
        fixture.serve(&["--drain-timeout", "1h", "--body-idle-timeout", "1h", "--body-timeout", "1h"]);
    let mut client = RawClient::connect(server.address).await;
    client.write("POST /v1/queues/demo/messages HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\nContent-Length: 4\r\n\r\nab").await;
    while !begun(&server).await {}
    server.signal("TERM");
    while TcpStream::connect(server.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    server.signal("TERM");
    assert_eq!(server.wait().await.0, Some(3));
}

/// The time to respond is over, and the worker still stops cleanly: its call is not given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_request_does_not_interrupt_a_delivery() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let flags = ["--drain-timeout", "50ms", "--body-idle-timeout", "1h", "--body-timeout", "1h"];
    let mut server = fixture.serve(&flags);
    let slow = RawRequest::new("PUT", "/mock/faults").body(r#"{"latency_ms":700}"#);
    assert_eq!(send(server.broker(), &slow).await.status(), 200);
    let mut client = RawClient::connect(server.address).await;
    client.write("POST /v1/queues/demo/messages HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: never\r\nContent-Length: 4\r\n\r\nab").await;
    while !begun(&server).await {}
    let put = server.send(&RawRequest::put("k", "{}")).await;
    while server.effects().await["effects"] != 1 {
        tokio::task::yield_now().await;
    }
    server.signal("TERM");
    let (code, log) = server.wait().await;
    assert_eq!(
        (code, log.contains("connections closed: 1; the worker stopped gracefully")),
        (Some(3), true),
        "{log}"
    );
    let next = fixture.serve(&[]);
    let message = next.get(put.one("location").unwrap()).await.json();
    assert_eq!((&message["status"], &message["attempts"]), (&"sent".into(), &1.into()));
}
