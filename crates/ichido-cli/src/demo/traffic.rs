//! The traffic after the scenario: slow, and a mix of everything.
//!
//! Guarantee: the same seed sends the same orders in the same sequence, whatever the actual delays were.

use std::collections::VecDeque;
use std::time::Duration;

use super::expectations::Expectation;
use super::order::{DemoOrder, DemoQueue};

/// How many recent orders may be sent again.
const MAX_REMEMBERED: usize = 20;
/// The range of the pause between two orders.
const PAUSE_MS: std::ops::RangeInclusive<u64> = 500..=1_500;

/// The next order to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScheduledOrder {
    /// The delay before sending.
    pub(super) pause: Duration,
    pub(super) order: DemoOrder,
    /// The expectation that the response meets, if the key is reused.
    pub(super) shows: Option<Expectation>,
}

/// The random generator and the recent orders.
pub(super) struct Traffic {
    dice: fastrand::Rng,
    /// How many orders each queue has had.
    orders: u32,
    payments: u32,
    faxes: u32,
    recent: VecDeque<DemoOrder>,
}

impl Traffic {
    /// Continues after a scenario with this many orders, one payment and one fax.
    pub(super) fn after(seed: u64, orders: u32) -> Self {
        let dice = fastrand::Rng::with_seed(seed);
        Self { dice, orders, payments: 1, faxes: 1, recent: VecDeque::new() }
    }

    pub(super) fn next(&mut self) -> ScheduledOrder {
        let pause = Duration::from_millis(self.dice.u64(PAUSE_MS));
        let (choice, which) = (self.dice.u8(..100), self.dice.usize(..MAX_REMEMBERED));
        let again = self.recent.get(which % self.recent.len().max(1)).cloned();
        let (order, shows) = match (choice, again) {
            (0..15, Some(order)) => (order, Some(Expectation::Replayed)),
            (15..20, Some(order)) => (order.with_other_body(), Some(Expectation::Refused)),
            (20..25, _) => (self.new_one(DemoQueue::Payments), None),
            (25..28, _) => (self.new_one(DemoQueue::Faxes), None),
            _ => (self.new_one(DemoQueue::Orders), None),
        };
        ScheduledOrder { pause, order, shows }
    }

    fn new_one(&mut self, queue: DemoQueue) -> DemoOrder {
        let number = match queue {
            DemoQueue::Orders => &mut self.orders,
            DemoQueue::Payments => &mut self.payments,
            DemoQueue::Faxes => &mut self.faxes,
        };
        *number = number.saturating_add(1);
        let order = DemoOrder::new(queue, *number, &mut self.dice);
        if queue == DemoQueue::Orders {
            self.recent.truncate(MAX_REMEMBERED - 1);
            self.recent.push_front(order.clone());
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn traffic_depends_only_on_the_seed() {
        let scheduled = |seed| -> Vec<ScheduledOrder> {
            let mut traffic = Traffic::after(seed, 4);
            (0..200).map(|_| traffic.next()).collect()
        };
        assert_eq!(scheduled(1), scheduled(1));
        assert_ne!(scheduled(1), scheduled(2));
    }

    #[test]
    fn traffic_reuses_keys_only_for_announced_repeats() {
        let mut traffic = Traffic::after(3, 4);
        let (mut keys, mut again, mut refused) = (BTreeSet::new(), 0, 0);
        for _ in 0..1_000 {
            let ScheduledOrder { order, shows, pause } = traffic.next();
            assert!(PAUSE_MS.contains(&u64::try_from(pause.as_millis()).expect("short")));
            assert_eq!(keys.insert(order.key.clone()), shows.is_none(), "{order:?}");
            again += u32::from(shows == Some(Expectation::Replayed));
            refused += u32::from(shows == Some(Expectation::Refused));
        }
        assert!(100 < again && again < 200 && 20 < refused && refused < 90, "{again} {refused}");
        assert!(keys.contains("payment-2") && keys.contains("fax-2") && !keys.contains("order-4"));
    }
}
