//! A pace as stored.
//!
//! JSON, so a newer program can extend it and a person can read it.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::pace::{
    AcceptedCounts, Circuit, Evidence, Pace, PacePhase, PaceSettings, Paced, PerSecond, Rate, ResponseCounts,
};
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::node::SharedPace;
use serde_json::{Value, json};

/// What all nodes know of a destination.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) version: i64,
    pub(super) pace: Pace,
    /// The rate that an operator set instead of the configured one.
    pub(super) max_rate: Option<PerSecond>,
    /// Whether an operator stopped all calls.
    pub(super) is_paused: bool,
    /// Who changed these two. Shared, because a row is copied often and this is only shown.
    pub(super) changes: Option<Arc<PaceChanges>>,
}

/// Who changed the settings of a destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PaceChanges {
    pub(super) rate: Option<PaceChange>,
    pub(super) pause: Option<PaceChange>,
}

/// Who changed a setting of a destination, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaceChange {
    /// Who did it.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

impl Row {
    pub(super) const NEW: Self = Self {
        version: SharedPace::NEVER_WRITTEN,
        pace: Pace::NEW,
        max_rate: None,
        is_paused: false,
        changes: None,
    };

    /// Reads the row of a destination.
    ///
    /// An unreadable row is replaced and logged: a pace can be learnt again, but a queue that is stuck on a broken row does
    /// not recover.
    pub(super) async fn read(store: &Store, name: &str) -> Result<Self, StoreError> {
        Ok(store.paces().read(name).await?.map_or(Self::NEW, |shared| Self::parse(name, &shared)))
    }

    pub(super) fn parse(name: &str, shared: &SharedPace) -> Self {
        let SharedPace { version, bytes } = shared;
        let version = *version;
        let read = serde_json::from_slice(bytes).ok().and_then(|value| from_value(version, &value));
        read.unwrap_or_else(|| {
            tracing::error!(destination = name, version, "failed to parse the stored pace; starting anew");
            Self { version, ..Self::NEW }
        })
    }

    /// Returns the effective settings: those of an operator override the configured ones.
    pub(super) fn settings(&self, settings: &PaceSettings) -> PaceSettings {
        let max_rate = self.max_rate.or(settings.max_rate);
        PaceSettings { max_rate, is_paused: self.is_paused, ..*settings }
    }

    /// Returns this row after an operator's change.
    pub(super) fn changed(mut self, change: impl FnOnce(&mut PaceChanges)) -> Self {
        let mut changes = self.changes.as_deref().cloned().unwrap_or_default();
        change(&mut changes);
        self.changes = Some(changes).filter(|changes| *changes != PaceChanges::default()).map(Arc::new);
        self
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Pace { rate, last_slot, wanted_until, paused_until, asking, circuit } = self.pace;
        let rate = match rate {
            Rate::Free(AcceptedCounts { since, accepted, accepted_before, accepted_ever, evidence }) => {
                json!({ "free": {
                "since": since.as_micros(),
                "accepted": accepted,
                "accepted_before": accepted_before,
                "accepted_ever": accepted_ever,
                "evidence": evidence_value(evidence),
            } })
            }
            Rate::Paced(Paced { rate, ceiling, usual, phase, episode_until, grown_until }) => {
                json!({ "paced": {
                "rate": rate.get(),
                "ceiling": ceiling.map(PerSecond::get),
                "usual": answers_value(usual),
                "phase": match phase {
                    PacePhase::Listening { answers, before } => {
                        json!({ "listening": { "answers": answers_value(answers), "before": before } })
                    }
                    PacePhase::Climbing(evidence) => json!({ "climbing": evidence_value(evidence) }),
                },
                "episode_until": episode_until.as_micros(),
                "grown_until": grown_until.as_micros(),
            } })
            }
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
            "max_rate": self.max_rate.map(PerSecond::get),
            "paused": self.is_paused,
            "rate_change": self.changes.as_ref().and_then(|changes| change_value(changes.rate.as_ref())),
            "pause_change": self.changes.as_ref().and_then(|changes| change_value(changes.pause.as_ref())),
        })
        .to_string()
        .into_bytes()
    }
}

fn change_value(change: Option<&PaceChange>) -> Option<Value> {
    change.map(|PaceChange { by, at }| json!({ "by": by, "at": at.as_micros() }))
}

