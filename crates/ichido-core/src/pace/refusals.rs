//! What refusals mean.
//!
//! This module detects whether more calls are refused than usual, and how many are refused at any rate.
//!
//! Guarantee: an occasional refusal is not evidence of a limit. If too many calls are refused, a few of them suffice to
//! detect that, and the rate at which it began.
//!
//! The test is Page's CUSUM over a likelihood ratio. Each response changes the weight of the evidence by how much
//! likelier it is if too many calls are refused than if the usual share is; evidence that falls to zero is dropped. By
//! chance it reaches `ln n` about once in `n` responses, so a threshold that grows with the rate keeps false alarms the
//! same time apart at any rate.

use super::per_second::PerSecond;

/// A smaller share than this cannot be distinguished from none.
///
/// A destination that never refused may still refuse one call in fifty.
const MIN_USUAL: f64 = 0.02;
/// From this share on, refusals are too many at any rate.
///
/// A limit is the likelier reason.
pub(super) const TOO_MANY: f64 = 0.2;
/// Too many are this much more than the usual share.
const EXCESS: f64 = 0.1;
/// The seconds between two false alarms if every call were refused with the usual probability.
const FALSE_ALARM_S: f64 = 120.0;
/// Fewer responses than this are not a share: one refusal among three calls says little.
const MIN_ANSWERS: f64 = 16.0;
/// About this many responses count towards the usual share; older ones fade.
const MEMORY: f64 = 256.0;
/// A share has fallen if it is below this part of the previous one.
///
/// The part is less than one, because the share before a fall was measured at its highest.
const FELL: f64 = 0.7;

/// Counts of responses; fractions where older ones have faded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResponseCounts {
    /// Accepted calls.
    pub accepted: f64,
    /// Refused calls.
    pub refused: f64,
}

impl ResponseCounts {
    /// No responses.
    pub const NONE: Self = Self { accepted: 0.0, refused: 0.0 };
    /// One refusal.
    pub(super) const REFUSAL: Self = Self { accepted: 0.0, refused: 1.0 };

    pub(super) fn accepted(count: u32) -> Self {
        Self { accepted: f64::from(count), refused: 0.0 }
    }

    pub(super) fn total(self) -> f64 {
        self.accepted + self.refused
    }

    /// Returns the share that was refused.
    pub(super) fn share(self) -> f64 {
        self.refused / self.total().max(MIN_ANSWERS)
    }

    pub(super) fn plus(self, more: Self) -> Self {
        Self { accepted: self.accepted + more.accepted, refused: self.refused + more.refused }
    }

    /// Adds responses and fades older ones.
    pub(super) fn faded_plus(self, more: Self) -> Self {
        let kept = (1.0 - more.total() / MEMORY).max(0.0);
        Self { accepted: self.accepted * kept, refused: self.refused * kept }.plus(more)
    }
}

/// The two shares of refusals that a test distinguishes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    usual: f64,
    excess: f64,
}

impl Shares {
    /// Returns the share that is refused at any rate, and one that is too high.
    pub(super) fn usual(answers: ResponseCounts) -> Self {
        let usual = answers.share().clamp(MIN_USUAL, TOO_MANY);
        Self { usual, excess: usual + EXCESS }
    }

    /// Returns the usual share, and the one from before the rate fell.
    pub(super) fn or_as_before(self, before: f64) -> Self {
        Self { excess: self.excess.max(FELL * before), ..self }
    }

    /// Returns how much likelier the responses are with the higher share, as a logarithm.
    ///
    /// Below zero, they are likelier with the usual one.
    pub(super) fn weight(self, answers: ResponseCounts) -> f64 {
        let accepted = ((1.0 - self.excess) / (1.0 - self.usual)).ln();
        let refused = (self.excess / self.usual).ln();
        answers.accepted * accepted + answers.refused * refused
    }
}

/// Evidence that more calls are refused than usual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// How much likelier the responses are if too many calls are refused, as a logarithm.
    pub weight: f64,
    /// The rate at the first of the responses.
    pub onset: PerSecond,
    /// The responses.
    pub answers: ResponseCounts,
}

impl Evidence {
    /// No evidence.
    pub const NONE: Self = Self { weight: 0.0, onset: PerSecond::MIN, answers: ResponseCounts::NONE };

    /// Adds responses to calls at this rate.
    pub(super) fn with(self, shares: Shares, rate: PerSecond, answers: ResponseCounts) -> Self {
        let weight = self.weight + shares.weight(answers);
        if weight <= 0.0 {
            return Self::NONE;
        }
        let onset = if self.weight <= 0.0 { rate } else { self.onset };
        Self { weight, onset, answers: self.answers.plus(answers) }
    }

    /// Returns whether it exceeds chance.
    pub(super) fn is_certain(self, rate: PerSecond) -> bool {
        // At least eight responses: at the slowest rates two minutes hold hardly one.
        const MIN_ANSWERS_APART: f64 = 8.0;
        (FALSE_ALARM_S * rate.get()).max(MIN_ANSWERS_APART).ln() <= self.weight
    }
}
