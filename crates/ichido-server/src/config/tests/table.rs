//! The table of settings, and everything generated from it.

use ichido::destination::Destination;
use ichido::destination::http::HttpSettings;
use ichido_core::pace::PaceSettings;
use ichido_http::server::limits::Limits;
use serde_json::Value;

use super::super::kind::Kind;
use super::super::setting::{Setting, SettingTable};
use super::super::table::ROOT;
use super::*;
use crate::limits::RequestLimits;

/// Returns every setting of a table and its nested tables.
fn settings(table: SettingTable) -> Vec<&'static Setting> {
    let inside = |setting: &'static Setting| {
        let tables: Vec<SettingTable> = match &setting.kind {
            Kind::Table(table) | Kind::FlagOr(table) | Kind::WordOr(_, table) | Kind::Rows(table) => {
                vec![*table]
            }
            Kind::Named(named) => named.variants.iter().map(|variant| variant.table).collect(),
            _ => Vec::new(),
        };
        std::iter::once(setting).chain(tables.into_iter().flat_map(settings)).collect::<Vec<_>>()
    };
    table.iter().copied().flatten().flat_map(inside).collect()
}

fn validator() -> jsonschema::Validator {
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).offline();
    options.build(&json_schema()).expect("it is a schema")
}

/// Converts a document to JSON, as the schema sees it.
fn as_json(text: &str) -> Value {
    toml::from_str(text).expect("it is TOML")
}

#[test]
fn every_setting_is_in_the_commented_file() {
    let all = settings(ROOT);
    assert!(150 < all.len(), "{}", all.len());
    // A comment may wrap anywhere.
    let file = commented_file().replace("\n# ", " ");
    for Setting { name, kind, .. } in all {
        let written = match kind {
            Kind::Named(_) => format!("{name}."),
            _ => format!("{name} = "),
        };
        assert!(file.contains(&written) || file.contains(&format!("\n[{name}]")), "{name}");
    }
}

#[test]
fn every_setting_is_shown_documented_and_in_the_schema() {
    let traced = traced_with(&uncommented(), &variables()).unwrap_or_else(|faults| panic!("{faults}"));
    let shown = shown(&traced, &[], false);
    let schema = json_schema().to_string();
    let reference = reference::reference();
    for Setting { name, .. } in settings(ROOT) {
        let rows = [
            format!("{name} = "),
            format!("# {name} is not set\n"),
            format!("[{name}]\n"),
            format!("[{name}."),
            format!(".{name}."),
            format!(".{name}]\n"),
        ];
        assert!(rows.iter().any(|row| shown.contains(row)), "{name}\nin\n{shown}");
        assert!(schema.contains(&format!("\"{name}\":{{")), "{name}");
        let documented = [
            format!("`{name}`"),
            format!(".{name}`"),
            format!("[{name}]"),
            format!("[{name}."),
            format!("`{name}."),
        ];
        assert!(documented.iter().any(|name| reference.contains(name)), "{name}\nin\n{reference}");
    }
}

#[test]
fn the_commented_file_matches_the_schema_and_is_read_back() {
    let validator = validator();
    for text in [commented_file(), uncommented(), NAMED.to_owned()] {
        let errors: Vec<String> =
            validator.iter_errors(&as_json(&text)).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{text}");
        resolved_with(&text, &variables()).unwrap_or_else(|faults| panic!("{faults}"));
    }
}

