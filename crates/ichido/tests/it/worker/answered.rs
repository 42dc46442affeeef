//! A call that its receiver answered is no longer in transit.
// Spec: F2.

use ichido::dead_letters::{
    BulkAction, BulkEnd, BulkOperation, RequeuePolicies, RequeuePolicy, RequeueRefusal,
};
use ichido::destination::http::HttpSettings;
use ichido::worker::{DestinationConfig, QueueConfig};
use ichido_core::lifecycle::{Decision, StateName};
use ichido_core::retry::Guarantee;
use ichido_store::dead_letter::DeadLetterFilter;
use ichido_store::facts::QueueFacts;
use ichido_store::message::DeadLetterState;
use uuid::Uuid;

use super::fixture::{DAY, QUEUE, WorkerFixture, backoff, both_databases, many, queue};
use http_for_tests::{Receiver, plain};

/// Parks a message after its receiver answered with this status.
async fn parked_after(fixture: &WorkerFixture, status: &str) -> Uuid {
    let receiver = Receiver::answering(plain(status)).await;
    let http = HttpSettings::new(receiver.url("/"), Guarantee::None);
    let destination = DestinationConfig::new(QUEUE, http.resolve().unwrap());
    let queue = QueueConfig { retry: backoff(), ..QueueConfig::new(QUEUE, QUEUE) };
    let worker = fixture.builder().destination(destination).queue(queue).start().unwrap();
    let id = fixture.put(&status.replace(' ', "-")).await;
    fixture.until(id, StateName::Parked).await;
    worker.stop();
    worker.ended().await;
    id
}

fn bulk(fixture: &WorkerFixture, action: BulkAction, guarantee: Guarantee) -> BulkOperation {
    let policy = RequeuePolicy { requeue: true, guarantee };
    BulkOperation {
        store: fixture.store.clone(),
        policies: RequeuePolicies::default().with(queue(QUEUE), policy),
        action,
        filter: DeadLetterFilter { state: DeadLetterState::Parked, ..DeadLetterFilter::default() },
        actor: "olivia".to_owned(),
        reason: None,
    }
}

both_databases! {
    /// A 500 is the receiver's own; a 504 is a gateway's, behind which the call may still run.
    #[test]
    async fn answered_message_is_decided_without_waiting(fixture: WorkerFixture) {
        let answered = parked_after(&fixture, "500 Internal Server Error").await;
        let in_transit = parked_after(&fixture, "504 Gateway Timeout").await;
        let not_done = BulkAction::Decide { decision: Decision::NotDone, canary: None };
        let decide = bulk(&fixture, not_done, Guarantee::None);
        let found = decide.preflight().await.unwrap();
        assert_eq!((found.matched, found.eligible, found.refused_for(RequeueRefusal::TooEarly)), (2, 1, 1));
        let report = decide.run(&found, || false, |_| ()).await.unwrap();
        assert_eq!((report.moved, report.ended), (1, BulkEnd::Done));
        assert_eq!(report.refused.into_iter().collect::<Vec<_>>(), [(RequeueRefusal::TooEarly, 1)]);
        assert_eq!(fixture.row(answered).await.status, StateName::Queued);
        assert_eq!(fixture.row(in_transit).await.status, StateName::Parked);
        let last = fixture.transitions(answered).await.pop().unwrap();
        assert_eq!((last.kind.as_str(), last.actor.as_deref()), ("decided", Some("olivia")));
    }

    #[test]
    async fn parked_messages_are_released_by_a_new_guarantee(fixture: WorkerFixture) {
        let id = parked_after(&fixture, "500 Internal Server Error").await;
        let requeue = BulkAction::Requeue { canary: None };
        let refused = bulk(&fixture, requeue, Guarantee::None).preflight().await.unwrap();
        assert_eq!((refused.eligible, refused.refused_for(RequeueRefusal::EffectUnknown)), (0, 1));
        // The operator changed the setting, and a worker has published it.
        let facts = QueueFacts {
            guarantee: Guarantee::Idempotent,
            requeue: false,
            max_attempts: many(3),
            retry_horizon: DAY,
        };
        let node = Uuid::from_u128(2);
        fixture.store.nodes().heartbeat(node, "worker").await.unwrap();
        fixture.store.facts().publish(node, &[(queue(QUEUE), facts)]).await.unwrap();
        let policies = RequeuePolicies::published(&fixture.store).await.unwrap();
        let idempotent = BulkOperation { policies, ..bulk(&fixture, requeue, Guarantee::None) };
        let found = idempotent.preflight().await.unwrap();
        assert_eq!((found.eligible, found.refused.len()), (1, 0));
        let report = idempotent.run(&found, || false, |_| ()).await.unwrap();
        assert_eq!((report.moved, report.refused.len()), (1, 0), "{report:?}");
        let row = fixture.row(id).await;
        assert_eq!((row.status, row.attempts), (StateName::Queued, 0));
    }
}
