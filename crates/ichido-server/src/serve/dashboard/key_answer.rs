//! "Was it done?" about a key in words, and the stored response as it is replayed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ichido_core::settings::size;

use super::super::keys::{KeyRecord, ResponseView};
use super::key_done::{KeyAnswer, KeyGrounds, KeyNext};
use super::key_texts::Texts as KeyTexts;
use super::message_texts::{Fact, ShownAnswer, verdict_mark};
use super::moments::full;
use super::shell::Visitor;
use super::texts::{Texts, fill};
use super::was_it_done::DoneVerdict;

/// Maximum bytes of a stored body on the page.
const MAX_SHOWN_BYTES: usize = 64 << 10;

/// A stored response on a page.
pub(super) struct ShownReplay {
    /// Status, header fields and body; without what this visitor may not see.
    pub(super) text: String,
    /// What is left out.
    pub(super) note: Option<String>,
}

/// Returns the answer in words, with its evidence.
pub(super) fn shown_key_answer(visitor: &Visitor, answer: &KeyAnswer, record: &KeyRecord) -> ShownAnswer {
    let (t, k) = (visitor.t(), visitor.key_texts());
    let (mark, class, word) = verdict_mark(t, answer.verdict);
    ShownAnswer {
        mark,
        class,
        word,
        because: because(t, k, answer),
        next: next(k, answer),
        evidence: evidence(t, k, answer, record),
    }
}

fn because(t: &Texts, k: &KeyTexts, answer: &KeyAnswer) -> String {
    let text = match answer.grounds {
        KeyGrounds::Stored => k.because_stored,
        KeyGrounds::Refused => k.because_refused,
        KeyGrounds::ReceiverSaid if answer.verdict == DoneVerdict::Yes => t.because_receiver_yes,
        KeyGrounds::ReceiverSaid => t.because_receiver_no,
        KeyGrounds::PersonDecided => t.because_person_yes,
        KeyGrounds::PersonGaveUp => k.because_gave_up,
        KeyGrounds::Running => k.because_running,
        KeyGrounds::Lapsed => k.because_lapsed,
        KeyGrounds::Lost => k.because_lost,
    };
    fill(text, &[("who", answer.actor.as_deref().unwrap_or(t.a_person))])
}

fn next(k: &KeyTexts, answer: &KeyAnswer) -> Option<String> {
    let at = |text: &str, at: &str| fill(text, &[("when", &full(at))]);
    Some(match &answer.next {
        KeyNext::Nothing => return None,
        KeyNext::Replays(None) => k.next_replays_held.to_owned(),
        KeyNext::Replays(Some(until)) => at(k.next_replays, until),
        KeyNext::RequestEnds { lease_until } => {
            at(k.next_request_ends, lease_until.as_deref().unwrap_or_default())
        }
        KeyNext::Decide { not_done_from: None } => k.next_key_decide.to_owned(),
        KeyNext::Decide { not_done_from: Some(from) } => {
            format!("{} {}", k.next_key_decide, at(k.next_key_not_done_from, from))
        }
    })
}

fn evidence(t: &'static Texts, k: &'static KeyTexts, answer: &KeyAnswer, record: &KeyRecord) -> Vec<Fact> {
    let at = |name, text: &str| Fact::text(name, full(text));
    let mut found = Vec::new();
    found.extend(answer.at.as_deref().map(|known| at(t.known_since, known)));
    let status = record.response.as_ref().map(|response| format!("HTTP {}", response.status));
    found.extend(status.map(|status| Fact::text(t.response_status, status)));
    found.push(at(k.first_claimed, &record.created_at));
    let last = record.claimed_at.as_deref().filter(|claimed| *claimed != record.created_at);
    found.extend(last.map(|claimed| at(k.last_claimed, claimed)));
    found.extend(record.lease_until.as_deref().map(|until| at(t.lease_until, until)));
    let asked = record.history.iter().rev().find(|event| event.kind == "reconciled");
    found.extend(asked.map(|event| at(k.asked_at, &event.at)));
    found.extend(record.completed_at.as_deref().map(|settled| at(k.settled_at, settled)));
    found.extend(record.expires_at.as_deref().map(|expires| at(k.expires, expires)));
    found.extend(record.message.as_deref().and_then(message_path).map(|path| Fact {
        value: path.trim_start_matches("/messages/").to_owned(),
        href: Some(path),
        ..Fact::code(k.enqueued, "")
    }));
    found.push(Fact::text(k.operation, record.operation.clone().unwrap_or_default()));
    found.push(Fact::text(t.identity, &*record.identity));
    found.push(Fact::code(k.key_hash, &*record.key_hash));
    found.push(Fact::code(t.digest, &*record.request_digest));
    found.extend(record.result_digest.clone().map(|digest| Fact::code(t.result_digest, digest)));
    found
}

