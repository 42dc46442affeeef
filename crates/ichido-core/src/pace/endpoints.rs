//! Selects which of several endpoints (regions, replicas) takes the next call.
//!
//! Guarantee: an endpoint that is paused or whose circuit is open is never chosen; of the others, the one that is free
//! soonest is, so each carries the load it can handle.

use std::time::Duration;

use crate::time::Timestamp;

/// How long an endpoint that refused a call is left out while there are others.
///
/// This is for reasons outside the call.
const OUT_FOR: Duration = Duration::from_mins(1);
/// After this many failed calls in a row, no retry goes to an endpoint while another does better.
const FAILING_AFTER: u32 = 5;

/// When an endpoint can take a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// At this moment.
    At(Timestamp),
    /// It rests until this time.
    Resting {
        /// When it may be called again.
        until: Timestamp,
    },
}

/// Which endpoint to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The endpoint at this index of the list.
    Endpoint(usize),
    /// All are resting.
    AllRest {
        /// When the first of them returns; [`Timestamp::MAX`] if there is none.
        until: Timestamp,
    },
}

/// Chooses by the openings alone.
///
/// `dice`, in [0, 1), decides between endpoints that are free at the same time, as all idle ones are; a value outside
/// counts as the nearest end.
pub fn choose(openings: &[Opening], dice: f64) -> Choice {
    let free = openings.iter().filter_map(|opening| match opening {
        Opening::At(moment) => Some(*moment),
        Opening::Resting { .. } => None,
    });
    let Some(soonest) = free.min() else {
        let back = openings.iter().map(|opening| opening.moment()).min();
        return Choice::AllRest { until: back.unwrap_or(Timestamp::MAX) };
    };
    let tied = (0_usize..).zip(openings).filter(|(_, opening)| **opening == Opening::At(soonest));
    let count = tied.clone().fold(0.0, |count, _| count + 1.0);
    // The first whose share of [0, 1) exceeds the dice; the last if none does.
    let mut reached = 0.0;
    let mut choice = Choice::AllRest { until: soonest };
    for (index, _) in tied {
        choice = Choice::Endpoint(index);
        reached += 1.0;
        if dice * count < reached {
            break;
        }
    }
    choice
}

/// Chooses without the endpoints that are [`left_out`] or refused the call before, while another one is available.
pub fn choose_avoiding(
    openings: &[Opening],
    left_out: EndpointSet,
    refused_by: EndpointSet,
    dice: f64,
) -> Choice {
    let mut others: Vec<Opening> = openings.to_vec();
    for (index, opening) in others.iter_mut().enumerate() {
        if left_out.contains(index) {
            *opening = Opening::Resting { until: Timestamp::MAX };
        }
    }
    let mut best = others.clone();
    for (index, opening) in best.iter_mut().enumerate() {
        if refused_by.contains(index) {
            *opening = Opening::Resting { until: opening.moment() };
        }
    }
    match choose(&best, dice) {
        Choice::AllRest { .. } => choose(&others, dice),
        choice @ Choice::Endpoint(_) => choice,
    }
}

/// How the last calls to an endpoint ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointRecord {
    failed_in_a_row: u32,
    out_until: Timestamp,
}

/// How a call ended, as far as it concerns its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// With a response.
    Answered,
    /// It was throttled, or the endpoint failed.
    Failed,
    /// It was refused for reasons outside the call: access, quota, or a model that the endpoint lacks.
    Refused,
}

impl EndpointRecord {
    /// No calls yet.
    pub const NEW: Self = Self { failed_in_a_row: 0, out_until: Timestamp::EPOCH };

    /// Returns the record after one more call.
    #[must_use]
    pub fn after(self, end: CallOutcome, now: Timestamp) -> Self {
        let failed_in_a_row = self.failed_in_a_row.saturating_add(1);
        match end {
            CallOutcome::Answered => Self::NEW,
            CallOutcome::Failed => Self { failed_in_a_row, ..self },
            CallOutcome::Refused => Self { failed_in_a_row, out_until: now.plus(OUT_FOR) },
        }
    }

