//! "Was it done?": one answer about a message, with its grounds and what happens next.
//!
//! Guarantee: a pure function of what is stored. It says yes or no only if the stored effect is known, and never guesses: what the store
//! calls unknown is unknown here.

use ichido_core::lifecycle::StateName;
use ichido_core::verdict::{Effect, ErrorCode};

use super::super::models::{Event, MessageFacts};

/// The answer in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DoneVerdict {
    /// It took effect.
    Yes,
    /// It had no effect, and nothing sends it automatically.
    No,
    /// It had no effect so far, and will be sent.
    NotYet,
    /// Nobody knows yet.
    Unknown,
}

/// What the answer rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grounds {
    /// The receiver accepted an attempt.
    Accepted,
    /// The receiver said that it had processed the key before.
    ProcessedBefore,
    /// A response arrived after the claim was lost, and proves an earlier attempt.
    AnsweredLate,
    /// The receiver was asked by key.
    ReceiverSaid,
    /// A person decided.
    PersonDecided,
    /// No worker ever called the receiver.
    NeverCalled,
    /// Every attempt ended without an effect.
    NoEffect,
    /// A worker is calling at this moment.
    InFlight,
    /// A call got no clear response.
    NoAnswer,
    /// The worker died during a call.
    WorkerDied,
}

/// What happens next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MessageNext {
    Nothing,
    /// A worker takes it as soon as one is free.
    WhenFree,
    /// The next attempt is due then.
    AttemptAt(String),
    /// The attempt in flight ends, or its worker is declared dead.
    AttemptEnds,
    /// A person decides. Until the time given, `not done` cannot be decided.
    Decide {
        not_before: Option<String>,
    },
    /// A person may requeue it.
    Requeue,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DoneAnswer {
    pub(super) verdict: DoneVerdict,
    pub(super) grounds: Grounds,
    /// When it became known.
    pub(super) at: Option<String>,
    /// The attempt that it is about.
    pub(super) attempt: Option<u32>,
    pub(super) receipt: Option<String>,
    /// The person who decided.
    pub(super) actor: Option<String>,
    pub(super) next: MessageNext,
}

/// Answers from a message and its newest events.
///
/// `before` is the event from which on the effect is what it is now, if it is before these events.
/// `in_flight_until` is the time until which a lost call may still arrive.
pub(super) fn was_it_done(
    message: &MessageFacts,
    events: &[Event],
    before: Option<&Event>,
    in_flight_until: Option<&str>,
) -> DoneAnswer {
    let state = StateName::parse(&message.status);
    let effect = Effect::parse(&message.effect);
    let (verdict, basis) = match (state, effect) {
        (Some(StateName::Sent), _) | (_, Some(Effect::Done)) => {
            (DoneVerdict::Yes, last_with(events, Effect::Done))
        }
        (Some(StateName::Dead | StateName::Cancelled), Some(Effect::NotDone)) => {
            (DoneVerdict::No, last_fact(events).or(before))
        }
        (Some(StateName::Queued | StateName::Failed), Some(Effect::NotDone)) => {
            (DoneVerdict::NotYet, last_fact(events).or(before))
        }
        (Some(StateName::Sending), _) => (DoneVerdict::Unknown, last_claim(events)),
        _ => (DoneVerdict::Unknown, before.or_else(|| last_with(events, Effect::Unknown))),
    };
    let grounds = grounds(verdict, state, basis);
    DoneAnswer {
        verdict,
        grounds,
        at: basis.map(|event| event.at.clone()).filter(|_| grounds != Grounds::NeverCalled),
        attempt: basis.map(|event| event.attempts).filter(|attempt| is_attempt(grounds) && 0 < *attempt),
        receipt: basis.and_then(|event| event.receipt.clone()).filter(|_| verdict == DoneVerdict::Yes),
        actor: basis.and_then(|event| event.actor.clone()).filter(|_| grounds == Grounds::PersonDecided),
        next: next(verdict, state, message, in_flight_until),
    }
}

