//! Settings: all errors at once, without a secret in any of them.

use std::time::Duration;

use ichido::destination::nats::{Credentials, MAX_URLS, NatsSettings};

#[test]
fn all_problems_are_reported_together_with_their_settings() {
    let wrong = NatsSettings {
        urls: vec![
            "ws://broker".to_owned(),
            "nats://ann:t0psecret@broker".to_owned(),
            "nats://broker:4222".to_owned(),
            "nats://".to_owned(),
        ],
        subject: "orders.>".to_owned(),
        credentials: Some(Credentials::Creds("t0psecret".to_owned())),
        trusted_roots: Some("no PEM".to_owned()),
        connect_timeout: Duration::from_mins(2),
        timeout: Duration::from_mins(1),
        settle_grace: Duration::from_secs(1),
    };
    let problems = wrong.resolve().expect_err("there are many");
    let text = problems.to_string();
    for place in [
        "urls[0]: must start with nats:// or tls://",
        "urls[1]: must not contain a user or password",
        "urls[3]:",
        "subject: \"orders.>\" has a wildcard",
        "credentials:",
        "trusted_roots:",
        "connect_timeout:",
        "settle_grace:",
    ] {
        assert!(
            text.lines().any(|line| line.trim_start().starts_with(place)),
            "{place} is missing in:\n{text}"
        );
    }
    assert_eq!(problems.0.len(), 8, "{text}");
    assert!(
        !text.contains("t0psecret") && !format!("{wrong:?} {problems:?}").contains("t0psecret"),
        "{text}"
    );
}

#[test]
fn number_of_servers_is_limited() {
    for count in [0, MAX_URLS + 1] {
        let urls = vec!["nats://broker".to_owned(); count];
        let wrong = NatsSettings { urls, ..NatsSettings::new("", "orders") };
        assert!(wrong.resolve().expect_err("too few, or too many").to_string().contains("\n  urls:"));
    }
}

#[test]
fn public_key_is_not_a_seed() {
    let public = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4".to_owned();
    let credentials = Some(Credentials::Nkey(public.clone()));
    let wrong = NatsSettings { credentials, ..NatsSettings::new("nats://broker", "orders") };
    let text = wrong.resolve().expect_err("it is not a seed").to_string();
    assert!(text.contains("\n  credentials: is not the seed") && !text.contains(&public), "{text}");
    let plan = NatsSettings {
        credentials: Some(Credentials::Token("t0psecret".to_owned())),
        ..NatsSettings::new("nats://broker", "orders")
    };
    assert!(!format!("{:?}", plan.resolve().expect("a plan")).contains("t0psecret"));
}
