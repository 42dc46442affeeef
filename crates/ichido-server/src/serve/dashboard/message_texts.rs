//! "Was it done?" and the timeline in words.

use std::time::Duration;

use ichido_core::text::visible_lines;
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;

use super::super::dead_letters::Letter;
use super::super::models::{Event, Message, ReplayCount};
use super::destinations::path_of;
use super::key;
use super::marks;
use super::message::ReadEvents;
use super::moments::{ShownTime, duration, full, grouped};
use super::shell::Visitor;
use super::texts::{Texts, fill};
use super::timeline::{AttemptRun, KeyStep, SentAgain, TimelineEntry, TimelineStep};
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
        Self { name, value: visible_lines(&value.into()), is_code: false, href: None }
    }

    pub(super) fn code(name: &'static str, value: impl Into<String>) -> Self {
        Self { is_code: true, ..Self::text(name, value) }
    }
}

/// The receiver of a message.
#[derive(Default)]
pub(super) struct Receiver {
    /// Name and redacted address; `None` if this server does not have the destination in its configuration.
    pub(super) destination: Option<(String, String)>,
    /// The key that its calls carry.
    pub(super) key: Option<String>,
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
    /// Where its title leads.
    pub(super) href: Option<String>,
}

impl ShownEntry {
    fn quiet(mark: &'static str, title: String) -> Self {
        Self { mark, class: "quiet", title, text: None, facts: Vec::new(), at: None, href: None }
    }
}

/// Returns mark, class and word of a verdict.
pub(super) fn verdict_mark(t: &Texts, verdict: DoneVerdict) -> (&'static str, &'static str, &'static str) {
    match verdict {
        DoneVerdict::Yes => ("check", "good", t.yes),
        DoneVerdict::No => ("cross", "bad", t.no),
        DoneVerdict::NotYet => ("wait", "calm", t.not_yet),
        DoneVerdict::Unknown => ("ask", "doubt", t.not_known),
    }
}

