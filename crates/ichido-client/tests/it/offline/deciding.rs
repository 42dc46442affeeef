//! Tests that entries that are too old are held until a person decides.
// Spec: A13, A14.

use ichido_client::queue::{DrainOutcome, EntryId, EventKind, QueueError, State, StepOutcome};
use ichido_core::verdict::Effect;

use super::temp_queue::{TempQueue, accept, all, drain, next_event, sender};
use crate::server::{ServerAction, TestServer, plain, with};

/// Creates an entry that was sent once with an unknown outcome.
async fn sent_once(
    temp: &TempQueue,
    acts: Vec<ServerAction>,
) -> (TestServer, ichido_client::queue::OfflineQueue, EntryId) {
    let server = TestServer::with_actions(acts).await;
    let queue = temp.queue().await;
    let id = accept(&queue, &["k1"]).await[0];
    let outcome = next_event(&mut sender(&queue, server.client()).await).await;
    assert!(matches!(outcome.kind, EventKind::Waits { .. }), "{outcome:?}");
    (server, queue, id)
}

#[tokio::test]
async fn sent_entry_with_expired_key_is_held_next_continues() {
    let temp = TempQueue::new();
    let (server, queue, id) = sent_once(&temp, vec![ServerAction::WorkAndReset, ServerAction::Work]).await;
    accept(&queue, &["k2"]).await;
    temp.hours_pass(72).await;
    let (outcome, events) = drain(&mut sender(&queue, server.client()).await).await;
    assert_eq!(outcome, DrainOutcome::Empty);
    assert!(
        matches!(&events[0].kind, EventKind::Held { reason } if reason.code == "keys_forgotten"),
        "{events:?}"
    );
    assert_eq!((events[0].entry, server.effects("k2")), (id, 1));
    let [held] = &all(&queue).await[..] else { panic!("one is left") };
    assert_eq!((held.state, held.effect, held.key.as_str()), (State::Held, Effect::Unknown, "k1"));
    let asked = server.seen().len();
    assert_eq!(drain(&mut sender(&queue, server.client()).await).await.0, DrainOutcome::Empty);
    assert_eq!(server.seen().len(), asked, "it is never sent automatically");
    // A person releases it, for one send.
    queue.release(id).await.unwrap();
    let (outcome, _) = drain(&mut sender(&queue, server.client()).await).await;
    assert_eq!((outcome, all(&queue).await.len(), server.effects("k1")), (DrainOutcome::Empty, 0, 1));
    let of_k1: Vec<String> = server
        .seen()
        .iter()
        .filter(|request| request.key() == "k1")
        .map(|request| request.field("ichido-attempt").unwrap().to_owned())
        .collect();
    assert_eq!(of_k1, ["1; manual", "2; manual"]);
}

