//! The pace of a destination that has refused: it falls, listens and climbs.
//!
//! Guarantee: it falls only while more calls are refused than usual. Refusals that are just as frequent at a lower rate
//! do not keep it low.
//!
//! After a fall, calls go out at the lower rate until it is clear whether fewer of them are refused. If so, there is a
//! limit, and the rate climbs back to it carefully. If not, the destination refuses that share at any rate: the share
//! becomes the usual one, and the rate returns to where it was.

use std::time::Duration;

use super::per_second::PerSecond;
use super::rate::BACKOFF;
use super::refusals::{Evidence, ResponseCounts, Shares, TOO_MANY};
use super::settings::PaceSettings;
use crate::time::Timestamp;

/// Below this share of the ceiling the climb is fast; above it is slow.
const KNEE: f64 = 0.95;
/// Below the knee, the share of the distance to it that one second of full use gains.
const QUICK: f64 = 0.5;
/// The share of the ceiling that one second of full use always adds.
///
/// It leads from knee to ceiling in fifty seconds.
const GENTLE: f64 = 0.001;
/// Above the ceiling, the share of the excess that is added on top.
const PROBE: f64 = 0.05;
/// At this multiple the ceiling is dropped: reached after fifty seconds, from there the limit is searched again.
const ESCAPED: f64 = 1.25;
/// While no ceiling is known, the share of the rate that one second of full use adds.
const SEARCH: f64 = 0.35;
/// A fall that ends a search, or comes while listening, leaves this share of the rate.
///
/// The limit is somewhere below.
const SEARCHED: f64 = 0.5;
/// A slower pace climbs by successes, each worth a third of a second.
///
/// If it climbed by the clock, a destination of one call a minute would be probed with every call.
const MIN_SUCCESSES_PER_SECOND: f64 = 3.0;
/// Unused time of full use is kept no longer than this.
const MAX_CREDIT: Duration = Duration::from_secs(1);
/// Listening takes at least this many responses and this long, so the share is meaningful.
const LISTEN_ANSWERS: f64 = 16.0;
const MIN_LISTEN: Duration = Duration::from_secs(1);
/// How likely one share must become before listening ends.
///
/// The responses must be `e²` times likelier with one share than with the other. Listening takes no longer than the
/// maximum, because the rate is low meanwhile.
const LISTEN_CERTAIN: f64 = 2.0;
const MAX_LISTEN: Duration = Duration::from_secs(10);
/// After this many refusals without an acceptance the rate falls again.
const REFUSED_OUTRIGHT: f64 = 2.0;

/// The pace of a destination that has refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paced {
    /// The current rate.
    pub rate: PerSecond,
    /// The rate at which it last began to refuse; `None` until that was seen.
    pub ceiling: Option<PerSecond>,
    /// Responses after a fall, at rates that the destination accepts: what it refuses at any rate.
    pub usual: ResponseCounts,
    /// What the responses are used for.
    pub phase: PacePhase,
    /// Calls up to this time were paced by the rate before the fall.
    ///
    /// Their responses say nothing.
    pub episode_until: Timestamp,
    /// Time of full use up to here has been converted into speed.
    pub grown_until: Timestamp,
}

/// What the responses are used for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PacePhase {
    /// The rate has fallen and stays until the effect is clear.
    Listening {
        /// The responses since the fall.
        answers: ResponseCounts,
        /// The share that was refused before.
        before: f64,
    },
    /// The rate climbs while few are refused.
    Climbing(Evidence),
}

/// The rate after a fall.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fall {
    pub(super) rate: PerSecond,
    pub(super) ceiling: Option<PerSecond>,
    pub(super) usual: ResponseCounts,
    pub(super) before: f64,
}

impl Fall {
    /// Returns the pace after the fall.
    ///
    /// Calls with a slot up to `handed_out` have no response yet; nothing is called before `rests_until`.
    pub(super) fn paced(
        self,
        settings: &PaceSettings,
        handed_out: Timestamp,
        rests_until: Timestamp,
    ) -> Paced {
        /// Responses are pending, and a destination that counts by the second refuses for the rest of it.
        const SETTLE: Duration = Duration::from_secs(1);
        let Self { rate, ceiling, usual, before } = self;
        let episode_until = handed_out.plus(SETTLE);
        Paced {
            rate: rate.within(settings),
            ceiling,
            usual,
            phase: PacePhase::Listening { answers: ResponseCounts::NONE, before },
            episode_until,
            grown_until: episode_until.max(rests_until),
        }
    }
}

