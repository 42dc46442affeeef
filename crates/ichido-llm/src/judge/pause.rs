//! A pause that the provider asked for.
// SPEC D6.

use std::fmt;
use std::time::Duration;

use ichido_core::time::Timestamp;
use ichido_http::clock;

use crate::seconds::format_duration;

/// The time in which a run makes no call, because the provider asked for it.
///
/// It is as long as the provider asked for, but at most [`limits::MAX_PAUSE`](super::limits::MAX_PAUSE); then one call
/// asks again. Or the provider reported that nothing is left of one of its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JudgePause {
    /// When it ends.
    pub until: Timestamp,
    /// How long that is from now.
    pub left: Duration,
}

impl JudgePause {
    pub(super) fn new(left: Duration) -> Self {
        Self { until: clock::now().plus(left), left }
    }

    /// Formats the end, such as `paused until 11:42 UTC`.
    pub fn render_end(&self) -> String {
        let minutes = self.until.as_millis().div_euclid(60_000);
        let (hour, minute) = (minutes.div_euclid(60).rem_euclid(24), minutes.rem_euclid(60));
        format!("paused until {hour:02}:{minute:02} UTC")
    }
}

impl fmt::Display for JudgePause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = format_duration(Duration::from_secs(self.left.as_secs()));
        write!(f, "{} ({left} from now)", self.render_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_names_its_end_and_how_long_that_is() {
        for (until, millis, text) in [
            (1_763_552_520, 2_400_500, "paused until 11:42 UTC (40m 00s from now)"),
            (1_763_596_859, 59_900, "paused until 00:00 UTC (59s from now)"),
        ] {
            let pause =
                JudgePause { until: Timestamp::from_secs(until), left: Duration::from_millis(millis) };
            assert_eq!(pause.to_string(), text);
        }
    }
}
