//! The broker's record of what it did under which key, and how it failed.
//!
//! Guarantee: if keys are honoured, a key takes effect once, however often it arrives. Every effect and every failure
//! is counted, and nothing is dropped: at [`MAX_KEYS`] keys the broker accepts no new one. This module uses no socket
//! and no clock; randomness and time are passed in.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use ichido_core::digest::Digest;
use ichido_core::time::Timestamp;

use super::behaviour::Behaviour;
use super::failure_mode::FailureMode;

/// The maximum number of keys.
pub(crate) const MAX_KEYS: usize = 250_000;
/// The maximum number of fences kept per key. Beyond it, only the highest is updated.
pub(crate) const MAX_FENCES: usize = 32;

/// An order as received.
#[derive(Clone, Debug)]
pub(crate) struct OrderRequest {
    /// Empty if none was sent, which only a broker that does not honour keys accepts.
    pub(crate) key: String,
    pub(crate) fence: Option<u64>,
    pub(crate) body: Bytes,
    pub(crate) digest: Digest,
}

/// The first order under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedOrder {
    pub(crate) number: u64,
    pub(crate) accepted_at: Timestamp,
}

/// The outcome of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderOutcome {
    /// It took effect, now or earlier.
    Taken {
        order: RecordedOrder,
        /// Whether the key had already taken effect, so this request did not.
        is_replay: bool,
        /// How the response fails, if it does.
        fault: Option<FailureMode>,
    },
    /// It took no effect because of this failure.
    Failed(FailureMode),
    /// It took no effect and was refused.
    Refused(OrderRefusal),
}

ichido_core::words! {
    /// Why an order is refused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub(crate) enum OrderRefusal {
        /// The key was seen with a higher fence.
        OldFence = "old_fence",
        /// The key was used for a different order.
        KeyReused = "key_reused",
        /// There is no space for another key.
        Full = "full",
    }
}

/// The record of one key.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyEntry {
    pub(crate) calls: u64,
    pub(crate) effects: u64,
    /// In order of arrival.
    pub(crate) fences: Vec<u64>,
    pub(crate) max_fence: Option<u64>,
    pub(crate) first: Option<(RecordedOrder, Digest)>,
}

/// Everything that the broker did.
#[derive(Debug, Default)]
pub(crate) struct EffectLog {
    pub(crate) entries: HashMap<String, KeyEntry>,
    pub(crate) faults: BTreeMap<FailureMode, u64>,
    pub(crate) refusals: BTreeMap<OrderRefusal, u64>,
    pub(crate) calls: u64,
    orders: u64,
}

impl EffectLog {
    /// Processes an order. `dice` is uniform in [0, 1).
    pub(crate) fn take(
        &mut self,
        order_request: &OrderRequest,
        behaviour: &Behaviour,
        dice: f64,
        now: Timestamp,
    ) -> OrderOutcome {
        self.calls += 1;
        if self.entries.len() == MAX_KEYS && !self.entries.contains_key(&order_request.key) {
            return self.refused(OrderRefusal::Full);
        }
        let entry = self.entries.entry(order_request.key.clone()).or_default();
        entry.calls += 1;
        let is_old = order_request.fence < entry.max_fence;
        entry.record_fence(order_request.fence);
        if is_old && behaviour.refuses_old_fences {
            return self.refused(OrderRefusal::OldFence);
        }
        let before = if behaviour.deduplicates { entry.first } else { None };
        if before.is_some_and(|(_, digest)| digest != order_request.digest) {
            return self.refused(OrderRefusal::KeyReused);
        }
        let fault = behaviour.fault(&order_request.body, dice);
        if let Some(fault) = fault {
            *self.faults.entry(fault).or_default() += 1;
            if !fault.has_effect() {
                return OrderOutcome::Failed(fault);
            }
        }
        if let Some((order, _)) = before {
            return OrderOutcome::Taken { order, is_replay: true, fault };
        }
        self.orders += 1;
        let order = RecordedOrder { number: self.orders, accepted_at: now };
        entry.effects += 1;
        entry.first.get_or_insert((order, order_request.digest));
        OrderOutcome::Taken { order, is_replay: false, fault }
    }

    fn refused(&mut self, why: OrderRefusal) -> OrderOutcome {
        *self.refusals.entry(why).or_default() += 1;
        OrderOutcome::Refused(why)
    }
}

impl KeyEntry {
    fn record_fence(&mut self, fence: Option<u64>) {
        self.max_fence = self.max_fence.max(fence);
        if let Some(fence) =
            fence.filter(|fence| self.fences.len() < MAX_FENCES && !self.fences.contains(fence))
        {
            self.fences.push(fence);
        }
    }
}

#[cfg(test)]
mod tests;
