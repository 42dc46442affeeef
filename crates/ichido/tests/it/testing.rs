//! The helpers for users' tests, used as a user would: on the file that they make, with the clock that they move.

mod guide;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido::assert_enqueued;
use ichido::prelude::*;
use ichido::testing::{Drained, Fault, TestIchido};
use ichido_core::retry::{Jitter, Schedule};
use serde::{Deserialize, Serialize};

const DAY: Duration = Duration::from_hours(24);
const NONE: Drained = Drained { sent: 0, failed: 0, dead: 0, parked: 0, postponed: 0, crashed: 0 };

#[derive(Debug, Serialize, Deserialize)]
struct Charge {
    order: u32,
}

impl Message for Charge {
    const QUEUE: &str = "charges";
    const TYPE: Option<&str> = Some("charge");
}

/// Another type of the same queue.
#[derive(Serialize, Deserialize)]
struct Refund {
    order: u32,
}

impl Message for Refund {
    const QUEUE: &str = "charges";
    const TYPE: Option<&str> = Some("refund");
}

/// The effects of a handler, in order.
#[derive(Clone, Default)]
struct Effects(Arc<Mutex<Vec<String>>>);

impl Effects {
    fn add(&self, effect: impl Into<String>) {
        self.0.lock().unwrap().push(effect.into());
    }

