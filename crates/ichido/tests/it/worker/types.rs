//! Several types of messages in one queue: each reaches its handler, and handlers that contradict each other do not start.

use std::time::Duration;

use ichido::destination::{Handler, Job, JobError, ReconcileOutcome};
use ichido::message::Message;
use ichido::worker::{Worker, WorkerConfigError};
use ichido_core::json::CanonicalForm;
use ichido_core::lifecycle::StateName;
use ichido_core::retry::{Guarantee, Retry};
use ichido_core::verdict::Effect;
use ichido_store::message::{MessageRow, NewMessage, RequestBody};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::fixture::{BACKOFF, QUEUE, WorkerFixture, backoff, both_databases, many, message, only};

const DAY: Duration = Duration::from_hours(24);

/// Declares a message type of the queue.
macro_rules! message_type {
    ($name:ident, $type:expr, $retry:expr) => {
        #[derive(Serialize, Deserialize)]
        struct $name {
            n: String,
        }

        impl Message for $name {
            const QUEUE: &str = QUEUE;
            const TYPE: Option<&str> = $type;
            const RETRY: Retry = $retry;
        }
    };
}

message_type!(Placed, Some("order.placed"), Retry::ORDER);
message_type!(Cancelled, Some("order.cancelled"), Retry::ORDER);
message_type!(Shouted, Some("Order.Placed"), Retry::ORDER);
message_type!(Hurried, Some("order.hurried"), Retry::CLIENT);
message_type!(Untyped, None, Retry::ORDER);
message_type!(Misnamed, Some("order/placed"), Retry::ORDER);

fn typed(content_type: &str, key: &str) -> NewMessage {
    let body = format!("{{\"n\":\"{key}\"}}").into_bytes();
    let request = RequestBody::new(content_type, body, CanonicalForm::default()).unwrap();
    NewMessage { request, ..message(key) }
}

async fn done<M>(_: Job<M>) -> Result<(), JobError> {
    Ok(())
}

/// The errors of a worker that must not start.
fn errors(worker: Worker) -> Vec<WorkerConfigError> {
    worker.start().unwrap_err().to_vec()
}

both_databases! {
    #[test]
    async fn a_message_reaches_the_handler_of_its_type(fixture: WorkerFixture) {
        let (sender, mut seen) = mpsc::unbounded_channel();
        let (placed, cancelled) = (sender.clone(), sender);
        let _worker = fixture
            .builder()
            .handle_idempotent(move |job: Job<Placed>| {
                let sent = placed.send(("placed", job.payload.n));
                async move { Ok(sent?) }
            })
            .handle_idempotent(move |job: Job<Cancelled>| {
                let sent = cancelled.send(("cancelled", job.payload.n));
                async move { Ok(sent?) }
            })
            .start()
            .unwrap();
        // Parameters and case do not matter in a media type.
        for (content_type, key, expected) in [
            ("application/vnd.order.placed+json", "k1", "placed"),
            ("application/vnd.order.cancelled+json", "k2", "cancelled"),
            ("Application/vnd.Order.Placed+JSON; charset=utf-8", "k3", "placed"),
        ] {
            let id = fixture.put_in(typed(content_type, key)).await;
            fixture.until(id, StateName::Sent).await;
            assert_eq!(seen.recv().await, Some((expected, key.to_owned())));
        }
    }

    /// Another worker may know the type: during a deployment, old and new workers serve the same queue.
    #[test]
    async fn a_type_without_a_handler_waits_without_an_attempt(fixture: WorkerFixture) {
        let retry = |worker: Worker| worker.tune(QUEUE, |queue| queue.retry = backoff());
        let old = [
            retry(fixture.builder().handle_once(done::<Placed>)),
            retry(fixture.builder().handle_once(done::<Untyped>)),
        ];
        for (number, old) in old.into_iter().enumerate() {
            let old = old.start().unwrap();
            let id = fixture.put_in(typed("application/vnd.order.cancelled+json", &format!("k{number}"))).await;
            let has_reason = |row: &MessageRow| row.status == StateName::Queued && row.last_error_text.is_some();
            let row = fixture.until_row(id, has_reason).await;
            assert_eq!((row.attempts, row.effect), (0, Effect::NotDone));
            let why = row.last_error_text.unwrap();
            assert!(why.contains("no handler for the type `application/vnd.order.cancelled+json`"), "{why}");
            old.stop();
            old.ended().await;
            let new = retry(fixture.builder().handle_once(done::<Placed>).handle_once(done::<Cancelled>));
            let new = new.start().unwrap();
            fixture.pass(BACKOFF);
            fixture.until(id, StateName::Sent).await;
            new.stop();
            new.ended().await;
        }
    }

    #[test]
    async fn handlers_of_one_queue_must_agree(fixture: WorkerFixture) {
        let queue = || QUEUE.to_owned();
        let worker = || fixture.builder().handle_once(done::<Placed>);
        let cases = [
            (worker().handle_once(done::<Shouted>), WorkerConfigError::DuplicateType { queue: queue(), name: "Order.Placed" }),
            (worker().handle_once(done::<Untyped>), WorkerConfigError::MissingType { queue: queue() }),
            (worker().handler(QUEUE, Handler::json(done::<u64>)), WorkerConfigError::MissingType { queue: queue() }),
            (worker().handle_keyed(DAY, done::<Cancelled>), WorkerConfigError::DifferentGuarantees {
                queue: queue(),
                one: Guarantee::None,
                other: Guarantee::Keyed { keeps_for: DAY },
            }),
            (worker().handle_once(done::<Hurried>), WorkerConfigError::DifferentRetries { queue: queue() }),
            (
                worker().handler(QUEUE, Handler::message(done::<Cancelled>).reconcile(async |_| ReconcileOutcome::done())),
                WorkerConfigError::ReconcileAmongTypes { queue: queue() },
            ),
            (fixture.builder().handle_once(done::<Misnamed>), WorkerConfigError::TypeName { queue: queue(), name: "order/placed" }),
            (worker().tune("mail", |_| ()), WorkerConfigError::TunedTooEarly { queue: "mail".to_owned() }),
        ];
        for (worker, expected) in cases {
            assert_eq!(errors(worker), [expected]);
        }
        let text = errors(worker().handle_keyed(DAY, done::<Cancelled>)).remove(0).to_string();
        let expected = "queue `orders`: its handlers have different guarantees (none and keyed for 86400s), and a queue \
            has one; register them alike, or give a type its own QUEUE";
        assert_eq!(text, expected);
    }

    /// The schedule of the type decides when a failed message is due, unless the queue is tuned.
    #[test]
    async fn a_type_declares_retries_and_tune_changes_the_rest(fixture: WorkerFixture) {
        async fn fails(_: Job<Hurried>) -> Result<(), JobError> {
            Err(JobError::retry("busy"))
        }
        let worker = fixture.builder().handle_idempotent(fails);
        let worker = worker.tune(QUEUE, |queue| (queue.parallelism, queue.requeue) = (many(1), Some(false)));
        let worker = worker.start().unwrap();
        worker.started().await;
        let id = fixture.put_in(typed("application/vnd.order.hurried+json", "k1")).await;
        fixture.until(id, StateName::Failed).await;
        let facts = only(fixture.store.facts().list().await.unwrap()).facts;
        assert_eq!((facts.max_attempts, facts.requeue), (Retry::CLIENT.max_attempts, false));
    }
}
