//! Every call of a store can be spawned as a task. The compiler checks this; these functions exist only for that.

use ichido_core::fence::Fence;
use ichido_core::ledger::{Policy, RecordName, Resolution};
use ichido_core::lifecycle::Event;
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::audit::AuditFilter;
use ichido_store::dead_letter::DeadLetterFilter;
use ichido_store::error::StoreError;
use ichido_store::ledger::{KeyClaim, KeySettle};
use ichido_store::message::{
    ClaimOptions, DeadLetterState, MessageFilter, NewMessage, Note, QueueName, Settlement,
};
use ichido_store::node::SingletonTask;
use ichido_store::rescue::RescueOptions;
use std::num::NonZeroU32;
use std::time::Duration;
use uuid::Uuid;

/// Requires what a runtime requires of a task.
fn can_be_spawned(_task: impl Future<Output = Result<(), StoreError>> + Send + 'static) {}

#[expect(dead_code, reason = "never called: that it compiles is the proof")]
fn of_keys(store: Store, claim: KeyClaim, settle: KeySettle, name: RecordName, policy: Policy, fence: Fence) {
    can_be_spawned(async move {
        let _ = store.keys().claim(claim).await?;
        let _ = store.keys().settle(settle).await?;
        store.keys().wait(&name, Duration::ZERO).await;
        store.keys().renew(&[(name.clone(), fence, Duration::ZERO)]).await?;
        store.keys().get(&name).await?;
        store.keys().list_unknown(None, 1).await?;
        let _ = store.keys().resolve(&name, Resolution::Applied, None, &policy).await?;
        let _ = store.keys().decide(&name, Resolution::Applied, None, &policy, "olivia").await?;
        store.keys().sweep(1).await?;
        store.keys().delete_of_identity("alice", 1).await?;
        Ok(())
    });
}

#[expect(dead_code, reason = "never called: that it compiles is the proof")]
fn of_work(
    store: Store,
    queue: QueueName,
    new: NewMessage,
    settlement: Settlement,
    terms: (ClaimOptions, RescueOptions),
) {
    can_be_spawned(async move {
        store.messages().enqueue(new.clone()).await?;
        let _ = store.dead_letters().replace(settlement.id, new.clone(), &Note::default()).await?;
        drop(store.messages().enqueue_all(vec![new]).await);
        store.queues().wait(&queue, Duration::ZERO).await;
        let work = store.claims().claim(&queue, NonZeroU32::MIN, terms.0).await?;
        store
            .claims()
            .mark_started(&work.iter().map(|work| (work.id, work.fence)).collect::<Vec<_>>())
            .await?;
        let _ = store.claims().settle(settlement.clone()).await?;
        drop(store.claims().settle_all(vec![settlement.clone()]).await);
        drop(store.claims().settle_together(vec![settlement]).await);
        store.claims().renew(&work.iter().map(|work| work.fence).collect::<Vec<_>>(), Duration::ZERO).await?;
        store.claims().rescue(|_| terms.1).await?;
        store.claims().promote(1).await?;
        Ok(())
    });
}

#[expect(dead_code, reason = "never called: that it compiles is the proof")]
fn of_people(store: Store, queue: QueueName, id: Uuid, filter: MessageFilter, moment: Timestamp) {
    can_be_spawned(async move {
        store.now().await?;
        let _ = store.messages().step(id, |_| Event::Cancelled, &Note::default()).await?;
        store.messages().get(id).await?;
        store.messages().holder(id).await?;
        store.messages().list(&filter, 1).await?;
        store.messages().transitions(id).await?;
        store.messages().delete_finished(moment, 1).await?;
        store.messages().delete_of_identity(None, &queue, "alice", 1).await?;
        store.queues().counts().await?;
        store.queues().fold_counts(1).await?;
        store.failure_groups().fold(1).await?;
        store.failure_groups().list(None, 1).await?;
        store.failure_groups().samples(id).await?;
        store.failure_groups().resolve(id, "olivia").await?;
        store.queues().pause(&queue, true, None).await?;
        store.dead_letters().list(DeadLetterState::Dead, Some(&queue), None, 1).await?;
        store.dead_letters().page(&DeadLetterFilter::default(), None, 1).await?;
        store.dead_letters().find(&[id]).await?;
        store.dead_letters().step(&[id], |_, _| Event::Discarded, &Note::default()).await?;
        store.messages().states(&[id]).await?;
        store.actions().list(None, 1).await?;
        store.actions().of(id).await?;
        store.audit().list(&AuditFilter::default(), None, 1).await?;
        store.messages().sweep_contents(1).await?;
        store.paces().read("d").await?;
        store.paces().write("d", 0, b"p").await?;
        store.nodes().heartbeat(id, "n").await?;
        let lock = store.nodes().lock(id).await?;
        store.nodes().declare_dead(id).await?;
        store.nodes().leave(id, lock).await?;
        store.nodes().list().await?;
        store.facts().publish(id, &[]).await?;
        store.facts().list().await?;
        store.facts().end(id).await?;
        store.nodes().claim_task(SingletonTask::Ledger, id, Duration::ZERO).await?;
        Ok(())
    });
}
