//! "Was it done?" and the timeline in words.

use super::super::dead_letters::Letter;
use super::super::models::{Event, Message};
use super::marks;
use super::moments::{ShownTime, duration, full};
use super::shell::Visitor;
use super::texts::{Texts, fill};
use super::timeline::{AttemptRun, TimelineEntry, TimelineStep};
use super::was_it_done::{DoneAnswer, DoneVerdict, Grounds, MessageNext};

/// A name and a value.
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) is_code: bool,
    pub(super) href: Option<String>,
}

impl Fact {
    pub(super) fn text(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into(), is_code: false, href: None }
    }

    pub(super) fn code(name: &'static str, value: impl Into<String>) -> Self {
        Self { is_code: true, ..Self::text(name, value) }
    }
}

/// The box "Was it done?".
pub(super) struct ShownAnswer {
    pub(super) mark: &'static str,
    pub(super) class: &'static str,
    pub(super) word: &'static str,
    pub(super) because: String,
    pub(super) next: Option<String>,
    pub(super) evidence: Vec<Fact>,
}

/// An entry of the timeline.
pub(super) struct ShownEntry {
    pub(super) mark: &'static str,
    pub(super) class: &'static str,
    pub(super) title: String,
    pub(super) text: Option<String>,
    pub(super) facts: Vec<Fact>,
    pub(super) at: Option<ShownTime>,
}

/// Returns the answer in words, with its evidence.
pub(super) fn shown_answer(
    visitor: &Visitor,
    answer: &DoneAnswer,
    message: &Message,
    events: &[Event],
    letter: Option<&Letter>,
) -> ShownAnswer {
    let t = visitor.t();
    let (mark, class, word) = match answer.verdict {
        DoneVerdict::Yes => ("check", "good", t.yes),
        DoneVerdict::No => ("cross", "bad", t.no),
        DoneVerdict::NotYet => ("wait", "calm", t.not_yet),
        DoneVerdict::Unknown => ("ask", "doubt", t.not_known),
    };
    ShownAnswer {
        mark,
        class,
        word,
        because: because(t, answer),
        next: next(visitor, answer, message),
        evidence: evidence(t, answer, message, events, letter),
    }
}

fn because(t: &Texts, answer: &DoneAnswer) -> String {
    let is_yes = answer.verdict == DoneVerdict::Yes;
    let text = match answer.grounds {
        Grounds::Accepted => t.because_accepted,
        Grounds::ProcessedBefore => t.because_processed,
        Grounds::AnsweredLate => t.because_late,
        Grounds::ReceiverSaid if is_yes => t.because_receiver_yes,
        Grounds::ReceiverSaid => t.because_receiver_no,
        Grounds::PersonDecided if is_yes => t.because_person_yes,
        Grounds::PersonDecided => t.because_person_no,
        Grounds::NeverCalled => t.because_never_called,
        Grounds::NoEffect => t.because_no_effect,
        Grounds::InFlight => t.because_in_flight,
        Grounds::NoAnswer => t.because_no_answer,
        Grounds::WorkerDied => t.because_worker_died,
    };
    let attempt = answer.attempt.map_or_else(|| "1".to_owned(), |attempt| attempt.to_string());
    fill(text, &[("n", &attempt), ("who", answer.actor.as_deref().unwrap_or(t.a_person))])
}

fn next(visitor: &Visitor, answer: &DoneAnswer, message: &Message) -> Option<String> {
    let t = visitor.t();
    let text = match &answer.next {
        MessageNext::Nothing => return None,
        MessageNext::WhenFree => t.next_when_free.to_owned(),
        MessageNext::AttemptEnds => t.next_attempt_ends.to_owned(),
        MessageNext::Requeue => t.next_requeue.to_owned(),
        MessageNext::Decide { not_before: None } => t.next_decide.to_owned(),
        MessageNext::Decide { not_before: Some(at) } => fill(t.next_decide_later, &[("when", &full(at))]),
        MessageNext::AttemptAt(at) => {
            let at = visitor.time(at);
            let values = [
                ("n", &*(message.facts.attempts + 1).to_string()),
                ("max", &*message.facts.max_attempts.to_string()),
                ("when", &*format!("{} ({})", at.short, at.full)),
            ];
            fill(t.next_attempt_at, &values)
        }
    };
    Some(text)
}

fn evidence(
    t: &'static Texts,
    answer: &DoneAnswer,
    message: &Message,
    events: &[Event],
    letter: Option<&Letter>,
) -> Vec<Fact> {
    let facts = &message.facts;
    let mut found = vec![Fact::text(t.effect, marks::effect_name(t, &facts.effect))];
    found.extend(answer.at.as_deref().map(|at| Fact::text(t.known_since, full(at))));
    found.extend(answer.receipt.clone().map(|receipt| Fact::code(t.receipt, receipt)));
    // The event that the answer rests on.
    let basis = answer.at.as_deref().and_then(|at| events.iter().rev().find(|event| event.at == at));
    if let Some(event) = basis {
        let status = event.status.map(|status| format!("HTTP {status}"));
        let parts: Vec<String> =
            status.into_iter().chain(event.error_code.clone()).chain(event.error_text.clone()).collect();
        found.extend((!parts.is_empty()).then(|| Fact::text(t.response_status, parts.join(" · "))));
        found.extend(event.result_digest.clone().map(|digest| Fact::code(t.result_digest, digest)));
    }
    let values = [("n", &*facts.attempts.to_string()), ("max", &*facts.max_attempts.to_string())];
    found.push(Fact::text(t.attempts, fill(t.of_max, &values)));
    if let Some(holder) = &message.held_by {
        found.push(Fact::text(t.held_by, holder.name.clone().unwrap_or_else(|| holder.node.to_string())));
        found.push(Fact::text(t.lease_until, full(&holder.lease_until)));
    }
    if let Some(letter) = letter {
        found.extend(letter.outbound_key.clone().map(|key| Fact::code(t.outbound_key, key)));
        found.extend(
            letter.in_flight_until.as_deref().map(|until| Fact::text(t.in_flight_until, full(until))),
        );
    }
    if let Some(cancel) = &message.cancel_requested {
        let by = cancel.actor.as_deref().unwrap_or(t.a_person);
        found.push(Fact::text(t.cancel_requested, format!("{by}, {}", full(&cancel.at))));
    }
    found
}

