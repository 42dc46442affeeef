//! The claims of a worker, renewed together and never trusted beyond their lease.
//!
//! A claim is renewed while any of its messages is held.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ichido_core::fence::Fence;
use ichido_core::lifecycle::Event;
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::ClaimedMessage;
use tokio::sync::OwnedSemaphorePermit;

use crate::clock::Clock;
use crate::destination::Cancel;
use crate::lease::{Lease, Leases, Renew};

/// Renews claims of messages.
pub(super) struct MessageClaims(pub(super) Store);

impl Renew for MessageClaims {
    const CHECK_EVERY: Duration = Duration::from_millis(100);

    /// The claim's fence, and the signal for holders of its messages that it was lost.
    type Subject = (Fence, Cancel);

    async fn renew(&self, subjects: &[Self::Subject], lease: Duration) -> Result<Vec<bool>, StoreError> {
        let fences: Vec<Fence> = subjects.iter().map(|(fence, _)| *fence).collect();
        self.0.claims().renew(&fences, lease).await
    }

    /// It ended with its last message, or was rescued.
    fn lost(&self, (_, lost): &Self::Subject) {
        lost.cancel();
    }
}

/// One claim, while any of its messages is held.
pub(super) struct Claim {
    pub(super) lease: Lease<MessageClaims>,
    /// Signals that the claim was lost.
    pub(super) lost: Cancel,
}

/// A message of a claim.
pub(super) struct LeasedMessage {
    /// The message without its request.
    pub(super) work: ClaimedMessage,
    /// The caller's bytes.
    pub(super) body: Bytes,
    pub(super) claim: Arc<Claim>,
    /// The permit of a suspect message.
    ///
    /// No other message that a worker died with is running.
    pub(super) suspect: Option<OwnedSemaphorePermit>,
}

impl LeasedMessage {
    /// Returns the store's time, which is never before the claim.
    pub(super) fn now(&self, clock: &Clock) -> Timestamp {
        clock.now().max(self.work.claimed_at)
    }

    /// Returns the event that gives it back unstarted.
    ///
    /// It is due at once: the time of its claim has passed.
    pub(super) fn give_back_event(&self) -> Event {
        Event::GivenBack { fence: self.work.fence, due: self.work.claimed_at }
    }
}

/// Holds claimed messages, requested at `asked_at`.
pub(super) fn hold_messages(
    claims: &Arc<Leases<MessageClaims>>,
    works: Vec<ClaimedMessage>,
    lease: Duration,
    asked_at: Duration,
) -> Vec<LeasedMessage> {
    let Some(fence) = works.first().map(|work| work.fence) else { return Vec::new() };
    let lost = Cancel::new();
    let lease = claims.hold((fence, lost.clone()), lease, asked_at);
    let claim = Arc::new(Claim { lease, lost });
    let lease_message = |mut work: ClaimedMessage| {
        let body = Bytes::from(std::mem::take(&mut work.request));
        LeasedMessage { work, body, claim: Arc::clone(&claim), suspect: None }
    };
    works.into_iter().map(lease_message).collect()
}
