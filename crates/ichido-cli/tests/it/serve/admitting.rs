//! Bounded queues refuse what they cannot deliver in time.

use serde_json::Value;

use super::client::{RawRequest, problem, send};
use super::program::{DatabaseKind, POLL_EVERY, ServeProcess, ServerFixture, on_both};
use crate::http_message::HttpMessage;

/// Starts a server whose queue `orders` has these settings; another queue, `free`, has none.
fn serve(fixture: &ServerFixture, broker: &ServeProcess, settings: &str) -> ServeProcess {
    let config = format!(
        "[destinations.p]\nkind = \"mock\"\nurl = \"http://{}/orders\"\n[queues.free]\ndestination = \"p\"\n[queues.orders]\ndestination = \"p\"\n{settings}\n",
        broker.broker()
    );
    fixture.folder.write("ichido.toml", &config);
    fixture.serve(&["--config", "ichido.toml"])
}

fn put(queue: &str, key: &str) -> RawRequest {
    RawRequest::put(key, "{}").to(&format!("/v1/queues/{queue}/messages"))
}

/// Returns whether this is a refusal with a time to retry.
fn is_full(answer: &HttpMessage) -> bool {
    if answer.status() != 429 {
        assert_eq!(answer.status(), 201, "{}", answer.text());
        return false;
    }
    assert_eq!(problem(answer), (429, "queue_full".to_owned()));
    let seconds: u64 = answer.one("retry-after").and_then(|wait| wait.parse().ok()).expect("Retry-After");
    assert!((1..=60).contains(&seconds), "{seconds}");
    true
}

async fn queued(server: &ServeProcess) -> Value {
    server.queue("orders").await["counts"]["queued"].clone()
}

on_both! {
    async fn full_queue_refuses_messages_with_retry_after(fixture) {
        let elsewhere = ServerFixture::new(DatabaseKind::Sqlite).await;
        let broker = elsewhere.serve(&[]);
        let server = serve(&fixture, &broker, "max_waiting = 5");
        for queue in ["orders", "free"] {
            assert_eq!(server.post(&format!("/v1/queues/{queue}/pause")).await.status(), 200);
        }
        // All at once: between two reads of the store no more are admitted than allowed.
        let puts: Vec<RawRequest> = (0..20).map(|at| put("orders", &format!("k{at}"))).collect();
        let (mut taken, mut refused) = (0, 0);
        let mut answers = tokio::task::JoinSet::new();
        for request in puts {
            let address = server.address;
            answers.spawn(async move { send(address, &request).await });
        }
        while let Some(answer) = answers.join_next().await {
            if is_full(&answer.unwrap()) { refused += 1 } else { taken += 1 }
        }
        assert_eq!((taken, refused), (5, 15));
        assert_eq!(queued(&server).await, 5);
        let lines = "{\"key\":\"a\",\"body\":1}\n{\"key\":\"b\",\"body\":2}\n";
        let batch = RawRequest::post("/v1/queues/orders/messages:batch").field("Content-Type", "application/x-ndjson");
        let answer = server.send(&batch.body(lines)).await;
        assert_eq!(answer.text().matches("\"status\":429,\"code\":\"queue_full\"").count(), 2, "{}", answer.text());
        for at in 0..10 {
            assert_eq!(server.send(&put("free", &format!("k{at}"))).await.status(), 201, "another queue has no bound");
        }
        // They leave, and there is space again.
        assert_eq!(server.post("/v1/queues/orders/resume").await.status(), 200);
        while is_full(&server.send(&put("orders", "late")).await) {
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    async fn stalled_queue_accepts_only_what_it_can_deliver_in_time(fixture) {
        let elsewhere = ServerFixture::new(DatabaseKind::Sqlite).await;
        let broker = elsewhere.serve(&[]);
        let server = serve(&fixture, &broker, "drain_within = \"20s\"");
        assert_eq!(server.post("/v1/queues/orders/pause").await.status(), 200);
        // It takes a while until the queue counts as slow; until then everything is accepted.
        let mut taken = 0;
        while !is_full(&server.send(&put("orders", &format!("k{taken}"))).await) {
            taken += 1;
            tokio::time::sleep(POLL_EVERY).await;
        }
        assert!(2 < taken, "{taken}");
        assert_eq!(queued(&server).await, taken, "no refused message was enqueued");
        // It runs again, the waiting messages leave, and there is space.
        assert_eq!(server.post("/v1/queues/orders/resume").await.status(), 200);
        while is_full(&server.send(&put("orders", "late")).await) {
            tokio::time::sleep(POLL_EVERY).await;
        }
    }
}

/// Without bounds, an outage of the receiver does not affect the API.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_queue_limits_are_reported_with_location() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let text = "[destinations.p]\nkind = \"mock\"\n[queues.orders]\ndestination = \"p\"\ndrain_within = \"0s\"\nmax_waiting = 0\n";
    fixture.folder.write("ichido.toml", text);
    let (code, _, err) = fixture.run(&["serve"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("ichido.toml:5:16 queues.orders.drain_within: "), "{err}");
    assert!(err.contains("ichido.toml:6:15 queues.orders.max_waiting: "), "{err}");
}
