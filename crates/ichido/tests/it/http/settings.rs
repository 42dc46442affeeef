//! Settings: all errors at once, without a secret in any of them.

use std::time::Duration;

use ichido::destination::DeliveryTerms;
use ichido::destination::http::{
    DeliveryRule, HttpSettings, MAX_SECRETS, ReconcileMeaning, ReconcileRule, ReconcileSettings,
    ResponseMeaning,
};
use ichido_core::retry::Guarantee;

use super::tried::{resolved, settings};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[test]
fn all_problems_are_reported_together_with_their_settings() {
    let wrong = HttpSettings {
        url: "ftp://broker.example/".to_owned(),
        headers: vec![
            ("Idempotency-Key".to_owned(), "mine".to_owned()),
            ("no name".to_owned(), "x".to_owned()),
            ("Authorization".to_owned(), "t0ken\n".to_owned()),
            ("Ichido-Fence".to_owned(), "1".to_owned()),
        ],
        signing_secrets: vec!["t0psecret".to_owned(); MAX_SECRETS + 1],
        allow_link_local: vec!["elsewhere.example".to_owned()],
        connect_timeout: Duration::from_mins(2),
        response_timeout: Duration::ZERO,
        total_timeout: Duration::from_mins(1),
        max_response_bytes: 0,
        guarantee: Guarantee::Keyed { keeps_for: Duration::from_secs(1) },
        key_pointer: "key".to_owned(),
        receipt_pointer: Some(String::new()),
        rules: vec![DeliveryRule {
            status: "4xx".to_owned(),
            at: Some(("error".to_owned(), "x".to_owned())),
            means: ResponseMeaning::Sent,
        }],
        reconcile: Some(ReconcileSettings {
            url: "https://{key}.example/".to_owned(),
            rules: vec![ReconcileRule {
                status: "200-100".to_owned(),
                at: None,
                means: ReconcileMeaning::Unknown,
            }],
        }),
        ..settings(String::new())
    };
    let problems = wrong.resolve().expect_err("there are many");
    let text = problems.to_string();
    for place in [
        "url:",
        "headers[0]: idempotency-key is set by Ichido;",
        "headers[1]:",
        "headers[2]:",
        "headers[3]:",
        "signing_secrets:",
        "signing_secrets[0]:",
        "allow_link_local:",
        "connect_timeout:",
        "response_timeout:",
        "max_response_bytes:",
        "guarantee:",
        "key_pointer:",
        "receipt_pointer:",
        "rules[0].status:",
        "rules[0].at:",
        "reconcile.url:",
        "reconcile.rules:",
        "reconcile.rules[0].status:",
    ] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(place)), "{place} is not in\n{text}");
    }
    assert!(!text.contains("t0ken") && !text.contains("t0psecret"), "{text}");
}

#[test]
fn lookup_url_without_key_is_refused() {
    let asked = |url: &str| HttpSettings {
        reconcile: Some(ReconcileSettings {
            url: url.to_owned(),
            rules: vec![ReconcileRule { status: "200".to_owned(), at: None, means: ReconcileMeaning::Done }],
        }),
        ..settings("http://127.0.0.1/".to_owned())
    };
    assert!(asked("http://127.0.0.1/by-key?key={key}").resolve().is_ok());
    let problems = asked("http://127.0.0.1/by-key").resolve().expect_err("it has no key");
    assert_eq!((problems.0.len(), problems.0[0].place.as_str()), (1, "reconcile.url"), "{problems}");
}

#[test]
fn invalid_roots_are_refused() {
    let url = "https://broker.example/".to_owned();
    for roots in ["", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let settings = HttpSettings { trusted_roots: Some(roots.to_owned()), ..settings(url.clone()) };
        let problems = settings.resolve().expect_err("no root is valid");
        assert_eq!((problems.0.len(), problems.0[0].place.as_str()), (1, "trusted_roots"), "{problems}");
    }
}

#[test]
fn no_secret_is_shown() {
    let settings = HttpSettings {
        headers: vec![("Authorization".to_owned(), "Bearer t0ken".to_owned())],
        signing_secrets: vec![SECRET.to_owned()],
        ..settings("http://127.0.0.1/hooks/t0ken".to_owned())
    };
    let shown = format!("{settings:?} {:?}", resolved(&settings));
    assert!(!shown.contains("t0ken") && !shown.contains("MfKQ9r8G"), "{shown}");
    assert!(shown.contains("Authorization"));
}

#[test]
fn promise_follows_settings() {
    let guarantee = Guarantee::Keyed { keeps_for: Duration::from_hours(24) };
    let settle_grace = Duration::from_mins(5);
    let settings = HttpSettings { settle_grace, ..HttpSettings::new("http://127.0.0.1/", guarantee) };
    let timeout = Duration::from_secs(15);
    assert_eq!(resolved(&settings).terms(), DeliveryTerms { guarantee, timeout, settle_grace });
}
