//! Requests to cancel messages that a worker holds.
// Spec: D2, H5.

use ichido::destination::{Handler, JobError, JobSuccess};
use ichido_core::clock::HEARTBEAT_EVERY;
use ichido_core::lifecycle::StateName;
use ichido_core::verdict::Effect;
use ichido_store::message::{CancelOutcome, Note};
use uuid::Uuid;

use super::fixture::{
    BACKOFF, DAY, FakeReceiver, HandlerGate, WorkerFixture, both_databases, many, poll_pause,
};

impl WorkerFixture {
    /// Asks to cancel a message in flight.
    async fn ask_to_stop(&self, id: Uuid) {
        let (actor, excerpt) = (Some("olivia".to_owned()), Some("ordered twice".to_owned()));
        let note = Note { actor, excerpt, ..Note::default() };
        assert_eq!(self.store.messages().cancel(id, &note).await.unwrap(), CancelOutcome::Requested);
    }

    /// Waits until a node knows the requests made so far.
    async fn until_known(&self, node: Uuid) {
        // The second heartbeat shows that the first one was evaluated.
        for _ in 0..2 {
            self.pass(HEARTBEAT_EVERY);
            let now = self.store.now().await.unwrap();
            while !self
                .store
                .nodes()
                .list()
                .await
                .unwrap()
                .iter()
                .any(|beat| beat.id == node && now <= beat.seen_at)
            {
                poll_pause().await;
            }
        }
    }
}

/// How a handler ends, given whether somebody asked to cancel its message.
type End = fn(bool) -> Result<JobSuccess, JobError>;

/// A handler that waits for its cancellation, and then ends as told.
fn until_cancelled(receiver: &FakeReceiver, gate: &HandlerGate, end: End) -> Handler {
    let gate = gate.clone();
    receiver.handler(move |_, job| {
        let gate = gate.clone();
        async move {
            gate.open(1);
            gate.pass().await;
            job.cancel.cancelled().await;
            end(job.cancel.is_requested())
        }
    })
}

both_databases! {
    #[test]
    async fn running_handler_is_cancelled_on_request(fixture: WorkerFixture) {
        let stop = |is_requested: bool| {
            assert!(is_requested);
            Err(JobError::cancelled())
        };
        let retry = |_: bool| Err(JobError::retry("stopped half way, and undid it"));
        let dead = |_: bool| Err(JobError::dead("no such order"));
        for (key, end) in [("stop", stop as End), ("retry", retry as End), ("dead", dead as End)] {
            let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
            // Without a guarantee, the start of the call is marked.
            let worker = fixture.work(until_cancelled(&receiver, &gate, end));
            let id = fixture.put(key).await;
            gate.reached(1).await;
            fixture.ask_to_stop(id).await;
            fixture.pass(HEARTBEAT_EVERY);
            let row = fixture.until(id, StateName::Cancelled).await;
            assert_eq!((row.effect, receiver.count()), (Effect::NotDone, 1), "{key}");
            let last = fixture.transitions(id).await.pop().unwrap();
            assert_eq!((last.kind.as_str(), last.actor.as_deref()), ("stopped", Some("olivia")), "{key}");
            assert_eq!(last.excerpt.as_deref(), Some("ordered twice"), "{key}");
            worker.stop();
            worker.ended().await;
        }
    }

    #[test]
    async fn what_is_known_of_the_effect_outweighs_a_request(fixture: WorkerFixture) {
        let done = |_: bool| Ok(JobSuccess::default());
        let lost = |_: bool| Err(JobError::unknown("no answer"));
        for (key, end, guarantee, stage) in [
            ("done", done as End, None, StateName::Sent),
            ("parked", lost as End, None, StateName::Parked),
            ("retried", lost as End, Some(DAY), StateName::Failed),
        ] {
            let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
            let handler = until_cancelled(&receiver, &gate, end);
            let handler = guarantee.into_iter().fold(handler, Handler::keyed);
            let worker = fixture.work(handler);
            let id = fixture.put(key).await;
            gate.reached(1).await;
            fixture.ask_to_stop(id).await;
            fixture.pass(HEARTBEAT_EVERY);
            fixture.until(id, stage).await;
            fixture.until_known(worker.id()).await;
            while fixture.store.messages().cancellation(id).await.unwrap().is_some() {
                poll_pause().await;
            }
            assert_eq!(fixture.row(id).await.status, stage, "and it stays so when the request is over: {key}");
            worker.stop();
            worker.ended().await;
        }
    }

    #[test]
    async fn message_that_waits_for_a_slot_is_cancelled_without_a_call(fixture: WorkerFixture) {
        let (first, second) = (fixture.put("k1").await, fixture.put("k2").await);
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let inside = gate.clone();
        let handler = receiver.handler(move |_, _| {
            let gate = inside.clone();
            async move {
                gate.pass().await;
                Ok(JobSuccess::default())
            }
        });
        let worker = fixture.work_as(handler.idempotent(), |queue| queue.parallelism = many(1));
        gate.reached(1).await;
        fixture.until_count(StateName::Sending, 2).await;
        fixture.ask_to_stop(second).await;
        fixture.until_known(worker.id()).await;
        gate.open(2);
        fixture.until(second, StateName::Cancelled).await;
        fixture.until(first, StateName::Sent).await;
        assert_eq!((receiver.calls_of(first), receiver.calls_of(second)), (1, 0));
    }

    /// Another worker holds it, or held it.
    #[test]
    async fn attempt_that_ended_before_the_request_was_seen_is_cancelled(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let inside = gate.clone();
        let handler = receiver.handler(move |_, _| {
            let gate = inside.clone();
            async move {
                gate.pass().await;
                Err(JobError::retry("the broker is away"))
            }
        });
        let _worker = fixture.work(handler.idempotent());
        let id = fixture.put("k1").await;
        gate.reached(1).await;
        fixture.ask_to_stop(id).await;
        // No heartbeat is due now; should one come nevertheless, it is cancelled all the same.
        gate.open(1);
        fixture.until_row(id, |row| row.status != StateName::Sending).await;
        fixture.pass(HEARTBEAT_EVERY);
        fixture.until(id, StateName::Cancelled).await;
        fixture.pass(BACKOFF);
        assert_eq!(receiver.count(), 1);
    }

    #[test]
    async fn handler_of_a_stopping_worker_is_not_asked_to_cancel(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let handler = until_cancelled(&receiver, &gate, |is_requested: bool| {
            assert!(!is_requested);
            Err(JobError::cancelled())
        });
        let worker = fixture.work(handler.idempotent());
        let id = fixture.put("k1").await;
        gate.reached(1).await;
        worker.stop();
        worker.ended().await;
        let row = fixture.row(id).await;
        assert_eq!((row.status, row.attempts, row.effect), (StateName::Queued, 0, Effect::NotDone));
    }
}
