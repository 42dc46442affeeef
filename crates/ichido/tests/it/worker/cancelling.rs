//! Requests to cancel messages that a worker holds.
// Spec: D2, H5.

use std::sync::Arc;
use std::time::Duration;

use http_for_tests::{Receiver, ServerAction, plain};
use ichido::destination::http::HttpSettings;
use ichido::destination::{Handler, JobError, JobSuccess};
use ichido::worker::{DestinationConfig, QueueConfig, WorkerHandle};
use ichido_core::clock::HEARTBEAT_EVERY;
use ichido_core::lifecycle::StateName;
use ichido_core::retry::Guarantee;
use ichido_core::verdict::Effect;
use ichido_store::message::{CancelOutcome, ClaimOptions, NewMessage, Note, StepResult};
use ichido_store::node::MAX_CANCELLATIONS;
use ichido_store::testing::while_busy;
use tokio::sync::Notify;
use uuid::Uuid;

use super::fixture::{
    BACKOFF, DAY, FakeReceiver, QUEUE, WorkerFixture, backoff, both_databases, many, message, poll_pause,
    queue,
};
use crate::handler_gate::HandlerGate;

impl WorkerFixture {
    /// Asks to cancel a message in flight.
    async fn ask_to_stop(&self, id: Uuid) {
        let (actor, excerpt) = (Some("olivia".to_owned()), Some("ordered twice".to_owned()));
        let note = Note { actor, excerpt, ..Note::default() };
        let asked = while_busy(|| self.store.messages().cancel(id, &note)).await;
        assert_eq!(asked, CancelOutcome::Requested);
    }

