//! Orders and their responses.
// Spec: D7, D11, D18.

use super::broker::{BrokerOrder, MockBroker, order};

#[tokio::test]
async fn order_response_has_the_specified_form() {
    let mock = MockBroker::start(&[]);
    let answer = mock.post(&order("k")).await;
    assert_eq!(answer.status, 200);
    let body = answer.json();
    let mut names: Vec<&String> = body.as_object().expect("an object").keys().collect();
    names.sort();
    assert_eq!(names, ["accepted_at", "broker_order_id", "fills", "idempotency_key", "status"]);
    assert_eq!((body["idempotency_key"].as_str(), body["status"].as_str()), (Some("k"), Some("accepted")));
    assert!(body["accepted_at"].as_str().is_some_and(|moment| moment.ends_with('Z')), "{body}");
}

#[tokio::test]
async fn each_key_is_one_order() {
    let mock = MockBroker::start(&[]);
    let first = mock.post(&order("k")).await;
    let again = mock.post(&order("k")).await;
    assert_eq!(first.json(), again.json());
    assert_eq!(
        (first.headers.get("idempotent-replayed"), again.headers.contains_key("idempotent-replayed")),
        (None, true)
    );
    let other = mock.post(&order("other")).await;
    assert_ne!(first.json()["broker_order_id"], other.json()["broker_order_id"]);
    assert_eq!(mock.counts("k").await, (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_concurrent_requests_with_one_key_are_one_order() {
    let mock = std::sync::Arc::new(MockBroker::start(&[]));
    let calls = (0..10).map(|_| {
        let mock = std::sync::Arc::clone(&mock);
        tokio::spawn(async move { mock.post(&order("k")).await.json()["broker_order_id"].clone() })
    });
    let mut names = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        names.push(call.await.expect("it does not panic"));
    }
    names.dedup();
    assert_eq!(names.len(), 1);
    assert_eq!(mock.counts("k").await, (1, 10));
}

#[tokio::test]
async fn broker_without_keys_executes_each_request() {
    let mock = MockBroker::start(&["--deduplicates", "false"]);
    let first = mock.post(&order("k")).await;
    let again = mock.post(&order("k")).await;
    assert_ne!(first.json()["broker_order_id"], again.json()["broker_order_id"]);
    assert_eq!(mock.counts("k").await, (2, 2));
    // A key is not required at all.
    let without = mock.post(&BrokerOrder { key: None, ..order("k") }).await;
    assert_eq!(without.status, 200);
    assert_eq!(mock.effects().await["max_effects"], 2);
}

#[tokio::test]
async fn invalid_key_is_refused_without_effect() {
    let mock = MockBroker::start(&[]);
    let missing = mock.post(&BrokerOrder { key: None, ..order("k") }).await;
    assert_eq!(missing.error(), (400, "key_missing".to_owned()));
    let disagrees = mock.post(&BrokerOrder { key: Some("another".to_owned()), ..order("k") }).await;
    assert_eq!(disagrees.error(), (422, "keys_disagree".to_owned()));
    let long =
        mock.post(&BrokerOrder { key: Some("x".repeat(256)), body: "{}".to_owned(), fence: None }).await;
    assert_eq!(long.error(), (400, "bad_key".to_owned()));
    assert_eq!(mock.effects().await["effects"], 0);
    mock.post(&order("k")).await;
    let reused = mock.post(&BrokerOrder { body: r#"{"symbol":"OTHER"}"#.to_owned(), ..order("k") }).await;
    assert_eq!(reused.error(), (422, "key_reused".to_owned()));
    // The same order in another spelling is the same order.
    let spelled = order("k").body.replace(':', ": ");
    assert_eq!(mock.post(&BrokerOrder { body: spelled, ..order("k") }).await.status, 200);
    assert_eq!(mock.counts("k").await.0, 1);
}

#[tokio::test]
async fn order_can_be_looked_up_by_key() {
    let mock = MockBroker::start(&[]);
    let answer = mock.get("/orders/by-key/a%2Fb").await;
    assert_eq!(answer.error(), (404, "no_such_order".to_owned()));
    let taken = mock.post(&order("a/b")).await;
    let found = mock.get("/orders/by-key/a%2Fb").await;
    assert_eq!((found.status, found.json()), (200, taken.json()));
    assert_eq!(mock.get("/elsewhere").await.status, 404);
}

#[tokio::test]
async fn oversized_body_is_refused_by_mock_broker() {
    let mock = MockBroker::start(&[]);
    let large = BrokerOrder { body: "x".repeat((4 << 20) + 1), ..order("k") };
    // It responds, and may hang up before the whole request was sent.
    if let Ok(answer) = mock.try_post(&large).await {
        assert_eq!(answer.error(), (413, "too_large".to_owned()));
    }
    assert_eq!(mock.effects().await["effects"], 0);
}