    fn seen(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// A handler that records each order.
    fn charge(&self) -> impl Fn(Job<Charge>) -> std::future::Ready<Result<(), JobError>> + use<> {
        let effects = self.clone();
        move |job: Job<Charge>| {
            effects.add(job.payload.order.to_string());
            std::future::ready(Ok(()))
        }
    }
}

#[tokio::test]
async fn a_drain_runs_what_is_due_in_order() {
    let (test, effects) = (TestIchido::new().await, Effects::default());
    for order in 1..=3 {
        test.enqueue(&Charge { order }).await.unwrap();
    }
    test.enqueue(Draft::new(&Charge { order: 4 }).delay(DAY)).await.unwrap();
    let worker = test.worker().handle_idempotent(effects.charge());
    assert_eq!(test.drain(&worker, "charges").await, Drained { sent: 3, ..NONE });
    assert_eq!(effects.seen(), ["1", "2", "3"]);
    assert_eq!(test.drain(&worker, "charges").await, NONE);
    test.advance(DAY);
    assert_eq!(test.drain(&worker, "charges").await, Drained { sent: 1, ..NONE });
    assert_eq!(effects.seen().len(), 4);
}

/// What a handler enqueues in its queue is due at once, and belongs to the same drain.
#[tokio::test]
async fn a_drain_runs_follow_ups_too() {
    let test = TestIchido::new().await;
    test.enqueue(&Charge { order: 1 }).await.unwrap();
    let ichido = test.clone();
    let worker = test.worker().handle_idempotent(move |job: Job<Charge>| {
        let ichido = ichido.clone();
        async move {
            if job.payload.order < 3 {
                ichido.enqueue(&Charge { order: job.payload.order + 1 }).await?;
            }
            Ok(())
        }
    });
    assert_eq!(test.drain(&worker, "charges").await, Drained { sent: 3, ..NONE });
}

#[tokio::test]
async fn a_drain_reports_how_attempts_ended() {
    let test = TestIchido::new().await;
    for order in 1..=5 {
        test.enqueue(&Charge { order }).await.unwrap();
    }
    let worker = test.worker().handle_once(|job: Job<Charge>| async move {
        match job.payload.order {
            1 => Ok(()),
            2 => Err(JobError::retry("not now")),
            3 => Err(JobError::dead("never")),
            4 => Err(JobError::unknown("perhaps")),
            _ => panic!("a fault of the handler's"),
        }
    });
    let expected = Drained { sent: 1, failed: 1, dead: 1, parked: 2, ..NONE };
    assert_eq!(test.drain(&worker, "charges").await, expected);
}

#[tokio::test]
async fn retries_in_a_test_have_no_jitter() {
    const HOUR: Duration = Duration::from_hours(1);
    let test = TestIchido::new().await;
    for order in 1..=5 {
        test.enqueue(&Charge { order }).await.unwrap();
    }
    let worker = test.worker().handle_idempotent(|job: Job<Charge>| async move {
        if job.attempt == 1 { Err(JobError::retry("the bank is closed")) } else { Ok(()) }
    });
    let worker = worker.tune("charges", |queue| {
        (queue.retry.schedule, queue.retry.jitter) = (Schedule::List(vec![HOUR]), Jitter::Full);
    });
    assert_eq!(test.drain(&worker, "charges").await, Drained { failed: 5, ..NONE });
    test.advance(HOUR.mul_f64(0.95));
    assert_eq!(test.drain(&worker, "charges").await, NONE);
    test.advance(HOUR.mul_f64(0.1));
    assert_eq!(test.drain(&worker, "charges").await, Drained { sent: 5, ..NONE });
}

#[tokio::test]
async fn retries_are_due_by_the_clock_until_the_attempts_are_spent() {
    let test = TestIchido::new().await;
    test.enqueue(&Charge { order: 1 }).await.unwrap();
    let worker = test
        .worker()
        .handle_idempotent(|_: Job<Charge>| async { Err::<(), _>(JobError::retry("the bank is closed")) });
    for _ in 1..Charge::RETRY.max_attempts.get() {
        assert_eq!(test.drain(&worker, "charges").await, Drained { failed: 1, ..NONE });
        assert_eq!(test.drain(&worker, "charges").await, NONE, "it waits for its retry");
        test.advance(Duration::from_mins(10));
    }
    assert_eq!(test.drain(&worker, "charges").await, Drained { dead: 1, ..NONE });
}

#[tokio::test]
async fn a_snoozed_message_is_postponed() {
    let test = TestIchido::new().await;
    test.enqueue(&Charge { order: 1 }).await.unwrap();
    let worker = test
        .worker()
        .handle_idempotent(|_: Job<Charge>| async { Err::<(), _>(JobError::snooze(Duration::from_mins(5))) });
    assert_eq!(test.drain(&worker, "charges").await, Drained { postponed: 1, ..NONE });
    assert_eq!(test.drain(&worker, "charges").await, NONE);
}

/// The effect happened, and nobody knows: the guarantee decides whether it happens again.
#[tokio::test]
async fn a_lost_answer_follows_the_effect() {
    let (test, effects) = (TestIchido::new().await, Effects::default());
    test.enqueue(&Charge { order: 1 }).await.unwrap();
    test.inject("charges", Fault::LostAnswer);
    let worker = test.worker().handle_once(effects.charge());
    assert_eq!(test.drain(&worker, "charges").await, Drained { parked: 1, ..NONE });
    test.advance(DAY);
    assert_eq!(test.drain(&worker, "charges").await, NONE, "a person decides");
    assert_eq!(effects.seen(), ["1"]);

    let (test, effects) = (TestIchido::new().await, Effects::default());
    test.enqueue(&Charge { order: 1 }).await.unwrap();
    test.inject("charges", Fault::LostAnswer);
    let seen = effects.clone();
    let worker = test.worker().handle_keyed(DAY, move |job: Job<Charge>| {
        seen.add(job.key.as_str());
        std::future::ready(Ok::<(), JobError>(()))
    });
    assert_eq!(test.drain(&worker, "charges").await, Drained { failed: 1, ..NONE });
    test.advance(Duration::from_mins(1));
    assert_eq!(test.drain(&worker, "charges").await, Drained { sent: 1, ..NONE });
    let keys = effects.seen();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]), "the receiver deduplicates by the key");
}

#[tokio::test]
async fn a_crash_before_the_effect_is_rescued() {
    for (fault, effects_after_crash) in [(Fault::CrashBeforeEffect, 0), (Fault::CrashAfterEffect, 1)] {
        let (test, effects) = (TestIchido::new().await, Effects::default());
        test.enqueue(&Charge { order: 1 }).await.unwrap();
        test.enqueue(&Charge { order: 2 }).await.unwrap();
        test.inject("charges", fault);
        let worker = test.worker().handle_idempotent(effects.charge());
        // Another worker goes on with the second message.
        assert_eq!(test.drain(&worker, "charges").await, Drained { crashed: 1, failed: 1, sent: 1, ..NONE });
        assert_eq!(effects.seen().len(), effects_after_crash + 1);
        test.advance(Duration::from_mins(1));
        assert_eq!(test.drain(&worker, "charges").await, Drained { sent: 1, ..NONE });
        assert_eq!(effects.seen().len(), effects_after_crash + 2);
    }
}