    /// Returns whether the last call failed.
    pub const fn has_failed(self) -> bool {
        0 < self.failed_in_a_row
    }
}

/// Returns the endpoints that a call must not use: never all of them.
///
/// These are endpoints that refuse all calls and, for a retry, endpoints that have failed for a while.
pub fn left_out(records: &[EndpointRecord], is_retry: bool, now: Timestamp) -> EndpointSet {
    let refusing = EndpointSet::from_records(records, |record| now < record.out_until);
    let left_out = EndpointSet::EMPTY.with_unless_all(refusing, records.len());
    if !is_retry {
        return left_out;
    }
    let failing = EndpointSet::from_records(records, |record| FAILING_AFTER <= record.failed_in_a_row);
    left_out.with_unless_all(failing, records.len())
}

/// A set of endpoints by their indices in the list.
///
/// It cannot contain an index beyond [`EndpointSet::MAX_ENDPOINTS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointSet(u64);

impl EndpointSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);
    /// One bit each; no caller has that many.
    pub const MAX_ENDPOINTS: usize = 64;

    /// Returns the set with this index added.
    #[must_use]
    pub fn with(self, index: usize) -> Self {
        Self(self.0 | Self::bit(index))
    }

    /// Returns whether all of the first `count` are in it.
    pub fn has_all(self, count: usize) -> bool {
        (0..count).all(|index| self.contains(index))
    }

    fn from_records(records: &[EndpointRecord], is_in: impl Fn(&EndpointRecord) -> bool) -> Self {
        let places = (0_usize..).zip(records).filter(|(_, record)| is_in(record));
        places.fold(Self::EMPTY, |set, (index, _)| set.with(index))
    }

    /// Returns the union, unless it would contain all of the first `count`.
    fn with_unless_all(self, others: Self, count: usize) -> Self {
        let both = Self(self.0 | others.0);
        if both.has_all(count) { self } else { both }
    }

    /// Returns whether this index is in it.
    pub fn contains(self, index: usize) -> bool {
        self.0 & Self::bit(index) != 0
    }

    fn bit(index: usize) -> u64 {
        u32::try_from(index).ok().and_then(|index| 1_u64.checked_shl(index)).unwrap_or(0)
    }
}

