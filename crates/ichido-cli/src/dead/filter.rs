//! The flags that select letters.

use clap::ValueEnum;
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use serde_json::Value;

use ichido_core::settings::ConfigErrors;
use ichido_core::settings::duration;
use ichido_http::clock;
use ichido_server::accept;

/// Selects dead letters; all given flags must match.
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
pub(super) struct DeadLetterFilter {
    /// Parked messages instead of dead letters
    #[arg(long)]
    parked: bool,
    /// In this queue
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// With this last error code, such as `BROKER_5XX`
    #[arg(long, value_name = "CODE")]
    error: Option<String>,
    /// With this effect
    #[arg(long, value_enum)]
    effect: Option<EffectFilter>,
    /// From this identity
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// Dead or parked since a time, or an age (2h)
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Dead or parked before: a time, or an age
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// With this text in the last error
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Discarded dead letters
    #[arg(long, conflicts_with = "parked")]
    discarded: bool,
    /// Dead letters replaced by a new message
    #[arg(long, conflicts_with_all = ["parked", "discarded"])]
    replaced: bool,
    /// Dead letters, where the default is parked messages.
    #[arg(skip)]
    pub(super) dead: bool,
}

ichido_core::words! {
    /// What is known of an effect.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
    enum EffectFilter {
        /// It did not take effect
        NotDone = "not_done",
        /// It took effect
        Done = "done",
        /// It may have taken effect
        Unknown = "unknown",
    }
}

impl DeadLetterFilter {
    /// Returns whether the filter selects all letters.
    pub(super) fn is_all(&self) -> bool {
        *self == Self::default()
    }

    pub(super) const fn is_of_parked(&self) -> bool {
        self.parked
    }

    /// Returns the query parameters for the API.
    pub(super) fn query(&self) -> Result<Vec<(&'static str, String)>, ConfigErrors> {
        let standing = match (self.discarded, self.replaced) {
            (true, _) => "discarded",
            (_, true) => "replaced",
            _ => "open",
        };
        let state = if self.parked { "parked" } else { "dead" };
        let mut all = self.read(clock::now())?;
        all.extend([("state", state.to_owned()), ("disposition", standing.to_owned())]);
        Ok(all)
    }

    /// Returns the filter as JSON, for a bulk operation.
    pub(super) fn to_json(&self) -> Result<Value, ConfigErrors> {
        let all = self.read(clock::now())?.into_iter().map(|(name, value)| (name, Value::from(value)));
        let closed = [("discarded", self.discarded), ("replaced", self.replaced)];
        let closed = closed.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| (name, true.into()));
        let state = [("parked", self.parked), ("dead", self.dead)].into_iter().find(|(_, is_set)| *is_set);
        let state = state.map(|(state, _)| ("state", state.into()));
        Ok(Value::Object(
            all.chain(closed).chain(state).map(|(name, value)| (name.to_owned(), value)).collect(),
        ))
    }

    /// Returns the parameters that both forms share, or all errors.
    fn read(&self, now: Timestamp) -> Result<Vec<(&'static str, String)>, ConfigErrors> {
        let mut faults = ConfigErrors::default();
        if let Some(name) = &self.queue {
            faults.check("--queue", accept::queue_name(name));
        }
        if let Some(code) = &self.error {
            faults.check("--error", ErrorCode::parse_any_case(code).ok_or_else(|| no_code(code)));
        }
        if self.text.as_deref() == Some("") {
            faults.add("--text", "is empty, which would select everything; leave it out");
        }
        let mut time = |flag: &str, text: &Option<String>| {
            let moment = text.as_deref().and_then(|text| faults.check(flag, moment(text, now)));
            moment.map(|moment| moment.to_string())
        };
        let all = [
            ("queue", self.queue.clone()),
            ("code", self.error.clone()),
            ("effect", self.effect.map(|known| known.as_str().to_owned())),
            ("identity", self.identity.clone()),
            ("since_from", time("--from", &self.from)),
            ("since_before", time("--before", &self.before)),
            ("text", self.text.clone()),
        ];
        faults.or(Some(all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()))
    }
}

fn no_code(code: &str) -> String {
    format!("{code} is not an error code; use one of {}", ErrorCode::WORDS.join(", "))
}

/// Parses a moment, or a duration before `now`.
pub(crate) fn moment(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Some(moment) = Timestamp::parse(text) {
        return Ok(moment);
    }
    let ago = duration::parse(text).map_err(|_| {
        format!("{text} is not a time; write a timestamp such as 2026-11-15T03:00:00Z, or an age such as 45m, 2h, 3d")
    })?;
    let micros = i64::try_from(ago.as_micros()).unwrap_or(i64::MAX);
    Ok(Timestamp::from_micros(now.as_micros().saturating_sub(micros)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    #[test]
    fn time_filter_accepts_timestamp_or_age() {
        assert_eq!(moment("2027-01-15T08:00:00Z", NOW), Ok(NOW));
        assert_eq!(moment("2h", NOW), Ok(Timestamp::from_secs(1_800_000_000 - 7_200)));
        assert!(moment("yesterday", NOW).is_err());
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let filter = DeadLetterFilter {
            queue: Some("no blanks".to_owned()),
            error: Some("TEAPOT".to_owned()),
            from: Some("yesterday".to_owned()),
            ..DeadLetterFilter::default()
        };
        let text = filter.read(NOW).unwrap_err().to_string();
        for part in ["3 problems", "--queue", "--error", "BROKER_5XX", "--from", "2h"] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
    }
}
