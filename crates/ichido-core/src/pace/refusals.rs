//! What refusals mean: whether more calls are refused than usual, and how many are refused at any rate.
//!
//! Guarantee: a refusal now and then is not evidence of a limit. When too many calls are refused, that is known after a few of them, and so
//! is the rate at which it began.
//!
//! The test is Page's CUSUM over a likelihood ratio. Each answer changes the weight of the evidence by how much likelier that answer is if
//! too many calls are refused than if the usual share is; evidence that falls to zero is dropped. By chance it reaches `ln n` about once in
//! `n` answers, so a threshold that grows with the rate keeps false alarms the same time apart at any rate.

use super::per_second::PerSecond;

/// A smaller share than this is not told from none: a destination that never refused may still refuse one call in fifty.
const USUAL_MIN: f64 = 0.02;
/// From this share on, refusals are too many at any rate: a limit is the likelier reason.
pub(super) const TOO_MANY: f64 = 0.2;
/// Too many are this much more than the usual share.
const EXCESS: f64 = 0.1;
/// The seconds between two false alarms, were every call refused with the usual probability.
const FALSE_ALARM_S: f64 = 120.0;
/// Fewer answers than this are not a share: one refusal among three calls says little.
const ANSWERS_MIN: f64 = 16.0;
/// About so many answers count towards the usual share; older ones fade.
const MEMORY: f64 = 256.0;
/// A share at a lower rate that is under this part of the one before has fallen. Less than all of it, since the share before a fall was
/// taken where it was highest.
const FELL: f64 = 0.7;

/// Counts of answers. They are fractions where older answers have faded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answers {
    /// Accepted calls.
    pub accepted: f64,
    /// Refused calls.
    pub refused: f64,
}

impl Answers {
    /// No answers.
    pub const NONE: Self = Self { accepted: 0.0, refused: 0.0 };
    /// One refusal.
    pub(super) const REFUSAL: Self = Self { accepted: 0.0, refused: 1.0 };

    pub(super) fn accepted(count: u32) -> Self {
        Self { accepted: f64::from(count), refused: 0.0 }
    }

    pub(super) fn total(self) -> f64 {
        self.accepted + self.refused
    }

    /// The share that was refused.
    pub(super) fn share(self) -> f64 {
        self.refused / self.total().max(ANSWERS_MIN)
    }

    pub(super) fn plus(self, more: Self) -> Self {
        Self { accepted: self.accepted + more.accepted, refused: self.refused + more.refused }
    }

    /// With more answers, and the older ones faded.
    pub(super) fn faded_plus(self, more: Self) -> Self {
        let kept = (1.0 - more.total() / MEMORY).max(0.0);
        Self { accepted: self.accepted * kept, refused: self.refused * kept }.plus(more)
    }
}

/// The two shares of refusals that a test tells apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    usual: f64,
    excess: f64,
}

impl Shares {
    /// The share that is refused at any rate, and one that is too high.
    pub(super) fn usual(answers: Answers) -> Self {
        let usual = answers.share().clamp(USUAL_MIN, TOO_MANY);
        Self { usual, excess: usual + EXCESS }
    }

    /// The usual share, and the one from before the rate fell.
    pub(super) fn or_as_before(self, before: f64) -> Self {
        Self { excess: self.excess.max(FELL * before), ..self }
    }

    /// How much likelier the answers are with the higher share, as a logarithm: below zero, they are likelier with the usual one.
    pub(super) fn weight(self, answers: Answers) -> f64 {
        let accepted = ((1.0 - self.excess) / (1.0 - self.usual)).ln();
        let refused = (self.excess / self.usual).ln();
        answers.accepted * accepted + answers.refused * refused
    }
}

/// Evidence that more calls are refused than usual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// How much likelier the answers are if too many calls are refused, as a logarithm.
    pub weight: f64,
    /// The rate at the first of the answers.
    pub onset: PerSecond,
    /// The answers.
    pub answers: Answers,
}

impl Evidence {
    /// No evidence.
    pub const NONE: Self = Self { weight: 0.0, onset: PerSecond::MIN, answers: Answers::NONE };

    /// With answers to calls at this rate.
    pub(super) fn with(self, shares: Shares, rate: PerSecond, answers: Answers) -> Self {
        let weight = self.weight + shares.weight(answers);
        if weight <= 0.0 {
            return Self::NONE;
        }
        let onset = if self.weight <= 0.0 { rate } else { self.onset };
        Self { weight, onset, answers: self.answers.plus(answers) }
    }

    /// Whether it is more than chance explains.
    pub(super) fn is_certain(self, rate: PerSecond) -> bool {
        // Eight answers at least: at the slowest rates two minutes hold hardly one.
        const ANSWERS_APART_MIN: f64 = 8.0;
        (FALSE_ALARM_S * rate.get()).max(ANSWERS_APART_MIN).ln() <= self.weight
    }
}
