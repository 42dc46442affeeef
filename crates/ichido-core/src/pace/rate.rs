//! How many calls per second a destination accepts, learned from its refusals.
//!
//! Guarantee: the rate stays between the settings' floor and cap. One episode of refusals lowers it once. Only accepted
//! calls raise it, only while it is fully used, and never faster than time passes. A few refusals at any rate leave it
//! unchanged.
//!
//! The curve is a sawtooth with a long back, because a destination's limit should be touched only now and then.
//! Refusals in excess of the usual (`refusals`) lower the rate to [`BACKOFF`] of where they began, which is remembered
//! as the ceiling. From there it climbs fast to just below the ceiling, slowly through it, and above it ever faster, so
//! a raised limit is found again (`paced`). It is AIMD whose additive part has a speed for each of these; with one
//! speed, it would either touch the limit often or take long to return to it. The idea is CUBIC's, as in the adaptive
//! mode of the AWS SDKs, written as a speed that depends only on the current rate, so nodes need not agree on when a
//! curve began.

use std::time::Duration;

use super::paced::{Fall, Paced};
use super::per_second::PerSecond;
use super::refusals::{Evidence, ResponseCounts, Shares};
use super::settings::PaceSettings;
use crate::time::Timestamp;

/// A fall leaves this share of the rate (the β of CUBIC in the AWS SDKs).
pub const BACKOFF: f64 = 0.7;
/// The maximum speed-up of a destination that started slowly and has not refused.
///
/// It is called at most this many times as fast as it accepted within a second.
pub const LEAP: f64 = 2.0;
/// The accepted rate is measured over windows no shorter than this.
const WINDOW: Duration = Duration::from_secs(1);
/// A destination that refuses twice before it accepted this many calls is paced at once.
///
/// It may refuse them all. Once is enough before it has accepted any.
const EARLY: u32 = 4;

/// What is known about a destination's limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// It has refused a few at most.
    ///
    /// Only `max_rate` and, if it started slowly, what it accepted so far limit it; acceptances are counted, to know
    /// where to begin when it refuses more.
    Free(AcceptedCounts),
    /// It refused, and is paced.
    Paced(Paced),
}

/// Responses of a destination that is not paced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AcceptedCounts {
    /// When the current window of a second began.
    pub since: Timestamp,
    /// Accepted in the current window.
    pub accepted: u32,
    /// Accepted in the previous window.
    pub accepted_before: u32,
    /// Accepted in total.
    pub accepted_ever: u32,
    /// Evidence that it refuses too many.
    pub evidence: Evidence,
}

impl Rate {
    /// The rate of a destination that was never called.
    pub const NEW: Self = Self::Free(AcceptedCounts {
        since: Timestamp::EPOCH,
        accepted: 0,
        accepted_before: 0,
        accepted_ever: 0,
        evidence: Evidence::NONE,
    });

    /// Returns the rate to keep; `None` is unlimited.
    pub fn limit(self, settings: &PaceSettings) -> Option<PerSecond> {
        match self {
            Self::Free(tally) => match settings.rate_start {
                Some(start) => Some(start.faster(tally.per_second().times(LEAP)).within(settings)),
                None => settings.max_rate,
            },
            // Clamped again, because the settings may have changed since the row was written.
            Self::Paced(paced) => Some(paced.rate.within(settings)),
        }
    }

    /// Records that `count` calls were accepted.
    ///
    /// `held_back` says whether a node waits for a slot: a rate that is not fully used is not proven to be accepted, so
    /// it does not rise.
    pub(super) fn accepted(
        self,
        settings: &PaceSettings,
        now: Timestamp,
        count: u32,
        held_back: bool,
    ) -> Self {
        match self {
            Self::Free(tally) => Self::Free(tally.accepted(now, count)),
            Self::Paced(paced) if now <= paced.episode_until => self,
            Self::Paced(paced) => {
                let paced = paced.with_responses(now, ResponseCounts::accepted(count));
                Self::Paced(if held_back { paced.grown(settings, now, count) } else { paced })
            }
        }
    }

    /// Records that the call with the slot at `sent` was throttled.
    ///
    /// Slots up to `handed_out` were given out at the current rate; no time before `rests_until` counts as use. Also
    /// returns whether the rate falls, or fell a moment ago: otherwise the refusal is one of those that come at any
    /// rate.
    pub(super) fn refused(
        self,
        settings: &PaceSettings,
        sent: Timestamp,
        handed_out: Timestamp,
        rests_until: Timestamp,
    ) -> (Self, bool) {
        let (updated, fall) = match self {
            Self::Free(tally) => {
                let tally = tally.refused();
                (Self::Free(tally), tally.fall(settings))
            }
            Self::Paced(paced) if sent <= paced.episode_until => return (self, true),
            Self::Paced(paced) => {
                let paced = paced.with_responses(sent, ResponseCounts::REFUSAL);
                (Self::Paced(paced), paced.fall())
            }
        };
        match fall {
            Some(fall) => (Self::Paced(fall.paced(settings, handed_out, rests_until)), true),
            None => (updated, false),
        }
    }

    /// Removes everything in the future, for a clock that was set back.
    pub(super) fn up_to(self, now: Timestamp) -> Self {
        match self {
            Self::Free(tally) => Self::Free(AcceptedCounts { since: tally.since.min(now), ..tally }),
            Self::Paced(paced) => Self::Paced(Paced {
                episode_until: paced.episode_until.min(now),
                grown_until: paced.grown_until.min(now),
                ..paced
            }),
        }
    }
}

impl AcceptedCounts {
    fn accepted(self, now: Timestamp, count: u32) -> Self {
        let updated = self.with_responses(ResponseCounts::accepted(count));
        let accepted_ever = self.accepted_ever.saturating_add(count);
        if now.since(self.since) < WINDOW {
            let accepted = self.accepted.saturating_add(count);
            return Self { accepted, accepted_ever, ..updated };
        }
        Self { since: now, accepted: count, accepted_before: self.accepted, accepted_ever, ..updated }
    }

    fn refused(self) -> Self {
        self.with_responses(ResponseCounts::REFUSAL)
    }

    fn with_responses(self, answers: ResponseCounts) -> Self {
        let evidence = self.evidence.with(Shares::usual(ResponseCounts::NONE), self.per_second(), answers);
        Self { evidence, ..self }
    }

    /// Returns where its pace begins, if it refuses too many.
    fn fall(self, settings: &PaceSettings) -> Option<Fall> {
        let accepted = self.per_second();
        let is_refused_early = match self.accepted_ever {
            0 => true,
            1..EARLY => 2.0 <= self.evidence.answers.refused,
            _ => false,
        };
        if !is_refused_early && !self.evidence.is_certain(accepted) {
            return None;
        }
        // A destination that started slowly was called little faster than it accepted, and it accepts that; of a flood,
        // only saved-up capacity may have been accepted.
        let rate = if settings.rate_start.is_some() { accepted } else { accepted.times(BACKOFF) };
        let before = self.evidence.answers.share();
        Some(Fall { rate, ceiling: None, usual: ResponseCounts::NONE, before })
    }

    /// Returns the better of two windows, since the current one has only begun.
    ///
    /// It is at least one, since a destination that responds at all accepts something.
    fn per_second(self) -> PerSecond {
        let accepted = self.accepted.max(self.accepted_before).max(1);
        PerSecond::clamped(f64::from(accepted) / WINDOW.as_secs_f64())
    }
}
