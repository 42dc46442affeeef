//! A pace as the store keeps it: JSON, so that a newer program may add to it and a person can read it.

use std::time::Duration;

use ichido_core::pace::{Circuit, Pace, Paced, PerSecond, Rate, Settings, Tally};
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::node::SharedPace;
use serde_json::{Value, json};

/// What all nodes know of a destination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) version: i64,
    pub(super) pace: Pace,
    /// What an operator set in place of the configured rate.
    pub(super) rate_max: Option<PerSecond>,
}

impl Row {
    pub(super) const NEW: Self = Self { version: SharedPace::NEVER_WRITTEN, pace: Pace::NEW, rate_max: None };

    /// The row of a destination. One that cannot be read is begun anew, and said so: a pace is learnt again, a queue that stands
    /// still for a broken hint is not mended by itself.
    pub(super) async fn read(store: &Store, name: &str) -> Result<Self, StoreError> {
        Ok(store.pace_read(name).await?.map_or(Self::NEW, |shared| Self::of(name, &shared)))
    }

    pub(super) fn of(name: &str, shared: &SharedPace) -> Self {
        let SharedPace { version, bytes } = shared;
        let version = *version;
        let read = serde_json::from_slice(bytes).ok().and_then(|value| of_value(version, &value));
        read.unwrap_or_else(|| {
            tracing::error!(
                destination = name,
                version,
                "the pace in the store cannot be read; it is learnt anew"
            );
            Self { version, ..Self::NEW }
        })
    }

    /// The settings that hold: an operator's rate goes before the configured one.
    pub(super) fn settings(&self, settings: &Settings) -> Settings {
        Settings { rate_max: self.rate_max.or(settings.rate_max), ..*settings }
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let Pace { rate, last_slot, wanted_until, paused_until, asking, circuit } = self.pace;
        let rate = match rate {
            Rate::Free(Tally { since, accepted, accepted_before }) => {
                json!({ "free": { "since": since.as_micros(), "accepted": accepted, "accepted_before": accepted_before } })
            }
            Rate::Paced(Paced { rate, ceiling, borne, episode_until, grown_until }) => json!({ "paced": {
                "rate": rate.get(),
                "ceiling": ceiling.map(PerSecond::get),
                "borne": borne,
                "episode_until": episode_until.as_micros(),
                "grown_until": grown_until.as_micros(),
            } }),
        };
        let circuit = match circuit {
            Circuit::Closed { failures } => json!({ "closed": { "failures": failures } }),
            Circuit::Open { until, rest } => {
                json!({ "open": { "until": until.as_micros(), "rest": micros(rest) } })
            }
            Circuit::HalfOpen { since, probes_left, renewed_at, rest } => json!({ "half_open": {
                "since": since.as_micros(),
                "probes_left": probes_left,
                "renewed_at": renewed_at.as_micros(),
                "rest": micros(rest),
            } }),
        };
        json!({
            "rate": rate,
            "circuit": circuit,
            "last_slot": last_slot.as_micros(),
            "wanted_until": wanted_until.as_micros(),
            "paused_until": paused_until.as_micros(),
            "asking": asking,
            "rate_max": self.rate_max.map(PerSecond::get),
        })
        .to_string()
        .into_bytes()
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn of_value(version: i64, value: &Value) -> Option<Row> {
    let pace = Pace {
        rate: rate(&value["rate"])?,
        last_slot: moment(&value["last_slot"])?,
        wanted_until: moment(&value["wanted_until"])?,
        paused_until: moment(&value["paused_until"])?,
        // Rows of earlier versions do not have it.
        asking: value["asking"].as_bool().unwrap_or(false),
        circuit: circuit(&value["circuit"])?,
    };
    Some(Row { version, pace, rate_max: optional(&value["rate_max"]) })
}

fn rate(value: &Value) -> Option<Rate> {
    if let Some(free) = value.get("free") {
        return Some(Rate::Free(Tally {
            since: moment(&free["since"])?,
            accepted: count(&free["accepted"])?,
            accepted_before: count(&free["accepted_before"])?,
        }));
    }
    let paced = value.get("paced")?;
    Some(Rate::Paced(Paced {
        rate: PerSecond::clamped(paced["rate"].as_f64()?),
        ceiling: optional(&paced["ceiling"]),
        borne: paced["borne"].as_bool()?,
        episode_until: moment(&paced["episode_until"])?,
        grown_until: moment(&paced["grown_until"])?,
    }))
}

fn circuit(value: &Value) -> Option<Circuit> {
    if let Some(closed) = value.get("closed") {
        return Some(Circuit::Closed { failures: count(&closed["failures"])? });
    }
    if let Some(open) = value.get("open") {
        return Some(Circuit::Open { until: moment(&open["until"])?, rest: wait(&open["rest"])? });
    }
    let half = value.get("half_open")?;
    Some(Circuit::HalfOpen {
        since: moment(&half["since"])?,
        probes_left: count(&half["probes_left"])?,
        renewed_at: moment(&half["renewed_at"])?,
        rest: wait(&half["rest"])?,
    })
}

fn moment(value: &Value) -> Option<Timestamp> {
    value.as_i64().map(Timestamp::from_micros)
}

fn wait(value: &Value) -> Option<Duration> {
    value.as_u64().map(Duration::from_micros)
}

fn count(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|count| u32::try_from(count).ok())
}

/// What may be missing, and is then `null`.
fn optional(value: &Value) -> Option<PerSecond> {
    value.as_f64().map(PerSecond::clamped)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn again(row: Row) -> Option<Row> {
        of_value(row.version, &serde_json::from_slice(&row.to_bytes()).ok()?)
    }

    #[test]
    fn a_row_reads_back_as_it_was_written() {
        let settings = Settings::DEFAULT;
        let now = Timestamp::from_micros(1_800_000_000_123_456);
        let many = NonZeroU32::new(7).unwrap();
        let free = Pace::NEW.on_success(&settings, now, many);
        let paced = free.on_throttled(&settings, now, now, Some(Duration::from_micros(1_500_001)));
        let down = (0..10).fold(paced, |pace, _| pace.on_failure(&settings, now, now));
        let later = now.plus(Duration::from_hours(1));
        let half = down.reserve(&settings, later, NonZeroU32::MIN).0;
        assert!(matches!(down.circuit, Circuit::Open { .. }));
        assert!(matches!(half.circuit, Circuit::HalfOpen { .. }));
        for pace in [Pace::NEW, free, paced, down, half] {
            for rate_max in [None, Some(PerSecond::clamped(0.1)), Some(PerSecond::MAX)] {
                let row = Row { version: 3, pace, rate_max };
                assert_eq!(again(row), Some(row));
            }
        }
    }

    #[test]
    fn a_row_that_lacks_something_is_not_read_as_something_else() {
        let whole: Value = serde_json::from_slice(&Row::NEW.to_bytes()).unwrap();
        assert!(of_value(1, &whole).is_some());
        for member in ["rate", "circuit", "last_slot", "wanted_until", "paused_until"] {
            let mut value = whole.clone();
            value.as_object_mut().unwrap().remove(member);
            assert_eq!(of_value(1, &value), None, "{member}");
        }
    }
}
