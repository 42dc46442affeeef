//! Streams of NATS as a destination.

use super::*;

#[test]
fn all_stream_errors_are_reported_without_connecting() {
    let text = r#"
[queues.a]
destination = "bus"
lease = "5s"
[destinations.bus]
kind = "nats"
urls = ["nats://ann:s3cret@bus:4222", "http://bus"]
subject = "orders.*"
credentials = { token = "s3cret", user = "ann" }
connect_timeout = "20s"
settle_grace = "1s"
retries = 3
[destinations.bare]
kind = "nats"
[destinations.slow]
kind = "nats"
urls = ["nats://bus:4222"]
subject = "orders"
[queues.b]
destination = "slow"
lease = "10s"
"#;
    let problems = problems_of(text);
    let expected = [
        ("ichido.toml:7:9 destinations.bus.urls[0]", "must not contain a user or password"),
        ("ichido.toml:7:39 destinations.bus.urls[1]", "is not the URL of a NATS server"),
        ("ichido.toml:8:11 destinations.bus.subject", "has a wildcard"),
        ("ichido.toml:9:25 destinations.bus.credentials.token", "write \"env:NAME\""),
        ("ichido.toml:9:15 destinations.bus.credentials", "exactly one kind of credentials"),
        ("ichido.toml:10:19 destinations.bus.connect_timeout", "at most timeout"),
        ("ichido.toml:11:16 destinations.bus.settle_grace", "from 15s"),
        ("ichido.toml:12:1 destinations.bus.retries", "unknown setting"),
        ("ichido.toml:13:15 destinations.bare.urls", "is missing"),
        ("ichido.toml:13:15 destinations.bare.subject", "is missing"),
        ("ichido.toml:21:9 queues.b.lease", "must be longer than the destination's timeout, 10s"),
    ];
    let all = problems.join("\n");
    for (place, what) in expected {
        let found =
            problems.iter().any(|line| line.starts_with(&format!("{place}: ")) && line.contains(what));
        assert!(found, "{place}: {what}\nin\n{all}");
    }
    assert_eq!(problems.len(), expected.len(), "{all}");
    assert!(!all.contains("s3cret"), "{all}");
}

#[test]
fn a_stream_is_read_offline_and_shows_no_secret() {
    for credentials in [
        "{ user = \"ann\", password = \"env:NATS_PASSWORD\" }",
        "{ token = \"env:NATS_PASSWORD\" }",
        "{ nkey = \"env:NATS_SEED\" }",
    ] {
        let text = format!(
            "[destinations.bus]\nkind = \"nats\"\nurls = [\"nats://bus:4222\"]\nsubject = \"orders.placed\"\ncredentials = {credentials}\ntimeout = \"2s\"\n"
        );
        let mut variables = variables();
        variables
            .insert("NATS_SEED", "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY".to_owned());
        let config = resolved_with(&text, &variables).unwrap_or_else(|faults| panic!("{faults}"));
        let [bus] = &config.destinations[..] else { panic!("one destination") };
        assert_eq!(bus.endpoint, "nats://bus:4222, orders.placed");
        assert_eq!(
            (bus.timeout(), bus.guarantee(), bus.can_reconcile()),
            (Duration::from_secs(2), None, false)
        );
        let shown = format!("{config:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("SUACSSL3"), "{shown}");
    }
}

#[test]
fn the_guides_stream_example_is_valid() {
    let guide = include_str!("../../../../../docs/guides/run-a-worker.md");
    let text = guide.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let config = resolved_with(text, &variables()).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!((config.queues.len(), config.destinations[0].kind), (1, "nats"));
}
