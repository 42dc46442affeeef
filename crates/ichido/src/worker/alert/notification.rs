//! The notifications of an incident: one per receiver when it opens and resolves.

use std::time::Duration;

use ichido_core::alert::words;
use ichido_core::key::IdempotencyKey;
use ichido_core::time::Timestamp;
use ichido_store::alert::NewAlert;
use ichido_store::message::{NewMessage, QueueName};
use serde_json::{Value, json};

use super::{AlertFormat, AlertReceiver, AlertSettings};

/// The identity of the notifications.
const IDENTITY: &str = "ichido";

/// An incident to notify about.
pub(super) struct Incident<'a> {
    /// The incident as it was opened.
    pub(super) alert: &'a NewAlert,
    /// When it was resolved.
    pub(super) resolved_at: Option<Timestamp>,
    /// It was resolved because its rule was switched off.
    pub(super) is_switched_off: bool,
}

impl Incident<'_> {
    /// Describes it in a sentence.
    pub(super) fn text(&self) -> String {
        let NewAlert { rule, about, opened_at, reading, terms, .. } = self.alert;
        match self.resolved_at {
            None => words::opened(*rule, about, *terms, *reading),
            Some(at) if self.is_switched_off => words::switched_off(*rule, about, at.since(*opened_at)),
            Some(at) => words::resolved(*rule, about, at.since(*opened_at)),
        }
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
        let mut message = NewMessage::new(queue, IDENTITY, key, body.to_string().into_bytes());
        "application/json".clone_into(&mut message.content_type);
        Some(message)
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

#[cfg(test)]
mod tests {
    use ichido_core::alert::{AlertRule, AlertSubject, Measurement};
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
        Incident { alert, resolved_at, is_switched_off: false }
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
        let event: Value = serde_json::from_slice(&messages[0].request).unwrap();
        assert_eq!((&event["type"], &event["data"]["rule"]), (&json!("alert.opened"), &json!("duplicates")));
        assert_eq!(event["data"]["window_seconds"], 900);
        let text = String::from_utf8(messages[1].request.clone()).unwrap();
        let expected = ":rotating_light: operation POST /a&lt;b&gt;&amp;c: 60 % of 500 requests within 15m were duplicates, more than 50 %";
        assert_eq!(text, json!({ "text": expected }).to_string());
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
