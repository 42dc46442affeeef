//! "Was it done?" about a key: one answer about a request, with its grounds and what happens next.
//!
//! Guarantee: a pure function of the stored record. It says yes or no only if the record is settled by a response, by the receiver or by a
//! person who knows; a person who gave up does not know.

use ichido_core::time::Timestamp;

use super::super::keys::{KeyEvent, KeyRecord};
use super::was_it_done::DoneVerdict;

/// What the answer rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyGrounds {
    /// The work ended with a response that is stored.
    Stored,
    /// The work refused the request.
    Refused,
    /// The receiver was asked by key.
    ReceiverSaid,
    /// A person decided that it was done.
    PersonDecided,
    /// A person gave up finding out.
    PersonGaveUp,
    /// A request runs at this moment.
    Running,
    /// The lease of the request has expired.
    Lapsed,
    /// The work got no clear response.
    Lost,
}

/// What happens next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyNext {
    /// Repetitions get the stored response until then; `None` as long as a message waits.
    Replays(Option<String>),
    /// The request ends, or its lease expires.
    RequestEnds { lease_until: Option<String> },
    /// A person decides. Until the time given, `not done` cannot be decided.
    Decide { not_done_from: Option<String> },
    /// Only what the state of a later release means.
    Nothing,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyAnswer {
    pub(super) verdict: DoneVerdict,
    pub(super) grounds: KeyGrounds,
    /// When it became known.
    pub(super) at: Option<String>,
    /// The person who decided.
    pub(super) actor: Option<String>,
    pub(super) next: KeyNext,
}

/// Answers from the record of a request.
pub(super) fn was_key_done(record: &KeyRecord, now: Timestamp) -> KeyAnswer {
    use DoneVerdict::{No, Unknown, Yes};
    use KeyGrounds::{Lapsed, Lost, PersonDecided, PersonGaveUp, ReceiverSaid, Refused, Running, Stored};
    let is_past = |text: &String| Timestamp::parse(text).is_some_and(|at| at <= now);
    let last = |kind: &str| record.history.iter().rev().find(|event| event.kind == kind);
    let (settled_by, kind) = match record.history.last() {
        Some(event) if matches!(event.kind.as_str(), "decided" | "reconciled") => {
            (Some(event), event.kind.as_str())
        }
        _ => (None, ""),
    };
    let (verdict, grounds) = match (record.state.as_str(), kind) {
        ("applied", "decided") => (Yes, PersonDecided),
        ("applied", "reconciled") => (Yes, ReceiverSaid),
        ("applied", _) => (Yes, Stored),
        ("refused", "decided") => (Unknown, PersonGaveUp),
        ("refused", "reconciled") => (No, ReceiverSaid),
        ("refused", _) => (No, Refused),
        ("claimed", _) if record.lease_until.as_ref().is_some_and(is_past) => (Unknown, Lapsed),
        ("claimed", _) => (Unknown, Running),
        _ => (Unknown, Lost),
    };
    let at = |event: Option<&KeyEvent>| event.map(|event| event.at.clone());
    KeyAnswer {
        verdict,
        grounds,
        at: match grounds {
            Running | Lapsed => record.claimed_at.clone(),
            Lost => at(last("unknown")),
            _ => at(settled_by).or_else(|| record.completed_at.clone()),
        },
        actor: settled_by.and_then(|event| event.actor.clone()),
        next: match record.state.as_str() {
            "applied" | "refused" => KeyNext::Replays(record.expires_at.clone()),
            "claimed" => KeyNext::RequestEnds { lease_until: record.lease_until.clone() },
            "unknown" => {
                KeyNext::Decide { not_done_from: record.not_done_from.clone().filter(|from| !is_past(from)) }
            }
            _ => KeyNext::Nothing,
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn time(seconds: i64) -> String {
        Timestamp::from_secs(seconds).to_string()
    }

    /// Returns a record whose history has these kinds, at the seconds 10, 20 and so on, after its first claim at 0.
    fn record(state: &str, kinds: &[&str]) -> KeyRecord {
        let history: Vec<_> = std::iter::once(&"claimed")
            .chain(kinds)
            .enumerate()
            .map(|(index, kind)| {
                let actor = (*kind == "decided").then_some("ann");
                let at = time(i64::try_from(index).expect("few") * 10);
                json!({ "at": at, "kind": kind, "from": "", "to": "", "fence": null, "actor": actor })
            })
            .collect();
        let is_settled = matches!(state, "applied" | "refused");
        let value = json!({
            "kind": "request", "operation": "orders.create", "queue": null, "identity": "ann", "idempotency_key": "order-1",
            "key_hash": "00", "state": state, "request_digest": "sha256:00", "result_digest": null, "created_at": time(0),
            "completed_at": is_settled.then(|| time(15)), "expires_at": is_settled.then(|| time(900)), "claimed_at": time(5),
            "lease_until": (state == "claimed").then(|| time(60)), "not_done_from": (state == "unknown").then(|| time(600)),
            "message": null, "hops": null, "trace": null, "response": null, "history": history,
        });
        serde_json::from_value(value).expect("a record")
    }

    #[test]
    fn the_answer_about_a_key_follows_from_its_record() {
        use DoneVerdict::{No, Unknown, Yes};
        use KeyGrounds::{Lapsed, Lost, PersonDecided, PersonGaveUp, ReceiverSaid, Refused, Running, Stored};
        let replays = || KeyNext::Replays(Some(time(900)));
        let ends = || KeyNext::RequestEnds { lease_until: Some(time(60)) };
        let decide = |from: Option<i64>| KeyNext::Decide { not_done_from: from.map(time) };
        for (state, kinds, now, verdict, grounds, at, next) in [
            ("applied", &["settled"][..], 100, Yes, Stored, Some(15), replays()),
            ("applied", &["unknown", "reconciled"], 100, Yes, ReceiverSaid, Some(20), replays()),
            ("applied", &["unknown", "decided"], 100, Yes, PersonDecided, Some(20), replays()),
            ("refused", &["settled"], 100, No, Refused, Some(15), replays()),
            ("refused", &["unknown", "reconciled"], 100, No, ReceiverSaid, Some(20), replays()),
            ("refused", &["unknown", "decided"], 100, Unknown, PersonGaveUp, Some(20), replays()),
            ("claimed", &[], 59, Unknown, Running, Some(5), ends()),
            ("claimed", &[], 60, Unknown, Lapsed, Some(5), ends()),
            ("unknown", &["unknown"], 599, Unknown, Lost, Some(10), decide(Some(600))),
            ("unknown", &["unknown"], 600, Unknown, Lost, Some(10), decide(None)),
            ("levitating", &[], 100, Unknown, Lost, None, KeyNext::Nothing),
        ] {
            let answer = was_key_done(&record(state, kinds), Timestamp::from_secs(now));
            let found = (answer.verdict, answer.grounds, answer.at, answer.next);
            assert_eq!(found, (verdict, grounds, at.map(time), next), "{state} {kinds:?} {now}");
            assert_eq!(
                answer.actor.as_deref(),
                kinds.contains(&"decided").then_some("ann"),
                "{state} {kinds:?}"
            );
        }
    }

    #[test]
    fn a_key_that_was_released_and_taken_again_is_not_settled_by_the_old_decision() {
        let record = record("applied", &["unknown", "decided", "settled"]);
        let answer = was_key_done(&record, Timestamp::from_secs(100));
        assert_eq!((answer.grounds, answer.actor), (KeyGrounds::Stored, None));
    }
}
