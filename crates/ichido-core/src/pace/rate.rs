//! How many sends a second a destination accepts, learned from what it refuses.
//!
//! Guarantee: the rate stays between the settings' floor and cap; one episode of refusals lowers it once; only accepted calls raise it, only
//! while it is used to the full, and never faster than time passes; a few refusals at any rate leave it as it is.
//!
//! The shape is a sawtooth with a long back, for a destination's limit is worth touching only now and then: refusals in excess of the usual
//! (`refusals`) lower the rate to [`BACKOFF`] of where they began, which is remembered as the ceiling; from there it climbs
//! quickly to just below it, gently through it, and above it ever faster, so that a limit that was raised is found again
//! (`paced`). It is AIMD whose additive part has a speed for each of these; with one speed for all, it would either touch the
//! limit often or take long to come back to it. The idea is CUBIC's, as in the adaptive mode of the AWS SDKs, written as a speed that depends
//! on the present rate alone, so that nodes need not agree on when a curve began.

use std::time::Duration;

use super::paced::{Fall, Paced};
use super::per_second::PerSecond;
use super::refusals::{Answers, Evidence, Shares};
use super::settings::Settings;
use crate::time::Timestamp;

/// A fall leaves this share of the rate (the β of CUBIC in the AWS SDKs).
pub const BACKOFF: f64 = 0.7;
/// A destination that was begun with slowly and has not refused is asked at most this many times what it accepted within a second.
pub const LEAP: f64 = 2.0;
/// The accepted rate is measured over windows no shorter than this.
const WINDOW: Duration = Duration::from_secs(1);
/// A destination that refuses twice before it has accepted this many calls is paced at once: it may refuse them all. Once is enough before
/// it has accepted any.
const EARLY: u32 = 4;

/// What is known of a destination's limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// It has refused a few at most. Nothing holds it back but `rate_max` and, where it is begun with slowly, what it accepted so far; we
    /// count, to know where to begin when it refuses more.
    Free(Tally),
    /// It refused, and is paced.
    Paced(Paced),
}

/// Answers of a destination that is not paced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tally {
    /// When the present window of a second began.
    pub since: Timestamp,
    /// Accepted in the present window.
    pub accepted: u32,
    /// Accepted in the window before.
    pub accepted_before: u32,
    /// Accepted in all.
    pub accepted_ever: u32,
    /// Evidence that it refuses too many.
    pub evidence: Evidence,
}

impl Rate {
    /// Of a destination not yet called.
    pub const NEW: Self = Self::Free(Tally {
        since: Timestamp::EPOCH,
        accepted: 0,
        accepted_before: 0,
        accepted_ever: 0,
        evidence: Evidence::NONE,
    });

    /// The rate to keep; `None` is without limit.
    pub fn limit(self, settings: &Settings) -> Option<PerSecond> {
        match self {
            Self::Free(tally) => match settings.rate_start {
                Some(start) => Some(start.faster(tally.per_second().times(LEAP)).within(settings)),
                None => settings.rate_max,
            },
            // Clamped again, for the settings may have changed since the row was written.
            Self::Paced(paced) => Some(paced.rate.within(settings)),
        }
    }

    /// `count` calls were accepted. `held_back` says whether anyone waits for a slot: a rate that nobody exhausts has not been shown to be
    /// accepted, so it does not rise.
    pub(super) fn accepted(self, settings: &Settings, now: Timestamp, count: u32, held_back: bool) -> Self {
        match self {
            Self::Free(tally) => Self::Free(tally.accepted(now, count)),
            Self::Paced(paced) if now <= paced.episode_until => self,
            Self::Paced(paced) => {
                let paced = paced.heard(now, Answers::accepted(count));
                Self::Paced(if held_back { paced.grown(settings, now, count) } else { paced })
            }
        }
    }

    /// The call that had its slot at `sent` was refused for coming too fast. Slots up to `handed_out` were given away at the present rate;
    /// no time before `rests_until` counts as use. Says also whether the rate falls, or fell a moment ago: otherwise the refusal is one of
    /// those that come at any rate.
    pub(super) fn refused(
        self,
        settings: &Settings,
        sent: Timestamp,
        handed_out: Timestamp,
        rests_until: Timestamp,
    ) -> (Self, bool) {
        let (heard, fall) = match self {
            Self::Free(tally) => {
                let tally = tally.refused();
                (Self::Free(tally), tally.fall(settings))
            }
            Self::Paced(paced) if sent <= paced.episode_until => return (self, true),
            Self::Paced(paced) => {
                let paced = paced.heard(sent, Answers::REFUSAL);
                (Self::Paced(paced), paced.fall())
            }
        };
        match fall {
            Some(fall) => (Self::Paced(fall.paced(settings, handed_out, rests_until)), true),
            None => (heard, false),
        }
    }

    /// The same without what lies in the future, for a clock that was set back.
    pub(super) fn up_to(self, now: Timestamp) -> Self {
        match self {
            Self::Free(tally) => Self::Free(Tally { since: tally.since.min(now), ..tally }),
            Self::Paced(paced) => Self::Paced(Paced {
                episode_until: paced.episode_until.min(now),
                grown_until: paced.grown_until.min(now),
                ..paced
            }),
        }
    }
}

impl Tally {
    fn accepted(self, now: Timestamp, count: u32) -> Self {
        let heard = self.heard(Answers::accepted(count));
        let accepted_ever = self.accepted_ever.saturating_add(count);
        if now.since(self.since) < WINDOW {
            let accepted = self.accepted.saturating_add(count);
            return Self { accepted, accepted_ever, ..heard };
        }
        Self { since: now, accepted: count, accepted_before: self.accepted, accepted_ever, ..heard }
    }

    fn refused(self) -> Self {
        self.heard(Answers::REFUSAL)
    }

    fn heard(self, answers: Answers) -> Self {
        let evidence = self.evidence.with(Shares::usual(Answers::NONE), self.per_second(), answers);
        Self { evidence, ..self }
    }

    /// Where its pace begins, if it refuses too many.
    fn fall(self, settings: &Settings) -> Option<Fall> {
        let accepted = self.per_second();
        let is_refused_early = match self.accepted_ever {
            0 => true,
            1..EARLY => 2.0 <= self.evidence.answers.refused,
            _ => false,
        };
        if !is_refused_early && !self.evidence.is_certain(accepted) {
            return None;
        }
        // One that was begun with slowly was asked little more than what it accepted, and that it accepts; of a flood only what was saved
        // up may have been let in.
        let rate = if settings.rate_start.is_some() { accepted } else { accepted.times(BACKOFF) };
        let before = self.evidence.answers.share();
        Some(Fall { rate, ceiling: None, usual: Answers::NONE, before })
    }

    /// The better of two windows, since the present one has only begun; one at least, since a destination that answers at all accepts
    /// something.
    fn per_second(self) -> PerSecond {
        let accepted = self.accepted.max(self.accepted_before).max(1);
        PerSecond::clamped(f64::from(accepted) / WINDOW.as_secs_f64())
    }
}
