//! Every call of a store can be made in a task of its own: checked by the compiler, which is all that these functions are for.

use ichido_core::fence::Fence;
use ichido_core::ledger::{Policy, RecordName, Resolution};
use ichido_core::lifecycle::Event;
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::{KeyClaim, KeySettle};
use ichido_store::letter::LetterFilter;
use ichido_store::message::{
    ClaimTerms, LetterState, MessageFilter, NewMessage, Note, QueueName, Settlement,
};
use ichido_store::node::Duty;
use ichido_store::rescue::RescueTerms;
use std::num::NonZeroU32;
use std::time::Duration;
use uuid::Uuid;

/// What a runtime asks of a task.
fn can_be_spawned(_task: impl Future<Output = Result<(), StoreError>> + Send + 'static) {}

#[expect(dead_code, reason = "never called: that it compiles is the proof")]
fn of_keys(store: Store, claim: KeyClaim, settle: KeySettle, name: RecordName, policy: Policy, fence: Fence) {
    can_be_spawned(async move {
        store.key_claim(claim).await?;
        store.key_settle(settle).await?;
        store.key_wait(&name, Duration::ZERO).await;
        store.key_renew(&[(name.clone(), fence, Duration::ZERO)]).await?;
        store.key_look_up(&name).await?;
        store.key_unknown_list(None, 1).await?;
        store.key_resolve(&name, Resolution::Applied, None, &policy).await?;
        store.key_decide(&name, Resolution::Applied, None, &policy, "olivia").await?;
        store.key_sweep(1).await?;
        store.key_forget_of("alice", 1).await?;
        Ok(())
    });
}

#[expect(dead_code, reason = "never called: that it compiles is the proof")]
fn of_work(
    store: Store,
    queue: QueueName,
    new: NewMessage,
    settlement: Settlement,
    terms: (ClaimTerms, RescueTerms),
) {
    can_be_spawned(async move {
        store.message_enqueue(new.clone()).await?;
        store.letter_replace(settlement.id, new.clone(), &Note::default()).await?;
        drop(store.messages_enqueue(vec![new]).await);
        store.queue_wait(&queue, Duration::ZERO).await;
        let work = store.work_claim(&queue, NonZeroU32::MIN, terms.0).await?;
        store.work_begin(&work.iter().map(|work| (work.id, work.fence)).collect::<Vec<_>>()).await?;
        store.work_settle(settlement.clone()).await?;
        drop(store.works_settle(vec![settlement]).await);
        store.work_renew(&work.iter().map(|work| work.fence).collect::<Vec<_>>(), Duration::ZERO).await?;
        store.work_rescue(|_| terms.1).await?;
        store.work_promote(1).await?;
        Ok(())
    });
}

#[expect(dead_code, reason = "never called: that it compiles is the proof")]
fn of_people(store: Store, queue: QueueName, id: Uuid, filter: MessageFilter, moment: Timestamp) {
    can_be_spawned(async move {
        store.now().await?;
        store.message_step(id, |_| Event::Cancelled, &Note::default()).await?;
        store.message_get(id).await?;
        store.message_list(&filter, 1).await?;
        store.message_transitions(id).await?;
        store.message_forget(moment, 1).await?;
        store.message_forget_of(None, &queue, "alice", 1).await?;
        store.queue_counts().await?;
        store.queue_counts_fold(1).await?;
        store.queue_pause(&queue, true, None).await?;
        store.letter_list(LetterState::Dead, Some(&queue), None, 1).await?;
        store.letter_page(&LetterFilter::default(), None, 1).await?;
        store.letter_find(&[id]).await?;
        store.letters_step(&[id], |_, _| Event::Discarded, &Note::default()).await?;
        store.message_stages(&[id]).await?;
        store.action_list(None, 1).await?;
        store.actions_of(id).await?;
        store.content_sweep(1).await?;
        store.pace_read("d").await?;
        store.pace_write("d", 0, b"p").await?;
        store.node_beat(id, "n").await?;
        store.node_list().await?;
        store.caretaker_claim(Duty::Ledger, id, Duration::ZERO).await?;
        Ok(())
    });
}
