//! The first screen of the webhooks guide, as printed.
// Spec: D5, H8.

use std::sync::atomic::{AtomicUsize, Ordering};

use http_for_tests::{Receiver, ServerAction, plain};
use serde_json::Value;

use super::client::RawRequest;
use super::program::{POLL_EVERY, ServeProcess, ichido, on_both};

const GUIDE: &str = include_str!("../../../../../docs/guides/webhooks.md");
/// The messages that are sent.
const MESSAGES: usize = 20;

/// Returns the first configuration of the page.
fn first_config() -> &'static str {
    let (before, rest) = GUIDE.split_once("```toml\n").expect("a configuration");
    assert!(!before.contains("\n## "), "it is on the first screen");
    let (block, _) = rest.split_once("```").expect("it ends");
    assert!(block.lines().count() <= 8, "at most eight lines:\n{block}");
    block
}

on_both! {
    #[test]
    async fn webhooks_guide_delivers_to_an_endpoint_that_fails_half_the_time(fixture) {
        // Every second message fails on its first attempt, whenever the others are retried.
        let firsts = AtomicUsize::new(0);
        let receiver = Receiver::start(move |_, request| {
            let is_first = request.field("ichido-attempt") == Some("1");
            let fails = is_first && firsts.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
            ServerAction::Answer(plain(if fails { "500 Internal Server Error" } else { "200 OK" }))
        })
        .await;
        fixture.folder.write("ichido.toml", first_config());
        let mut command = ichido(fixture.folder.path());
        // The test uses free ports, where the guide uses fixed ones.
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", &fixture.url]);
        command.env("ICHIDO__DESTINATIONS__RECEIVER__URL", receiver.url("/hooks"));
        let server = ServeProcess::spawn(&mut command);
        for index in 0..MESSAGES {
            let message = RawRequest::put(&format!("event-{index}"), "{}").to("/v1/queues/events/messages");
            assert_eq!(server.send(&message).await.status(), 201);
        }
        let states = || async {
            let listed = server.get("/v1/messages?limit=100").await.json();
            let items = listed["messages"].as_array().expect("a list").clone();
            items.into_iter().map(|message: Value| message["status"].as_str().expect("a state").to_owned()).collect::<Vec<_>>()
        };
        loop {
            let states = states().await;
            assert!(!states.iter().any(|state| state == "parked" || state == "dead"), "{states:?}");
            if states.iter().filter(|state| *state == "sent").count() == MESSAGES {
                break;
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
        assert_eq!(receiver.seen().len(), MESSAGES + MESSAGES / 2, "half of them were called twice");
    }
}
