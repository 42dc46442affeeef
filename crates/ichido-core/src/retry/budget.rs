//! The retry budget: retries are a share of the work that succeeds, so that a failing server is not
//! buried under repetitions by callers who each follow their schedule.

/// How a budget fills and empties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetSettings {
    /// The most that can be saved up, in hundredths of a retry.
    pub capacity: u32,
    /// What one successful call adds, in hundredths of a retry: 20 lets one call in five be a retry.
    pub earned_per_success: u32,
}

impl BudgetSettings {
    /// 10 retries saved up at most, and one more for every five successes.
    pub const DEFAULT: Self = Self { capacity: 1_000, earned_per_success: 20 };
}

/// A token bucket that is filled by successes and emptied by retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    settings: BudgetSettings,
    tokens: u32, // Invariant: at most settings.capacity.
}

impl Budget {
    /// What one retry costs. Whole numbers, because sums of fractions drift.
    const COST: u32 = 100;

    /// A full budget: a client that has just started may retry.
    pub const fn full(settings: BudgetSettings) -> Self {
        Self { settings, tokens: settings.capacity }
    }

    /// A call succeeded at its first try.
    #[must_use]
    pub fn after_success(self) -> Self {
        let tokens = self.tokens.saturating_add(self.settings.earned_per_success);
        Self { tokens: tokens.min(self.settings.capacity), ..self }
    }

    /// Pays for one retry; `None` when there is not enough left and the failure must stand.
    pub fn spend(self) -> Option<Self> {
        let tokens = self.tokens.checked_sub(Self::COST)?;
        Some(Self { tokens, ..self })
    }
}