    async fn until_request_ends(&self, id: Uuid) {
        while self.store.messages().cancellation(id).await.unwrap().is_some() {
            poll_pause().await;
        }
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

/// A handler that waits for its cancellation and then ends as told, while it runs.
struct Running {
    receiver: FakeReceiver,
    worker: WorkerHandle,
    id: Uuid,
}

impl Running {
    async fn start(
        fixture: &WorkerFixture,
        key: &str,
        end: End,
        change: impl FnOnce(Handler) -> Handler,
    ) -> Self {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let inside = gate.clone();
        let handler = receiver.handler(move |_, job| {
            let gate = inside.clone();
            async move {
                gate.open(1);
                gate.pass().await;
                job.cancel.cancelled().await;
                end(job.cancel.is_requested())
            }
        });
        let worker = fixture.work(change(handler));
        let id = fixture.put(key).await;
        gate.reached(1).await;
        Self { receiver, worker, id }
    }

    async fn stop(self) {
        self.worker.stop();
        self.worker.ended().await;
    }
}

/// A handler whose run of this number waits at the gate, and then ends as told.
fn gated(
    receiver: &FakeReceiver,
    gate: &HandlerGate,
    end: fn(usize, bool) -> Result<JobSuccess, JobError>,
) -> Handler {
    let gate = gate.clone();
    let handler = receiver.handler(move |run, job| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            end(run, job.cancel.is_requested())
        }
    });
    handler.idempotent()
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
            // Without a guarantee, the start of the call is marked.
            let running = Running::start(&fixture, key, end, |handler| handler).await;
            fixture.ask_to_stop(running.id).await;
            fixture.pass(HEARTBEAT_EVERY);
            let row = fixture.until(running.id, StateName::Cancelled).await;
            assert_eq!((row.effect, running.receiver.count()), (Effect::NotDone, 1), "{key}");
            let last = fixture.transitions(running.id).await.pop().unwrap();
            assert_eq!((last.kind.as_str(), last.actor.as_deref()), ("stopped", Some("olivia")), "{key}");
            assert_eq!(last.excerpt.as_deref(), Some("ordered twice"), "{key}");
            running.stop().await;
        }
    }

    /// More requests than one heartbeat carries, for messages of a worker that does not stop.
    #[test]
    async fn request_behind_a_page_of_others_reaches_its_handler(fixture: WorkerFixture) {
        let (elsewhere, count) = (queue("elsewhere"), MAX_CANCELLATIONS + 1);
        let held = |number: u32| NewMessage { queue: elsewhere.clone(), ..message(&number.to_string()) };
        let enqueued = fixture.store.messages().enqueue_all((0..count).map(held).collect()).await;
        assert!(enqueued.iter().all(Result::is_ok));
        let terms = ClaimOptions {
            node: Uuid::now_v7(),
            lease: DAY,
            start_marks: false,
            guarantee: Guarantee::Idempotent,
            max_time_in_flight: Duration::ZERO,
        };
        let held = fixture.store.claims().claim(&elsewhere, many(count), terms).await.unwrap();
        assert_eq!(held.len(), count as usize);
        for work in held {
            let asked = fixture.store.messages().cancel(work.id, &Note::default()).await.unwrap();
            assert_eq!(asked, CancelOutcome::Requested);
        }
        let running = Running::start(&fixture, "k1", |_| Err(JobError::cancelled()), Handler::idempotent).await;
        fixture.ask_to_stop(running.id).await;
        fixture.pass(HEARTBEAT_EVERY);
        fixture.until(running.id, StateName::Cancelled).await;
        running.stop().await;
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
            let keyed = |handler| guarantee.into_iter().fold(handler, Handler::keyed);
            let running = Running::start(&fixture, key, end, keyed).await;
            let id = running.id;
            fixture.ask_to_stop(id).await;
            fixture.pass(HEARTBEAT_EVERY);
            fixture.until(id, stage).await;
            fixture.until_known(running.worker.id()).await;
            fixture.until_request_ends(id).await;
            assert_eq!(fixture.row(id).await.status, stage, "and it stays so when the request is over: {key}");
            running.stop().await;
        }
    }

    #[test]
    async fn message_that_waits_for_a_slot_is_cancelled_without_a_call(fixture: WorkerFixture) {
        let (first, second) = (fixture.put("k1").await, fixture.put("k2").await);
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let handler = gated(&receiver, &gate, |_, _| Ok(JobSuccess::default()));
        let worker = fixture.work_as(handler, |queue| queue.parallelism = many(1));
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
        let _worker = fixture.work(gated(&receiver, &gate, |_, _| Err(JobError::retry("the broker is away"))));
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

    /// The request was about the attempt before; the worker may still remember it.
    #[test]
    async fn requeued_message_is_not_stopped_by_an_older_request(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let _worker = fixture.work(gated(&receiver, &gate, |run, is_requested| match run {
            1 => Err(JobError::unknown("no answer")),
            _ if is_requested => Err(JobError::cancelled()),
            _ => Ok(JobSuccess::default()),
        }));
        let id = fixture.put("k1").await;
        gate.reached(1).await;
        fixture.ask_to_stop(id).await;
        gate.open(1);
        fixture.until(id, StateName::Failed).await;
        fixture.pass(HEARTBEAT_EVERY);
        fixture.until_request_ends(id).await;
        let requeued = fixture.store.messages().retry_now(id, &Note::default()).await.unwrap();
        assert!(matches!(requeued, StepResult::Now(_)), "{requeued:?}");
        gate.reached(2).await;
        gate.open(1);
        let row = fixture.until_row(id, |row| !matches!(row.status, StateName::Queued | StateName::Sending)).await;
        assert_eq!((row.status, receiver.count()), (StateName::Sent, 2));
    }

    /// An aborted call may have taken effect, so its response decides.
    #[test]
    async fn call_to_a_receiver_is_not_aborted_on_request(fixture: WorkerFixture) {
        for (answer, stage, effect) in [
            (ServerAction::Answer(plain("200 OK")), StateName::Sent, Effect::Done),
            (ServerAction::Answer(plain("400 Bad Request")), StateName::Cancelled, Effect::NotDone),
            (ServerAction::Reset, StateName::Parked, Effect::Unknown),
        ] {
            let signal = Arc::new(Notify::new());
            let held = ServerAction::After(Arc::clone(&signal), Box::new(answer));
            let receiver = Receiver::start(move |_, _| held.clone()).await;
            let http = HttpSettings::new(receiver.url("/"), Guarantee::None).resolve().unwrap();
            let queue = QueueConfig { retry: backoff(), ..QueueConfig::new(QUEUE, QUEUE) };
            let worker = fixture.builder().destination(DestinationConfig::new(QUEUE, http)).queue(queue);
            let worker = worker.start().unwrap();
            let id = fixture.put(stage.as_str()).await;
            while receiver.seen().is_empty() {
                poll_pause().await;
            }
            fixture.ask_to_stop(id).await;
            fixture.until_known(worker.id()).await;
            assert_eq!(fixture.row(id).await.status, StateName::Sending, "the call goes on");
            signal.notify_one();
            let row = fixture.until_row(id, |row| row.status != StateName::Sending).await;
            assert_eq!((row.status, row.effect, receiver.seen().len()), (stage, effect, 1));
            worker.stop();
            worker.ended().await;
        }
    }

    #[test]
    async fn handler_of_a_stopping_worker_is_not_asked_to_cancel(fixture: WorkerFixture) {
        let end = |is_requested: bool| {
            assert!(!is_requested);
            Err(JobError::cancelled())
        };
        let running = Running::start(&fixture, "k1", end, Handler::idempotent).await;
        let id = running.id;
        running.stop().await;
        let row = fixture.row(id).await;
        assert_eq!((row.status, row.attempts, row.effect), (StateName::Queued, 0, Effect::NotDone));
    }
}
