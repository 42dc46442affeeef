//! What a handler receives and what it can return.

use std::time::Duration;

use ichido::destination::{Handler, Job, JobError, JobSuccess};
use ichido::message::Message;
use ichido_core::lifecycle::StateName;
use ichido_core::verdict::Effect;
use serde::{Deserialize, Serialize};

use super::fixture::{BACKOFF, FakeReceiver, QUEUE, WorkerFixture, both_databases, many, poll_pause};
use crate::handler_gate::HandlerGate;

/// The timeout of a handler that never ends. One that ends at once has as long, on a slow machine too.
const TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Serialize, Deserialize)]
struct OrderPayload {
    n: String,
}

impl Message for OrderPayload {
    const QUEUE: &str = QUEUE;
}

/// A number, which no message of these tests is.
#[derive(Serialize, Deserialize)]
struct Number(u64);

impl Message for Number {
    const QUEUE: &str = QUEUE;
}

/// A handler whose every run ends like this.
fn failing(how: impl Fn() -> JobError + Send + Sync + 'static) -> Handler {
    FakeReceiver::default().handler(move |_, _| {
        let failed = how();
        async move { Err(failed) }
    })
}

both_databases! {
    #[test]
    async fn a_handler_gets_its_payload_typed(fixture: WorkerFixture) {
        let worker = fixture.builder().handle_once(|job: Job<OrderPayload>| async move {
            if job.payload.n != "k1" {
                return Err(JobError::dead("another order"));
            }
            Ok(())
        });
        let _worker = worker.start().unwrap();
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Sent).await;
    }

    #[test]
    async fn a_payload_that_cannot_be_read_is_dead_with_the_reason(fixture: WorkerFixture) {
        let worker = fixture.builder().handle_once(|_: Job<Number>| async { Ok(()) });
        let _worker = worker.start().unwrap();
        let id = fixture.put("k1").await;
        let row = fixture.until(id, StateName::Dead).await;
        assert_eq!((row.attempts, row.effect, row.last_error.as_deref()), (1, Effect::NotDone, Some("BAD_REQUEST")));
        let why = row.last_error_text.unwrap();
        assert!(why.contains("not the JSON") && why.contains("line 1 column"), "{why}");
    }

    #[test]
    async fn handler_can_return_dead(fixture: WorkerFixture) {
        let _worker = fixture.work(failing(|| JobError::dead("no such account")));
        let id = fixture.put("k1").await;
        let row = fixture.until(id, StateName::Dead).await;
        assert_eq!((row.attempts, row.effect), (1, Effect::NotDone));
        assert_eq!(row.last_error_text.as_deref(), Some("no such account"));
    }

    #[test]
    async fn handler_retry_is_retried_under_any_guarantee(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|number, _| async move {
            if number < 3 { Err(JobError::retry("busy")) } else { Ok(JobSuccess::default()) }
        });
        let _worker = fixture.work(handler);
        let id = fixture.put("k1").await;
        for attempts in 1..3 {
            fixture.until_row(id, |row| row.status == StateName::Failed && row.attempts == attempts).await;
            fixture.pass(BACKOFF);
        }
        fixture.until(id, StateName::Sent).await;
        assert_eq!(receiver.calls().iter().map(|seen| seen.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    }

    // Spec: F2.
    #[test]
    async fn unknown_effect_is_parked_without_guarantee(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|_, _| async {
            Err(std::io::Error::other("the line broke"))?;
            Ok(JobSuccess::default())
        });
        let _worker = fixture.work(handler);
        let id = fixture.put("k1").await;
        let row = fixture.until(id, StateName::Parked).await;
        assert_eq!((row.effect, row.last_error_text.as_deref()), (Effect::Unknown, Some("the line broke")));
        assert_eq!(receiver.count(), 1);
    }

    // Spec: D9, F2.
    #[test]
    async fn unknown_effect_is_retried_if_keyed_or_repeatable(fixture: WorkerFixture) {
        for (key, covers) in [("k1", Handler::idempotent as fn(Handler) -> Handler), ("k2", |handler| {
            handler.keyed(Duration::from_hours(24))
        })] {
            let receiver = FakeReceiver::default();
            let handler = receiver.handler(|number, _| async move {
                if number < 2 { Err(JobError::unknown("who knows")) } else { Ok(JobSuccess::default()) }
            });
            let worker = fixture.work(covers(handler));
            let id = fixture.put(key).await;
            fixture.until(id, StateName::Failed).await;
            fixture.pass(BACKOFF);
            fixture.until(id, StateName::Sent).await;
            assert_eq!(receiver.count(), 2);
            assert_eq!(receiver.calls()[0].key, receiver.calls()[1].key);
            worker.stop();
            worker.ended().await;
        }
    }

    #[test]
    async fn a_snooze_does_not_count(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|number, _| async move {
            if number < 2 { Err(JobError::snooze(Duration::from_mins(5))) } else { Ok(JobSuccess::default()) }
        });
        let _worker = fixture.work(handler.idempotent());
        let id = fixture.put("k1").await;
        // Before the call it was queued, too.
        while receiver.count() == 0 {
            poll_pause().await;
        }
        let row = fixture.until(id, StateName::Queued).await;
        assert_eq!(row.attempts, 0);
        fixture.pass(Duration::from_mins(6));
        fixture.until(id, StateName::Sent).await;
        assert_eq!(receiver.calls()[1].attempt, 1);
    }

    /// A queue with start marks cannot undo a start, so there a snooze counts.
    #[test]
    async fn a_snooze_after_a_mark_counts(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|number, _| async move {
            if number < 2 { Err(JobError::snooze(Duration::from_mins(5))) } else { Ok(JobSuccess::default()) }
        });
        let _worker = fixture.work(handler);
        let id = fixture.put("k1").await;
        let row = fixture.until(id, StateName::Failed).await;
        assert_eq!((row.attempts, row.effect), (1, Effect::NotDone));
        fixture.pass(Duration::from_mins(6));
        fixture.until(id, StateName::Sent).await;
    }

    /// The guarantee that was named when the handler was registered decides what follows a panic.
    #[test]
    async fn a_panic_is_retried_or_parked_by_the_guarantee(fixture: WorkerFixture) {
        async fn panics(_: Job<OrderPayload>) -> Result<(), JobError> {
            panic!("a fault of the handler's");
        }
        let idempotent = fixture.builder().handle_idempotent(panics);
        let keyed = fixture.builder().handle_keyed(Duration::from_hours(24), panics);
        let once = fixture.builder().handle_once(panics);
        for (key, worker, then) in [("k1", idempotent, StateName::Failed), ("k2", keyed, StateName::Failed), ("k3", once, StateName::Parked)] {
            let worker = worker.start().unwrap();
            let id = fixture.put(key).await;
            let row = fixture.until(id, then).await;
            assert_eq!((row.attempts, row.effect), (1, Effect::Unknown));
            assert_eq!(row.last_error_text.as_deref(), Some("the handler panicked: a fault of the handler's"));
            worker.stop();
            worker.ended().await;
        }
    }

    #[test]
    async fn panic_is_a_failed_attempt_and_harms_no_other(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|_, job| async move {
            assert_ne!(&job.payload[..], b"{\"n\":\"bad\"}", "a fault of the handler's");
            Ok(JobSuccess::default())
        });
        let _worker = fixture.work_as(handler.idempotent(), |queue| queue.parallelism = many(1));
        let bad = fixture.put("bad").await;
        let good = fixture.put("good").await;
        let row = fixture.until(bad, StateName::Failed).await;
        assert_eq!((row.attempts, row.effect), (1, Effect::Unknown));
        assert!(row.last_error_text.as_deref().unwrap().starts_with("the handler panicked: "), "{row:?}");
        fixture.until(good, StateName::Sent).await;
    }

    /// A timeout counts as a failure, and frees the slot.
    // Spec: E1.
    #[test]
    async fn timeout_frees_slot_and_cancels_handler(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let (sender, mut signal_receiver) = tokio::sync::mpsc::unbounded_channel();
        let inside = gate.clone();
        let handler = receiver.handler(move |_, job| {
            let (gate, sender) = (inside.clone(), sender.clone());
            async move {
                if &job.payload[..] == b"{\"n\":\"slow\"}" {
                    let cancel = job.cancel.clone();
                    tokio::spawn(async move {
                        cancel.cancelled().await;
                        sender.send(cancel.is_cancelled()).unwrap();
                    });
                    gate.pass().await;
                }
                Ok(JobSuccess::default())
            }
        });
        let handler = handler.idempotent().timeout(TIMEOUT);
        let _worker = fixture.work_as(handler, |queue| queue.parallelism = many(1));
        let slow = fixture.put("slow").await;
        let row = fixture.until(slow, StateName::Failed).await;
        assert_eq!((row.last_error.as_deref(), row.effect), (Some("NETWORK_TIMEOUT"), Effect::Unknown));
        assert_eq!(signal_receiver.recv().await, Some(true));
        let good = fixture.put("good").await;
        fixture.until(good, StateName::Sent).await;
    }

    /// A handler that blocks its thread cannot be interrupted, but its slot is still freed.
    #[test]
    async fn a_timeout_frees_the_slot_of_a_handler_that_blocks(fixture: WorkerFixture) {
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        let blocked = std::sync::Mutex::new(Some(blocked));
        let handler = Handler::bytes(move |job| {
            let blocked = (&job.payload[..] == b"{\"n\":\"slow\"}").then(|| blocked.lock().unwrap().take()).flatten();
            async move {
                if let Some(blocked) = blocked {
                    tokio::task::block_in_place(|| blocked.recv().ok());
                }
                Ok(())
            }
        });
        let handler = handler.idempotent().timeout(TIMEOUT);
        let _worker = fixture.work_as(handler, |queue| queue.parallelism = many(1));
        let slow = fixture.put("slow").await;
        fixture.until(slow, StateName::Failed).await;
        let good = fixture.put("good").await;
        fixture.until(good, StateName::Sent).await;
        drop(release);
    }
}