fn change(value: &Value) -> Option<PaceChange> {
    Some(PaceChange { by: value["by"].as_str()?.to_owned(), at: moment(&value["at"])? })
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn evidence_value(evidence: Evidence) -> Value {
    let Evidence { weight, onset, answers } = evidence;
    json!({ "weight": weight, "onset": onset.get(), "answers": answers_value(answers) })
}

fn answers_value(answers: ResponseCounts) -> Value {
    json!({ "accepted": answers.accepted, "refused": answers.refused })
}

fn from_value(version: i64, value: &Value) -> Option<Row> {
    let pace = Pace {
        rate: rate(&value["rate"])?,
        last_slot: moment(&value["last_slot"])?,
        wanted_until: moment(&value["wanted_until"])?,
        paused_until: moment(&value["paused_until"])?,
        // Rows of earlier versions lack it.
        asking: value["asking"].as_bool().unwrap_or(false),
        circuit: circuit(&value["circuit"])?,
    };
    // Rows of earlier versions lack what follows.
    let row = Row {
        version,
        pace,
        max_rate: optional(&value["max_rate"]),
        is_paused: value["paused"].as_bool().unwrap_or(false),
        changes: None,
    };
    Some(row.changed(|changes| {
        *changes = PaceChanges { rate: change(&value["rate_change"]), pause: change(&value["pause_change"]) };
    }))
}

fn rate(value: &Value) -> Option<Rate> {
    if let Some(free) = value.get("free") {
        return Some(Rate::Free(AcceptedCounts {
            since: moment(&free["since"])?,
            accepted: count(&free["accepted"])?,
            accepted_before: count(&free["accepted_before"])?,
            // Rows of earlier versions lack this and the phase of a pace.
            accepted_ever: count(&free["accepted_ever"]).unwrap_or(u32::MAX),
            evidence: evidence(&free["evidence"]),
        }));
    }
    let paced = value.get("paced")?;
    Some(Rate::Paced(Paced {
        rate: PerSecond::clamped(paced["rate"].as_f64()?),
        ceiling: optional(&paced["ceiling"]),
        usual: answers(&paced["usual"]).unwrap_or(ResponseCounts::NONE),
        phase: phase(&paced["phase"]),
        episode_until: moment(&paced["episode_until"])?,
        grown_until: moment(&paced["grown_until"])?,
    }))
}

fn phase(value: &Value) -> PacePhase {
    let listening = &value["listening"];
    match (answers(&listening["answers"]), number(&listening["before"])) {
        (Some(answers), Some(before)) => PacePhase::Listening { answers, before: before.min(1.0) },
        _ => PacePhase::Climbing(evidence(&value["climbing"])),
    }
}

/// Returns [`Evidence::NONE`] if a member is missing or invalid.
fn evidence(value: &Value) -> Evidence {
    let read = || {
        Some(Evidence {
            weight: number(&value["weight"])?,
            onset: optional(&value["onset"])?,
            answers: answers(&value["answers"])?,
        })
    };
    read().unwrap_or(Evidence::NONE)
}

fn answers(value: &Value) -> Option<ResponseCounts> {
    Some(ResponseCounts { accepted: number(&value["accepted"])?, refused: number(&value["refused"])? })
}

/// Parses a non-negative number.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| 0.0 <= *number)
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

/// Parses an optional value; `null` if missing.
fn optional(value: &Value) -> Option<PerSecond> {
    value.as_f64().map(PerSecond::clamped)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn again(row: &Row) -> Option<Row> {
        from_value(row.version, &serde_json::from_slice(&row.to_bytes()).ok()?)
    }

    #[test]
    fn a_row_reads_back_as_it_was_written() {
        let settings = PaceSettings::DEFAULT;
        let now = Timestamp::from_micros(1_800_000_000_123_456);
        let many = NonZeroU32::new(7).unwrap();
        let free = Pace::NEW.on_success(&settings, now, many);
        let hint = Some(Duration::from_micros(1_500_001));
        let refused = free.on_throttled(&settings, now, now, hint);
        let paced = (0..9).fold(refused, |pace, _| pace.on_throttled(&settings, now, now, hint));
        let climbing = paced.on_success(&settings, now.plus(Duration::from_secs(30)), many);
        assert!(matches!(refused.rate, Rate::Free(tally) if tally.evidence != Evidence::NONE));
        assert!(matches!(paced.rate, Rate::Paced(Paced { phase: PacePhase::Listening { .. }, .. })));
        assert!(matches!(climbing.rate, Rate::Paced(Paced { phase: PacePhase::Climbing(_), .. })));
        let down = (0..10).fold(paced, |pace, _| pace.on_failure(&settings, now, now));
        let later = now.plus(Duration::from_hours(1));
        let half = down.reserve(&settings, later, NonZeroU32::MIN).0;
        assert!(matches!(down.circuit, Circuit::Open { .. }));
        assert!(matches!(half.circuit, Circuit::HalfOpen { .. }));
        for pace in [Pace::NEW, free, refused, paced, climbing, down, half] {
            for max_rate in [None, Some(PerSecond::clamped(0.1)), Some(PerSecond::MAX)] {
                let row = Row { version: 3, pace, max_rate, ..Row::NEW };
                assert_eq!(again(&row), Some(row.clone()));
                let by_ann = PaceChange { by: "ann".to_owned(), at: now };
                let paused = Row { is_paused: true, ..row }.changed(|changes| changes.pause = Some(by_ann));
                assert_eq!(again(&paused), Some(paused));
            }
        }
    }

    #[test]
    fn a_row_of_an_earlier_version_keeps_its_rate() {
        let paced =
            json!({ "rate": 7.0, "ceiling": 10.0, "borne": true, "episode_until": 1, "grown_until": 2 });
        let free = json!({ "since": 1, "accepted": 3, "accepted_before": 4 });
        for (rate, limit) in [(json!({ "paced": paced }), Some(7.0)), (json!({ "free": free }), None)] {
            let mut value: Value = serde_json::from_slice(&Row::NEW.to_bytes()).unwrap();
            value["rate"] = rate;
            let row = from_value(1, &value).unwrap();
            assert_eq!(row.pace.limit(&PaceSettings::DEFAULT).map(PerSecond::get), limit);
        }
    }

    #[test]
    fn incomplete_row_is_not_read() {
        let whole: Value = serde_json::from_slice(&Row::NEW.to_bytes()).unwrap();
        assert!(from_value(1, &whole).is_some());
        for member in ["rate", "circuit", "last_slot", "wanted_until", "paused_until"] {
            let mut value = whole.clone();
            value.as_object_mut().unwrap().remove(member);
            assert_eq!(from_value(1, &value), None, "{member}");
        }
    }
}
