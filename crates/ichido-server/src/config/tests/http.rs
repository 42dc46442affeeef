//! What an HTTP destination must declare, and the defaults of its queues.
// Spec: D5, D17, H8.

use super::*;

/// Returns a queue with an HTTP destination of a guarantee.
fn with_guarantee(guarantee: &str) -> String {
    format!(
        "[queues.q]\ndestination = \"d\"\n[destinations.d]\nkind = \"http\"\nurl = \"http://a.test/\"\nguarantee = {guarantee}\n"
    )
}

const KEYED: &str = "\"keyed\"\nkeeps_keys_for = \"24h\"";

#[test]
fn http_destination_without_guarantee_is_refused_with_every_choice() {
    let problems = problems_of("[destinations.d]\nkind = \"http\"\nurl = \"http://a.test/\"\n");
    let [error, idempotent, keyed, none] = &problems[..] else { panic!("{problems:?}") };
    let expected =
        "ichido.toml:1:15 destinations.d.guarantee: is missing; set it to one of: idempotent, keyed, none";
    assert_eq!(error, expected);
    assert!(idempotent.starts_with("`idempotent`: ") && idempotent.contains("is retried"), "{idempotent}");
    assert!(keyed.starts_with("`keyed`: ") && keyed.contains("keeps_keys_for"), "{keyed}");
    assert!(none.starts_with("`none`: ") && none.contains("is parked"), "{none}");
    let problems = problems_of(&with_guarantee("\"keyed\""));
    assert!(problems.len() == 1 && problems[0].contains("such as \"24h\""), "{problems:?}");
}

#[test]
fn http_endpoint_is_shown_with_its_path_and_without_secrets() {
    let variables = BTreeMap::from([("HOOK_URL", "https://a.test/hooks/s3cret".to_owned())]);
    for (url, shown) in [
        ("https://a.test/hooks/orders", "https://a.test/hooks/orders"),
        ("https://a.test/hooks?token=s3cret", "https://a.test/hooks?token=…"),
        ("env:HOOK_URL", "https://a.test"),
    ] {
        let text = with_guarantee("\"idempotent\"").replace("http://a.test/", url);
        let config = resolved_with(&text, &variables).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!(config.destinations[0].endpoint, shown);
        assert!(summary::text(&config).contains(&format!(" {shown} ")), "{}", summary::text(&config));
    }
}

#[test]
fn http_queue_retries_for_a_day_unless_set_otherwise() {
    let resolved_retry = |text: &str| resolved(text).queues[0].retry.clone();
    assert_eq!(resolved_retry(&with_guarantee("\"idempotent\"")), Retry::WEBHOOK);
    assert_eq!(resolved_retry(&with_guarantee("\"none\"")), Retry::WEBHOOK);
    // It ends before the receiver forgets the key.
    let early = resolved_retry(&with_guarantee(KEYED));
    assert_eq!((early.schedule, early.max_attempts.get()), (Retry::WEBHOOK.schedule, 17));
    let traced = traced_with(&with_guarantee(KEYED), &BTreeMap::new());
    let shown = shown(&traced.unwrap_or_else(|faults| panic!("{faults}")), &[], true);
    for line in ["max_retries = 16  # default\n", "retry = \"webhook\"  # default\n"] {
        assert!(shown.contains(line), "{line}\nin\n{shown}");
    }
    // A setting or a variable wins.
    let own = with_guarantee("\"idempotent\"").replace("[destinations", "retry = \"order\"\n[destinations");
    assert_eq!(resolved_retry(&own), Retry::ORDER);
    let variable = BTreeMap::from([("OUTBOX_RETRY_MAX", "3".to_owned())]);
    let config = resolved_with(&with_guarantee(KEYED), &variable).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(config.queues[0].retry.max_attempts.get(), 4);
    // Other destinations keep the schedule of orders.
    let mock = "[queues.q]\ndestination = \"d\"\n[destinations.d]\nkind = \"mock\"\n";
    assert_eq!(resolved_retry(mock), Retry::ORDER);
}

#[test]
fn requeue_is_allowed_by_default_where_a_repetition_is_safe() {
    let requeue = |text: &str| {
        let config = resolved(text);
        let effective = config.queues[0].requeue.expect("it is set");
        let column = if effective { " yes\n" } else { " no\n" };
        assert!(summary::text(&config).contains(column), "{}", summary::text(&config));
        effective
    };
    for (guarantee, expected) in [("\"idempotent\"", true), (KEYED, true), ("\"none\"", false)] {
        let text = with_guarantee(guarantee);
        assert_eq!(requeue(&text), expected, "{guarantee}");
        let own = text.replace("[destinations", &format!("requeue = {}\n[destinations", !expected));
        assert_eq!(requeue(&own), !expected, "the queue's own setting wins");
        let traced = traced_with(&text, &BTreeMap::new()).unwrap_or_else(|faults| panic!("{faults}"));
        assert!(shown(&traced, &[], true).contains(&format!("requeue = {expected}  # default\n")));
    }
    let nats = "[queues.q]\ndestination = \"d\"\n[destinations.d]\nkind = \"nats\"\nurls = [\"nats://c\"]\nsubject = \"x\"\n";
    assert!(requeue(nats), "a stream deduplicates");
}

#[test]
fn alerts_for_unknown_queues_are_refused() {
    let text = with_guarantee("\"none\"").replace("queues.q", "queues.orders");
    assert_problems(
        &format!("{text}[alerts.queues.orderz]\nparked = false\n"),
        &[("ichido.toml:7:16 alerts.queues.orderz", "[queues.orderz] does not exist; did you mean orders")],
    );
}

#[test]
fn traces_endpoint_must_be_a_url() {
    assert_problems(
        "[traces]\nendpoint = \"x\"\n",
        &[("ichido.toml:2:12 traces.endpoint", "must begin with https:// or http://")],
    );
}
