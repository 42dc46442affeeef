//! Looking up unknown effects.
// Spec: F2.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido::destination::{Handler, JobError, JobSuccess, ReconcileOutcome};
use ichido::worker::OutboundKey;
use ichido_core::lifecycle::StateName;
use ichido_core::verdict::Effect;
use ichido_store::Store;
use ichido_store::dead_letter::Disposition;
use ichido_store::message::{NewMessage, Note};
use uuid::Uuid;

use super::fixture::{
    BACKOFF, DAY, FakeReceiver, QUEUE, WorkerFixture, both_databases, key, many, message, only, poll_pause,
    queue,
};

const SETTLES_WITHIN: Duration = Duration::from_mins(10);

/// A handler whose first call is lost, and which supports lookups.
fn askable(receiver: &FakeReceiver, answer: ReconcileOutcome) -> (Handler, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let handler = receiver.handler(|number, _| async move {
        if number == 1 { Err(JobError::unknown("lost")) } else { Ok(JobSuccess::default()) }
    });
    let handler = handler.settle_grace(SETTLES_WITHIN).reconcile(move |key| {
        noted.lock().unwrap().push(key.as_str().to_owned());
        let answer = answer.clone();
        async move { answer }
    });
    (handler, asked)
}

/// Waits until a node has completed its rounds.
async fn rounds(store: &Store, node: Uuid) {
    // The rest of the round follows a heartbeat; the next heartbeat shows that it is over.
    for _ in 0..3 {
        store.advance_clock(Duration::from_secs(11));
        let now = store.now().await.unwrap();
        while !store.nodes().list().await.unwrap().iter().any(|beat| beat.id == node && now <= beat.seen_at) {
            poll_pause().await;
        }
    }
}

