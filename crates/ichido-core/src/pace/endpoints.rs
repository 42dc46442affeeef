//! Which of several endpoints (regions, replicas) takes the next call.
//!
//! Guarantee: an endpoint that is paused or whose circuit is open is never chosen; of the others the one that
//! is free soonest is, so each carries what it bears.

use crate::time::Timestamp;

/// When an endpoint can take a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// At this moment.
    At(Timestamp),
    /// It is rested until this moment.
    Resting {
        /// When it may be called again.
        until: Timestamp,
    },
}

/// Which endpoint to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The one at this place in the list.
    Endpoint(usize),
    /// All are resting.
    AllRest {
        /// The first of them to come back; [`Timestamp::MAX`] when there is none at all.
        until: Timestamp,
    },
}

/// Chooses by the openings alone. `dice`, in [0, 1), decides between endpoints that are free at the same
/// moment, as idle ones all are; what lies outside counts as the nearest end.
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
    // The first whose share of [0, 1) reaches beyond the dice; the last, should the dice lie beyond them all.
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

/// The same, with some left out as long as another one is not resting: those that refused the call before.
pub fn choose_avoiding(openings: &[Opening], avoided: EndpointSet, dice: f64) -> Choice {
    let others: Vec<Opening> = (0_usize..)
        .zip(openings)
        .map(|(index, opening)| match opening {
            _ if avoided.contains(index) => Opening::Resting { until: opening.moment() },
            opening => *opening,
        })
        .collect();
    match choose(&others, dice) {
        Choice::AllRest { .. } => choose(openings, dice),
        choice @ Choice::Endpoint(_) => choice,
    }
}

/// Some of several endpoints, by their places in the list. Of more than [`EndpointSet::ENDPOINTS_MAX`] the rest cannot be in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointSet(u64);

impl EndpointSet {
    /// None of them.
    pub const EMPTY: Self = Self(0);
    /// One bit each; nobody calls as many.
    pub const ENDPOINTS_MAX: usize = 64;

    /// The same with the one at this place.
    #[must_use]
    pub fn with(self, index: usize) -> Self {
        Self(self.0 | Self::bit(index))
    }

    /// Whether the one at this place is in it.
    pub fn contains(self, index: usize) -> bool {
        self.0 & Self::bit(index) != 0
    }

    fn bit(index: usize) -> u64 {
        u32::try_from(index).ok().and_then(|index| 1_u64.checked_shl(index)).unwrap_or(0)
    }
}

impl Opening {
    /// The moment in either case.
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
    fn the_endpoint_free_soonest_is_chosen_and_one_that_rests_is_not() {
        let all_rest = |secs| Choice::AllRest { until: Timestamp::from_secs(secs) };
        for (openings, dice, expected) in [
            (vec![at(3), at(1), at(2)], 0.0, Choice::Endpoint(1)),
            (vec![resting(0), at(9)], 0.0, Choice::Endpoint(1)),
            (vec![resting(5), resting(4)], 0.0, all_rest(4)),
            (vec![], 0.0, Choice::AllRest { until: Timestamp::MAX }),
            // Ties go by the dice.
            (vec![at(1), at(1), at(2), at(1)], 0.0, Choice::Endpoint(0)),
            (vec![at(1), at(1), at(2), at(1)], 0.34, Choice::Endpoint(1)),
            (vec![at(1), at(1), at(2), at(1)], 0.99, Choice::Endpoint(3)),
            // Dice that are none are taken as they come.
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
                assert_eq!(choose_avoiding(&openings, avoided, dice), expected, "{openings:?} {avoided:?}");
            }
        }
    }

    #[test]
    fn a_set_of_endpoints_holds_what_was_put_in() {
        let set = EndpointSet::EMPTY.with(0).with(63).with(64).with(usize::MAX);
        let held: Vec<usize> = (0..200).filter(|index| set.contains(*index)).collect();
        assert_eq!(held, [0, 63]);
    }
}
