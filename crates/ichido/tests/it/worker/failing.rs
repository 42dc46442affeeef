//! Failures: the schedule, dead letters, and unknown effects.
// Spec: D5, E1, E2, F2.

use std::time::Duration;

use ichido::destination::{JobError, JobSuccess};
use ichido_core::lifecycle::StateName;
use ichido_core::retry::{Jitter, Retry, Schedule};
use ichido_core::time::Timestamp;

use super::fixture::{DAY, FakeReceiver, WorkerFixture, both_databases, many, message};

/// `wait × percent / 100`, after a moment.
fn after(moment: Timestamp, wait: Duration, percent: u32) -> Timestamp {
    moment.plus(wait * percent / 100)
}

both_databases! {
    /// Up to 8 retries after 2, 4, 8 … 256 s, each ±10 %.
    // Spec: D5.
    #[test]
    async fn retries_follow_schedule_then_message_is_dead(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|_, _| async { Err::<JobSuccess, _>(JobError::retry("down")) });
        let _worker = fixture.work_as(handler, |queue| queue.retry = Retry::ORDER);
        let before_all = fixture.store.now().await.unwrap();
        let id = fixture.put("k1").await;
        let mut before = before_all;
        let mut passed = Duration::ZERO;
        for failure in 1..=8 {
            let row = fixture.until_row(id, |row| row.status == StateName::Failed && row.attempts == failure).await;
            let now = fixture.store.now().await.unwrap();
            let due = row.next_attempt.unwrap();
            let wait = Duration::from_secs(1 << failure);
            // SQLite's clock counts milliseconds.
            let slack = Duration::from_millis(1);
            assert!(after(before, wait, 90) <= due.plus(slack), "failure {failure} is due at {due}, after {before}");
            // A worker adds the duration of its claim, which the database has counted already; and a claim in flight while
            // the clock was moved may count the move twice.
            let latest = after(now, wait, 110).plus(now.since(before)).plus(passed);
            assert!(due <= latest, "failure {failure} is due at {due}, now is {now}");
            before = due;
            passed = due.since(now);
            fixture.pass(passed);
        }
        let row = fixture.until(id, StateName::Dead).await;
        assert_eq!((row.attempts, row.max_attempts, receiver.count()), (9, 9, 9));
        let kinds = fixture.kinds(id).await;
        assert_eq!(kinds.last().map(String::as_str), Some("spent"));
    }

    /// Failure n is final if n ≥ the allowed attempts.
    // Spec: E1.
    #[test]
    async fn message_with_one_attempt_is_dead_after_it(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|_, _| async { Err::<JobSuccess, _>(JobError::retry("down")) });
        let _worker = fixture.work(handler);
        let mut message = message("k1");
        message.max_attempts = many(1);
        let id = fixture.put_in(message).await;
        let row = fixture.until(id, StateName::Dead).await;
        assert_eq!((row.attempts, receiver.count()), (1, 1));
    }

    /// It would start while the receiver remembers the key, and could arrive when it does not.
    // Spec: F2.
    #[test]
    async fn a_call_that_could_arrive_after_its_key_is_forgotten_is_not_made(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|_, _| async { Err::<JobSuccess, _>(JobError::unknown("no answer")) });
        let _worker = fixture.work(handler.keyed(DAY).settle_grace(Duration::from_hours(2)));
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Failed).await;
        fixture.pass(Duration::from_hours(23));
        fixture.until(id, StateName::Parked).await;
        assert_eq!(receiver.count(), 1);
    }

    /// `Retry-After` is a minimum, whatever the schedule says.
    #[test]
    async fn requested_wait_is_a_minimum(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|_, _| async {
            Err::<JobSuccess, _>(JobError::throttled(Some(Duration::from_mins(30)), "slow down"))
        });
        let _worker = fixture.work_as(handler, |queue| queue.retry = Retry::ORDER);
        let before = fixture.store.now().await.unwrap();
        let id = fixture.put("k1").await;
        let row = fixture.until(id, StateName::Failed).await;
        assert!(before.plus(Duration::from_mins(30)) <= row.next_attempt.unwrap());
    }

    /// One message's wait does not affect the others.
    #[test]
    async fn wait_of_one_message_does_not_delay_others(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|number, _| async move {
            if number == 1 { Err(JobError::retry_after(Duration::from_mins(30), "later")) } else { Ok(JobSuccess::default()) }
        });
        let _worker = fixture.work_as(handler, |queue| queue.retry = Retry::ORDER);
        let before = fixture.store.now().await.unwrap();
        let late = fixture.put("k1").await;
        let row = fixture.until(late, StateName::Failed).await;
        assert!(before.plus(Duration::from_mins(30)) <= row.next_attempt.unwrap());
        let next = fixture.put("k2").await;
        fixture.until(next, StateName::Sent).await;
        // A tenth more is jitter.
        fixture.pass(Duration::from_mins(34));
        assert_eq!(fixture.until(late, StateName::Sent).await.attempts, 2);
    }

    /// One bad message dies, and the others of its batch are sent and not charged.
    // Spec: E2.
    #[test]
    async fn bad_message_does_not_charge_others(fixture: WorkerFixture) {
        let mut good = Vec::new();
        let mut bad = None;
        for number in 0..10 {
            if number == 3 {
                bad = Some(fixture.put("bad").await);
            }
            good.push(fixture.put(&format!("k{number}")).await);
        }
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|_, job| async move {
            if &job.payload[..] == b"{\"n\":\"bad\"}" { Err(JobError::retry("bad")) } else { Ok(JobSuccess::default()) }
        });
        let _worker = fixture.work_as(handler, |queue| {
            queue.retry = Retry {
                schedule: Schedule::List(vec![Duration::from_millis(1)]),
                jitter: Jitter::None,
                max_attempts: many(9),
            };
        });
        let bad = fixture.until(bad.unwrap(), StateName::Dead).await;
        assert_eq!(bad.attempts, 9);
        for id in good {
            let row = fixture.until(id, StateName::Sent).await;
            assert_eq!((row.attempts, receiver.calls_of(id)), (1, 1));
        }
    }
}
