//! How many sends a second a destination bears, learned from what it refuses.
//!
//! Guarantee: the rate stays between the settings' floor and cap; one episode of refusals lowers it once;
//! only accepted calls raise it, only while it is used to the full, and never faster than time passes.
//!
//! The shape is a sawtooth with a long back, for a destination's limit is worth touching only now and then:
//! a refusal cuts the rate to [`BACKOFF`] of itself and remembers where that was (the ceiling); from there it
//! climbs quickly to the [`KNEE`], gently through the ceiling, and above it ever faster, so that a limit that
//! was raised is found again. It is AIMD whose additive part has a speed for each of these; with one speed
//! for all, it would either touch the limit often or take long to come back to it. The idea is CUBIC's, as in
//! the adaptive mode of the AWS SDKs, written as a speed that depends on the present rate alone, so that
//! nodes need not agree on when a curve began.

use std::time::Duration;

use super::per_second::PerSecond;
use super::settings::Settings;
use crate::time::Timestamp;

/// A refusal leaves this share of the rate (the β of CUBIC in the AWS SDKs).
pub const BACKOFF: f64 = 0.7;
/// Below this share of the ceiling the climb is quick; from here on it is gentle.
pub const KNEE: f64 = 0.95;
/// Below the knee, the share of the distance to it that one second of full use makes good.
pub const QUICK: f64 = 0.5;
/// The share of the ceiling that one second of full use adds everywhere: knee to ceiling in fifty seconds.
pub const GENTLE: f64 = 0.001;
/// Above the ceiling, the share of the excess that is added on top: twice the ceiling after eighty seconds.
pub const PROBE: f64 = 0.05;
/// While no ceiling is known, the share of the rate itself that one second of full use adds.
pub const SEARCH: f64 = 0.35;
/// A destination that was begun with slowly and has not refused is asked at most this many times what it bore within a second.
pub const LEAP: f64 = 2.0;
/// After a cut, what is heard this long still tells of the rate before it: answers are under way, and a
/// destination that counts by the second refuses for the rest of it.
const SETTLE: Duration = Duration::from_secs(1);
/// A slower pace climbs by its successes, as if each were a third of a second: were it to climb by the clock,
/// a destination of one call a minute would be probed with every call.
const SUCCESSES_PER_SECOND_MIN: f64 = 3.0;
/// Time of full use that was not yet turned into speed is kept no longer than this.
const CREDIT_MAX: Duration = Duration::from_secs(1);
/// The accepted rate is measured over windows no shorter than this.
const WINDOW: Duration = Duration::from_secs(1);

/// What is known of a destination's limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// It never refused. Nothing holds it back but `rate_max` and, where it is begun with slowly, what it bore so far; we count, to know
    /// where to begin when it does.
    Free(Tally),
    /// It refused, and is paced.
    Paced(Paced),
}

/// The pace of a destination that has refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paced {
    /// The rate at present.
    pub rate: PerSecond,
    /// The rate at which it last refused after it had borne it; `None` until that was seen.
    pub ceiling: Option<PerSecond>,
    /// Whether anything was accepted since the episode of the last cut. A refusal before that lowers the rate
    /// but is no news of the limit: the destination refuses everything, or still counts what came before.
    pub borne: bool,
    /// Calls up to this moment were paced by the rate before the cut; their refusals are no news.
    pub episode_until: Timestamp,
    /// Time of full use up to here has been turned into speed.
    pub grown_until: Timestamp,
}

/// Accepted calls, counted in windows of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// When the present window began.
    pub since: Timestamp,
    /// Accepted in the present window.
    pub accepted: u32,
    /// Accepted in the window before.
    pub accepted_before: u32,
}

impl Rate {
    /// Of a destination not yet called.
    pub const NEW: Self = Self::Free(Tally { since: Timestamp::EPOCH, accepted: 0, accepted_before: 0 });

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

    /// `count` calls were accepted. `held_back` says whether anyone waits for a slot: a rate that nobody
    /// exhausts has not been shown to be borne, so it does not rise.
    pub(super) fn accepted(self, settings: &Settings, now: Timestamp, count: u32, held_back: bool) -> Self {
        match self {
            Self::Free(tally) => Self::Free(tally.plus(now, count)),
            Self::Paced(paced) if now <= paced.episode_until => self,
            Self::Paced(paced) if held_back => Self::Paced(paced.grown(settings, now, count)),
            Self::Paced(paced) => Self::Paced(Paced { borne: true, ..paced }),
        }
    }

    /// The call that had its slot at `sent` was refused for coming too fast. Slots up to `handed_out` were
    /// given away at the present rate; no time before `rests_until` counts as use.
    pub(super) fn refused(
        self,
        settings: &Settings,
        sent: Timestamp,
        handed_out: Timestamp,
        rests_until: Timestamp,
    ) -> Self {
        let (rate, ceiling) = match self {
            // It was asked little more than what it bore, and that it bears; of a flood only what was saved up may have been let in.
            Self::Free(tally) if settings.rate_start.is_some() => (tally.per_second(), None),
            Self::Free(tally) => (tally.per_second().times(BACKOFF), None),
            Self::Paced(paced) if sent <= paced.episode_until => return self,
            Self::Paced(paced) if paced.borne => (paced.rate.times(BACKOFF), Some(paced.rate)),
            Self::Paced(paced) => (paced.rate.times(BACKOFF), paced.ceiling),
        };
        let episode_until = handed_out.plus(SETTLE);
        Self::Paced(Paced {
            rate: rate.within(settings),
            ceiling,
            borne: false,
            episode_until,
            grown_until: episode_until.max(rests_until),
        })
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

impl Paced {
    fn grown(self, settings: &Settings, now: Timestamp, count: u32) -> Self {
        let elapsed = now.since(self.grown_until);
        let earned = f64::from(count) / self.rate.get().max(SUCCESSES_PER_SECOND_MIN);
        let used = earned.min(elapsed.min(CREDIT_MAX).as_secs_f64());
        let forgotten = elapsed.saturating_sub(CREDIT_MAX);
        Self {
            rate: PerSecond::clamped(self.rate.get() + self.speed() * used).within(settings),
            borne: true,
            grown_until: self.grown_until.plus(forgotten).plus(Duration::from_secs_f64(used)),
            ..self
        }
    }

    /// Sends per second gained by one second of full use.
    fn speed(self) -> f64 {
        let Some(ceiling) = self.ceiling else {
            return self.rate.get() * SEARCH;
        };
        let height = self.rate.get() / ceiling.get();
        let below_knee = (KNEE - height).max(0.0);
        let above_ceiling = (height - 1.0).max(0.0);
        ceiling.get() * (GENTLE + QUICK * below_knee + PROBE * above_ceiling)
    }
}

impl Tally {
    fn plus(self, now: Timestamp, count: u32) -> Self {
        if now.since(self.since) < WINDOW {
            let accepted = self.accepted.saturating_add(count);
            return Self { accepted, ..self };
        }
        Self { since: now, accepted: count, accepted_before: self.accepted }
    }

    /// The better of two windows, since the present one has only begun; one at least, since a destination that
    /// answers at all bears something.
    fn per_second(self) -> PerSecond {
        let accepted = self.accepted.max(self.accepted_before).max(1);
        PerSecond::clamped(f64::from(accepted) / WINDOW.as_secs_f64())
    }
}
