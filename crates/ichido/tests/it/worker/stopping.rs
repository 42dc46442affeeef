//! How a worker stops: nothing is lost, and nothing that was started is taken back.

use std::time::Duration;

use ichido::destination::{Handler, JobSuccess};
use ichido_core::lifecycle::StateName;
use ichido_core::verdict::Effect;

use super::fixture::{AFTER_LEASE, BACKOFF, FakeReceiver, WorkerFixture, both_databases, many};
use crate::handler_gate::HandlerGate;

/// A handler that waits at a gate.
fn gated(receiver: &FakeReceiver, gate: &HandlerGate) -> Handler {
    let gate = gate.clone();
    receiver.handler(move |_, _| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok(JobSuccess::default())
        }
    })
}

both_databases! {
    #[test]
    async fn stop_releases_unstarted_messages_and_finishes_the_rest(fixture: WorkerFixture) {
        let mut ids = Vec::new();
        for number in 0..4 {
            ids.push(fixture.put(&format!("k{number}")).await);
        }
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let worker = fixture.work_as(gated(&receiver, &gate), |queue| queue.parallelism = many(1));
        gate.reached(1).await;
        fixture.until_count(StateName::Sending, 4).await;
        worker.stop();
        fixture.until_count(StateName::Queued, 3).await;
        let late = fixture.put("late").await;
        gate.open(1);
        worker.ended().await;
        assert_eq!(fixture.row(ids[0]).await.status, StateName::Sent);
        for id in [ids[1], ids[2], ids[3], late] {
            let row = fixture.row(id).await;
            assert_eq!((row.status, row.attempts, row.effect), (StateName::Queued, 0, Effect::NotDone));
        }
        assert_eq!(receiver.count(), 1);
        // The next worker claims them at once.
        gate.open(4);
        let _worker = fixture.work(gated(&receiver, &gate));
        fixture.until_count(StateName::Sent, 5).await;
        assert_eq!(receiver.count(), 5);
    }

    #[test]
    async fn a_handler_sees_that_its_worker_stops(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let inside = gate.clone();
        let handler = receiver.handler(move |_, job| {
            let gate = inside.clone();
            async move {
                gate.open(1);
                gate.pass().await;
                job.cancel.cancelled().await;
                Ok(JobSuccess::default())
            }
        });
        let worker = fixture.work(handler);
        let id = fixture.put("k1").await;
        gate.reached(1).await;
        worker.stop();
        worker.ended().await;
        assert_eq!(fixture.row(id).await.status, StateName::Sent);
    }

    /// An abandoned call counts, and its effect is unknown.
    // Spec: F2.
    #[test]
    async fn a_call_that_outlasts_the_stop_counts_and_its_effect_is_unknown(fixture: WorkerFixture) {
        let day = Duration::from_hours(24);
        for (key, stage) in [("keyed", StateName::Failed), ("opaque", StateName::Parked)] {
            let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
            let handler = gated(&receiver, &gate);
            let handler = if key == "keyed" { handler.keyed(day) } else { handler };
            let builder = fixture.builder_with(handler, |_| ()).stop_timeout(Duration::from_millis(1));
            let worker = builder.start().unwrap();
            let id = fixture.put(key).await;
            gate.reached(1).await;
            worker.stop();
            worker.ended().await;
            let row = fixture.row(id).await;
            assert_eq!((row.status, row.attempts, row.effect), (stage, 1, Effect::Unknown));
            assert_eq!(row.last_error_text.as_deref(), Some("the worker was stopped before the response arrived"));
        }
    }

    #[test]
    async fn second_stop_ends_at_once_and_loses_nothing(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let worker = fixture.work(gated(&receiver, &gate).idempotent());
        let id = fixture.put("k1").await;
        gate.reached(1).await;
        let stopper = worker.stopper();
        stopper.stop();
        stopper.stop();
        worker.ended().await;
        // It was left as it was, or there was just time to record that it was abandoned.
        assert!(matches!(fixture.row(id).await.status, StateName::Sending | StateName::Failed));
        let other = fixture.another_node().await;
        other.pass(AFTER_LEASE);
        let _worker = other.work(receiver.done().idempotent());
        other.until(id, StateName::Failed).await;
        other.pass(BACKOFF);
        other.until(id, StateName::Sent).await;
        assert_eq!(receiver.count(), 2);
    }

    #[test]
    async fn a_worker_stops_while_its_destination_is_paused(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|_, _| async {
            Err::<JobSuccess, _>(ichido::destination::JobError::throttled(Some(Duration::from_hours(1)), "slow down"))
        });
        let worker = fixture.work(handler);
        let first = fixture.put("k1").await;
        fixture.until(first, StateName::Failed).await;
        let second = fixture.put("k2").await;
        worker.stop();
        worker.ended().await;
        let row = fixture.row(second).await;
        assert_eq!((row.status, row.attempts, receiver.count()), (StateName::Queued, 0, 1));
    }
}
