//! What is said of alerts, and what is wrong with it.

use std::time::Duration;

use ichido::worker::Form;
use ichido_core::alert::{About, Rule, Terms};

use crate::config::DEFAULT_FILE;
use crate::config::show::uncommented;
use crate::config::tests::{problems_of, resolved, resolved_with, variables};

#[test]
fn the_commented_file_shows_the_terms_that_hold_when_nobody_says_otherwise() {
    let shown = resolved_with(&uncommented(), &variables()).unwrap_or_else(|faults| panic!("{faults}"));
    let (bare, orders) = (resolved(DEFAULT_FILE), About::Queue("orders".to_owned()));
    for rule in Rule::ALL {
        for config in [&shown, &bare] {
            assert_eq!(config.alerts.rules.terms(rule, &orders), rule.terms(), "{rule:?}");
        }
    }
}

#[test]
fn alerts_have_terms_for_all_queues_and_for_one() {
    let text = r#"
[alerts]
dead_letters = { above = 20 }
[alerts.queues.mail]
dead_letters = { window = "2h", least = 3 }
lag_p95 = { above = "90s" }
[alerts.to.ops]
destination = "hook"
form = "slack"
[destinations.hook]
kind = "http"
url = "https://ops.example.com/hook"
"#;
    let alerts = resolved(text).alerts;
    let terms = |rule, queue: &str| alerts.rules.terms(rule, &About::Queue(queue.to_owned()));
    let hours = Duration::from_hours;
    let of = |window, least, above| Terms { window: Some(window), least, above };
    assert_eq!(terms(Rule::DeadLetters, "orders"), of(hours(1), 1, 20.0));
    assert_eq!(terms(Rule::DeadLetters, "mail"), of(hours(2), 3, 20.0));
    assert_eq!(terms(Rule::LagP95, "mail"), of(Duration::from_mins(5), 20, 90.0));
    let [ops] = &alerts.receivers[..] else { panic!("one receiver") };
    assert_eq!(
        (ops.queue().as_str(), ops.destination.as_str(), ops.form),
        ("ichido-alerts.ops", "hook", Form::Slack)
    );
}

#[test]
fn every_problem_of_alerts_is_said_with_its_place_and_its_mend() {
    let text = r#"
[alerts]
dead_letterz = { above = 1 }
duplicates = { above = 50 }
parked = { window = "5m" }
lag_p95 = { window = "3h", above = 12 }
[alerts.queues."no name"]
dead_letters = { least = 0 }
[alerts.to.ops]
destination = "hok"
form = "webhook"
[alerts.to.chat]
form = "mail"
[queues."ichido-alerts.ops"]
destination = "hook"
[destinations.hook]
kind = "http"
url = "https://ops.example.com/hook"
"#;
    let said = problems_of(text).join("\n");
    for expected in [
        "ichido.toml:3:1 alerts.dead_letterz",
        "did you mean dead_letter",
        "ichido.toml:4:24 alerts.duplicates.above",
        "is a share that nothing is above; write it as a number below 1, such as 0.05 for 5 %",
        "ichido.toml:5:12 alerts.parked.window",
        "ichido.toml:6:22 alerts.lag_p95.window",
        "is no window that can be looked back; give it 2m to 2h",
        "ichido.toml:6:36 alerts.lag_p95.above",
        "is no queue's name",
        "ichido.toml:8:26 alerts.queues.no name.dead_letters.least",
        "there is no [destinations.hok]; did you mean hook; add it, or name one that is there",
        "alerts.to.chat.destination",
        "alerts.to.chat.form",
        "ichido-alerts.ops is a name that is kept for what tells of alerts; take another",
    ] {
        assert!(said.contains(expected), "{expected} is not in:\n{said}");
    }
}