both_databases! {
    #[test]
    async fn message_found_done_is_sent_without_another_call(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let (handler, asked) = askable(&receiver, ReconcileOutcome::done());
        let worker = fixture.work(handler);
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Parked).await;
        fixture.pass(SETTLES_WITHIN / 2);
        rounds(&fixture.store, worker.id()).await;
        assert_eq!(asked.lock().unwrap().len(), 0, "its call may still be travelling");
        fixture.pass(SETTLES_WITHIN);
        fixture.until(id, StateName::Sent).await;
        let outbound = OutboundKey::Derived.key_for(&queue(QUEUE), "alice", &key("k1"));
        assert_eq!((receiver.count(), &*asked.lock().unwrap()), (1, &vec![outbound.as_str().to_owned()]));
    }

    #[test]
    async fn message_found_not_done_is_called_again(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let (handler, _) = askable(&receiver, ReconcileOutcome::not_done());
        let _worker = fixture.work(handler);
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Parked).await;
        fixture.pass(SETTLES_WITHIN * 2);
        let row = fixture.until(id, StateName::Queued).await;
        assert_eq!((row.attempts, row.effect), (1, Effect::NotDone));
        fixture.pass(BACKOFF);
        fixture.until(id, StateName::Sent).await;
        assert_eq!(receiver.count(), 2);
    }

    #[test]
    async fn message_found_unknown_stays_parked_and_is_looked_up_again(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let (handler, asked) = askable(&receiver, ReconcileOutcome::unknown());
        let worker = fixture.work(handler);
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Parked).await;
        for times in 1..3 {
            fixture.pass(SETTLES_WITHIN * 2);
            while asked.lock().unwrap().len() < times {
                poll_pause().await;
            }
            rounds(&fixture.store, worker.id()).await;
            // Not sooner than a minute later.
            assert_eq!(asked.lock().unwrap().len(), times);
        }
        assert_eq!((fixture.row(id).await.status, receiver.count()), (StateName::Parked, 1));
    }

    /// A dead letter stays dead, and its effect becomes known; its history says how.
    // Spec: D17.
    #[test]
    async fn dead_letter_of_unknown_effect_is_looked_up_automatically(fixture: WorkerFixture) {
        for (answer, key, effect) in
            [(ReconcileOutcome::done(), "k1", Effect::Done), (ReconcileOutcome::not_done(), "k2", Effect::NotDone)]
        {
            let receiver = FakeReceiver::default();
            let (handler, asked) = askable(&receiver, answer);
            // Keys are remembered, so it is not parked; and no attempt is left.
            let worker = fixture.work(handler.keyed(DAY));
            let id = fixture.put_in(NewMessage { max_attempts: many(1), ..message(key) }).await;
            let row = fixture.until(id, StateName::Dead).await;
            assert_eq!(row.effect, Effect::Unknown);
            let before = only(fixture.store.dead_letters().find(&[id]).await.unwrap());
            rounds(&fixture.store, worker.id()).await;
            assert_eq!(asked.lock().unwrap().len(), 0, "its call may still be travelling");
            fixture.pass(SETTLES_WITHIN * 2);
            let row = fixture.until_row(id, |row| row.effect != Effect::Unknown).await;
            assert_eq!((row.status, row.effect), (StateName::Dead, effect));
            let last = fixture.transitions(id).await.pop().unwrap();
            assert_eq!((last.kind.as_str(), last.from, last.to), ("reconciled", StateName::Dead, StateName::Dead));
            let letter = only(fixture.store.dead_letters().find(&[id]).await.unwrap());
            assert_eq!((letter.since, letter.disposition, &letter.error), (before.since, Disposition::Open, &before.error));
            // A known effect is not looked up again.
            fixture.pass(SETTLES_WITHIN * 2);
            rounds(&fixture.store, worker.id()).await;
            assert_eq!((receiver.count(), asked.lock().unwrap().len()), (1, 1));
            worker.stop();
            worker.ended().await;
        }
    }

    /// An inconclusive response leaves the letter as it was, and it is looked up again later, not at once.
    // Spec: D17.
    #[test]
    async fn dead_letter_found_unknown_is_looked_up_again_later(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let (handler, asked) = askable(&receiver, ReconcileOutcome::unknown());
        let worker = fixture.work(handler.keyed(DAY));
        let id = fixture.put_in(NewMessage { max_attempts: many(1), ..message("k1") }).await;
        fixture.until(id, StateName::Dead).await;
        let known = fixture.transitions(id).await.len();
        for times in 1..3 {
            fixture.pass(SETTLES_WITHIN * 2);
            while asked.lock().unwrap().len() < times {
                poll_pause().await;
            }
            rounds(&fixture.store, worker.id()).await;
            assert_eq!(asked.lock().unwrap().len(), times);
        }
        let letter = only(fixture.store.dead_letters().find(&[id]).await.unwrap());
        let asked_at = letter.asked_at.expect("a person sees when the receiver was last asked");
        assert!(letter.since < asked_at && asked_at <= fixture.store.now().await.unwrap(), "{letter:?}");
        let row = fixture.row(id).await;
        assert_eq!((row.status, row.effect, receiver.count()), (StateName::Dead, Effect::Unknown, 1));
        assert_eq!(fixture.transitions(id).await.len(), known);
        // A resolved letter was decided: it is not looked up any more.
        fixture.store.dead_letters().discard(&[id], &Note::default()).await.unwrap();
        fixture.pass(SETTLES_WITHIN * 2);
        rounds(&fixture.store, worker.id()).await;
        assert_eq!(asked.lock().unwrap().len(), 2);
    }

    /// Dead letters are looked up again every ten minutes; the first time does not wait for that.
    // Spec: D17.
    #[test]
    async fn dead_letter_is_looked_up_soon_after_its_call_settled(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let (handler, asked) = askable(&receiver, ReconcileOutcome::unknown());
        let worker = fixture.work(handler.keyed(DAY).settle_grace(Duration::from_mins(2)));
        let id = fixture.put_in(NewMessage { max_attempts: many(1), ..message("k1") }).await;
        fixture.until(id, StateName::Dead).await;
        rounds(&fixture.store, worker.id()).await;
        assert_eq!(asked.lock().unwrap().len(), 0, "its call may still be travelling");
        fixture.pass(Duration::from_mins(5));
        while asked.lock().unwrap().is_empty() {
            poll_pause().await;
        }
        rounds(&fixture.store, worker.id()).await;
        assert_eq!(asked.lock().unwrap().len(), 1, "and again only with the next pass");
    }

    #[test]
    async fn one_node_looks_up(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let (handler, asked) = askable(&receiver, ReconcileOutcome::unknown());
        let workers = [fixture.work(handler.clone()), fixture.work(handler)];
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Parked).await;
        fixture.pass(SETTLES_WITHIN * 2);
        for worker in &workers {
            rounds(&fixture.store, worker.id()).await;
        }
        // Within a little more than a minute of their clock, that is once or, when the minute is over, twice; and once more
        // if the task changed hands, as it may on a slow machine. Separately they would look up four times.
        let asked = asked.lock().unwrap().len();
        assert!((1..=3).contains(&asked), "{asked}");
    }
}