/// After a crash nobody knows whether the effect happened, so it must not be repeated blindly.
#[tokio::test]
async fn a_crash_parks_what_must_not_be_repeated() {
    for (fault, effects_after_crash) in [(Fault::CrashBeforeEffect, 0), (Fault::CrashAfterEffect, 1)] {
        let (test, effects) = (TestIchido::new().await, Effects::default());
        test.enqueue(&Charge { order: 1 }).await.unwrap();
        test.inject("charges", fault);
        let worker = test.worker().handle_once(effects.charge());
        assert_eq!(test.drain(&worker, "charges").await, Drained { crashed: 1, parked: 1, ..NONE });
        test.advance(DAY);
        assert_eq!(test.drain(&worker, "charges").await, NONE);
        assert_eq!(effects.seen().len(), effects_after_crash);
    }
}

/// What did not commit was not done, so no fault loses or repeats the writes of a transaction.
#[tokio::test]
async fn no_fault_repeats_a_transaction() {
    for fault in [Fault::LostAnswer, Fault::CrashBeforeEffect, Fault::CrashAfterEffect] {
        let test = TestIchido::new().await;
        sqlx::query("CREATE TABLE charges (order_id INTEGER NOT NULL)").execute(test.pool()).await.unwrap();
        let worker = test.worker().handle_tx(|job: Job<Charge>, tx: Tx<Sqlite>| async move {
            let mut connection = tx.lock().await?;
            let insert = sqlx::query("INSERT INTO charges (order_id) VALUES ($1)").bind(job.payload.order);
            insert.execute(&mut *connection).await?;
            Ok(())
        });
        test.enqueue(&Charge { order: 1 }).await.unwrap();
        test.inject("charges", fault);
        assert_eq!(test.drain(&worker, "charges").await.failed, 1, "after {fault:?}");
        test.advance(Duration::from_mins(1));
        assert_eq!(test.drain(&worker, "charges").await, Drained { sent: 1, ..NONE });
        let rows: i64 =
            sqlx::query_scalar("SELECT count(*) FROM charges").fetch_one(test.pool()).await.unwrap();
        assert_eq!(rows, 1, "after {fault:?}");
    }
}

/// The text with which a task panicked.
async fn panic_of(task: impl Future<Output = ()> + Send + 'static) -> String {
    let panic = tokio::spawn(task).await.unwrap_err().into_panic();
    *panic.downcast::<String>().unwrap()
}

#[tokio::test]
async fn a_failed_assertion_lists_what_was_enqueued() {
    let test = Arc::new(TestIchido::new().await);
    let order = 1;
    test.enqueue(&Charge { order }).await.unwrap();
    test.enqueue(&Refund { order: 7 }).await.unwrap();
    assert_enqueued!(test, Charge);
    assert_enqueued!(test, Refund, |refund| refund.order == order + 6);
    let asked = Arc::clone(&test);
    let shown = panic_of(async move { assert_enqueued!(asked, Charge, |charge| charge.order == 2) }).await;
    let expected = "no Charge was enqueued with |charge| charge.order == 2; queue `charges` has 1 of this type:\n  \
        queued {\"order\":1}";
    assert_eq!(shown, expected);
    // A sent message was enqueued too.
    let worker = test.worker().handle_idempotent(Effects::default().charge());
    assert_eq!(test.drain(&worker, "charges").await, Drained { sent: 1, postponed: 1, ..NONE });
    assert_enqueued!(test, Charge, |charge| charge.order == 1);
}

#[tokio::test]
async fn a_queue_that_nobody_serves_cannot_be_drained() {
    let test = TestIchido::new().await;
    let worker = test.worker().handle_idempotent(Effects::default().charge());
    let shown = panic_of(async move {
        test.drain(&worker, "refunds").await;
    })
    .await;
    let expected = "cannot drain: the worker does not serve queue `refunds`; register a handler for it, or drain one \
        of [\"charges\"]";
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn the_database_is_removed_with_the_test() {
    let test = TestIchido::new().await;
    let file = "SELECT file FROM pragma_database_list WHERE name = 'main'";
    let file: String = sqlx::query_scalar(file).fetch_one(test.pool()).await.unwrap();
    assert!(std::path::Path::new(&file).exists(), "{file}");
    drop(test);
    assert!(!std::path::Path::new(&file).exists(), "{file}");
}
