//! A pause that the provider asked for.
// SPEC D6.

use std::fmt;
use std::time::Duration;

use ichido_core::plan::Estimate;
use ichido_core::time::Timestamp;
use ichido_http::clock;

use super::limits;
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
    /// How long the provider asked for, if that is longer than [`limits::MAX_PAUSE`].
    pub requested: Option<Duration>,
}

impl JudgePause {
    pub(super) fn new(left: Duration, requested: Option<Duration>) -> Self {
        let requested = requested.filter(|requested| limits::MAX_PAUSE < *requested);
        Self { until: clock::now().plus(left), left, requested }
    }

    /// Formats the end, such as `paused until 11:42 UTC (40m 00s from now)`.
    pub fn render_end(&self) -> String {
        let minutes = self.until.as_millis().div_euclid(60_000);
        let (hour, minute) = (minutes.div_euclid(60).rem_euclid(24), minutes.rem_euclid(60));
        let left = format_duration(Duration::from_secs(self.left.as_secs()));
        format!("paused until {hour:02}:{minute:02} UTC ({left} from now)")
    }

    /// Returns the estimate of a batch that starts after this pause. On a bad day it is as long as the provider asked
    /// for.
    pub(crate) fn delays(&self, estimate: Estimate) -> Estimate {
        let delayed = estimate.after(self.left);
        let rest =
            self.requested.map_or(Duration::ZERO, |requested| requested.saturating_sub(limits::MAX_PAUSE));
        Estimate { bad_day: delayed.bad_day.saturating_add(rest), ..delayed }
    }
}

impl fmt::Display for JudgePause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.render_end();
        match self.requested.map(format_duration) {
            Some(asked) => write!(f, "{end}, when one call asks again; the provider asked for {asked}"),
            None => write!(f, "{end} by the provider"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_names_its_end_and_how_long_that_is() {
        for (until, millis, text) in [
            (1_763_552_520, 2_400_500, "paused until 11:42 UTC (40m 00s from now) by the provider"),
            (1_763_596_859, 59_900, "paused until 00:00 UTC (59s from now) by the provider"),
        ] {
            let (until, left) = (Timestamp::from_secs(until), Duration::from_millis(millis));
            assert_eq!(JudgePause { until, left, requested: None }.to_string(), text);
        }
    }

    #[test]
    fn pause_says_what_was_asked_for_if_that_is_longer() {
        let hour = Duration::from_hours(1);
        assert_eq!(JudgePause::new(hour, Some(hour)).requested, None);
        let pause = JudgePause::new(hour, Some(2 * hour));
        let text = pause.to_string();
        assert!(
            text.ends_with(" UTC (1h 00m from now), when one call asks again; the provider asked for 2h 00m"),
            "{text}"
        );
        let minute = Duration::from_mins(1);
        let delayed = pause.delays(Estimate { best: minute, likely: minute, bad_day: minute });
        assert_eq!((delayed.likely, delayed.bad_day), (hour + minute, 2 * hour + minute));
    }
}
