//! Series: what a worker counts, and that it rolls up and deletes counts.
// Spec: A14, H9.

use std::time::Duration;

use ichido::destination::{JobError, JobSuccess};
use ichido::worker::{DestinationConfig, QueueConfig};
use ichido_core::lifecycle::StateName;
use ichido_core::retry::Guarantee;
use ichido_core::series::{MINUTES_KEPT, SeriesRange, SeriesStep, SeriesSubject};
use ichido_core::time::Timestamp;
use ichido_store::counters::SubjectCounts;
use ichido_store::dead_letter::{DeadLetterRow, RequeuePolicy};
use ichido_store::message::Note;
use ichido_store::testing::while_busy;

use super::fixture::{
    BACKOFF, FakeReceiver, LEASE, QUEUE, WorkerFixture, backoff, both_databases, message, poll_pause,
};

const HOUR: Duration = Duration::from_hours(1);

/// The counts of a subject in the two hours since a time.
async fn counts(fixture: &WorkerFixture, subject: &str, since: Timestamp, step: Duration) -> SubjectCounts {
    let subject = SeriesSubject::parse(subject).unwrap();
    let step = SeriesStep::new(step).unwrap();
    let range = SeriesRange::new(Some(since), Some(since.plus(2 * HOUR)), step, since).unwrap();
    let mut total = SubjectCounts::default();
    for point in while_busy(|| fixture.store.series().read(&subject, &range)).await {
        total.add(&point.counts);
    }
    total
}

both_databases! {
    #[test]
    async fn attempts_and_their_outcomes_are_counted_by_queue_and_destination(fixture: WorkerFixture) {
        let since = fixture.store.now().await.unwrap();
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|_, job| async move {
            match (&*String::from_utf8_lossy(&job.payload), job.attempt) {
                (r#"{"n":"bad"}"#, _) => Err(JobError::dead("it is bad")),
                (r#"{"n":"lost"}"#, _) => Err(JobError::unknown("the answer was lost")),
                (r#"{"n":"flaky"}"#, 1) => Err(JobError::retry("try again")),
                _ => Ok(JobSuccess::default()),
            }
        });
        let queue = QueueConfig { lease: LEASE, retry: backoff(), ..QueueConfig::new(QUEUE, "shop") };
        let worker = fixture.builder().destination(DestinationConfig::new("shop", handler)).queue(queue).start().unwrap();
        let good = fixture.put("good").await;
        fixture.until(good, StateName::Sent).await;
        while_busy(|| fixture.store.messages().enqueue(message("good"))).await;
        let (bad, lost, flaky) = (fixture.put("bad").await, fixture.put("lost").await, fixture.put("flaky").await);
        fixture.until(bad, StateName::Dead).await;
        fixture.until(lost, StateName::Parked).await;
        fixture.until(flaky, StateName::Failed).await;
        fixture.pass(BACKOFF);
        fixture.until(flaky, StateName::Sent).await;
        worker.stop();
        worker.ended().await;
        while_busy(|| fixture.store.series().flush()).await;
        let orders = counts(&fixture, "queue:orders", since, Duration::from_mins(1)).await;
        assert_eq!((orders.accepted(), orders.repeated, orders.conflicts), (4, 1, 0));
        assert_eq!((orders.executed, orders.retried, orders.retry_failed), (5, 1, 0));
        assert_eq!((orders.sent, orders.dead, orders.parked, orders.fenced), (2, 1, 1, 0));
        assert_eq!((orders.left.count(), orders.waited.count()), (3, 4), "first attempts have a time that they were due");
        assert!(BACKOFF.as_micros() <= u128::from(orders.left.micros), "{orders:?}");
        let shop = counts(&fixture, "destination:shop", since, Duration::from_mins(1)).await;
        assert_eq!(shop, SubjectCounts { arrived: 0, repeated: 0, ..orders.clone() });
        assert_eq!(counts(&fixture, "queues", since, HOUR).await, orders);
    }

    /// How long it was dead says nothing about the worker.
    #[test]
    async fn a_requeued_message_is_measured_from_its_requeue(fixture: WorkerFixture) {
        let since = fixture.store.now().await.unwrap();
        let receiver = FakeReceiver::default();
        let first = fixture.work(receiver.handler(|_, _| async { Err(JobError::dead("it is down")) }));
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Dead).await;
        first.stop();
        first.ended().await;
        fixture.pass(HOUR);
        let policy = |_: &DeadLetterRow| RequeuePolicy { requeue: true, guarantee: Guarantee::Idempotent };
        while_busy(|| async { fixture.store.dead_letters().requeue(&[id], policy, &Note::default()).await }).await;
        let second = fixture.work(receiver.handler(|_, job| async move {
            if job.attempt == 1 { Err(JobError::retry("try again")) } else { Ok(JobSuccess::default()) }
        }));
        fixture.until(id, StateName::Failed).await;
        fixture.pass(BACKOFF);
        fixture.until(id, StateName::Sent).await;
        second.stop();
        second.ended().await;
        while_busy(|| fixture.store.series().flush()).await;
        let orders = counts(&fixture, "queue:orders", since, Duration::from_mins(1)).await;
        assert_eq!((orders.dead, orders.sent, orders.left.count(), orders.waited.count()), (1, 1, 2, 2));
        let (left, waited) = (u128::from(orders.left.micros), u128::from(orders.waited.micros));
        assert!(BACKOFF.as_micros() <= left, "its retry counts: {orders:?}");
        assert!(left < HOUR.as_micros() && waited < HOUR.as_micros(), "the hour that it was dead does not: {orders:?}");
    }

    #[test]
    async fn finished_hours_are_rolled_up_and_old_minutes_deleted(fixture: WorkerFixture) {
        let since = fixture.store.now().await.unwrap();
        let receiver = FakeReceiver::default();
        let worker = fixture.work(receiver.done());
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Sent).await;
        while counts(&fixture, "queue:orders", since, Duration::from_mins(1)).await.sent == 0 {
            while_busy(|| fixture.store.series().flush()).await;
            poll_pause().await;
        }
        fixture.pass(MINUTES_KEPT + 2 * HOUR);
        while counts(&fixture, "queue:orders", since, Duration::from_mins(1)).await != SubjectCounts::default() {
            poll_pause().await;
        }
        let hours = counts(&fixture, "queue:orders", since, HOUR).await;
        assert_eq!((hours.accepted(), hours.sent, hours.left.count()), (1, 1, 1));
        worker.stop();
        worker.ended().await;
    }
}
