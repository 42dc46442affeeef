//! The counters, and changes of behaviour at run time.

use super::broker::{BrokerOrder, MockBroker, order};

#[tokio::test]
async fn the_same_seed_makes_the_same_faults() {
    let mut text = Vec::new();
    for seed in ["7", "7", "8"] {
        let mock =
            MockBroker::start(&["--seed", seed, "--fault", "bad_request=0.5", "--fault", "no_key=0.1"]);
        assert!(mock.line.ends_with(&format!(" with seed {seed}\n")), "{}", mock.line);
        let mut statuses = Vec::new();
        for index in 0..100 {
            statuses.push(mock.post(&order(&format!("k{index}"))).await.status);
        }
        let effects = mock.effects().await;
        let refused = statuses.iter().filter(|status| **status == 400).count();
        assert_eq!(effects["faults"]["bad_request"], refused);
        assert!(0 < refused && refused < 100);
        assert_eq!(effects["effects"], 100 - refused);
        assert_eq!(effects["calls"], 100);
        text.push((statuses, effects["faults"].clone()));
    }
    assert_eq!(text[0], text[1]);
    assert_ne!(text[0], text[2]);
}

#[tokio::test]
async fn unused_faults_are_listed_with_zero() {
    let mock = MockBroker::start(&[]);
    let faults = mock.effects().await["faults"].as_object().expect("an object").clone();
    assert_eq!(faults.len(), 17);
    assert!(faults.values().all(|count| count == 0));
}

#[tokio::test]
async fn mock_broker_faults_change_at_runtime() {
    let mock = MockBroker::start(&[]);
    assert_eq!(mock.post(&order("a")).await.status, 200);
    let changed = mock.put("/mock/faults", r#"{"faults":{"bad_request":1},"deduplicates":false}"#).await;
    assert_eq!((changed.status, changed.json()["deduplicates"].as_bool()), (200, Some(false)));
    assert_eq!(mock.get("/mock/faults").await.json(), changed.json());
    assert_eq!(mock.post(&order("b")).await.status, 400);
    assert_eq!(mock.put("/mock/faults", r#"{"faults":{}}"#).await.status, 200);
    assert_eq!(mock.post(&order("a")).await.status, 200);
    assert_eq!(mock.counts("a").await, (2, 2), "it no longer honours keys");
}

#[tokio::test]
async fn invalid_fault_change_is_refused() {
    let mock = MockBroker::start(&[]);
    let before = mock.get("/mock/faults").await.json();
    let refused = mock.put("/mock/faults", r#"{"latency_ms":5,"faults":{"nonsense":1},"what":0}"#).await;
    assert_eq!(refused.error(), (400, "bad_settings".to_owned()));
    assert_eq!(refused.json()["problems"].as_array().map(Vec::len), Some(2));
    assert_eq!(mock.get("/mock/faults").await.json(), before);
}

#[tokio::test]
async fn fences_are_reported_and_old_ones_refused_on_request() {
    let mock = MockBroker::start(&["--refuses-old-fences"]);
    let with = |fence| BrokerOrder { fence: Some(fence), ..order("k") };
    assert_eq!(mock.post(&with(7)).await.status, 200);
    assert_eq!(mock.post(&with(5)).await.error(), (412, "old_fence".to_owned()));
    assert_eq!(mock.post(&with(9)).await.status, 200);
    let effects = mock.effects().await;
    assert_eq!(effects["keys"]["k"]["fences"], serde_json::json!([7, 5, 9]));
    assert_eq!(effects["keys"]["k"]["max_fence"], 9);
    assert_eq!(effects["refusals"]["old_fence"], 1);
    assert_eq!(effects["keys"]["k"]["effects"], 1);
}
