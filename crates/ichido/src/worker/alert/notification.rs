//! The notifications of an incident: one per receiver when it opens and resolves.

use std::time::Duration;

use ichido_core::alert::words;
use ichido_core::json::CanonicalForm;
use ichido_core::key::IdempotencyKey;
use ichido_core::text;
use ichido_core::time::Timestamp;
use ichido_store::alert::NewAlert;
use ichido_store::dead_letter::DeadLetterRow;
use ichido_store::message::{NewMessage, QueueName, RequestBody};
use serde_json::{Value, json};

use super::{AlertFormat, AlertReceiver, AlertSettings};

/// The identity of the notifications.
const IDENTITY: &str = "ichido";
/// The longest item or error text in a notification, in characters.
const MAX_NAMED_CHARS: usize = 200;

/// An incident to notify about.
pub(super) struct Incident<'a> {
    /// The incident as it was opened.
    pub(super) alert: &'a NewAlert,
    /// When it was resolved.
    pub(super) resolved_at: Option<Timestamp>,
    /// It was resolved because its rule was switched off.
    pub(super) is_switched_off: bool,
    /// The newest dead letters that it is about.
    pub(super) letters: &'a [DeadLetterRow],
}

impl Incident<'_> {
    /// Describes it in a sentence.
    pub(super) fn text(&self) -> String {
        let NewAlert { rule, about, opened_at, reading, terms, .. } = self.alert;
        match self.resolved_at {
            None => words::opened(*rule, about, *terms, *reading) + &self.named_letters(),
            Some(at) if self.is_switched_off => words::switched_off(*rule, about, at.since(*opened_at)),
            Some(at) => words::resolved(*rule, about, at.since(*opened_at)),
        }
    }

    /// Names the newest dead letters and their errors.
    // Spec: E3, E5.
    fn named_letters(&self) -> String {
        let named = self.letters.iter().map(|letter| {
            let (item, error) = (item_of(letter), error_of(letter).unwrap_or_default());
            format!("{item}: {error}")
        });
        let named: Vec<String> = named.collect();
        if named.is_empty() { String::new() } else { format!(". Newest: {}", named.join("; ")) }
    }

    /// Returns one message per receiver.
    pub(super) fn messages(&self, alerts: &AlertSettings) -> Vec<NewMessage> {
        alerts.receivers.iter().filter_map(|receiver| self.message(receiver)).collect()
    }

    fn message(&self, receiver: &AlertReceiver) -> Option<NewMessage> {
        // A worker with an invalid receiver name does not start.
        let queue = QueueName::parse(&receiver.queue())?;
        let body = match receiver.format {
            AlertFormat::Webhook => self.event(),
            AlertFormat::Slack => json!({ "text": self.slack() }),
        };
        let what = if self.resolved_at.is_some() { "resolved" } else { "opened" };
        let key = IdempotencyKey::derived("alert", &[self.alert.id.as_bytes(), what.as_bytes()]);
        // What was just written as JSON can be read.
        let body =
            RequestBody::new("application/json", body.to_string().into(), CanonicalForm::default()).ok()?;
        Some(NewMessage::new(queue, IDENTITY, key, body))
    }

    fn event(&self) -> Value {
        let NewAlert { id, rule, about, opened_at, reading, terms } = self.alert;
        let kind = if self.resolved_at.is_some() { "alert.resolved" } else { "alert.opened" };
        json!({
            "type": kind,
            "timestamp": self.resolved_at.unwrap_or(*opened_at).to_string(),
            "data": {
                "id": id.to_string(),
                "rule": rule.as_str(),
                "about": about.to_string(),
                "opened_at": opened_at.to_string(),
                "resolved_at": self.resolved_at.map(|at| at.to_string()),
                "value": reading.value,
                "above": terms.above,
                "samples": reading.samples,
                "window_seconds": terms.window.as_ref().map(Duration::as_secs),
                "text": self.text(),
                "dead_letters": self.letters.iter().map(letter_json).collect::<Vec<_>>(),
            },
        })
    }

    /// Escapes the three characters that have a meaning in Slack's text.
    fn slack(&self) -> String {
        let text = self.text().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let sign = if self.resolved_at.is_some() { ":white_check_mark:" } else { ":rotating_light:" };
        format!("{sign} {text}")
    }
}

fn letter_json(letter: &DeadLetterRow) -> Value {
    json!({
        "id": letter.id.to_string(),
        "item": item_of(letter),
        "code": letter.code,
        "error": error_of(letter),
        "since": letter.since.to_string(),
    })
}

/// Returns what a letter is about: its item, else its key.
fn item_of(letter: &DeadLetterRow) -> String {
    text::bounded(letter.item.as_deref().unwrap_or(letter.key.as_str()), MAX_NAMED_CHARS)
}

