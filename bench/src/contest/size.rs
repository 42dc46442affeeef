//! How much a run measures, of which contestants, and about how long that takes.

use super::RATES;
use super::contestant::CONTESTANTS;
use super::endpoint::ENDPOINTS;
use super::results::float;

/// How much is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(super) rounds: usize,
    /// The maximum number of messages that a contestant drains.
    pub(super) max_messages: usize,
    /// Messages enqueued one by one.
    pub(super) singly: usize,
    /// Seconds of each rate.
    pub(super) seconds: f64,
    pub(super) is_quick: bool,
}

impl Size {
    pub(crate) const FULL: Self =
        Self { rounds: 3, max_messages: 100_000, singly: 1_000, seconds: 3.0, is_quick: false };
    pub(crate) const QUICK: Self =
        Self { rounds: 1, max_messages: 2_000, singly: 200, seconds: 1.0, is_quick: true };

    /// Returns about how many minutes a run takes from this many finished rounds on, on two cores.
    pub(super) fn minutes_left(self, rounds: usize) -> f64 {
        // Starts, tables, bulks, drains, vacuums; and what a pickup takes longer than its messages are offered.
        let contestant = 13.0 + 1.5 * self.seconds * float(RATES.len());
        let endpoint = 3.0 + 3.0 * self.seconds;
        let round = contestant * float(CONTESTANTS.len()) + endpoint * float(ENDPOINTS.len());
        let growth = 60.0 + float(self.max_messages) / 500.0;
        (round * float(self.rounds.saturating_sub(rounds)) + growth) / 60.0
    }
}

/// The contestants of this run: all, or those whose names begin with one of these.
pub(crate) struct Chosen<'a>(pub(super) &'a [&'a str]);

impl Chosen<'_> {
    pub(super) fn all(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.all() || self.0.iter().any(|chosen| name.starts_with(chosen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_run_takes_less_than_half_an_hour() {
        let minutes = Size::FULL.minutes_left(0);
        assert!((10.0..30.0).contains(&minutes), "{minutes}");
        assert!(Size::FULL.minutes_left(2) < Size::FULL.minutes_left(1));
    }

    #[test]
    fn contestants_are_chosen_by_the_beginning_of_their_names() {
        assert!(Chosen(&[]).has("awa"));
        assert!(Chosen(&["axum"]).has("axum-idempotent 0.6.0") && !Chosen(&["axum"]).has("awa"));
    }
}