#[tokio::test]
async fn release_allows_one_attempt() {
    let temp = TempQueue::new();
    let (server, queue, id) = sent_once(&temp, vec![ServerAction::WorkAndReset]).await;
    temp.hours_pass(100).await;
    drain(&mut sender(&queue, server.client()).await).await;
    queue.release(id).await.unwrap();
    let (outcome, events) = drain(&mut sender(&queue, server.client()).await).await;
    assert_eq!(outcome, DrainOutcome::Empty);
    assert!(
        matches!(events[0].kind, EventKind::Waits { .. }) && matches!(events[1].kind, EventKind::Held { .. }),
        "{events:?}"
    );
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn unsent_entry_is_sent_at_any_age() {
    let (temp, server) = (TempQueue::new(), TestServer::with_actions(vec![ServerAction::Work]).await);
    let queue = temp.queue().await;
    accept(&queue, &["k1"]).await;
    temp.hours_pass(10_000).await;
    assert_eq!(drain(&mut sender(&queue, server.client()).await).await.0, DrainOutcome::Empty);
    assert_eq!(server.effects("k1"), 1);
}

#[tokio::test]
async fn entry_sent_before_a_clock_set_back_is_held() {
    let temp = TempQueue::new();
    let (server, queue, _) = sent_once(&temp, vec![ServerAction::WorkAndReset, ServerAction::Work]).await;
    accept(&queue, &["k2"]).await;
    // The clock is set back two hours.
    temp.hours_pass(-2).await;
    let mut sender = sender(&queue, server.client()).await;
    let held = next_event(&mut sender).await;
    assert!(matches!(&held.kind, EventKind::Held { reason } if reason.code == "age_unknown"), "{held:?}");
    // Entries sent from now on are not held for that reason.
    assert!(matches!(next_event(&mut sender).await.kind, EventKind::Waits { .. }));
    assert!(matches!(next_event(&mut sender).await.kind, EventKind::Sent { .. }));
    assert_eq!((server.effects("k1"), server.effects("k2")), (1, 1));
}

#[tokio::test]
async fn clock_set_back_and_forward_during_a_wait_is_detected() {
    let temp = TempQueue::new();
    let busy = with("503 Service Unavailable", &[("Retry-After", "36000")], "");
    let (server, queue, _) = sent_once(&temp, vec![ServerAction::Say(busy), ServerAction::Work]).await;
    let mut sender = sender(&queue, server.client()).await;
    temp.hours_pass(-2).await;
    assert!(matches!(sender.step().await.unwrap(), StepOutcome::Wait(_)));
    // The clock claims to be where it was, and ten hours later the wait is over.
    temp.hours_pass(2).await;
    temp.hours_pass(10).await;
    let held = next_event(&mut sender).await;
    assert!(matches!(&held.kind, EventKind::Held { reason } if reason.code == "age_unknown"), "{held:?}");
    assert_eq!(server.effects("k1"), 0);
}

#[tokio::test]
async fn manual_retry_of_a_failed_entry_keeps_its_key() {
    let temp = TempQueue::new();
    let mut acts = vec![ServerAction::Say(plain("503 Service Unavailable")); 3];
    acts.push(ServerAction::Work);
    let server = TestServer::with_actions(acts).await;
    let queue = temp.queue().await;
    let id = accept(&queue, &["k1"]).await[0];
    drain(&mut sender(&queue, server.client()).await).await;
    assert_eq!(all(&queue).await[0].state, State::Failed);
    queue.retry(id).await.unwrap();
    let entry = &all(&queue).await[0];
    assert_eq!((entry.state, entry.attempts, entry.sends, &entry.reason), (State::Waiting, 0, 3, &None));
    drain(&mut sender(&queue, server.client()).await).await;
    assert_eq!((server.effects("k1"), all(&queue).await.len()), (1, 0));
    assert_eq!(server.attempts(), ["1; manual", "2; auto", "3; auto", "4; manual"]);
    assert!(server.seen().iter().all(|request| request.key() == "k1"));
}

#[tokio::test]
async fn failed_entry_that_is_too_old_is_held() {
    let temp = TempQueue::new();
    let server = TestServer::with_actions(vec![
        ServerAction::Say(plain("422 Unprocessable Content")),
        ServerAction::Work,
    ])
    .await;
    let queue = temp.queue().await;
    let id = accept(&queue, &["k1"]).await[0];
    drain(&mut sender(&queue, server.client()).await).await;
    temp.hours_pass(80).await;
    queue.retry(id).await.unwrap();
    drain(&mut sender(&queue, server.client()).await).await;
    assert_eq!((all(&queue).await[0].state, server.seen().len()), (State::Held, 1));
}

#[tokio::test]
async fn decision_requires_the_matching_state() {
    let temp = TempQueue::new();
    let (server, queue, id) = sent_once(&temp, vec![ServerAction::WorkAndReset]).await;
    for refused in [queue.retry(id).await, queue.release(id).await] {
        assert!(matches!(refused, Err(QueueError::WrongState { state: State::Waiting, .. })), "{refused:?}");
    }
    let nobody = EntryId::new(99);
    for refused in [queue.retry(nobody).await, queue.release(nobody).await, queue.discard(nobody).await] {
        assert!(matches!(refused, Err(QueueError::UnknownEntry(_))), "{refused:?}");
    }
    queue.discard(id).await.unwrap();
    assert_eq!(all(&queue).await.len(), 0);
    // Numbers are never reused, so a decision about one entry cannot apply to another.
    assert!(id < accept(&queue, &["k2"]).await[0]);
    drop(server);
}

#[tokio::test]
async fn only_an_abandoned_entry_in_flight_can_be_discarded() {
    let (temp, server) = (TempQueue::new(), TestServer::with_actions(vec![ServerAction::Silence]).await);
    let queue = temp.queue().await;
    let id = accept(&queue, &["k1"]).await[0];
    let mut sending = sender(&queue, server.client()).await;
    tokio::select! {
        step = sending.step() => panic!("nobody answers: {step:?}"),
        () = async { while server.seen().is_empty() { tokio::task::yield_now().await; } } => {}
    }
    let refused = queue.discard(id).await;
    assert!(matches!(refused, Err(QueueError::WrongState { state: State::Sending, .. })), "{refused:?}");
    drop(sending);
    queue.discard(id).await.unwrap();
    assert_eq!(all(&queue).await.len(), 0);
}
