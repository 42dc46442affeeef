//! Alert settings, and the errors they report.

use std::time::Duration;

use ichido::worker::AlertFormat;
use ichido_core::alert::{AlertRule, AlertSubject, AlertTerms};

use serde_json::json;

use crate::config::commented_file;
use crate::config::summary;
use crate::config::tests::{
    problems_of, resolved, resolved_with, shown, traced_with, uncommented, variables,
};

#[test]
fn the_commented_file_shows_the_default_alert_thresholds() {
    let shown = resolved_with(&uncommented(), &variables()).unwrap_or_else(|faults| panic!("{faults}"));
    let (bare, orders) = (resolved(&commented_file()), AlertSubject::Queue("orders".to_owned()));
    for rule in AlertRule::ALL {
        for config in [&shown, &bare] {
            assert_eq!(config.alerts.rules.terms(rule, &orders), Some(rule.terms()), "{rule:?}");
        }
    }
}

#[test]
fn alerts_have_thresholds_for_all_queues_and_for_one() {
    let text = r#"
[alerts]
dead_letters = { above = 20 }
[alerts.queues.mail]
dead_letters = { window = "2h", min_samples = 3 }
lag_p95 = { above = "90s" }
[alerts.to.ops]
destination = "hook"
format = "slack"
[destinations.hook]
kind = "http"
url = "https://ops.example.com/hook"
guarantee = "idempotent"
[queues.mail]
destination = "hook"
"#;
    let alerts = resolved(text).alerts;
    let terms = |rule, queue: &str| alerts.rules.terms(rule, &AlertSubject::Queue(queue.to_owned()));
    let hours = Duration::from_hours;
    let of = |window, least, above| Some(AlertTerms { window: Some(window), min_samples: least, above });
    assert_eq!(terms(AlertRule::DeadLetters, "orders"), of(hours(1), 1, 20.0));
    assert_eq!(terms(AlertRule::DeadLetters, "mail"), of(hours(2), 3, 20.0));
    assert_eq!(terms(AlertRule::LagP95, "mail"), of(Duration::from_mins(5), 20, 90.0));
    let [ops] = &alerts.receivers[..] else { panic!("one receiver") };
    assert_eq!(
        (ops.queue().as_str(), ops.destination.as_str(), ops.format),
        ("ichido-alerts.ops", "hook", AlertFormat::Slack)
    );
}

#[test]
fn an_alert_is_switched_off_for_all_queues_or_for_one_and_is_shown_so() {
    let text = r#"
[alerts]
dead_letter = false
dead_letters = { above = 20 }
circuit_open = false
[alerts.queues.mail]
dead_letters = false
dead_letter = true
[queues.mail]
destination = "mock"
[destinations.mock]
kind = "mock"
"#;
    let traced = traced_with(text, &variables()).unwrap_or_else(|faults| panic!("{faults}"));
    let alerts = &traced.config.alerts;
    let terms = |rule, queue: &str| alerts.rules.terms(rule, &AlertSubject::Queue(queue.to_owned()));
    assert_eq!(terms(AlertRule::DeadLetter, "orders"), None);
    assert_eq!(
        terms(AlertRule::DeadLetter, "mail"),
        Some(AlertRule::DeadLetter.terms()),
        "it has it all the same"
    );
    assert_eq!(terms(AlertRule::DeadLetters, "orders").map(|terms| terms.above), Some(20.0));
    assert_eq!(terms(AlertRule::DeadLetters, "mail"), None);
    assert_eq!(
        (alerts.rules.common(AlertRule::CircuitOpen), alerts.rules.common(AlertRule::AuditBroken).is_some()),
        (None, true)
    );

    let shown = shown(&traced, &[], true);
    for line in [
        "dead_letter = false  # ichido.toml:3:15\n",
        "circuit_open = false  # ichido.toml:5:16\naudit_broken = true  # default\n",
        "lag_p95 = { ",
        "[alerts.dead_letters]\nwindow = \"1h\"  # default\nmin_samples = 1  # default\nabove = 20  # ichido.toml:4:26\n",
        "[alerts.queues.mail]\n",
    ] {
        assert!(shown.contains(line), "{line}\nin\n{shown}");
    }
    let told = summary::text(&traced.config);
    for line in [
        "alerts: dead_letter is off\n",
        "alerts: circuit_open is off\n",
        "alerts: dead_letters for mail is off\n",
    ] {
        assert!(told.contains(line), "{line}\nin\n{told}");
    }
    let json = summary::json(&traced.config);
    let find = |list: &str, rule: &str| {
        let all = json[list].as_array().unwrap().iter();
        all.clone()
            .find(|alert| alert["rule"] == rule)
            .unwrap_or_else(|| panic!("no {rule} in {json}"))
            .clone()
    };
    assert_eq!(json["alerts"].as_array().unwrap().len(), AlertRule::ALL.len());
    assert_eq!(find("alerts", "dead_letter"), json!({ "rule": "dead_letter", "on": false }));
    let expected = json!({ "rule": "dead_letters", "on": true, "window_seconds": 3600, "min_samples": 1, "above": 20.0, "unit": "count" });
    assert_eq!(find("alerts", "dead_letters"), expected);
    let expected = json!({ "rule": "dead_letters", "on": false, "queue": "mail" });
    assert_eq!(find("alerts_of_queues", "dead_letters"), expected);
}

#[test]
fn alert_errors_name_their_location_and_fix() {
    let text = r#"
[alerts]
dead_letterz = { above = 1 }
duplicates = { above = 50 }
parked = { window = "5m" }
dead_surge = "off"
lag_p95 = { window = "3h", above = 12 }
[alerts.queues."no name"]
dead_letters = { min_samples = 0 }
circuit_open = false
[alerts.to.ops]
destination = "hok"
format = "webhook"
[alerts.to.chat]
format = "mail"
[queues."ichido-alerts.ops"]
destination = "hook"
[destinations.hook]
kind = "http"
url = "https://ops.example.com/hook"
guarantee = "idempotent"
"#;
    let said = problems_of(text).join("\n");
    for expected in [
        "ichido.toml:3:1 alerts.dead_letterz",
        "did you mean dead_letter",
        "ichido.toml:4:24 alerts.duplicates.above",
        "is a share that is never exceeded; write a number below 1, such as 0.05 for 5 %",
        "ichido.toml:5:12 alerts.parked.window",
        "ichido.toml:6:14 alerts.dead_surge",
        "is a string; write a table of thresholds, such as { above = 20 }, or false to switch it off",
        "ichido.toml:7:22 alerts.lag_p95.window",
        "is 3h; write a duration from 2m to 2h",
        "ichido.toml:7:36 alerts.lag_p95.above",
        "is not a valid queue name",
        "ichido.toml:9:32 alerts.queues.no name.dead_letters.min_samples",
        "ichido.toml:10:1 alerts.queues.no name.circuit_open",
        "[destinations.hok] does not exist; did you mean hook? Otherwise add it, or name an existing one",
        "alerts.to.chat.destination",
        "alerts.to.chat.format",
        "ichido-alerts.ops is a reserved name, for the queues of alerts; choose another",
    ] {
        assert!(said.contains(expected), "{expected} is not in:\n{said}");
    }
}