/// Returns the answer in words, with its evidence.
pub(super) fn shown_answer(
    visitor: &Visitor,
    answer: &DoneAnswer,
    message: &Message,
    events: &ReadEvents,
    letter: Option<&Letter>,
    receiver: &Receiver,
) -> ShownAnswer {
    let t = visitor.t();
    let (mark, class, word) = verdict_mark(t, answer.verdict);
    ShownAnswer {
        mark,
        class,
        word,
        because: because(t, answer),
        next: Some(next(visitor, answer, message, letter)),
        evidence: evidence(t, answer, message, events, letter, receiver),
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

fn next(visitor: &Visitor, answer: &DoneAnswer, message: &Message, letter: Option<&Letter>) -> String {
    let (t, k) = (visitor.t(), visitor.key_texts());
    let asked_every = letter.and_then(|letter| letter.asked_every_seconds).map(Duration::from_secs);
    match &answer.next {
        MessageNext::Nothing => t.next_nothing.to_owned(),
        MessageNext::WhenFree => t.next_when_free.to_owned(),
        MessageNext::AttemptEnds => t.next_attempt_ends.to_owned(),
        MessageNext::Requeue => t.next_requeue.to_owned(),
        MessageNext::Decide { .. }
            if letter.is_some_and(|letter| letter.state == "dead" && letter.requeue_refused.is_none()) =>
        {
            t.next_decide_or_requeue.to_owned()
        }
        MessageNext::Decide { .. }
            if let (Some(every), Some(asked)) = (asked_every, letter.and_then(asked_at)) =>
        {
            let (asked, next) = (asked.to_string(), asked.plus(every).max(visitor.now).to_string());
            let values = [("asked", &*full(&asked)), ("when", &*full(&next)), ("time", &*duration(every))];
            fill(k.next_asked_again, &values)
        }
        MessageNext::Decide { not_before } if let Some(every) = asked_every => {
            let text = if not_before.is_some() { k.next_asked_later } else { k.next_asked };
            let when = not_before.as_deref().map(full).unwrap_or_default();
            fill(text, &[("when", &when), ("time", &duration(every))])
        }
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
    }
}

/// Returns when the receiver was last asked.
fn asked_at(letter: &Letter) -> Option<Timestamp> {
    letter.asked_at.as_deref().and_then(Timestamp::parse)
}

fn evidence(
    t: &'static Texts,
    answer: &DoneAnswer,
    message: &Message,
    ReadEvents { events, basis: before, .. }: &ReadEvents,
    letter: Option<&Letter>,
    receiver: &Receiver,
) -> Vec<Fact> {
    let facts = &message.facts;
    let mut found = vec![Fact::text(t.effect, marks::effect_name(t, &facts.effect))];
    let since = if answer.verdict == DoneVerdict::Unknown { t.unknown_since } else { t.known_since };
    found.extend(answer.at.as_deref().map(|at| Fact::text(since, full(at))));
    found.extend(answer.receipt.clone().map(|receipt| Fact::code(t.receipt, receipt)));
    // The event that the answer rests on.
    let newest_first = || events.iter().rev().chain(before);
    let basis = answer.at.as_deref().and_then(|at| newest_first().find(|event| event.at == at));
    let is_decision = |event: &&Event| event.kind == "decided";
    let reason = basis.filter(is_decision).and_then(|event| event.error_text.clone());
    found.extend(reason.map(|reason| Fact::text(t.reason_given, reason)));
    // A decision leaves what the last call brought.
    let call = || newest_first().find(|event| event.kind == "failed" || event.kind == "worker_died");
    let basis = if basis.is_some_and(|event| is_decision(&event)) { call() } else { basis };
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
    found.extend(receiver.destination.as_ref().map(|(name, address)| Fact {
        href: Some(path_of(name)),
        ..Fact::text(t.receiver, format!("{name} · {address}"))
    }));
    found.extend(receiver.key.clone().map(|key| Fact::code(t.outbound_key, key)));
    if let Some(letter) = letter {
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

/// Returns the timeline in words. Earlier entries are on the message's page.
pub(super) fn shown_timeline(
    visitor: &Visitor,
    entries: &[TimelineEntry],
    message_path: &str,
) -> Vec<ShownEntry> {
    entries.iter().map(|entry| shown_entry(visitor, entry, message_path)).collect()
}

fn shown_entry(visitor: &Visitor, entry: &TimelineEntry, message_path: &str) -> ShownEntry {
    let (t, k) = (visitor.t(), visitor.key_texts());
    match entry {
        TimelineEntry::Hop { name, at } => ShownEntry {
            at: Some(visitor.time(at)),
            ..ShownEntry::quiet("dot", fill(t.hop, &[("name", name)]))
        },
        TimelineEntry::Idle { lasted } => {
            ShownEntry::quiet("idle", fill(k.idle_for, &[("time", &duration(*lasted))]))
        }
        TimelineEntry::Earlier { before, .. } => ShownEntry {
            href: Some(format!("{message_path}?before={before}#timeline")),
            ..ShownEntry::quiet("none", k.earlier_entries.to_owned())
        },
        TimelineEntry::Key(step) => shown_key_step(visitor, step),
        TimelineEntry::Replays { operation, replays } => {
            shown_replays(visitor, operation.as_deref(), replays)
        }
        TimelineEntry::Attempts(run) => shown_attempts(visitor, run),
        TimelineEntry::Step(step) => shown_step(visitor, step),
    }
}

fn shown_key_step(visitor: &Visitor, step: &KeyStep) -> ShownEntry {
    let (t, k) = (visitor.t(), visitor.key_texts());
    let (mark, class, text) = match step.kind.as_str() {
        "claimed" => ("in", "calm", k.step_key_claimed),
        "taken_over" => ("in", "warn", k.step_key_taken_over),
        "unknown" => ("ask", "doubt", k.step_key_unknown),
        "settled" => ("check", "calm", k.step_key_settled),
        "reconciled" => ("check", "calm", k.step_key_reconciled),
        "decided" => ("person", "calm", k.step_key_decided),
        other => ("dot", "quiet", other),
    };
    let mut facts = vec![Fact::text("→", key::state_name(k, &step.to))];
    facts.extend(step.actor.clone().map(|actor| Fact::text(t.by, actor)));
    facts.extend(step.fence.map(|fence| Fact::text(t.fence, fence.to_string())));
    ShownEntry {
        mark,
        class,
        title: fill(text, &[("name", &step.operation)]),
        text: None,
        facts,
        at: Some(visitor.time(&step.at)),
        href: None,
    }
}

fn shown_replays(visitor: &Visitor, operation: Option<&str>, replays: &ReplayCount) -> ShownEntry {
    let k = visitor.key_texts();
    let text = if operation.is_some() { k.replays_of_key } else { k.replays_of_message };
    let values = [
        ("n", &*grouped(i64::try_from(replays.count).unwrap_or(i64::MAX))),
        ("name", operation.unwrap_or_default()),
    ];
    let has_more = replays.first_at != replays.last_at;
    ShownEntry {
        mark: "in",
        class: "calm",
        title: fill(text, &values),
        text: None,
        facts: has_more.then(|| Fact::text(k.first_replay, full(&replays.first_at))).into_iter().collect(),
        at: Some(visitor.time(&replays.last_at)),
        href: None,
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
        Some(_) if end.effect == Effect::Unknown.as_str() => t.outcome_unclear,
        Some(_) => t.outcome_failed,
    };
    let what = run.again.map(|again| match again {
        SentAgain::Requeued => t.the_requeue,
        SentAgain::Decided => t.the_decision,
    });
    let text = match (run.count, what) {
        (1, None) => t.attempt_one,
        (_, None) => t.attempt_many,
        (1, Some(_)) => t.attempt_again_one,
        (_, Some(_)) => t.attempt_again_many,
    };
    let last = if run.count == 1 { run.first } else { run.last };
    let values = [
        ("n", &*run.first.to_string()),
        ("last", &*last.to_string()),
        ("outcome", outcome),
        ("what", what.unwrap_or_default()),
    ];
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
        text: run.text.as_deref().map(visible_lines),
        facts,
        at: Some(visitor.time(&run.at)),
        href: None,
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
        text: step.text.as_deref().map(visible_lines),
        facts,
        at: Some(visitor.time(&step.at)),
        href: None,
    }
}

/// Returns the first digits of an id.
fn short(id: &str) -> String {
    id.chars().take(13).collect()
}