/// Returns its error text, else its error code.
fn error_of(letter: &DeadLetterRow) -> Option<String> {
    let error = letter.error.as_deref().or(letter.code.as_deref())?;
    Some(text::bounded(error, MAX_NAMED_CHARS))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use ichido_core::alert::{AlertRule, AlertSubject, Measurement};
    use ichido_core::lifecycle::History;
    use ichido_core::verdict::Effect;
    use ichido_store::dead_letter::Disposition;
    use ichido_store::message::DeadLetterState;
    use uuid::Uuid;

    use super::*;

    fn opened(about: AlertSubject) -> NewAlert {
        NewAlert {
            id: Uuid::from_u128(7),
            rule: AlertRule::Duplicates,
            about,
            opened_at: Timestamp::from_secs(1_800_000_000),
            reading: Measurement { value: 0.6, samples: 500 },
            terms: AlertRule::Duplicates.terms(),
        }
    }

    fn incident(alert: &NewAlert, resolved_at: Option<Timestamp>) -> Incident<'_> {
        Incident { alert, resolved_at, is_switched_off: false, letters: &[] }
    }

    fn alerts() -> AlertSettings {
        let receiver = |name: &str, form| AlertReceiver {
            name: name.to_owned(),
            destination: "d".to_owned(),
            format: form,
        };
        AlertSettings {
            receivers: vec![receiver("ops", AlertFormat::Webhook), receiver("chat", AlertFormat::Slack)],
            ..AlertSettings::default()
        }
    }

    #[test]
    fn each_receiver_gets_its_form_under_a_key_of_the_incident() {
        let alert = opened(AlertSubject::Operation("POST /a<b>&c".to_owned()));
        let messages = incident(&alert, None).messages(&alerts());
        let queues: Vec<&str> = messages.iter().map(|message| message.queue.as_str()).collect();
        assert_eq!(queues, ["ichido-alerts.ops", "ichido-alerts.chat"]);
        let event: Value = serde_json::from_slice(messages[0].request.bytes()).unwrap();
        assert_eq!((&event["type"], &event["data"]["rule"]), (&json!("alert.opened"), &json!("duplicates")));
        assert_eq!(event["data"]["window_seconds"], 900);
        let text = String::from_utf8(messages[1].request.bytes().to_vec()).unwrap();
        let expected = ":rotating_light: operation POST /a&lt;b&gt;&amp;c: 60 % of 500 requests within 15m were duplicates (limit: 50 %)";
        assert_eq!(text, json!({ "text": expected }).to_string());
    }

    // Spec: E3, E5.
    #[test]
    fn notification_names_dead_letters_and_their_errors_in_both_forms() {
        let alert = opened(AlertSubject::Queue("orders".to_owned()));
        let letter = |item: Option<&str>, error: &str| DeadLetterRow {
            id: Uuid::from_u128(9),
            queue: QueueName::parse("orders").unwrap(),
            identity: "ann".to_owned(),
            key: IdempotencyKey::parse("k-1").unwrap(),
            state: DeadLetterState::Dead,
            disposition: Disposition::Open,
            effect: Effect::NotDone,
            code: Some("BAD_REQUEST".to_owned()),
            error: Some(error.to_owned()),
            group: None,
            asked_at: None,
            since: alert.opened_at,
            created_at: alert.opened_at,
            history: History::new(NonZeroU32::MIN),
            priority: 2,
            replacement_of: None,
            item: item.map(str::to_owned),
            request_bytes: 1,
        };
        let letters = [letter(Some("A <b> title"), "400\nno"), letter(None, &"x".repeat(300))];
        let incident = Incident { letters: &letters, ..incident(&alert, None) };
        let messages = incident.messages(&alerts());
        let event: Value = serde_json::from_slice(messages[0].request.bytes()).unwrap();
        let named = &event["data"]["dead_letters"];
        assert_eq!((&named[0]["item"], &named[0]["error"]), (&json!("A <b> title"), &json!("400\\nno")));
        assert_eq!(named[1]["item"], "k-1", "the key names it if nothing else does");
        assert_eq!(named[1]["error"].as_str().map(|text| text.chars().count()), Some(MAX_NAMED_CHARS));
        let slack: Value = serde_json::from_slice(messages[1].request.bytes()).unwrap();
        let text = slack["text"].as_str().unwrap();
        assert!(text.contains(". Newest: A &lt;b&gt; title: 400\\nno; k-1: xxx"), "{text}");
    }

    #[test]
    fn opening_and_resolving_have_two_stable_keys() {
        let alert = opened(AlertSubject::Trail);
        let over = Some(Timestamp::from_secs(1_800_000_600));
        let keys = |over| {
            let messages = incident(&alert, over).messages(&alerts());
            messages.into_iter().map(|message| message.key).collect::<Vec<_>>()
        };
        assert_eq!(keys(None), keys(None));
        assert_ne!(keys(None), keys(over));
        let resolved = incident(&alert, over).event();
        assert_eq!(
            (&resolved["type"], &resolved["timestamp"]),
            (&json!("alert.resolved"), &resolved["data"]["resolved_at"])
        );
    }
}