#[test]
fn the_schema_and_the_reader_refuse_the_same() {
    let validator = validator();
    let unclear = "[destinations.a]\nkind = \"http\"\nurl = \"http://a.test/\"\n";
    let http = &format!("{unclear}guarantee = \"none\"\n");
    let claude =
        "[destinations.a]\nkind = \"anthropic\"\nmodel = \"m\"\nprompt = \"{/a}\"\nanswers_to = \"q\"\n";
    let queue = "[destinations.d]\nkind = \"mock\"\n[queues.q]\ndestination = \"d\"\n";
    for (before, wrong) in [
        ("", "queue = 1"),
        ("", "queues = 1"),
        ("", "store = 1"),
        ("[store]\n", "urll = \"sqlite:a.db\""),
        ("[store]\n", "url = 1"),
        ("[store]\n", "max_connections = 1"),
        ("[store]\n", "max_connections = 1001"),
        ("[store]\n", "max_connections = \"16\""),
        ("[serve]\n", "listen = \"localhost\""),
        ("[serve]\n", "head_timeout = \"0s\""),
        ("[serve]\n", "head_timeout = \"soon\""),
        ("[serve]\n", "head_timeout = 5"),
        ("[serve]\n", "max_headers = 101"),
        ("[serve]\n", "max_head_bytes = 1"),
        ("[serve]\n", "max_body_bytes = \"64 KB\""),
        ("[serve]\n", "max_body_bytes = true"),
        ("[worker]\n", "audit_key = \"0123456789abcdef0123456789abcdef\""),
        ("[alerts]\n", "dead_letter = \"off\""),
        ("[alerts]\n", "dead_letter = { above = -1 }"),
        ("[alerts]\n", "duplicates = { above = 1 }"),
        ("[alerts]\n", "parked = { window = \"5m\" }"),
        ("[alerts]\n", "circuit_open = { above = 1 }"),
        ("[alerts.queues.q]\n", "circuit_open = false"),
        ("[alerts.to.a]\n", "destination = \"d\""),
        ("[queue_defaults]\n", "retry = \"order\""),
        (queue, "retry = \"soon\""),
        (queue, "retry = { base = \"1s\", factor = 0 }"),
        (queue, "outbound_key = \"mine\""),
        (queue, "digest_without = \"/a\""),
        (queue, "keep_response = \"much\""),
        (queue, "item = 1"),
        (queue, "marks = 1"),
        ("[queues.q]\n", "parallelism = 1"),
        ("[destinations.a]\n", "kind = \"htpp\""),
        ("[destinations.a]\n", "url = \"http://a.test/\""),
        ("[destinations.a]\n", "kind = \"http\""),
        (unclear, "max_rate = 1"),
        (unclear, "guarantee = \"exactly_once\""),
        (http, "subject = \"orders\""),
        (http, "max_rate = 0"),
        (http, "circuit = { failures = 0 }"),
        (http, "signing_secrets = [\"whsec_\"]"),
        (http, "headers = { Accept = 3 }"),
        (http, "rules = [{ status = \"200\" }]"),
        (http, "rules = [{ status = \"200\", means = \"procesed\" }]"),
        (http, "reconcile = { rules = [] }"),
        (claude, "limit_by = \"max_tokens\""),
        (claude, "schema_mode = \"json_object\""),
    ] {
        let text = format!("{before}{wrong}\n");
        let faults = resolved_with(&text, &variables()).map(|_| ()).expect_err(&text).to_string();
        assert!(faults.contains("ichido.toml:"), "{faults}");
        assert!(!validator.is_valid(&as_json(&text)), "{text}");
    }
}

#[test]
fn defaults_are_those_of_the_library() {
    let config = resolved(
        "[destinations.d]\nkind = \"http\"\nurl = \"http://a.test/\"\nguarantee = \"none\"\n[queues.q]\ndestination = \"d\"\n",
    );
    // The schedule and the requeue depend on the destination.
    let queue = QueueConfig { retry: Retry::WEBHOOK, requeue: Some(false), ..QueueConfig::new("q", "d") };
    assert_eq!(format!("{:?}", config.queues[0]), format!("{queue:?}"));
    assert_eq!(format!("{:?}", config.serve.limits), format!("{:?}", Limits::default()));
    assert_eq!(format!("{:?}", config.serve.request_limits), format!("{:?}", RequestLimits::default()));
    assert_eq!(config.serve.listen, LISTEN_DEFAULT);
    assert_eq!(config.store.max_connections, CONNECTIONS_DEFAULT);
    let worker = &config.worker;
    assert_eq!(
        (worker.idle_sleep, worker.stop_timeout, worker.keep_finished),
        (limits::IDLE_SLEEP_DEFAULT, limits::STOP_TIMEOUT_DEFAULT, limits::KEEP_FINISHED_DEFAULT)
    );
    let destination = &config.destinations[0];
    assert_eq!(format!("{:?}", destination.pace()), format!("{:?}", PaceSettings::DEFAULT));
    let http = Destination::from(
        HttpSettings::new("http://a.test/", Guarantee::None).resolve().expect("it is right"),
    );
    assert_eq!(format!("{:?}", destination.known()), format!("{:?}", Some(&http)));
}

#[test]
fn an_unknown_kind_is_a_destinations_only_error() {
    let problems = problems_of("[destinations.a]\nkind = \"htpp\"\nsubject = 3\n");
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn a_named_schedule_shows_its_own_retries_max_by_default() {
    let text = "[destinations.d]\nkind = \"mock\"\n[queues.q]\ndestination = \"d\"\nretry = \"job\"\n";
    let traced = traced_with(text, &BTreeMap::new()).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(traced.config.queues[0].retry, Retry::JOB);
    assert!(shown(&traced, &[], true).contains("max_retries = 2  # default\n"));
    let text = format!("{text}[queue_defaults]\nmax_retries = 5\n");
    assert_eq!(resolved(&text).queues[0].retry.max_attempts.get(), 6);
}