/// Returns the timeline in words.
pub(super) fn shown_timeline(visitor: &Visitor, entries: &[TimelineEntry]) -> Vec<ShownEntry> {
    entries.iter().map(|entry| shown_entry(visitor, entry)).collect()
}

fn shown_entry(visitor: &Visitor, entry: &TimelineEntry) -> ShownEntry {
    let t = visitor.t();
    match entry {
        TimelineEntry::Hop { name, at } => ShownEntry {
            mark: "dot",
            class: "quiet",
            title: fill(t.hop, &[("name", name)]),
            text: None,
            facts: Vec::new(),
            at: Some(visitor.time(at)),
        },
        TimelineEntry::LeftOut { count } => ShownEntry {
            mark: "none",
            class: "quiet",
            title: fill(t.left_out, &[("n", &count.to_string())]),
            text: None,
            facts: Vec::new(),
            at: None,
        },
        TimelineEntry::Attempts(run) => shown_attempts(visitor, run),
        TimelineEntry::Step(step) => shown_step(visitor, step),
    }
}

fn shown_attempts(visitor: &Visitor, run: &AttemptRun) -> ShownEntry {
    let t = visitor.t();
    let end = &run.outcome;
    let outcome = match end.kind.as_deref() {
        None => t.outcome_in_flight,
        Some("succeeded") => t.outcome_succeeded,
        Some("given_back") => t.outcome_given_back,
        Some("stopped") => t.outcome_stopped,
        Some("worker_died") => t.outcome_worker_died,
        Some(_) => t.outcome_failed,
    };
    let (text, last) = if run.count == 1 { (t.attempt_one, run.first) } else { (t.attempt_many, run.last) };
    let values = [("n", &*run.first.to_string()), ("last", &*last.to_string()), ("outcome", outcome)];
    let shown = match (end.kind.as_deref(), end.effect.as_str()) {
        (None, _) => marks::of_effect("in_flight"),
        (Some("succeeded"), _) => marks::of_state("sent"),
        (Some("given_back"), _) => marks::of_effect("not_done"),
        (_, "unknown") => marks::of_effect("unknown"),
        _ => marks::of_state(&end.to),
    };
    let mut facts = Vec::new();
    facts.extend(end.status.map(|status| Fact::text("HTTP", status.to_string())));
    facts.extend(end.code.clone().map(|code| Fact::text("", code)));
    facts.extend((!end.effect.is_empty()).then(|| Fact::text(t.effect, marks::effect_name(t, &end.effect))));
    facts.extend(run.receipt.clone().map(|receipt| Fact::text(t.receipt, receipt)));
    facts.extend(run.took.map(|took| Fact::text(t.took, duration(took))));
    facts.extend(run.node.map(|node| Fact::text(t.node, short(&node.to_string()))));
    facts.extend(run.fence.map(|fence| Fact::text(t.fence, fence.to_string())));
    facts.extend(run.ended_at.as_deref().filter(|_| 1 < run.count).map(|at| Fact::text(t.until, full(at))));
    ShownEntry {
        mark: shown.mark,
        class: shown.class,
        title: fill(text, &values),
        text: run.text.clone(),
        facts,
        at: Some(visitor.time(&run.at)),
    }
}

fn shown_step(visitor: &Visitor, step: &TimelineStep) -> ShownEntry {
    let t = visitor.t();
    let title = match step.kind.as_str() {
        "accepted" => t.step_accepted,
        "spent" => t.step_spent,
        "late_success" => t.step_late_success,
        "reconciled" => t.step_reconciled,
        "decided" => t.step_decided,
        "requeued" => t.step_requeued,
        "discarded" => t.step_discarded,
        "replaced" => t.step_replaced,
        "cancelled" => t.step_cancelled,
        other => other,
    };
    let (mark, class) = match (step.kind.as_str(), &step.actor) {
        ("accepted", _) => ("in", "calm"),
        (_, Some(_)) => ("person", "calm"),
        _ => {
            let shown = marks::of_state(&step.to);
            (shown.mark, shown.class)
        }
    };
    let mut facts = vec![Fact::text("→", marks::state_name(t, &step.to))];
    facts.extend(step.actor.clone().map(|actor| Fact::text(t.by, actor)));
    facts.extend(step.receipt.clone().map(|receipt| Fact::text(t.receipt, receipt)));
    ShownEntry {
        mark,
        class,
        title: title.to_owned(),
        text: step.text.clone(),
        facts,
        at: Some(visitor.time(&step.at)),
    }
}

/// Returns the first digits of an id.
fn short(id: &str) -> String {
    id.chars().take(13).collect()
}
