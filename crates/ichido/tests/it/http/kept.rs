//! Reused connections: never a second request for one call, whenever the receiver closes them.

use std::collections::HashMap;

use ichido_core::verdict::{Advice, Effect};

use super::tried::{order, outcome, resolved, settings, tried};
use http_for_tests::{Receiver, ServerAction, json};

const SENT: (Option<&str>, Effect, Advice) = (None, Effect::Done, Advice::Accept);

#[tokio::test]
async fn connection_is_reused_across_calls() {
    let receiver = Receiver::answering(json("200 OK", "{}")).await;
    let http = resolved(&settings(receiver.url("/")));
    for index in 0..20 {
        assert_eq!(outcome(&http, &order(&format!("k{index}"))).await, SENT);
    }
    assert_eq!((receiver.seen().len(), receiver.connections()), (20, 1));
}

#[tokio::test]
async fn broken_reused_connection_leaves_effect_unknown_without_retry() {
    let is_second = |before| before == 1;
    let receiver = Receiver::start(move |before, _| {
        if is_second(before) { ServerAction::Reset } else { ServerAction::Answer(json("200 OK", "{}")) }
    })
    .await;
    let http = resolved(&settings(receiver.url("/")));
    assert_eq!(outcome(&http, &order("first")).await, SENT);
    let second = outcome(&http, &order("second")).await;
    assert_eq!(second, (Some("NETWORK_TIMEOUT"), Effect::Unknown, Advice::Retry));
    assert_eq!(
        (receiver.seen().len(), receiver.connections()),
        (2, 1),
        "it went out once, on the kept connection"
    );
    assert_eq!(outcome(&http, &order("third")).await, SENT, "the broken one is not kept");
}

/// The server closes each connection silently after its response, just when the next call may use it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_closes_unused_never_makes_one_call_two_requests() {
    const CALLS: usize = 300;
    let receiver = Receiver::start(|_, _| ServerAction::AnswerAndClose(json("200 OK", "{}"))).await;
    let http = resolved(&settings(receiver.url("/")));
    let mut effects = HashMap::new();
    for index in 0..CALLS {
        let key = format!("k{index}");
        let (verdict, _) = tried(&http, &order(&key)).await;
        effects.insert(key, verdict.effect);
    }
    let mut arrived: HashMap<String, usize> = HashMap::new();
    for request in receiver.seen() {
        *arrived.entry(request.field("Idempotency-Key").expect("a key").to_owned()).or_default() += 1;
    }
    for (key, effect) in effects {
        let count = arrived.get(&key).copied().unwrap_or(0);
        match effect {
            Effect::Done => assert_eq!(count, 1, "{key}"),
            Effect::NotDone => panic!("{key}: a connection that ended unused costs no attempt"),
            Effect::Unknown => assert!(count <= 1, "{key}"),
        }
    }
}

#[tokio::test]
async fn connection_closed_while_idle_costs_no_attempt() {
    let receiver = Receiver::start(|_, _| ServerAction::AnswerAndEnd(json("200 OK", "{}"))).await;
    let http = resolved(&settings(receiver.url("/")));
    for index in 1..=20 {
        assert_eq!(outcome(&http, &order("k")).await, SENT);
        // Our side saw the close before the next call begins.
        receiver.until_closed(index).await;
    }
    assert_eq!(receiver.connections(), 20);
}
