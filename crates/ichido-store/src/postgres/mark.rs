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
const LOOKS: usize = 3;

/// Under this, an empty queue is always looked at once more from the beginning.
const DEAR: Duration = Duration::from_millis(20);

/// A place in a queue's order: priority and message.
pub(super) type Place = (i16, Uuid);

/// Before every place.
pub(super) const BEGINNING: Place = (i16::MIN, Uuid::nil());

/// Where the last claim of a queue ended, and what looking from the beginning costs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    place: Option<Place>,
    looked: Option<Instant>,
    costs: [Duration; LOOKS],
    /// What a claim from the mark took.
    usual: Duration,
    /// Somebody said that there is work, and none was found since.
    woken: bool,
}

impl Mark {
    /// Where this claim starts; `None` is from the beginning. Of several claims at once, one is sent there.
    pub(super) fn start(&mut self, now: Instant) -> Option<Place> {
        let rested = RESCAN_AFTER.max(self.cost() * RESCAN_SHARE);
        if self.looked.is_none_or(|looked| now.duration_since(looked) >= rested) {
            self.looked = Some(now);
            return None;
        }
        self.place
    }

    /// Whether to look from the beginning, since there was nothing behind the mark.
    pub(super) fn look_again(&mut self, now: Instant) -> bool {
        let since = self.looked.map(|looked| now.duration_since(looked));
        let spare = !self.woken
            && self.cost() >= DEAR
            && since.is_some_and(|since| since < self.cost() * RESCAN_SHARE);
        if !spare {
            self.looked = Some(now);
            self.woken = false;
        }
        !spare
    }

    /// The next claim looks from the beginning.
    pub(super) fn look_soon(&mut self) {
        self.looked = None;
    }

    /// There is said to be work: a claim that finds none behind the mark looks from the beginning, whatever that costs.
    pub(super) fn wake(&mut self) {
        self.woken = true;
    }

    /// A claim from the beginning took this long.
    pub(super) fn looked(&mut self, took: Duration) {
        self.costs.rotate_left(1);
        self.costs[LOOKS - 1] = took.saturating_sub(self.usual);
    }

    /// A claim from the mark took this long.
    pub(super) fn went_on(&mut self, took: Duration) {
        self.usual = took;
    }

    /// A claim ended here.
    pub(super) fn move_to(&mut self, place: Place) {
        self.place = Some(place);
        self.woken = false;
    }

    /// A mark behind all messages of a priority, where a look from the beginning was dear just now.
    #[cfg(test)]
    pub(super) fn dear(priority: i16) -> Self {
        let mut mark = Self { looked: Some(Instant::now()), ..Self::default() };
        (0..LOOKS).for_each(|_| mark.looked(Duration::from_mins(1)));
        mark.move_to((priority, Uuid::max()));
        mark
    }

    fn cost(&self) -> Duration {
        self.costs.into_iter().min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = (0, Uuid::max());

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn mark_after(looks: &[u64], now: Instant) -> Mark {
        let mut mark = Mark::default();
        mark.start(now);
        for cost in looks {
            mark.looked(ms(*cost));
        }
        mark.move_to(PLACE);
        mark
    }

    #[test]
    fn a_cheap_look_comes_every_tenth_of_a_second() {
        let now = Instant::now();
        let mut mark = mark_after(&[1, 1, 1], now);
        assert_eq!(mark.start(now + ms(99)), Some(PLACE));
        assert_eq!(mark.start(now + ms(100)), None);
        assert_eq!(mark.start(now + ms(101)), Some(PLACE), "one claim of several is sent");
    }

    #[test]
    fn a_dear_look_takes_a_twentieth_of_the_time() {
        let now = Instant::now();
        let mut mark = mark_after(&[400, 500, 600], now);
        assert_eq!(mark.start(now + ms(7_999)), Some(PLACE));
        assert!(!mark.look_again(now + ms(7_999)), "an empty queue does not change that");
        assert_eq!(mark.start(now + ms(8_000)), None);
    }

    #[test]
    fn what_is_said_to_be_there_is_looked_for_at_any_price() {
        let now = Instant::now();
        let mut mark = mark_after(&[400, 500, 600], now);
        mark.wake();
        assert!(mark.look_again(now + ms(1)));
        assert!(!mark.look_again(now + ms(2)), "once");
        mark.wake();
        mark.move_to(PLACE);
        assert!(!mark.look_again(now + ms(3)), "it was found behind the mark");
    }

    #[test]
    fn what_came_back_is_looked_for_at_any_price() {
        let now = Instant::now();
        let mut mark = mark_after(&[400, 500, 600], now);
        mark.look_soon();
        assert_eq!(mark.start(now + ms(1)), None);
        mark.look_soon();
        assert!(mark.look_again(now + ms(2)), "also by a claim that was under way");
    }

    #[test]
    fn one_busy_moment_does_not_make_it_dear() {
        let now = Instant::now();
        let mut mark = mark_after(&[1, 900], now);
        assert!(mark.look_again(now + ms(1)));
    }

    #[test]
    fn what_any_claim_costs_is_not_counted() {
        let now = Instant::now();
        let mut mark = mark_after(&[], now);
        mark.went_on(ms(300));
        for _ in 0..LOOKS {
            mark.looked(ms(301));
        }
        assert!(mark.look_again(now + ms(1)));
    }
}
