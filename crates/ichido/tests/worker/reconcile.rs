//! Asking after what nobody knows (SPEC F2).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido::destination::{Asked, Done, Failed, Handler};
use ichido::worker::OutboundKey;
use ichido_core::lifecycle::Stage;
use ichido_core::verdict::Effect;
use ichido_store::Store;
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{BACKOFF, Far, Fixture, QUEUE, key, look_again, queue};

const SETTLES_WITHIN: Duration = Duration::from_mins(10);

/// A handler whose first call is lost, and which can be asked.
fn askable(far: &Far, answer: Asked) -> (Handler, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let handler = far.handler(|number, _| async move {
        if number == 1 { Err(Failed::unknown("lost")) } else { Ok(Done::default()) }
    });
    let handler = handler.settles_within(SETTLES_WITHIN).reconcile(move |key| {
        noted.lock().unwrap().push(key.as_str().to_owned());
        let answer = answer.clone();
        async move { answer }
    });
    (handler, asked)
}

/// Waits until a node has done its rounds.
async fn rounds(store: &Store, node: Uuid) {
    // A heartbeat is followed by the rest of the round; the next one tells that it is over.
    for _ in 0..3 {
        store.skew_by(Duration::from_secs(11));
        let now = store.now().await.unwrap();
        while !store.node_list().await.unwrap().iter().any(|beat| beat.id == node && now <= beat.seen_at) {
            look_again().await;
        }
    }
}

both_databases! {
    #[test]
    async fn what_proves_to_be_done_is_sent_and_not_called_again(fixture: Fixture) {
        let far = Far::default();
        let (handler, asked) = askable(&far, Asked::done());
        let worker = fixture.work(handler);
        let id = fixture.put("k1").await;
        fixture.until(id, Stage::Parked).await;
        fixture.pass(SETTLES_WITHIN / 2);
        rounds(&fixture.store, worker.id()).await;
        assert_eq!(asked.lock().unwrap().len(), 0, "its call may still be travelling");
        fixture.pass(SETTLES_WITHIN);
        fixture.until(id, Stage::Sent).await;
        let outbound = OutboundKey::Derived.of(&queue(QUEUE), "alice", &key("k1"));
        assert_eq!((far.count(), &*asked.lock().unwrap()), (1, &vec![outbound.as_str().to_owned()]));
    }

    #[test]
    async fn what_proves_not_to_be_done_is_called_again(fixture: Fixture) {
        let far = Far::default();
        let (handler, _) = askable(&far, Asked::not_done());
        let _worker = fixture.work(handler);
        let id = fixture.put("k1").await;
        fixture.until(id, Stage::Parked).await;
        fixture.pass(SETTLES_WITHIN * 2);
        let row = fixture.until(id, Stage::Queued).await;
        assert_eq!((row.tries, row.effect), (1, Effect::NotDone));
        fixture.pass(BACKOFF);
        fixture.until(id, Stage::Sent).await;
        assert_eq!(far.count(), 2);
    }

    #[test]
    async fn what_cannot_be_said_stays_parked_and_is_asked_again(fixture: Fixture) {
        let far = Far::default();
        let (handler, asked) = askable(&far, Asked::unknown());
        let worker = fixture.work(handler);
        let id = fixture.put("k1").await;
        fixture.until(id, Stage::Parked).await;
        for times in 1..3 {
            fixture.pass(SETTLES_WITHIN * 2);
            while asked.lock().unwrap().len() < times {
                look_again().await;
            }
            rounds(&fixture.store, worker.id()).await;
            // Not sooner than a minute later.
            assert_eq!(asked.lock().unwrap().len(), times);
        }
        assert_eq!((fixture.row(id).await.status, far.count()), (Stage::Parked, 1));
    }

    #[test]
    async fn one_node_asks(fixture: Fixture) {
        let far = Far::default();
        let (handler, asked) = askable(&far, Asked::unknown());
        let workers = [fixture.work(handler.clone()), fixture.work(handler)];
        let id = fixture.put("k1").await;
        fixture.until(id, Stage::Parked).await;
        fixture.pass(SETTLES_WITHIN * 2);
        for worker in &workers {
            rounds(&fixture.store, worker.id()).await;
        }
        // Within a little more than a minute of their clock, that is once or, when the minute is over, twice.
        let asked = asked.lock().unwrap().len();
        assert!((1..=2).contains(&asked), "{asked}");
    }
}