/// Returns the page of a message from its path in the API.
pub(super) fn message_path(href: &str) -> Option<String> {
    href.strip_prefix("/v1").filter(|path| path.starts_with("/messages/")).map(str::to_owned)
}

/// Returns a stored response as it is replayed: not a byte is added to what is shown of its body.
pub(super) fn shown_replay(k: &KeyTexts, response: &ResponseView) -> ShownReplay {
    let head = format!("HTTP {}\n", response.status);
    let Some(headers) = &response.headers else {
        return ShownReplay { text: head, note: Some(k.replay_viewer.to_owned()) };
    };
    let fields: String = headers.iter().flat_map(|field| [&*field.name, ": ", &*field.value, "\n"]).collect();
    let bytes = [("bytes", &*size::format_in_text(response.body_bytes.unwrap_or_default()))];
    let (body, note) = match (response.body_bytes, &response.body_base64) {
        (None, _) => (String::new(), Some(k.replay_no_body.to_owned())),
        (Some(_), None) => (String::new(), Some(fill(k.replay_large, &bytes))),
        (Some(_), Some(base64)) => match STANDARD.decode(base64).map(String::from_utf8) {
            Ok(Ok(text)) if text.len() <= MAX_SHOWN_BYTES => (text, None),
            Ok(Ok(_)) => (String::new(), Some(fill(k.replay_large, &bytes))),
            _ => (String::new(), Some(fill(k.replay_binary, &bytes))),
        },
    };
    ShownReplay { text: format!("{head}{fields}\n{body}"), note }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::serve::dashboard::language::Language;

    fn shown(value: serde_json::Value) -> ShownReplay {
        let response = serde_json::from_value(value).expect("a response");
        shown_replay(KeyTexts::of(Language::English), &response)
    }

    #[test]
    fn a_stored_response_is_shown_as_it_is_replayed() {
        let body = "{ \"id\":9007199254740993 }\n";
        let replay = shown(json!({
            "status": 201, "body_bytes": body.len(), "body_base64": STANDARD.encode(body),
            "headers": [{ "name": "content-type", "value": "application/json" }, { "name": "x-api-key", "value": "[redacted]" }],
        }));
        assert_eq!(
            replay.text,
            format!("HTTP 201\ncontent-type: application/json\nx-api-key: [redacted]\n\n{body}")
        );
        assert_eq!(replay.note, None);
    }

    #[test]
    fn what_is_not_shown_is_said() {
        let k = KeyTexts::of(Language::English);
        let viewer = shown(json!({ "status": 201, "body_bytes": 3 }));
        assert_eq!((viewer.text.as_str(), viewer.note.as_deref()), ("HTTP 201\n", Some(k.replay_viewer)));
        let lost = shown(json!({ "status": 200, "body_bytes": null, "headers": [] }));
        assert_eq!(lost.note.as_deref(), Some(k.replay_no_body));
        let binary = shown(json!({ "status": 200, "body_bytes": 2, "body_base64": "/9g=", "headers": [] }));
        assert!(binary.note.expect("a note").starts_with("The body is not text: 2"), "{}", binary.text);
        let long = "a".repeat(MAX_SHOWN_BYTES + 1);
        let long = json!({ "status": 200, "body_bytes": long.len(), "body_base64": STANDARD.encode(&long), "headers": [] });
        assert!(shown(long).note.expect("a note").starts_with("The body is too large"));
    }
}
