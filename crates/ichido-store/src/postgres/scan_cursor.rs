//! Where a claim starts to scan a queue: after the last claim, and periodically from the start.
//!
//! Claimed messages leave dead index entries, which cannot be cleaned up while somebody holds an old snapshot, so a scan from
//! the start gets more expensive all the time. It is still needed: messages that were committed late, requeued or promoted are
//! before the cursor.
//!
//! While a snapshot stays open, a scan from the start is followed by a pause of twenty times its own cost. A message before the
//! cursor may wait that long; the claim rate is unaffected.
//!
//! An announced message is almost always behind the cursor, so the first claim after a wake-up starts there: a scan from the start is
//! two statements. The scan that was due is the next claim's.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

/// The minimum time that claims continue from the cursor before one scans from the start again.
const RESCAN_AFTER: Duration = Duration::from_millis(100);

/// The pause after a scan from the start, as a multiple of its cost. This limits its share of time.
const RESCAN_SHARE: u32 = 20;

/// The number of scans that must have been expensive. A single one may have hit a busy moment.
const SAMPLES: usize = 3;

/// Below this cost, an empty queue is always rescanned from the start.
const EXPENSIVE: Duration = Duration::from_millis(20);

/// A position in a queue's order: priority and message.
pub(super) type QueuePosition = (i16, Uuid);

/// Before every position.
pub(super) const QUEUE_START: QueuePosition = (i16::MIN, Uuid::nil());

/// Where the last claim of a queue ended, and the cost of a scan from the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScanCursor {
    position: Option<QueuePosition>,
    last_rescan: Option<Instant>,
    rescan_costs: [Duration; SAMPLES],
    /// The cost of a claim from the cursor.
    scan_cost: Duration,
    /// Whether a wake-up arrived and no work was found since.
    is_woken: bool,
    /// Whether a wake-up has put off the scan from the start that is due.
    is_put_off: bool,
}

impl ScanCursor {
    /// Returns where this claim starts; `None` is from the start. Of several concurrent claims, one starts there.
    pub(super) fn start(&mut self, now: Instant) -> Option<QueuePosition> {
        let rested = RESCAN_AFTER.max(self.rescan_cost() * RESCAN_SHARE);
        if self.last_rescan.is_some_and(|last_rescan| now.duration_since(last_rescan) < rested) {
            return self.position;
        }
        if self.is_woken && !self.is_put_off && self.last_rescan.is_some() && self.position.is_some() {
            self.is_put_off = true;
            return self.position;
        }
        self.rescanned(now);
        None
    }

    /// Returns whether to scan from the start because nothing was found after the cursor.
    pub(super) fn should_rescan(&mut self, now: Instant) -> bool {
        let since = self.last_rescan.map(|last_rescan| now.duration_since(last_rescan));
        let spare = !self.is_woken
            && self.rescan_cost() >= EXPENSIVE
            && since.is_some_and(|since| since < self.rescan_cost() * RESCAN_SHARE);
        if !spare {
            self.rescanned(now);
            self.is_woken = false;
        }
        !spare
    }

    fn rescanned(&mut self, now: Instant) {
        (self.last_rescan, self.is_put_off) = (Some(now), false);
    }

    /// Makes the next claim scan from the start.
    pub(super) fn rescan_next(&mut self) {
        self.last_rescan = None;
    }

    /// Notes a wake-up. A claim that finds nothing after the cursor then scans from the start, whatever the cost.
    pub(super) fn wake(&mut self) {
        self.is_woken = true;
    }

    /// Records the duration of a claim from the start.
    pub(super) fn record_rescan(&mut self, took: Duration) {
        self.rescan_costs.rotate_left(1);
        self.rescan_costs[SAMPLES - 1] = took.saturating_sub(self.scan_cost);
    }

    /// Records the duration of a claim from the cursor.
    pub(super) fn record_scan(&mut self, took: Duration) {
        self.scan_cost = took;
    }

