//! Waits for a message to end.

use tokio::task::JoinSet;

use super::client::{RawClient, RawRequest, problem, send};
use super::program::{DatabaseKind, ServerFixture, on_both};

fn waiting(key: &str, wait: &str) -> RawRequest {
    RawRequest::put(key, "{\"qty\":1}").to(&format!("/v1/queues/demo/messages?wait={wait}"))
}

on_both! {
    async fn wait_returns_the_final_outcome(fixture) {
        let server = fixture.serve(&[]);
        let sent = server.send(&waiting("k-1", "30s")).await;
        assert_eq!(sent.status(), 200, "{sent:?}");
        let message = sent.json();
        assert_eq!((&message["status"], &message["effect"], &message["attempts"]), (&"sent".into(), &"done".into(), &1.into()));
        assert_eq!(message["result"]["receipt"], "mock-1");
        let shown = server.get(sent.one("location").unwrap()).await;
        assert_eq!(shown.body, sent.body, "as it is shown there");
        // A duplicate of an ended message is answered at once, and marked.
        let again = server.send(&waiting("k-1", "30s")).await;
        assert_eq!((again.status(), again.one("idempotency-replayed"), &again.body), (200, Some("true"), &sent.body));
        // No retry can fix a body that the broker refuses.
        let refused = RawRequest::put("k-2", "{}").to("/v1/queues/demo/messages?wait=30s");
        let faults = RawRequest::new("PUT", "/mock/faults").body(r#"{"faults":{"bad_request":1.0}}"#);
        assert_eq!(send(server.broker(), &faults).await.status(), 200);
        let dead = server.send(&refused).await;
        assert_eq!((dead.status(), &dead.json()["status"]), (200, &"dead".into()), "{dead:?}");
    }

    /// The client knows this response: it retries with the same key.
    // Spec: A8, C6.
    async fn wait_timeout_returns_202_and_retry_after(fixture) {
        let server = fixture.serve(&[]);
        assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
        let plain = server.send(&RawRequest::put("k-1", "{\"qty\":1}")).await;
        let late = server.send(&waiting("k-1", "50ms")).await;
        assert_eq!((late.status(), &late.body), (202, &plain.body));
        assert_eq!((late.one("idempotency-status"), late.one("retry-after")), (Some("processing"), Some("1")));
        assert_eq!((late.one("idempotency-replayed"), late.one("ichido-wait")), (Some("true"), Some("not_in_time")));
        assert_eq!(server.post("/v1/queues/demo/resume").await.status(), 200);
        assert_eq!(server.send(&waiting("k-1", "30s")).await.json()["status"], "sent");
    }
}

/// The effect is unknown, and the broker would act twice: a person decides, and waiting callers are told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_request_returns_when_message_is_parked() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let mock = ServerFixture::new(DatabaseKind::Sqlite).await;
    let elsewhere = mock.serve(&[]);
    let faults = RawRequest::new("PUT", "/mock/faults").body(r#"{"faults":{"reset_after":1.0}}"#);
    assert_eq!(send(elsewhere.broker(), &faults).await.status(), 200);
    let config = format!(
        "[destinations.mock]\nkind = \"mock\"\nurl = \"http://{}/orders\"\nguarantee = \"none\"\n[queues.demo]\ndestination = \"mock\"\n",
        elsewhere.broker()
    );
    fixture.folder.write("ichido.toml", &config);
    let parked = fixture.serve(&[]).send(&waiting("k-1", "30s")).await;
    let message = parked.json();
    assert_eq!(parked.status(), 200, "{message}");
    assert_eq!((&message["status"], &message["effect"]), (&"parked".into(), &"unknown".into()), "{message}");
}

/// With two database connections, fifty callers wait, and all others are answered meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_request_holds_no_database_connection() {
    let fixture = ServerFixture::new(DatabaseKind::Postgres).await;
    let mock = ServerFixture::new(DatabaseKind::Sqlite).await;
    // Another server provides a broker.
    let elsewhere = mock.serve(&[]);
    let config = format!(
        "[store]\nmax_connections = 2\n[destinations.mock]\nkind = \"mock\"\nurl = \"http://{}/orders\"\n[queues.demo]\ndestination = \"mock\"\n",
        elsewhere.broker()
    );
    fixture.folder.write("ichido.toml", &config);
    let server = fixture.serve(&[]);
    assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
    let mut all = JoinSet::new();
    for number in 0..50 {
        let address = server.address;
        all.spawn(async move { send(address, &waiting(&format!("k-{number}"), "30s")).await });
    }
    server.until_waiting(50).await;
    assert_eq!(server.send(&RawRequest::put("other", "{}")).await.status(), 201);
    assert_eq!(server.queue("demo").await["counts"]["queued"], 51);
    assert_eq!(server.post("/v1/queues/demo/resume").await.status(), 200);
    let answers = all.join_all().await;
    assert!(answers.iter().all(|answer| answer.status() == 200 && answer.json()["status"] == "sent"));
    server.until_waiting(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disconnected_waiter_leaves_nothing_behind() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
    let mut clients = Vec::new();
    for number in 0..3 {
        let mut client = RawClient::connect(server.address).await;
        client.write(waiting(&format!("k-{number}"), "30s").bytes()).await;
        clients.push(client);
    }
    server.until_waiting(3).await;
    clients.pop();
    server.until_waiting(2).await;
    drop(clients);
    server.until_waiting(0).await;
    assert_eq!(server.queue("demo").await["counts"]["queued"], 3, "the messages are enqueued");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_request_gets_a_response_at_shutdown() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let mut server = fixture.serve(&[]);
    assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
    let mut client = RawClient::connect(server.address).await;
    client.write(waiting("k", "30s").bytes()).await;
    server.until_waiting(1).await;
    server.signal("TERM");
    let answer = client.answer().await;
    assert_eq!((answer.status(), answer.one("ichido-wait")), (202, Some("server_stops")));
    assert_eq!(server.wait().await.0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_message_returns_without_waiting() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    assert_eq!(server.send(&waiting("k", "30s")).await.status(), 200);
    let other = RawRequest::put("k", "{\"qty\":2}").to("/v1/queues/demo/messages?wait=30s");
    assert_eq!(problem(&server.send(&other).await), (409, "key_conflict".to_owned()));
}

/// Half of all concurrent requests may wait: the others have space, and one too many is refused at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_requests_leave_permits_for_others() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&["--max-connections", "4"]);
    assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
    let mut waiters = Vec::new();
    for number in 0..2 {
        let mut client = RawClient::connect(server.address).await;
        client.write(waiting(&format!("k-{number}"), "30s").bytes()).await;
        waiters.push(client);
    }
    server.until_waiting(2).await;
    let one_more = server.send(&waiting("k-2", "30s")).await;
    assert_eq!((one_more.status(), one_more.one("idempotency-status")), (202, Some("processing")));
    assert_eq!(one_more.one("ichido-wait"), Some("too_many_waiters"), "it was not waited for");
    server.until_waiting(2).await;
    assert_eq!(server.post("/v1/queues/demo/resume").await.status(), 200);
    for mut client in waiters {
        assert_eq!(client.answer().await.status(), 200);
    }
}
