//! Decides which letters may be requeued, by the policies of their queues.

use std::collections::HashMap;
use std::time::Duration;

use ichido_core::retry::Guarantee;
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use ichido_store::Store;
use ichido_store::dead_letter::{DeadLetterRow, Disposition, LetterTraits};
use ichido_store::error::StoreError;
use ichido_store::facts::{PublishedQueue, QueueFacts};
use ichido_store::message::{DeadLetterState, QueueName};

pub use ichido_store::dead_letter::RequeuePolicy;

/// The policy of each queue. A queue without one allows nothing.
#[derive(Clone, Debug, Default)]
pub struct RequeuePolicies(HashMap<QueueName, RequeuePolicy>);

impl RequeuePolicies {
    /// Reads the published policies; if workers disagree, what all of them allow.
    pub async fn published(store: &Store) -> Result<Self, StoreError> {
        Ok(store.facts().list().await?.iter().collect())
    }

    /// Returns these policies, weakened by what workers publish now.
    pub(super) async fn current(&self, store: &Store) -> Result<Self, StoreError> {
        let mut current = self.clone();
        for (queue, published) in Self::published(store).await?.0 {
            if let Some(policy) = current.0.get_mut(&queue) {
                policy.requeue &= published.requeue;
                policy.guarantee = policy.guarantee.weaker(published.guarantee);
            }
        }
        Ok(current)
    }

    /// Sets the policy of one queue.
    #[must_use]
    pub fn with(mut self, queue: QueueName, policy: RequeuePolicy) -> Self {
        self.0.insert(queue, policy);
        self
    }

    /// Returns the policy of a letter's queue.
    pub fn of(&self, letter: &DeadLetterRow) -> RequeuePolicy {
        let forbidden = RequeuePolicy { requeue: false, guarantee: Guarantee::None };
        self.0.get(&letter.queue).copied().unwrap_or(forbidden)
    }

    /// Returns how long receivers remember keys, for queues whose guarantee is keyed.
    pub(super) fn keeps_for(&self) -> Vec<(QueueName, Duration)> {
        let keyed = |(queue, policy): (&QueueName, &RequeuePolicy)| match policy.guarantee {
            Guarantee::Keyed { keeps_for } => Some((queue.clone(), keeps_for)),
            Guarantee::Idempotent | Guarantee::Transactional | Guarantee::None => None,
        };
        self.0.iter().filter_map(keyed).collect()
    }

    /// Returns whether a letter would be requeued, or why not.
    ///
    /// A parked one is, if its destination's guarantee makes a repetition safe by now, whatever the queue's setting.
    pub fn judge(&self, letter: &LetterTraits, now: Timestamp) -> Result<(), RequeueRefusal> {
        if letter.disposition == Disposition::Replaced {
            return Err(RequeueRefusal::HasSuccessor);
        }
        let Some(policy) = self.0.get(&letter.queue) else { return Err(RequeueRefusal::QueueNotKnown) };
        if letter.check_requeue(*policy, now).is_ok() {
            return Ok(());
        }
        let is_allowed = policy.requeue || letter.state == DeadLetterState::Parked;
        Err(match (is_allowed, letter.effect, policy.guarantee) {
            (false, ..) => RequeueRefusal::NotAllowed,
            (true, Effect::Done, _) => RequeueRefusal::WasDone,
            (true, _, Guarantee::Keyed { .. }) => RequeueRefusal::KeyExpired,
            (true, ..) => RequeueRefusal::EffectUnknown,
        })
    }
}

impl<'a> FromIterator<&'a PublishedQueue> for RequeuePolicies {
    fn from_iter<I: IntoIterator<Item = &'a PublishedQueue>>(queues: I) -> Self {
        let policy = |published: &PublishedQueue| {
            let QueueFacts { requeue, guarantee, .. } = published.facts;
            (published.queue.clone(), RequeuePolicy { requeue, guarantee })
        };
        Self(queues.into_iter().map(policy).collect())
    }
}

/// Why a letter is not requeued, discarded or decided. Displays how to fix it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum RequeueRefusal {
    /// The queue forbids it.
    #[error("the queue does not allow it; set requeue = true in its settings and restart its workers")]
    NotAllowed,
    /// No worker has published the queue.
    #[error(
        "no worker has published the queue yet, so it is not known whether a second delivery is safe; start the worker or program that serves it, then requeue"
    )]
    QueueNotKnown,
    /// The effect is unknown, and the destination does not deduplicate by key.
    #[error(
        "it may have taken effect, and sending it again could do it twice; find out, and decide it first (ichido dead decide)"
    )]
    EffectUnknown,
    /// The effect is unknown, and the destination has forgotten the key since.
    #[error(
        "it may have taken effect, and its destination has forgotten the key since; find out, and decide it first (ichido dead decide)"
    )]
    KeyExpired,
    /// It was done.
    #[error("it took effect; discard it")]
    WasDone,
    /// A new message was made from it: the two conflict.
    #[error("a new message was made from it; sending both could do it twice")]
    HasSuccessor,
    /// It is parked: it cannot be discarded.
    #[error("it is parked: its effect is unknown; find out, and decide it (ichido dead decide)")]
    Parked,
    /// Its call may still be in transit, so nobody can know yet.
    #[error("its call may still arrive; decide it later: `ichido dead show` says when")]
    TooEarly,
    /// Its effect is known, so there is nothing to decide.
    #[error("there is nothing to decide: it is already dead, or its effect is known")]
    EffectKnown,
}

impl RequeueRefusal {
    /// All of them.
    pub(super) const ALL: [Self; 9] = [
        Self::NotAllowed,
        Self::QueueNotKnown,
        Self::EffectUnknown,
        Self::KeyExpired,
        Self::WasDone,
        Self::HasSuccessor,
        Self::Parked,
        Self::TooEarly,
        Self::EffectKnown,
    ];

    /// Returns the refusal with this name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.as_str() == name)
    }

    /// Returns the name for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotAllowed => "not_allowed",
            Self::QueueNotKnown => "queue_not_known",
            Self::EffectUnknown => "effect_unknown",
            Self::KeyExpired => "key_expired",
            Self::WasDone => "was_done",
            Self::HasSuccessor => "has_successor",
            Self::Parked => "parked",
            Self::TooEarly => "too_early",
            Self::EffectKnown => "effect_known",
        }
    }
}

#[cfg(test)]
mod tests;
