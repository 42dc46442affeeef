//! The retry budget: retries are a share of successful calls.
//!
//! Without it, callers that each follow their own schedule would overload a failing server with repetitions.

/// How a budget fills and empties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetSettings {
    /// The maximum that can be saved, in hundredths of a retry.
    pub capacity: u32,
    /// What one successful call adds, in hundredths of a retry.
    ///
    /// 20 allows one retry per five calls.
    pub earned_per_success: u32,
}

impl BudgetSettings {
    /// At most 10 saved retries, and one more for every five successes.
    pub const DEFAULT: Self = Self { capacity: 1_000, earned_per_success: 20 };
}

/// A token bucket that successes fill and retries empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    settings: BudgetSettings,
    tokens: u32, // Invariant: at most settings.capacity.
}

impl Budget {
    /// The cost of one retry. An integer, because sums of fractions drift.
    const COST: u32 = 100;

    /// Creates a full budget: a client that has just started may retry.
    pub const fn full(settings: BudgetSettings) -> Self {
        Self { settings, tokens: settings.capacity }
    }

    /// Records a call that succeeded at its first attempt.
    #[must_use]
    pub fn after_success(self) -> Self {
        let tokens = self.tokens.saturating_add(self.settings.earned_per_success);
        Self { tokens: tokens.min(self.settings.capacity), ..self }
    }

    /// Pays for one retry.
    ///
    /// Returns `None` if the budget is too low and the failure is final.
    pub fn spend(self) -> Option<Self> {
        let tokens = self.tokens.checked_sub(Self::COST)?;
        Some(Self { tokens, ..self })
    }
}
