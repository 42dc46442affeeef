//! Where a claim starts to look: behind what was claimed before, and from the beginning now and then.
//!
//! What was claimed leaves dead index entries, which nothing can clean up while somebody's old snapshot is open, so a look from the
//! beginning gets dearer all the time. It is still needed: what was committed late, requeued or promoted is behind the mark.
//!
//! Under a snapshot that stays open, a look from the beginning rests for twenty times its own cost. A message behind the mark may wait that
//! long; the rate of claims holds.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

/// How long claims go on behind the mark, at the least, before one looks from the beginning again.
const RESCAN_AFTER: Duration = Duration::from_millis(100);

/// A look from the beginning is followed by this many times its own cost without one: the share of time it can take.
const RESCAN_SHARE: u32 = 20;

/// How many looks must have been dear: one of them may have met a busy moment.
const SAMPLES: usize = 3;

/// Under this, an empty queue is always looked at once more from the beginning.
const EXPENSIVE: Duration = Duration::from_millis(20);

/// A place in a queue's order: priority and message.
pub(super) type QueuePosition = (i16, Uuid);

/// Before every place.
pub(super) const QUEUE_START: QueuePosition = (i16::MIN, Uuid::nil());

/// Where the last claim of a queue ended, and what looking from the beginning costs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScanCursor {
    position: Option<QueuePosition>,
    last_rescan: Option<Instant>,
    rescan_costs: [Duration; SAMPLES],
    /// What a claim from the mark took.
    scan_cost: Duration,
    /// Somebody said that there is work, and none was found since.
    is_woken: bool,
}

impl ScanCursor {
    /// Where this claim starts; `None` is from the beginning. Of several claims at once, one is sent there.
    pub(super) fn start(&mut self, now: Instant) -> Option<QueuePosition> {
        let rested = RESCAN_AFTER.max(self.rescan_cost() * RESCAN_SHARE);
        if self.last_rescan.is_none_or(|last_rescan| now.duration_since(last_rescan) >= rested) {
            self.last_rescan = Some(now);
            return None;
        }
        self.position
    }

    /// Whether to look from the beginning, since there was nothing behind the mark.
    pub(super) fn should_rescan(&mut self, now: Instant) -> bool {
        let since = self.last_rescan.map(|last_rescan| now.duration_since(last_rescan));
        let spare = !self.is_woken
            && self.rescan_cost() >= EXPENSIVE
            && since.is_some_and(|since| since < self.rescan_cost() * RESCAN_SHARE);
        if !spare {
            self.last_rescan = Some(now);
            self.is_woken = false;
        }
        !spare
    }

    /// The next claim looks from the beginning.
    pub(super) fn rescan_next(&mut self) {
        self.last_rescan = None;
    }

    /// There is said to be work: a claim that finds none behind the mark looks from the beginning, whatever that costs.
    pub(super) fn wake(&mut self) {
        self.is_woken = true;
    }

    /// A claim from the beginning took this long.
    pub(super) fn record_rescan(&mut self, took: Duration) {
        self.rescan_costs.rotate_left(1);
        self.rescan_costs[SAMPLES - 1] = took.saturating_sub(self.scan_cost);
    }

    /// A claim from the mark took this long.
    pub(super) fn record_scan(&mut self, took: Duration) {
        self.scan_cost = took;
    }

    /// A claim ended here.
    pub(super) fn advance_to(&mut self, position: QueuePosition) {
        self.position = Some(position);
        self.is_woken = false;
    }

    /// A mark behind all messages of a priority, where a look from the beginning was dear just now.
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
    fn a_cheap_look_comes_every_tenth_of_a_second() {
        let now = Instant::now();
        let mut cursor = cursor_after(&[1, 1, 1], now);
        assert_eq!(cursor.start(now + ms(99)), Some(POSITION));
        assert_eq!(cursor.start(now + ms(100)), None);
        assert_eq!(cursor.start(now + ms(101)), Some(POSITION), "one claim of several is sent");
    }

    #[test]
    fn a_dear_look_takes_a_twentieth_of_the_time() {
        let now = Instant::now();
        let mut cursor = cursor_after(&[400, 500, 600], now);
        assert_eq!(cursor.start(now + ms(7_999)), Some(POSITION));
        assert!(!cursor.should_rescan(now + ms(7_999)), "an empty queue does not change that");
        assert_eq!(cursor.start(now + ms(8_000)), None);
    }

    #[test]
    fn what_is_said_to_be_there_is_looked_for_at_any_price() {
        let now = Instant::now();
        let mut cursor = cursor_after(&[400, 500, 600], now);
        cursor.wake();
        assert!(cursor.should_rescan(now + ms(1)));
        assert!(!cursor.should_rescan(now + ms(2)), "once");
        cursor.wake();
        cursor.advance_to(POSITION);
        assert!(!cursor.should_rescan(now + ms(3)), "it was found behind the mark");
    }

    #[test]
    fn what_came_back_is_looked_for_at_any_price() {
        let now = Instant::now();
        let mut cursor = cursor_after(&[400, 500, 600], now);
        cursor.rescan_next();
        assert_eq!(cursor.start(now + ms(1)), None);
        cursor.rescan_next();
        assert!(cursor.should_rescan(now + ms(2)), "also by a claim that was under way");
    }

    #[test]
    fn one_busy_moment_does_not_make_it_dear() {
        let now = Instant::now();
        let mut cursor = cursor_after(&[1, 900], now);
        assert!(cursor.should_rescan(now + ms(1)));
    }

    #[test]
    fn what_any_claim_costs_is_not_counted() {
        let now = Instant::now();
        let mut cursor = cursor_after(&[], now);
        cursor.record_scan(ms(300));
        for _ in 0..SAMPLES {
            cursor.record_rescan(ms(301));
        }
        assert!(cursor.should_rescan(now + ms(1)));
    }
}
