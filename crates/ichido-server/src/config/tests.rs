//! Configurations that are accepted, and the errors of those that are not.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ichido::worker::OutboundKey;
use ichido_core::json::Redaction;
use ichido_core::retry::{Guarantee, Jitter, Retry, Schedule};

use super::*;

mod http;
mod models;
mod reference;
mod showing;
mod streams;
mod table;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Returns everything that the commented file refers to.
pub(super) fn variables() -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("MAIL_AUTHORIZATION", "Bearer s3cret-token".to_owned()),
        ("MAIL_SIGNING_SECRET", SECRET.to_owned()),
        ("NATS_PASSWORD", "s3cret-password".to_owned()),
        ("OPENAI_API_KEY", "s3cret-of-openai".to_owned()),
        ("ANTHROPIC_API_KEY", "s3cret-of-anthropic".to_owned()),
    ])
}

pub(super) fn resolved_with(text: &str, variables: &BTreeMap<&str, String>) -> Result<Config, ConfigErrors> {
    traced_with(text, variables).map(|traced| traced.config)
}

pub(super) fn traced_with(text: &str, variables: &BTreeMap<&str, String>) -> Result<Traced, ConfigErrors> {
    let outside = ConfigSources {
        variable: &|name| variables.get(name).cloned(),
        file: &|path: &Path| match path.to_str() {
            Some("folder/mail-signing-secret-before") => Ok(format!("{SECRET}\n")),
            Some("folder/audit.key") => Ok("0123456789abcdef0123456789abcdef\n".to_owned()),
            Some("folder/short.key") => Ok("0123456789\n".to_owned()),
            Some("folder/order.schema.json" | "folder/summary.schema.json") => {
                Ok("{ \"type\": \"object\" }".to_owned())
            }
            Some("folder/broken.json") => Ok("{\n\"items\": {\"$ref\": \"b.json\"}}".to_owned()),
            Some("folder/mail-ca.pem" | "folder/nats-ca.pem") => {
                Ok(rcgen::generate_simple_self_signed(["mail.example.com".to_owned()]).unwrap().cert.pem())
            }
            Some(name) if name.starts_with("folder/boundaries/") => {
                let known = ichido_boundary::STARTING.iter().find(|(file, _)| name.ends_with(file));
                known
                    .map(|(_, text)| (*text).to_owned())
                    .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
            }
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        },
        named: variables
            .iter()
            .filter(|(name, _)| name.starts_with(env_overlay::PREFIX))
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
        folder: "folder".into(),
        needs_secrets: true,
    };
    traced("ichido.toml", text, &outside)
}

pub(super) fn shown(traced: &Traced, over: &[Override], with_origin: bool) -> String {
    show::text(&traced.display(over), with_origin)
}

/// Returns the commented file with every setting uncommented.
pub(super) fn uncommented() -> String {
    let file = commented_file();
    let line = |line: &str| match line.strip_prefix('#') {
        Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => format!("{rest}\n"),
        _ => format!("{line}\n"),
    };
    file.lines().map(line).collect()
}

pub(super) fn resolved(text: &str) -> Config {
    resolved_with(text, &BTreeMap::new()).unwrap_or_else(|faults| panic!("{faults}"))
}