fn grounds(verdict: DoneVerdict, state: Option<StateName>, basis: Option<&Event>) -> Grounds {
    let kind = basis.map_or("", |event| event.kind.as_str());
    let was_processed =
        basis.and_then(|event| event.error_code.as_deref()) == Some(ErrorCode::ConflictProcessed.as_str());
    match (verdict, kind) {
        (_, "decided") => Grounds::PersonDecided,
        (_, "reconciled") => Grounds::ReceiverSaid,
        (DoneVerdict::Yes, "late_success") => Grounds::AnsweredLate,
        (DoneVerdict::Yes, _) if was_processed => Grounds::ProcessedBefore,
        (DoneVerdict::Yes, _) => Grounds::Accepted,
        (DoneVerdict::No | DoneVerdict::NotYet, "") => Grounds::NeverCalled,
        (DoneVerdict::No | DoneVerdict::NotYet, _) => Grounds::NoEffect,
        (DoneVerdict::Unknown, _) if state == Some(StateName::Sending) => Grounds::InFlight,
        (DoneVerdict::Unknown, "worker_died") => Grounds::WorkerDied,
        (DoneVerdict::Unknown, _) => Grounds::NoAnswer,
    }
}

/// Whether these grounds are those of one attempt.
const fn is_attempt(grounds: Grounds) -> bool {
    !matches!(grounds, Grounds::NeverCalled | Grounds::PersonDecided | Grounds::ReceiverSaid)
}

fn next(
    verdict: DoneVerdict,
    state: Option<StateName>,
    message: &MessageFacts,
    in_flight_until: Option<&str>,
) -> MessageNext {
    let attempt = || message.next_attempt_at.clone().map_or(MessageNext::WhenFree, MessageNext::AttemptAt);
    match (state, verdict) {
        (Some(StateName::Sending), _) => MessageNext::AttemptEnds,
        (Some(StateName::Queued | StateName::Failed), DoneVerdict::NotYet | DoneVerdict::Unknown) => {
            attempt()
        }
        (Some(StateName::Parked | StateName::Dead), DoneVerdict::Unknown) => {
            MessageNext::Decide { not_before: in_flight_until.map(str::to_owned) }
        }
        (Some(StateName::Dead), DoneVerdict::No) => MessageNext::Requeue,
        _ => MessageNext::Nothing,
    }
}

/// Returns the last event after which this effect was known.
fn last_with(events: &[Event], effect: Effect) -> Option<&Event> {
    let word = effect.to_string();
    let has = |event: &&Event| event.effect == word && event.kind != "claimed";
    // The event that made it known, not the later ones that repeat it.
    let last = events.iter().rposition(|event| has(&event))?;
    let run = events.get(..=last)?.iter().rev().take_while(|event| event.effect == word);
    run.filter(|event| is_fact(event)).last().or(events.get(last))
}

/// Returns the last event that says something about an effect.
fn last_fact(events: &[Event]) -> Option<&Event> {
    events.iter().rev().find(|event| is_fact(event))
}

fn last_claim(events: &[Event]) -> Option<&Event> {
    events.iter().rev().find(|event| event.kind == "claimed")
}

