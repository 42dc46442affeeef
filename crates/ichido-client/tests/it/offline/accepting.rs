//! Tests that an accepted action is on disk, once per key, or not at all.

use http::{HeaderName, HeaderValue};
use ichido_client::queue::{AcceptOutcome, MAX_ENTRIES, MAX_ENTRY_BYTES, QueueError, State};

use super::temp_queue::{SHOP, TempQueue, accept, all, keys, order, order_at};

#[tokio::test]
async fn accepted_entries_survive_the_process_in_order() {
    let temp = TempQueue::new();
    let queue = temp.queue().await;
    accept(&queue, &["k1", "k2"]).await;
    accept(&queue, &["k3"]).await;
    // Not closed, as a killed process would leave it.
    let again = temp.queue().await;
    let entries = all(&again).await;
    assert_eq!(keys(&entries), ["k1", "k2", "k3"]);
    for entry in entries {
        assert_eq!(
            (entry.state, entry.attempts, entry.sends, entry.first_sent),
            (State::Waiting, 0, 0, None)
        );
    }
}

#[tokio::test]
async fn same_key_is_the_same_action_or_a_conflict() {
    let temp = TempQueue::new();
    let queue = temp.queue().await;
    let id = accept(&queue, &["k1"]).await[0];
    let same = queue.accept(SHOP, &[order("k1")]).await.unwrap();
    assert_eq!(same, [AcceptOutcome::Same { id, state: State::Waiting, reason: None }]);
    let identity = |name| {
        let value = HeaderValue::from_str(name).unwrap();
        order("k1").with_header(HeaderName::from_static("ichido-identity"), value).unwrap()
    };
    let other_type =
        order("k1").with_header(http::header::ACCEPT_LANGUAGE, HeaderValue::from_static("ja")).unwrap();
    for other in [order_at("/orders", "k1", "{}"), other_type] {
        assert_eq!(queue.accept(SHOP, &[other]).await.unwrap(), [AcceptOutcome::Conflict { id }]);
    }
    assert_eq!(all(&queue).await.len(), 1, "nothing was changed");
    // A different path, destination or identity makes a different action.
    for action in [order_at("/payments", "k1", "{}"), identity("ann"), identity("bob")] {
        assert!(matches!(queue.accept(SHOP, &[action]).await.unwrap()[..], [AcceptOutcome::New { .. }]));
    }
    assert!(matches!(queue.accept("bank", &[order("k1")]).await.unwrap()[..], [AcceptOutcome::New { .. }]));
    let twice = queue.accept(SHOP, &[order("k9"), order("k9"), order_at("/orders", "k9", "")]).await.unwrap();
    assert!(
        matches!(twice[..], [AcceptOutcome::New { id: a }, AcceptOutcome::Same { id: b, .. }, AcceptOutcome::Conflict { id: c }] if a == b && b == c),
        "{twice:?}"
    );
}

#[tokio::test]
async fn full_queue_accepts_a_whole_batch_or_nothing() {
    let temp = TempQueue::new();
    let queue = temp.queue().await;
    let columns = "destination, method, path, identity, key, headers, body, created_us, state, attempts, sends, sends_all, \
                   due_passed_us, cause, is_released, effect";
    temp
        .sql(&format!(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {})
             INSERT INTO entry ({columns})
             SELECT 'x', 'POST', '/', '', 'k' || n, x'', x'', 0, 'waiting', 0, 0, 0, 0, 'auto', 0, 'not_done' FROM n",
            MAX_ENTRIES - 1
        ))
        .await;
    let full = queue.accept(SHOP, &[order("k1"), order("k2")]).await;
    assert!(matches!(full, Err(QueueError::Full)), "{full:?}");
    let count = |counts: Vec<ichido_client::queue::EntryCount>| {
        counts.into_iter().filter(|count| count.destination == SHOP).map(|count| count.entries).sum::<u64>()
    };
    assert_eq!(count(queue.counts().await.unwrap()), 0, "not even the first");
    accept(&queue, &["k1"]).await;
    // An action that is already there needs no space.
    assert!(matches!(queue.accept(SHOP, &[order("k1")]).await.unwrap()[..], [AcceptOutcome::Same { .. }]));
    assert!(matches!(queue.accept(SHOP, &[order("k2")]).await, Err(QueueError::Full)));
}

#[tokio::test]
async fn large_or_secret_entries_are_not_stored() {
    let temp = TempQueue::new();
    let queue = temp.queue().await;
    let large = order_at("/orders", "k1", &"x".repeat(MAX_ENTRY_BYTES));
    assert!(matches!(queue.accept(SHOP, &[order("k0"), large]).await, Err(QueueError::TooLarge { .. })));
    let cookie =
        order("k2").with_header(http::header::COOKIE, HeaderValue::from_static("session=1")).unwrap();
    assert!(matches!(queue.accept(SHOP, &[cookie]).await, Err(QueueError::Secret(_))));
    for name in ["", "a\nb", &"x".repeat(3_000)] {
        assert!(matches!(queue.accept(name, &[order("k3")]).await, Err(QueueError::Destination)), "{name:?}");
    }
    assert_eq!(all(&queue).await.len(), 0);
}
