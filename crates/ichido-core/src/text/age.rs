//! Times relative to now, as people read them.
//!
//! Guarantee: a past time never reads as a future one, whatever the clocks of two machines say.

use std::time::Duration;

use crate::time::Timestamp;

/// Formats how long ago a time was: `3m ago`.
///
/// A time in the future is `0s ago`: the clocks of two machines differ.
pub fn ago(then: Timestamp, now: Timestamp) -> String {
    format!("{} ago", rounded(now.since(then)))
}

/// Formats how long it takes until a time: `in 12s`, or `now` if it has passed.
pub fn until(then: Timestamp, now: Timestamp) -> String {
    if then <= now { "now".to_owned() } else { format!("in {}", rounded(then.since(now))) }
}

/// Rounds a duration down to one unit. The unit changes at two of the next one, so the error is less than half.
fn rounded(duration: Duration) -> String {
    let secs = duration.as_secs();
    match secs {
        ..120 => format!("{secs}s"),
        120..7_200 => format!("{}m", secs / 60),
        7_200..172_800 => format!("{}h", secs / 3_600),
        _ => format!("{}d", secs / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    #[test]
    fn ages_have_one_unit() {
        for (secs, text) in [
            (0, "0s ago"),
            (119, "119s ago"),
            (120, "2m ago"),
            (7_199, "119m ago"),
            (7_200, "2h ago"),
            (172_799, "47h ago"),
            (172_800, "2d ago"),
            (-5, "0s ago"),
        ] {
            assert_eq!(ago(Timestamp::from_secs(1_800_000_000 - secs), NOW), text);
        }
    }

    #[test]
    fn an_attempt_that_is_due_is_now() {
        for (secs, text) in [(12, "in 12s"), (180, "in 3m"), (0, "now"), (-3, "now")] {
            assert_eq!(until(Timestamp::from_secs(1_800_000_000 + secs), NOW), text);
        }
    }
}