/// Whether an event is the end of a call, or what somebody found out about one.
fn is_fact(event: &Event) -> bool {
    matches!(
        event.kind.as_str(),
        "succeeded" | "failed" | "stopped" | "worker_died" | "late_success" | "reconciled" | "decided"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a message; times are hours.
    fn message(status: &str, effect: &str, next_attempt_at: Option<&str>) -> MessageFacts {
        let value = json!({
            "id": "01995b1c-0000-7000-8000-000000000001", "queue": "orders", "identity": "shop", "idempotency_key": "order-1",
            "content_type": "application/json", "request_bytes": 2, "request_digest": "sha256:00", "status": status, "effect": effect,
            "attempts": 1, "max_attempts": 5, "next_attempt_at": next_attempt_at, "last_error": null, "priority": 2, "trace": null,
            "trace_id": null, "item": null, "replacement_of": null, "created_at": "00", "updated_at": "09",
        });
        serde_json::from_value(value).expect("a message")
    }

    /// Returns an event from `time kind effect attempt`, with a receipt, code or actor after these.
    fn event(line: &str) -> Event {
        let words: Vec<&str> = line.split(' ').collect();
        let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name));
        let value = json!({
            "at": words[0], "kind": words[1], "from": null, "to": "queued", "idempotency_key": "order-1", "trace_id": null,
            "traceparent": null, "attempts": words[3].parse::<u32>().expect("a number"), "effect": words[2],
            "error_code": option("code="), "error_text": null, "status": null, "receipt": option("receipt="), "result_digest": null,
            "fence": null, "node": null, "actor": option("actor="),
        });
        serde_json::from_value(value).expect("an event")
    }

    struct Case {
        name: &'static str,
        message: MessageFacts,
        events: &'static [&'static str],
        /// Answer, grounds, time, attempt.
        expected: (DoneVerdict, Grounds, Option<&'static str>, Option<u32>),
        next: MessageNext,
    }

    #[expect(clippy::too_many_lines, reason = "one table")]
    fn cases() -> Vec<Case> {
        use DoneVerdict::{No, NotYet, Unknown, Yes};
        use Grounds::{
            Accepted, AnsweredLate, InFlight, NeverCalled, NoAnswer, NoEffect, PersonDecided,
            ProcessedBefore, ReceiverSaid, WorkerDied,
        };
        let at = |time: &str| MessageNext::AttemptAt(time.to_owned());
        let decide = || MessageNext::Decide { not_before: Some("08".to_owned()) };
        let case = |name, message, events, expected, next| Case { name, message, events, expected, next };
        vec![
            case(
                "just accepted",
                message("queued", "not_done", None),
                &["00 accepted not_done 0"],
                (NotYet, NeverCalled, None, None),
                MessageNext::WhenFree,
            ),
            case(
                "scheduled",
                message("queued", "not_done", Some("07")),
                &["00 accepted not_done 0"],
                (NotYet, NeverCalled, None, None),
                at("07"),
            ),
            case(
                "given back without a call",
                message("queued", "not_done", None),
                &["00 accepted not_done 0", "01 claimed not_done 1", "02 given_back not_done 0"],
                (NotYet, NeverCalled, None, None),
                MessageNext::WhenFree,
            ),
            case(
                "in flight",
                message("sending", "in_flight", None),
                &["00 accepted not_done 0", "01 claimed not_done 1"],
                (Unknown, InFlight, Some("01"), Some(1)),
                MessageNext::AttemptEnds,
            ),
            case(
                "refused, retries",
                message("failed", "not_done", Some("07")),
                &["01 claimed not_done 1", "02 failed not_done 1 code=BROKER_5XX"],
                (NotYet, NoEffect, Some("02"), Some(1)),
                at("07"),
            ),
            case(
                "no response, retries under the same key",
                message("failed", "unknown", Some("07")),
                &[
                    "01 claimed not_done 1",
                    "02 failed unknown 1",
                    "03 came_due unknown 1",
                    "04 claimed unknown 2",
                    "05 failed unknown 2",
                ],
                (Unknown, NoAnswer, Some("02"), Some(1)),
                at("07"),
            ),
            case(
                "parked",
                message("parked", "unknown", None),
                &["01 claimed not_done 1", "02 failed unknown 1"],
                (Unknown, NoAnswer, Some("02"), Some(1)),
                decide(),
            ),
            case(
                "parked after its worker died",
                message("parked", "unknown", None),
                &["01 claimed not_done 1", "02 worker_died unknown 1"],
                (Unknown, WorkerDied, Some("02"), Some(1)),
                decide(),
            ),
            case(
                "sent",
                message("sent", "done", None),
                &[
                    "01 claimed not_done 1",
                    "02 failed not_done 1",
                    "03 claimed not_done 2",
                    "04 succeeded done 2 receipt=r-7",
                ],
                (Yes, Accepted, Some("04"), Some(2)),
                MessageNext::Nothing,
            ),
            case(
                "the receiver had it already",
                message("sent", "done", None),
                &[
                    "01 claimed not_done 1",
                    "02 failed unknown 1",
                    "03 claimed unknown 2",
                    "04 succeeded done 2 code=CONFLICT_PROCESSED",
                ],
                (Yes, ProcessedBefore, Some("04"), Some(2)),
                MessageNext::Nothing,
            ),
            case(
                "a late response",
                message("sent", "done", None),
                &["01 claimed not_done 1", "02 worker_died unknown 1", "03 late_success done 1"],
                (Yes, AnsweredLate, Some("03"), Some(1)),
                MessageNext::Nothing,
            ),
            case(
                "the receiver was asked",
                message("sent", "done", None),
                &["01 claimed not_done 1", "02 failed unknown 1", "03 reconciled done 1"],
                (Yes, ReceiverSaid, Some("03"), None),
                MessageNext::Nothing,
            ),
            case(
                "a person said done",
                message("sent", "done", None),
                &["01 claimed not_done 1", "02 failed unknown 1", "03 decided done 1 actor=ann"],
                (Yes, PersonDecided, Some("03"), None),
                MessageNext::Nothing,
            ),
            case(
                "dead, and a person said done",
                message("dead", "done", None),
                &[
                    "01 claimed not_done 1",
                    "02 failed unknown 1",
                    "03 spent unknown 1",
                    "04 decided done 1 actor=ann",
                    "05 discarded done 1 actor=bob",
                ],
                (Yes, PersonDecided, Some("04"), None),
                MessageNext::Nothing,
            ),
            case(
                "dead without effect",
                message("dead", "not_done", None),
                &["01 claimed not_done 1", "02 failed not_done 1", "03 spent not_done 1"],
                (No, NoEffect, Some("02"), Some(1)),
                MessageNext::Requeue,
            ),
            case(
                "dead, effect unknown",
                message("dead", "unknown", None),
                &["01 claimed not_done 1", "02 failed unknown 1", "03 spent unknown 1"],
                (Unknown, NoAnswer, Some("02"), Some(1)),
                decide(),
            ),
            case(
                "cancelled before it was sent",
                message("cancelled", "not_done", None),
                &["00 accepted not_done 0", "01 cancelled not_done 0 actor=ann"],
                (No, NeverCalled, None, None),
                MessageNext::Nothing,
            ),
            case(
                "stopped on request",
                message("cancelled", "not_done", None),
                &["01 claimed not_done 1", "02 stopped not_done 1"],
                (No, NoEffect, Some("02"), Some(1)),
                MessageNext::Nothing,
            ),
            case(
                "cancelled, effect unknown",
                message("cancelled", "unknown", None),
                &["01 claimed not_done 1", "02 failed unknown 1", "03 cancelled unknown 1 actor=ann"],
                (Unknown, NoAnswer, Some("02"), Some(1)),
                MessageNext::Nothing,
            ),
            case(
                "a person said not done, and it is sent again",
                message("queued", "not_done", None),
                &["01 claimed not_done 1", "02 failed unknown 1", "03 decided not_done 1 actor=ann"],
                (NotYet, PersonDecided, Some("03"), None),
                MessageNext::WhenFree,
            ),
            case(
                "a state of a later release",
                message("levitating", "done", None),
                &["01 succeeded done 1"],
                (Yes, Accepted, Some("01"), Some(1)),
                MessageNext::Nothing,
            ),
            case(
                "an effect of a later release",
                message("dead", "half", None),
                &[],
                (Unknown, NoAnswer, None, None),
                decide(),
            ),
        ]
    }

    #[test]
    fn the_answer_follows_from_what_is_stored() {
        for Case { name, message, events, expected, next } in cases() {
            let events: Vec<Event> = events.iter().map(|line| event(line)).collect();
            let answer = was_it_done(&message, &events, None, Some("08"));
            let DoneAnswer { verdict, grounds, at, attempt, .. } = &answer;
            assert_eq!((*verdict, *grounds, at.as_deref(), *attempt), expected, "{name}");
            assert_eq!(answer.next, next, "{name}");
        }
    }

    #[test]
    fn an_unknown_effect_is_never_yes_or_no() {
        for state in StateName::WORDS.iter().filter(|state| **state != "sent") {
            let answer = was_it_done(&message(state, "unknown", None), &[], None, None);
            assert_eq!(answer.verdict, DoneVerdict::Unknown, "{state}");
        }
    }

    #[test]
    fn a_receipt_and_a_person_are_named() {
        let sent = [event("04 succeeded done 2 receipt=r-7")];
        assert_eq!(
            was_it_done(&message("sent", "done", None), &sent, None, None).receipt.as_deref(),
            Some("r-7")
        );
        let decided = [event("04 decided done 2 actor=ann")];
        assert_eq!(
            was_it_done(&message("sent", "done", None), &decided, None, None).actor.as_deref(),
            Some("ann")
        );
    }
}