impl Paced {
    /// Records the response to a call that was sent after the fall.
    pub(super) fn with_responses(self, now: Timestamp, new: ResponseCounts) -> Self {
        let phase = match self.phase {
            PacePhase::Climbing(evidence) => {
                PacePhase::Climbing(evidence.with(Shares::usual(self.usual), self.rate, new))
            }
            PacePhase::Listening { answers, before } => {
                let answers = answers.plus(new);
                if let Some(fell) = self.has_fallen(now, answers, before) {
                    return self.judged(now, answers, fell);
                }
                PacePhase::Listening { answers, before }
            }
        };
        Self { phase, ..self }
    }

    /// Returns how far the rate falls, if it does.
    pub(super) fn fall(self) -> Option<Fall> {
        match self.phase {
            PacePhase::Climbing(evidence) if evidence.is_certain(self.rate) => {
                // Where the refusals began, not where they were noticed; but no less than one fall below.
                let ceiling = evidence.onset.faster(self.rate.times(BACKOFF));
                let left = if self.ceiling.is_some() { BACKOFF } else { SEARCHED };
                let before = evidence.answers.share();
                Some(Fall { rate: ceiling.times(left), ceiling: Some(ceiling), usual: self.usual, before })
            }
            PacePhase::Listening { answers, .. } if is_refused_outright(answers) => {
                let Self { rate, ceiling, usual, .. } = self;
                Some(Fall { rate: rate.times(SEARCHED), ceiling, usual, before: answers.share() })
            }
            _ => None,
        }
    }

    /// Returns whether fewer are refused than before the fall; `None` while that is open.
    fn has_fallen(self, now: Timestamp, answers: ResponseCounts, before: f64) -> Option<bool> {
        let listened = now.since(self.grown_until);
        let weight = Shares::usual(self.usual).or_as_before(before).weight(answers);
        let is_certain =
            MIN_LISTEN <= listened && LISTEN_ANSWERS <= answers.total() && LISTEN_CERTAIN <= weight.abs();
        let is_over = 0.0 < answers.accepted && (is_certain || MAX_LISTEN <= listened);
        is_over.then_some(weight < 0.0)
    }

    fn judged(self, now: Timestamp, answers: ResponseCounts, fell: bool) -> Self {
        let share = answers.share();
        let judged = Self {
            phase: PacePhase::Climbing(Evidence::NONE),
            grown_until: self.grown_until.max(now),
            ..self
        };
        if TOO_MANY <= share {
            let phase = PacePhase::Listening { answers: ResponseCounts::NONE, before: share };
            return Self { rate: self.rate.times(SEARCHED), ceiling: Some(self.rate), phase, ..judged };
        }
        if fell && self.usual.share() < share {
            // Fewer are refused than before, but more than usual: it is still above the limit.
            return judged;
        }
        let usual = if self.is_clean(answers) { answers } else { self.usual.faded_plus(answers) };
        if fell {
            return Self { usual, ..judged };
        }
        Self { usual, rate: self.ceiling.unwrap_or(self.rate), ceiling: None, ..judged }
    }

    /// Returns whether nothing was refused where a few refusals were expected: then the usual share is outdated.
    fn is_clean(self, answers: ResponseCounts) -> bool {
        const MIN_EXPECTED: f64 = 3.0;
        answers.refused == 0.0 && MIN_EXPECTED <= answers.total() * self.usual.share()
    }

    /// Records that `count` calls were accepted while a node waited for a slot.
    pub(super) fn grown(self, settings: &PaceSettings, now: Timestamp, count: u32) -> Self {
        if matches!(self.phase, PacePhase::Listening { .. }) {
            return self;
        }
        let elapsed = now.since(self.grown_until);
        let earned = f64::from(count) / self.rate.get().max(MIN_SUCCESSES_PER_SECOND);
        let used = earned.min(elapsed.min(MAX_CREDIT).as_secs_f64());
        let forgotten = elapsed.saturating_sub(MAX_CREDIT);
        let rate = PerSecond::clamped(self.rate.get() + self.speed() * used).within(settings);
        Self {
            rate,
            ceiling: self.ceiling.filter(|ceiling| rate < ceiling.times(ESCAPED)),
            grown_until: self.grown_until.plus(forgotten).plus(Duration::from_secs_f64(used)),
            ..self
        }
    }

    /// Returns the calls per second gained by one second of full use.
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

fn is_refused_outright(answers: ResponseCounts) -> bool {
    answers.accepted == 0.0 && REFUSED_OUTRIGHT <= answers.refused
}