    /// Moves the cursor to where a claim ended.
    pub(super) fn advance_to(&mut self, position: QueuePosition) {
        self.position = Some(position);
        self.is_woken = false;
    }

    /// Creates a cursor after all messages of a priority, with a recent expensive scan from the start.
    #[cfg(test)]
    pub(super) fn expensive(priority: i16) -> Self {
        let mut cursor = Self { last_rescan: Some(Instant::now()), ..Self::default() };
        (0..SAMPLES).for_each(|_| cursor.record_rescan(Duration::from_mins(1)));
        cursor.advance_to((priority, Uuid::max()));
        cursor
    }

    fn rescan_cost(&self) -> Duration {
        self.rescan_costs.into_iter().min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSITION: QueuePosition = (0, Uuid::max());

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn cursor_after(looks: &[u64], now: Instant) -> ScanCursor {
        let mut cursor = ScanCursor::default();
        cursor.start(now);
        for rescan_cost in looks {
            cursor.record_rescan(ms(*rescan_cost));
        }
        cursor.advance_to(POSITION);
        cursor
    }

    #[test]
    fn cheap_scan_runs_every_100_ms() {
        let now = Instant::now();
        let mut cursor = cursor_after(&[1, 1, 1], now);
        assert_eq!(cursor.start(now + ms(99)), Some(POSITION));
        assert_eq!(cursor.start(now + ms(100)), None);
        assert_eq!(cursor.start(now + ms(101)), Some(POSITION), "one claim of several is sent");
    }

    #[test]
    fn wake_up_puts_a_scan_off_by_one_claim() {
        let now = Instant::now();
        let mut cursor = cursor_after(&[1, 1, 1], now);
        cursor.wake();
        assert_eq!(cursor.start(now + ms(500)), Some(POSITION));
        cursor.wake();
        assert_eq!(cursor.start(now + ms(501)), None, "however many wake-ups come");
        cursor.wake();
        cursor.rescan_next();
        assert_eq!(cursor.start(now + ms(502)), None, "a message came back");
    }

    #[test]
    fn expensive_scan_takes_at_most_5_percent() {
        let now = Instant::now();
        let mut cursor = cursor_after(&[400, 500, 600], now);
        assert_eq!(cursor.start(now + ms(7_999)), Some(POSITION));
        assert!(!cursor.should_rescan(now + ms(7_999)), "an empty queue does not change that");
        assert_eq!(cursor.start(now + ms(8_000)), None);
    }

    #[test]
    fn announced_messages_are_scanned_for_at_any_cost() {
        let now = Instant::now();
        let mut cursor = cursor_after(&[400, 500, 600], now);
        cursor.wake();
        assert!(cursor.should_rescan(now + ms(1)));
        assert!(!cursor.should_rescan(now + ms(2)), "once");
        cursor.wake();
        cursor.advance_to(POSITION);
        assert!(!cursor.should_rescan(now + ms(3)), "it was found behind the cursor");
    }

    #[test]
    fn returned_messages_are_scanned_for_at_any_cost() {
        let now = Instant::now();
        let mut cursor = cursor_after(&[400, 500, 600], now);
        cursor.rescan_next();
        assert_eq!(cursor.start(now + ms(1)), None);
        cursor.rescan_next();
        assert!(cursor.should_rescan(now + ms(2)), "also by a claim in flight");
    }

    #[test]
    fn one_slow_scan_is_not_expensive() {
        let now = Instant::now();
        let mut cursor = cursor_after(&[1, 900], now);
        assert!(cursor.should_rescan(now + ms(1)));
    }

    #[test]
    fn base_cost_of_a_claim_is_not_counted() {
        let now = Instant::now();
        let mut cursor = cursor_after(&[], now);
        cursor.record_scan(ms(300));
        for _ in 0..SAMPLES {
            cursor.record_rescan(ms(301));
        }
        assert!(cursor.should_rescan(now + ms(1)));
    }
}
