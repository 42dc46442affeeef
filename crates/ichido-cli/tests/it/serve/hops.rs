//! The hops of a message, from the header to the receiver and back.

use std::net::TcpListener;

use serde_json::Value;

use super::client::{RawRequest, problem};
use super::program::{POLL_EVERY, ServeProcess, ServerFixture, on_both};

const BFF: &str = r#"bff;t=1800000000000;r="7f1c""#;

/// Starts a server whose queue delivers to itself.
fn loop_server(fixture: &ServerFixture) -> ServeProcess {
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
    fixture.folder.write(
        "ichido.toml",
        &format!("[destinations.self]\nkind = \"http\"\nurl = \"http://{address}/v1/queues/ring/messages\"\nguarantee = \"none\"\n[queues.ring]\ndestination = \"self\"\n"),
    );
    fixture.serve(&["--listen", &address.to_string()])
}

fn put(key: &str) -> RawRequest {
    RawRequest::put(key, "{}").to("/v1/queues/ring/messages")
}

async fn messages(server: &ServeProcess) -> Vec<Value> {
    let listed = server.get("/v1/messages?queue=ring").await.json()["messages"].clone();
    let mut all = Vec::new();
    for message in listed.as_array().unwrap().iter().rev() {
        all.push(server.get(message["href"].as_str().unwrap()).await.json());
    }
    all
}

on_both! {
    #[test]
    async fn hops_are_forwarded_and_loops_end(fixture) {
        let server = loop_server(&fixture);
        let first = server.send(&put("k").field("Ichido-Hops", BFF)).await;
        assert_eq!(first.status(), 201, "{first:?}");
        let all = loop {
            let all = messages(&server).await;
            if all.iter().any(|message| message["status"] == "dead") {
                break all;
            }
            tokio::time::sleep(POLL_EVERY).await;
        };
        // One hop before, and one more each round: with the seventh the header is full.
        let mut hops = BFF.to_owned();
        for (index, message) in all.iter().enumerate() {
            assert_eq!(message["hops"], hops, "message {index}");
            let hop = format!("r=\"{}\"", message["id"].as_str().unwrap());
            if let Some(next) = all.get(index + 1) {
                next["hops"].as_str().unwrap().clone_into(&mut hops);
                assert!(hops.contains(&hop) && hops.split(", ").count() == index + 2, "{hops}");
            }
        }
        let states: Vec<&str> = all.iter().map(|message| message["status"].as_str().unwrap()).collect();
        assert_eq!(states, ["sent", "sent", "sent", "sent", "sent", "sent", "dead"]);
        let error = &all[6]["last_error"];
        assert_eq!(error["code"], "BAD_REQUEST", "it is not tried again");
        assert!(error["text"].as_str().unwrap().contains("loop_detected"), "{error}");
    }

    #[test]
    async fn full_hops_header_passes_and_invalid_one_is_dropped(fixture) {
        let server = loop_server(&fixture);
        assert_eq!(server.post("/v1/queues/ring/pause").await.status(), 200);
        let id = |answer: &crate::http_message::HttpMessage| answer.json()["id"].as_str().unwrap().to_owned();
        let own = server.send(&put("own")).await;
        let hop = |name: &str, id: &str| format!("{name};t=1;r=\"{id}\"");
        let stranger = hop("outbox", "01995b1c-0000-7000-8000-000000000000");
        let full = vec![stranger; 8].join(", ");
        let taken = server.send(&put("full").field("Ichido-Hops", &full)).await;
        assert_eq!(taken.status(), 201, "{taken:?}");
        let shown = |id: String| format!("/v1/messages/{id}");
        assert_eq!(server.get(&shown(id(&taken))).await.json()["hops"], full);
        let broken = server.send(&put("broken").field("Ichido-Hops", "not hops;")).await;
        assert_eq!(server.get(&shown(id(&broken))).await.json()["hops"], Value::Null);
        // The same with a message of this queue among the hops is a loop, alone or in a batch.
        let round = vec![hop("outbox", &id(&own)); 8].join(", ");
        let refused = server.send(&put("round").field("Ichido-Hops", &round)).await;
        assert_eq!(problem(&refused), (422, "loop_detected".to_owned()));
        let batch = RawRequest::post("/v1/queues/ring/messages:batch").field("Content-Type", "application/x-ndjson");
        let refused = server.send(&batch.field("Ichido-Hops", &round).body("{\"key\":\"a\",\"body\":1}\n")).await;
        assert_eq!(problem(&refused), (422, "loop_detected".to_owned()));
        assert_eq!(server.queue("ring").await["counts"]["queued"], 3);
    }
}
