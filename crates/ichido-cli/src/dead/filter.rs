//! Which letters, as flags.

use clap::ValueEnum;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::letter::{LetterFilter, Standing};
use ichido_store::message::{LetterState, QueueName};
use serde_json::Value;

use crate::faults::Faults;
use crate::{clock, duration};

/// Which letters; all flags together must fit.
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
pub(super) struct Filter {
    /// Parked letters in place of dead ones
    #[arg(long)]
    parked: bool,
    /// Of this queue
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// With this code as the last error, such as `BROKER_5XX`
    #[arg(long, value_name = "CODE")]
    error: Option<String>,
    /// Of which this is known
    #[arg(long, value_enum)]
    effect: Option<Known>,
    /// Of this identity
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// Dead or parked from then on: a moment as listed, or so long ago: 2h
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Dead or parked before then
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// With this text in what the last error said
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Those that somebody discarded
    #[arg(long, conflicts_with = "parked")]
    discarded: bool,
    /// Those that a new message was made from
    #[arg(long, conflicts_with_all = ["parked", "discarded"])]
    replaced: bool,
}

/// What is known of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Known {
    /// It was not done
    NotDone,
    /// It was done
    Done,
    /// Nobody knows
    Unknown,
}

impl Known {
    /// As the API names it.
    const fn word(self) -> &'static str {
        match self {
            Self::NotDone => "not_done",
            Self::Done => "done",
            Self::Unknown => "unknown",
        }
    }
}

impl Filter {
    /// Whether it narrows nothing.
    pub(super) fn is_all(&self) -> bool {
        *self == Self::default()
    }

    pub(super) const fn is_of_parked(&self) -> bool {
        self.parked
    }

    /// What a server is asked for, as a query.
    pub(super) fn query(&self) -> Result<Vec<(&'static str, String)>, Faults> {
        let standing = match (self.discarded, self.replaced) {
            (true, _) => "discarded",
            (_, true) => "replaced",
            _ => "open",
        };
        let [from, before] = self.moments()?;
        let all = [
            ("state", Some(if self.parked { "parked" } else { "dead" }.to_owned())),
            ("standing", Some(standing.to_owned())),
            ("queue", self.queue.clone()),
            ("code", self.error.clone()),
            ("effect", self.effect.map(|known| known.word().to_owned())),
            ("identity", self.identity.clone()),
            ("since_from", from),
            ("since_before", before),
            ("text", self.text.clone()),
        ];
        Ok(all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }

    /// The same as JSON, for what is done to many.
    pub(super) fn told(&self) -> Result<Value, Faults> {
        let mut faults = Faults::default();
        if self.replaced {
            faults.add("--replaced", "is for a list: what a new message was made from is not sent again, and needs no more attention");
        }
        faults.or(Some(()))?;
        let [from, before] = self.moments()?;
        let all = [
            ("queue", self.queue.clone().map(Value::from)),
            ("code", self.error.clone().map(Value::from)),
            ("effect", self.effect.map(|known| known.word().into())),
            ("identity", self.identity.clone().map(Value::from)),
            ("since_from", from.map(Value::from)),
            ("since_before", before.map(Value::from)),
            ("text", self.text.clone().map(Value::from)),
            ("discarded", self.discarded.then_some(Value::Bool(true))),
        ];
        let given = all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Ok(Value::Object(given.collect()))
    }

    /// From when on and before when, by this machine's clock.
    fn moments(&self) -> Result<[Option<String>; 2], Faults> {
        let now = clock::now();
        let mut faults = Faults::default();
        let mut read = |flag, text: &Option<String>| {
            let moment = text.as_deref().and_then(|text| faults.check(flag, moment(text, now)));
            moment.map(|moment| moment.to_string())
        };
        let moments = [read("--from", &self.from), read("--before", &self.before)];
        faults.or(Some(moments))
    }

    /// What the store is asked for, or everything that is wrong with it.
    pub(super) fn read(&self, now: Timestamp) -> Result<LetterFilter, Faults> {
        let mut faults = Faults::default();
        let queue = self.queue.as_ref().and_then(|name| {
            let no_name = "is no queue's name: 1 to 128 letters, digits, `.`, `_`, `-` and `:`";
            faults.check("--queue", QueueName::parse(name).ok_or(no_name))
        });
        let code = self
            .error
            .as_ref()
            .and_then(|code| faults.check("--error", ErrorCode::parse(code).ok_or_else(|| no_code(code))));
        let since_from = self.from.as_ref().and_then(|text| faults.check("--from", moment(text, now)));
        let since_before = self.before.as_ref().and_then(|text| faults.check("--before", moment(text, now)));
        faults.or(Some(LetterFilter {
            state: if self.parked { LetterState::Parked } else { LetterState::Dead },
            standing: match (self.discarded, self.replaced) {
                (true, _) => Standing::Discarded,
                (_, true) => Standing::Replaced,
                _ => Standing::Open,
            },
            queue,
            code,
            effect: self.effect.map(|known| match known {
                Known::NotDone => Effect::NotDone,
                Known::Done => Effect::Done,
                Known::Unknown => Effect::Unknown,
            }),
            identity: self.identity.clone(),
            since_from,
            since_before,
            text: self.text.clone(),
        }))
    }
}

fn no_code(code: &str) -> String {
    let all: Vec<&str> = ErrorCode::ALL.into_iter().map(ErrorCode::as_str).collect();
    format!("{code} is no error's code; there are {}", all.join(", "))
}

/// A moment, or so long before now.
pub(crate) fn moment(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Some(moment) = Timestamp::parse(text) {
        return Ok(moment);
    }
    let ago = duration::parse(text).map_err(|_| {
        format!("{text} is no time: write a moment as 2026-11-15T03:00:00Z, or how long ago: 45m, 2h, 3d")
    })?;
    let micros = i64::try_from(ago.as_micros()).unwrap_or(i64::MAX);
    Ok(Timestamp::from_micros(now.as_micros().saturating_sub(micros)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    #[test]
    fn a_time_is_a_moment_or_so_long_ago() {
        assert_eq!(moment("2027-01-15T08:00:00Z", NOW), Ok(NOW));
        assert_eq!(moment("2h", NOW), Ok(Timestamp::from_secs(1_800_000_000 - 7_200)));
        assert!(moment("yesterday", NOW).is_err());
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let filter = Filter {
            queue: Some("no blanks".to_owned()),
            error: Some("TEAPOT".to_owned()),
            from: Some("yesterday".to_owned()),
            ..Filter::default()
        };
        let told = filter.read(NOW).unwrap_err().to_string();
        for part in ["3 problems", "--queue", "--error", "BROKER_5XX", "--from", "2h"] {
            assert!(told.contains(part), "no {part:?} in {told}");
        }
    }
}