impl Opening {
    /// Returns the time in either case.
    pub const fn moment(self) -> Timestamp {
        match self {
            Self::At(moment) | Self::Resting { until: moment } => moment,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Opening {
        Opening::At(Timestamp::from_secs(secs))
    }

    fn resting(secs: i64) -> Opening {
        Opening::Resting { until: Timestamp::from_secs(secs) }
    }

    #[test]
    fn earliest_free_endpoint_is_chosen_unless_resting() {
        let all_rest = |secs| Choice::AllRest { until: Timestamp::from_secs(secs) };
        for (openings, dice, expected) in [
            (vec![at(3), at(1), at(2)], 0.0, Choice::Endpoint(1)),
            (vec![resting(0), at(9)], 0.0, Choice::Endpoint(1)),
            (vec![resting(5), resting(4)], 0.0, all_rest(4)),
            (vec![], 0.0, Choice::AllRest { until: Timestamp::MAX }),
            // The dice break ties.
            (vec![at(1), at(1), at(2), at(1)], 0.0, Choice::Endpoint(0)),
            (vec![at(1), at(1), at(2), at(1)], 0.34, Choice::Endpoint(1)),
            (vec![at(1), at(1), at(2), at(1)], 0.99, Choice::Endpoint(3)),
            // Invalid dice are accepted.
            (vec![at(1), at(1)], f64::NAN, Choice::Endpoint(1)),
            (vec![at(1), at(1)], f64::INFINITY, Choice::Endpoint(1)),
            (vec![at(1), at(1)], -7.0, Choice::Endpoint(0)),
        ] {
            assert_eq!(choose(&openings, dice), expected, "{openings:?} with {dice}");
        }
    }

    #[test]
    fn an_endpoint_that_refused_is_avoided_while_another_is_free() {
        let first = EndpointSet::EMPTY.with(0);
        for (openings, avoided, expected) in [
            (vec![at(1), at(1)], first, Choice::Endpoint(1)),
            (vec![at(1), at(9)], first, Choice::Endpoint(1)),
            (vec![at(1), resting(9)], first, Choice::Endpoint(0)),
            (vec![at(1), resting(9), at(5)], first, Choice::Endpoint(2)),
            (vec![at(2), at(1)], first.with(1), Choice::Endpoint(1)),
            (vec![at(1)], first, Choice::Endpoint(0)),
            (vec![resting(3), resting(2)], first, Choice::AllRest { until: Timestamp::from_secs(2) }),
        ] {
            for dice in [0.0, 0.5, 0.99] {
                let choice = choose_avoiding(&openings, EndpointSet::EMPTY, avoided, dice);
                assert_eq!(choice, expected, "{openings:?} {avoided:?}");
            }
        }
    }

    #[test]
    fn excluded_endpoint_is_not_chosen_even_if_others_rest() {
        let first = EndpointSet::EMPTY.with(0);
        for (openings, refused_by, expected) in [
            (vec![at(1), at(9)], EndpointSet::EMPTY, Choice::Endpoint(1)),
            (vec![at(1), at(9)], first.with(1), Choice::Endpoint(1)),
            (vec![at(1), resting(9)], first, Choice::AllRest { until: Timestamp::from_secs(9) }),
        ] {
            assert_eq!(choose_avoiding(&openings, first, refused_by, 0.0), expected, "{openings:?}");
        }
    }

    #[test]
    fn refusing_endpoints_are_excluded_and_retries_avoid_failing_ones() {
        use CallOutcome::{Answered, Failed, Refused};
        let now = Timestamp::from_secs(1_800_000_000);
        let record = |ends: &[CallOutcome]| {
            ends.iter().fold(EndpointRecord::NEW, |record, end| record.after(*end, now))
        };
        let (fine, refusing) = (record(&[Failed, Answered]), record(&[Answered, Refused]));
        let (failing, almost) = (record(&[Failed; 5]), record(&[Failed; 4]));
        let (first, second) = (EndpointSet::EMPTY.with(0), EndpointSet::EMPTY.with(1));
        for (records, of_new, of_retry) in [
            ([refusing, fine], first, first),
            ([fine, refusing], second, second),
            ([failing, fine], EndpointSet::EMPTY, first),
            ([almost, fine], EndpointSet::EMPTY, EndpointSet::EMPTY),
            // Some endpoint has to take it.
            ([refusing, refusing], EndpointSet::EMPTY, EndpointSet::EMPTY),
            ([failing, failing], EndpointSet::EMPTY, EndpointSet::EMPTY),
            ([refusing, failing], first, first),
            (
                [record(&[Failed, Failed, Failed, Failed, Failed, Answered]), fine],
                EndpointSet::EMPTY,
                EndpointSet::EMPTY,
            ),
        ] {
            assert_eq!(left_out(&records, false, now), of_new, "{records:?}");
            assert_eq!(left_out(&records, true, now), of_retry, "{records:?}");
        }
        let later = now.plus(OUT_FOR);
        assert_eq!(left_out(&[refusing, fine], true, later), EndpointSet::EMPTY, "it is asked again");
        assert_eq!(left_out(&[], true, now), EndpointSet::EMPTY);
        assert_eq!(left_out(&[refusing], true, now), EndpointSet::EMPTY, "the only one");
    }

    #[test]
    fn endpoint_set_contains_what_was_added() {
        let set = EndpointSet::EMPTY.with(0).with(63).with(64).with(usize::MAX);
        let held: Vec<usize> = (0..200).filter(|index| set.contains(*index)).collect();
        assert_eq!(held, [0, 63]);
    }
}