/// Returns the error lines for a text.
pub(super) fn problems_of(text: &str) -> Vec<String> {
    let faults = resolved_with(text, &variables()).expect_err("there are problems");
    faults.to_string().lines().skip(1).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn the_commented_file_works_unchanged_with_the_specified_defaults() {
    let config = resolved(&commented_file());
    let [queue] = &config.queues[..] else { panic!("one queue") };
    let [mock] = &config.destinations[..] else { panic!("one destination") };
    assert_eq!((queue.batch_size.get(), queue.parallelism.get(), queue.retry.max_attempts.get()), (32, 4, 9));
    assert_eq!(
        (queue.lease, config.worker.idle_sleep),
        (Duration::from_mins(10), Duration::from_millis(200))
    );
    assert_eq!(
        (&queue.retry, queue.requeue, queue.outbound_key),
        (&Retry::ORDER, Some(true), OutboundKey::Derived)
    );
    assert!(matches!(mock.guarantee(), Some(Guarantee::Keyed { .. })));
    assert!(mock.can_reconcile());
    assert_eq!(mock.pace().max_pause, Duration::from_hours(1));
}

#[test]
fn every_setting_in_the_commented_file_is_accepted() {
    let mut config = resolved_with(&uncommented(), &variables()).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(config.worker.audit_key.take().is_some(), "an example, since it has no default");
    let of_peer = config.serve.limits.max_peer_connections.take();
    assert_eq!(of_peer, Some(config.serve.limits.of_peer()), "left out, it goes by max_connections");
    assert_eq!(config.serve.boundaries.len(), 2, "examples too");
    config.serve.boundaries = Arc::default();
    assert_eq!(config.serve.instance.name.take().as_deref(), Some("orders, production"));
    assert!(config.serve.tls.take().is_some() && config.serve.public_url.take().is_some());
    assert_eq!((config.queues.len(), config.destinations.len()), (4, 7));
    // Settings that are shown as absent show their default.
    let bare = resolved(&commented_file());
    assert_eq!(format!("{:?}", config.worker), format!("{:?}", bare.worker));
    assert_eq!(config.store.max_connections, bare.store.max_connections);
    assert_eq!(format!("{:?}", config.serve), format!("{:?}", bare.serve));
    assert!(!config.queues[0].redact.is_empty());
    let shown = QueueConfig { start_marks: None, redact: Redaction::NONE, ..config.queues[0].clone() };
    assert_eq!(format!("{shown:?}"), format!("{:?}", bare.queues[0]));
}

#[test]
fn an_instance_has_a_short_name_and_a_known_colour() {
    let problem = |line: &str| problems_of(&format!("[serve]\n{line}\n")).join("\n");
    let long = problem(&format!("name = \"{}\"", "n".repeat(41)));
    assert!(long.contains("more than 40 characters; write a shorter name"), "{long}");
    let colour = problem("colour = \"gray\"");
    assert!(colour.contains("unknown value \"gray\"") && colour.contains("grey"), "{colour}");
}

#[test]
fn an_audit_key_is_a_reference_and_long_enough() {
    let problem = |key: &str| problems_of(&format!("[worker]\naudit_key = \"{key}\"\n")).join("\n");
    assert!(problem("0123456789abcdef0123456789abcdef").contains("must not be in the file"));
    let short = problem("file:short.key");
    assert!(short.contains("ichido.toml:2:13") && short.contains("is not a valid audit key"), "{short}");
    assert!(!short.contains("0123456789"), "{short}");
}

#[test]
fn all_config_errors_name_their_location_and_fix() {
    let text = r#"
[store]
url = "postgres://ann:s3cret@db/ichido"
[queues.orders]
destination = "borker"
paralellism = 2
batch_size = 0
lease = "1 minute"
[queues.mail]
destination = "broker"
lease = "2s"
retry = "soon"
[destinations.broker]
kind = "http"
url = "https://broker.test/orders"
headers = { Authorization = "Bearer s3cret", Accept = 3 }
signing_secrets = ["whsec_s3cret"]
guarantee = "keyed"
rules = [{ status = "409", at = "/error", means = "processd" }]
[destinations.other]
kind = "htpp"
"#;
    let problems = problems_of(text);
    let expected = [
        ("ichido.toml:3:7 store.url", "contains a password"),
        (
            "ichido.toml:5:15 queues.orders.destination",
            "[destinations.borker] does not exist; did you mean broker",
        ),
        ("ichido.toml:6:1 queues.orders.paralellism", "did you mean parallelism?"),
        ("ichido.toml:7:14 queues.orders.batch_size", "write a whole number from 1 to 5000"),
        ("ichido.toml:8:9 queues.orders.lease", "is not a duration"),
        ("ichido.toml:12:9 queues.mail.retry", "unknown value \"soon\""),
        ("ichido.toml:11:9 queues.mail.lease", "must be longer than the destination's timeout"),
        ("ichido.toml:16:29 destinations.broker.headers.Authorization", "write \"env:NAME\""),
        ("ichido.toml:16:55 destinations.broker.headers.Accept", "write a quoted string"),
        ("ichido.toml:17:20 destinations.broker.signing_secrets[0]", "is a secret"),
        ("ichido.toml:13:15 destinations.broker.keeps_keys_for", "is required with guarantee"),
        ("ichido.toml:19:10 destinations.broker.rules[0]", "`at` and `is` belong together"),
        ("ichido.toml:19:51 destinations.broker.rules[0].means", "did you mean processed"),
        ("ichido.toml:21:8 destinations.other.kind", "did you mean http"),
    ];
    for (place, what) in expected {
        let found =
            problems.iter().any(|line| line.starts_with(&format!("{place}: ")) && line.contains(what));
        assert!(found, "{place}: {what}\nin\n{}", problems.join("\n"));
    }
    let all = problems.join("\n");
    assert_eq!(problems.len(), expected.len(), "{all}");
    assert!(!all.contains("s3cret"), "{all}");
}

#[test]
fn worker_errors_are_reported_at_their_line() {
    let broker = "[destinations.broker]\nkind = \"mock\"\ntotal_timeout = \"20s\"\n";
    let problems = problems_of(&format!("[queues.a]\ndestination = \"broker\"\nlease = \"5s\"\n{broker}"));
    assert!(problems[0].starts_with("ichido.toml:3:9 queues.a.lease: "), "{problems:?}");
    assert!(problems[0].contains("must be longer than the destination's timeout, 20s"), "{problems:?}");
    // If it is set for all queues, the error is there.
    let text = format!("[queue_defaults]\nlease = \"5s\"\n[queues.a]\ndestination = \"broker\"\n{broker}");
    assert!(problems_of(&text)[0].starts_with("ichido.toml:2:9 queue_defaults.lease: "));
    let problems = problems_of(&format!("[queues.\"a b\"]\ndestination = \"broker\"\n{broker}"));
    assert!(problems[0].starts_with("ichido.toml:1:9 queues.a b: "), "{problems:?}");
}

#[test]
fn invalid_toml_is_reported_for_every_line() {
    let problems = problems_of("a = 1 2\n\nb 3\n");
    assert!(problems.len() >= 2, "{problems:?}");
    assert!(problems.iter().all(|line| line.contains("is not valid TOML: ")), "{problems:?}");
    let word = problems_of("[queues.a]\nrequeue = yes\n");
    assert!(word[0].contains("a truth value is `true` or `false`"), "{word:?}");
}

#[test]
fn variables_win_over_defaults_and_queue_settings_over_both() {
    let text = r#"
[worker]
idle_sleep = "1s"
[queue_defaults]
parallelism = 5
batch_size = 6
lease = "3m"
[queues.a]
destination = "mock"
[queues.b]
destination = "mock"
parallelism = 7
max_retries = 1
lease = "4m"
[destinations.mock]
kind = "mock"
"#;
    let of = |config: &Config, index: usize| {
        let queue = &config.queues[index];
        (
            queue.parallelism.get(),
            queue.batch_size.get(),
            queue.retry.max_attempts.get(),
            queue.lease.as_secs() / 60,
        )
    };
    let config = resolved(text);
    assert_eq!((of(&config, 0), of(&config, 1)), ((5, 6, 9, 3), (7, 6, 2, 4)));
    assert_eq!(config.worker.idle_sleep, Duration::from_secs(1));
    let environment = BTreeMap::from([
        ("OUTBOX_BATCH_SIZE", "64".to_owned()),
        ("OUTBOX_PARALLELISM", "8".to_owned()),
        ("OUTBOX_RETRY_MAX", "3".to_owned()),
        ("OUTBOX_IDLE_SLEEP_MS", "50".to_owned()),
        ("OUTBOX_STUCK_THRESHOLD_MIN", "2".to_owned()),
    ]);
    let config = resolved_with(text, &environment).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!((of(&config, 0), of(&config, 1)), ((8, 64, 4, 2), (7, 64, 2, 4)));
    assert_eq!(config.worker.idle_sleep, Duration::from_millis(50));
    let wrong = BTreeMap::from([("OUTBOX_BATCH_SIZE", "many".to_owned())]);
    let faults = resolved_with(text, &wrong).expect_err("it is not a number").to_string();
    assert!(faults.contains("the variable OUTBOX_BATCH_SIZE: \"many\" is not a whole number"), "{faults}");
}

#[test]
fn references_must_exist() {
    let text = "[store]\nurl = \"env:NOWHERE\"\n[destinations.a]\nkind = \"http\"\nguarantee = \"none\"\nurl = \"file:nowhere\"\n";
    let problems = problems_of(text);
    assert!(problems[0].contains("the variable NOWHERE is not set"), "{problems:?}");
    assert!(problems[1].contains("cannot read folder/nowhere"), "{problems:?}");
}

#[test]
fn schedules_and_guarantees_are_read_as_written() {
    let text = r#"
[queues.a]
destination = "mock"
retry = { base = "20ms", factor = 3, cap = "1s", jitter = "+50%" }
[queues.b]
destination = "once"
retry = { waits = ["1s", "5s"], jitter = "none" }
max_retries = 0
outbound_key = "own"
[destinations.mock]
kind = "mock"
url = "http://127.0.0.1:1/orders"
guarantee = "none"
[destinations.once]
kind = "http"
url = "http://127.0.0.1:1/"
guarantee = "idempotent"
"#;
    let config = resolved(text);
    let (base, cap) = (Duration::from_millis(20), Duration::from_secs(1));
    assert_eq!(config.queues[0].retry.schedule, Schedule::Exponential { base, factor: 3, cap });
    assert_eq!(config.queues[0].retry.jitter, Jitter::Add(0.5));
    assert_eq!(config.queues[1].retry.schedule, Schedule::List([1, 5].map(Duration::from_secs).to_vec()));
    assert_eq!(
        (config.queues[1].retry.max_attempts.get(), config.queues[1].outbound_key),
        (1, OutboundKey::Own)
    );
    let promises = config.destinations.iter().map(DestinationSettings::guarantee);
    assert_eq!(promises.collect::<Vec<_>>(), [Some(Guarantee::None), Some(Guarantee::Idempotent)]);
}

/// Checks that the errors of a text begin like this, in this order.
fn assert_problems(text: &str, expected: &[(&str, &str)]) {
    let problems = problems_of(text);
    let all = problems.join("\n");
    assert_eq!(problems.len(), expected.len(), "{all}");
    for (line, (place, what)) in problems.iter().zip(expected) {
        assert!(line.starts_with(&format!("{place}: ")) && line.contains(what), "{place}: {what}\nin\n{all}");
    }
}

#[test]
fn a_missing_destination_is_reported_with_the_queues_other_errors() {
    assert_problems(
        "[queues.a]\ndestination = \"nowhere\"\nretry = \"soon\"\nlease = \"10ms\"\n",
        &[
            ("ichido.toml:3:9 queues.a.retry", "unknown value \"soon\""),
            ("ichido.toml:2:15 queues.a.destination", "[destinations.nowhere] does not exist"),
            ("ichido.toml:4:9 queues.a.lease", "must be at least 1s"),
        ],
    );
}

#[test]
fn a_lease_of_more_than_a_day_is_refused() {
    assert_problems(
        "[queues.a]\ndestination = \"b\"\nlease = \"25h\"\n[destinations.b]\nkind = \"mock\"\n",
        &[("ichido.toml:3:9 queues.a.lease", "must be at most 86400s")],
    );
}

#[test]
fn errors_name_the_rule_header_or_secret() {
    let text = r#"
[destinations.a]
kind = "http"
url = "https://a.test/"
guarantee = "none"
signing_secrets = ["env:NOWHERE", "env:MAIL_AUTHORIZATION"]
rules = [
  { means = "sent" },
  { status = "99", means = "sent" },
  { status = "409", at = "error", is = "x", means = "sent" },
]
[destinations.a.headers]
Accept = "env:NOWHERE"
Host = "b.test"
[destinations.a.reconcile]
url = "https://a.test/{key}"
rules = [{ means = "done" }, { status = "9", means = "unknown" }]
"#;
    assert_problems(
        text,
        &[
            ("ichido.toml:8:3 destinations.a.rules[0].status", "is missing"),
            ("ichido.toml:17:10 destinations.a.reconcile.rules[0].status", "is missing"),
            ("ichido.toml:6:20 destinations.a.signing_secrets[0]", "NOWHERE is not set"),
            ("ichido.toml:13:10 destinations.a.headers.Accept", "NOWHERE is not set"),
            ("ichido.toml:14:8 destinations.a.headers.Host", "host is set by Ichido;"),
            ("ichido.toml:6:35 destinations.a.signing_secrets[1]", "whsec_"),
            ("ichido.toml:9:14 destinations.a.rules[1].status", "\"99\" is not a status"),
            ("ichido.toml:10:26 destinations.a.rules[2].at", ""),
            ("ichido.toml:17:41 destinations.a.reconcile.rules[1].status", "\"9\" is not a status"),
        ],
    );
}

#[test]
fn a_reconcile_url_without_a_key_is_refused() {
    let text = "[destinations.a]\nkind = \"http\"\nurl = \"http://a.test/\"\nguarantee = \"none\"\nreconcile = { url = \"http://a.test/\", rules = [{ status = \"200\", means = \"done\" }] }\n";
    assert_problems(text, &[("ichido.toml:5:21 destinations.a.reconcile.url", "has no {key}")]);
}

#[test]
fn schema_errors_name_the_file_and_the_location() {
    let queue = |file: &str| {
        format!("[queues.a]\ndestination = \"p\"\nschema = {file}\n[destinations.p]\nkind = \"mock\"\n")
    };
    let place = "ichido.toml:3:10 queues.a.schema";
    assert_problems(&queue("\"nowhere.json\""), &[(place, "cannot read folder/nowhere.json")]);
    assert_problems(
        &queue("\"broken.json\""),
        &[(place, "folder/broken.json at /items/$ref: refers to another document")],
    );
    assert_problems(&queue("{}"), &[(place, "write a quoted string")]);
    let config = resolved(&queue("\"order.schema.json\""));
    assert!(config.intake("a").schema.is_some() && config.intake("b").schema.is_none());
}

#[test]
fn ignored_members_are_json_pointers() {
    let queue = |list: &str| {
        format!(
            "[queues.a]\ndestination = \"p\"\ndigest_without = {list}\n[destinations.p]\nkind = \"mock\"\n"
        )
    };
    let place = "ichido.toml:3:18 queues.a.digest_without";
    assert_problems(&queue(r#"["trace_id"]"#), &[(place, "/")]);
    assert_problems(&queue(r#""/trace_id""#), &[(place, "write a list of strings")]);
    let many = format!("[{}]", vec![r#""/a""#; 65].join(", "));
    assert_problems(&queue(&many), &[(place, "name at most 64")]);
    let config = resolved(&queue(r#"["/trace_id", "/meta/sent_at"]"#));
    assert_ne!(config.intake("a").digest_without, config.intake("b").digest_without);
}

const NAMED: &str = r#"
[store]
url = "sqlite:a.db"
[queue_defaults]
lease = "3m"
[queues.Mail-EU]
destination = "mock"
parallelism = 5
[queues.orders]
destination = "mock"
retry = "order"
[destinations.mock]
kind = "mock"
"#;

#[test]
fn variables_named_after_settings_win_over_the_file() {
    let variables = BTreeMap::from([
        ("ICHIDO__STORE__URL", "postgres://ann:s3cret@db/ichido".to_owned()),
        ("ICHIDO__WORKER__STOP_TIMEOUT", "7s".to_owned()),
        ("ICHIDO__QUEUES__MAIL_EU__PARALLELISM", "8".to_owned()),
        ("ICHIDO__QUEUES__ORDERS__REQUEUE", "true".to_owned()),
        ("ICHIDO__QUEUES__ORDERS__RETRY", "{ waits = [\"1s\", \"5s\"] }".to_owned()),
        ("ICHIDO__DESTINATIONS__MOCK__TOTAL_TIMEOUT", "9s".to_owned()),
    ]);
    let config = resolved_with(NAMED, &variables).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(config.store.url.as_deref(), Some("postgres://ann:s3cret@db/ichido"));
    assert_eq!(config.worker.stop_timeout, Duration::from_secs(7));
    assert_eq!((config.queues[0].parallelism.get(), config.queues[1].requeue), (8, Some(true)));
    assert_eq!(config.queues[1].retry.schedule, Schedule::List([1, 5].map(Duration::from_secs).to_vec()));
    assert_eq!(config.destinations[0].timeout(), Duration::from_secs(9));
}

#[test]
fn unknown_variables_suggest_the_nearest_name() {
    let problems = |name: &'static str, value: &str| {
        let text =
            NAMED.replace("[queues.Mail-EU]", "[queues.mail_eu]\ndestination = \"mock\"\n[queues.Mail-EU]");
        let faults =
            resolved_with(&text, &BTreeMap::from([(name, value.to_owned())])).map(|_| ()).unwrap_err();
        faults.to_string()
    };
    for (name, value, expected) in [
        (
            "ICHIDO__STOER__URL",
            "x",
            "the variable ICHIDO__STOER__URL stoer: unknown setting; did you mean store?",
        ),
        (
            "ICHIDO__STORE__URI",
            "x",
            "the variable ICHIDO__STORE__URI store.uri: unknown setting; did you mean url?",
        ),
        (
            "ICHIDO__QUEUES__ORDRES__LEASE",
            "5m",
            "[queues.ordres] does not exist; did you mean orders? Otherwise add it to the file",
        ),
        ("ICHIDO__QUEUES__MAIL_EU__LEASE", "5m", "is ambiguous: Mail-EU or mail_eu"),
        ("ICHIDO__QUEUES__ORDERS__RETRY__BASE", "5s", "queues.orders.retry is not a table"),
        (
            "ICHIDO__QUEUES__ORDERS__LEASE",
            "soon",
            "the variable ICHIDO__QUEUES__ORDERS__LEASE queues.orders.lease: \"soon\" is not a duration",
        ),
        (
            "ICHIDO__QUEUES__ORDERS__PARALLELISM",
            "many",
            "queues.orders.parallelism: is a string; write a whole number",
        ),
        ("ICHIDO__STORE", "x", "does not name a setting"),
        ("ICHIDO__STORE____URL", "x", "has an empty part"),
    ] {
        let problems = problems(name, value);
        assert!(problems.starts_with("1 problem\n") && problems.contains(expected), "{name}: {problems}");
    }
}

#[test]
fn serve_settings_are_read_and_invalid_ones_reported() {
    let text = "[serve]\nlisten = \"[::1]:80\"\nmax_connections = 7\nmax_peer_connections = 5\nhead_timeout = \"1s\"\nbody_timeout = \"2m\"\ndrain_timeout = \"250ms\"\n";
    let serve = resolved(text).serve;
    assert_eq!((serve.listen.to_string().as_str(), serve.limits.max_connections), ("[::1]:80", 7));
    assert_eq!(serve.limits.of_peer(), 5);
    let limits = serve.limits;
    let times = [limits.head, limits.body_idle, limits.body, limits.drain].map(|time| time.as_millis());
    assert_eq!(times, [1_000, 30_000, 120_000, 250]);
    assert_problems(
        "[serve]\nlisten = \"localhost:80\"\nmax_connections = 0\nhead_timeout = \"0s\"\nbody_timeout = 5\nlsten = 1\n",
        &[
            ("ichido.toml:2:10 serve.listen", "write an IP address and a port"),
            ("ichido.toml:3:19 serve.max_connections", "a whole number from 1 to 1000000"),
            ("ichido.toml:4:16 serve.head_timeout", "is 0ms; write a duration, 1ms or more"),
            ("ichido.toml:5:16 serve.body_timeout", "write a duration"),
            ("ichido.toml:6:1 serve.lsten", "did you mean listen?"),
        ],
    );
}

#[test]
fn sizes_are_read_and_shown_with_units() {
    let text = "[serve]\nmax_body_bytes = 65536\nmax_batch_bytes = \"3MiB\"\nmax_head_bytes = \"2000\"\nmax_listeners = 3\nmax_waiters = 0\n[destinations.a]\nkind = \"http\"\nurl = \"http://a.test/\"\nguarantee = \"none\"\nmax_response_bytes = 2048\n";
    let traced = traced_with(text, &BTreeMap::from([("ICHIDO__SERVE__MAX_BATCH_LINES", "7".to_owned())]));
    let traced = traced.unwrap_or_else(|faults| panic!("{faults}"));
    let limits = traced.config.serve.request_limits;
    assert_eq!(
        (limits.max_body_bytes, limits.max_batch_bytes, limits.max_head_bytes),
        (65_536, 3 << 20, 2_000)
    );
    assert_eq!((limits.max_batch_lines, limits.max_listeners, limits.max_waiters), (7, 3, 0));
    let shown = shown(&traced, &[], true);
    for line in [
        "max_body_bytes = \"64 KiB\"  # ichido.toml:2:18\n",
        "max_batch_bytes = \"3 MiB\"  # ichido.toml:3:19\n",
        "max_head_bytes = \"2000\"  # ichido.toml:4:18\n",
        "max_response_bytes = \"2 KiB\"  # ichido.toml:11:22\n",
        "max_batch_lines = 7  # the variable ICHIDO__SERVE__MAX_BATCH_LINES\n",
        "max_headers = 64  # default\n",
    ] {
        assert!(shown.contains(line), "{line}\nin\n{shown}");
    }
    assert_eq!(resolved(&shown).serve.request_limits.max_batch_bytes, 3 << 20, "what is shown can be given");
    assert_problems(
        "[serve]\nmax_body_bytes = \"5 MiB\"\nmax_batch_bytes = \"64 KB\"\nmax_head_bytes = \"1 kib\"\nmax_headers = 101\nmax_listeners = \"3\"\n",
        &[
            ("ichido.toml:2:18 serve.max_body_bytes", "is 5 MiB; write a size from 1 byte to 4 MiB"),
            ("ichido.toml:3:19 serve.max_batch_bytes", "is ambiguous: 64000 or 65536 bytes"),
            ("ichido.toml:4:18 serve.max_head_bytes", "\"1 kib\" is not a size"),
            ("ichido.toml:5:15 serve.max_headers", "a whole number from 8 to 100"),
            ("ichido.toml:6:17 serve.max_listeners", "a whole number from 0 to 10000"),
        ],
    );
}
