//! The files for Prometheus and Grafana name only metrics of a real server, of the layer and of calls to models.
// Spec: A14, B12, D19.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use http::HeaderName;
use ichido::once::{Class, Guarantee, LeaseKeeper, Once};
use ichido_llm::judge::CallMetrics;
use ichido_store::Store;
use ichido_store::testing::sqlite;
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::Value;
use tokio::time::timeout;

use super::client::RawRequest;
use super::program::{DatabaseKind, POLL_EVERY, ServerFixture};

/// How long a name may be missing: the server measures every few seconds.
const SHOWN_WITHIN: Duration = Duration::from_mins(1);

fn shipped(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops").join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// A metric in an expression, with one of its labels and a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MetricReference {
    metric: String,
    label: Option<(String, String)>,
}

/// Returns our metrics in a Prometheus expression.
///
/// Negative matchers and variables are left out.
fn named(text: &str) -> BTreeSet<MetricReference> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    for (start, _) in text.match_indices("outbox_").chain(text.match_indices("ichido_")) {
        if text[..start].ends_with(is_name) {
            continue;
        }
        let (metric, rest) = text[start..].split_at(text[start..].find(|c| !is_name(c)).unwrap_or(0));
        found.insert(MetricReference { metric: metric.to_owned(), label: None });
        let Some((labels, _)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
            continue;
        };
        for label in labels.split(", ") {
            let (name, values) = label.split_once('=').unwrap_or_else(|| panic!("no label: {label}"));
            if name.ends_with('!') || values.contains('$') {
                continue;
            }
            let values = values.trim_start_matches('~').trim_matches('"');
            for value in values.split('|') {
                let label = Some((name.to_owned(), value.to_owned()));
                found.insert(MetricReference { metric: metric.to_owned(), label });
            }
        }
    }
    found
}

/// Returns the expressions and the variables of a dashboard.
fn expressions(dashboard: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let members: Vec<(&str, &Value)> = match dashboard {
        Value::Object(members) => members.iter().map(|(name, value)| (name.as_str(), value)).collect(),
        Value::Array(items) => items.iter().map(|item| ("", item)).collect(),
        _ => Vec::new(),
    };
    for (name, value) in members {
        match value.as_str() {
            Some(text) if ["expr", "definition"].contains(&name) => found.push(text.to_owned()),
            Some(_) => (),
            None => found.extend(expressions(value)),
        }
    }
    found
}

/// Returns whether a metrics page contains it.
fn shows(page: &str, named: &MetricReference) -> bool {
    page.lines().filter_map(|line| line.strip_prefix(named.metric.as_str())).any(|rest| {
        rest.starts_with(['{', ' '])
            && named.label.as_ref().is_none_or(|(name, value)| rest.contains(&format!("{name}=\"{value}\"")))
    })
}

#[test]
fn metric_names_are_parsed_from_expressions() {
    let names = named(
        r#"sum by (queue) (rate(outbox_a{x="1", y=~"2|3", z!="4", q=~"$queue"}[5m])) / not_outbox_b + ichido_c > 0"#,
    );
    let names: Vec<String> = names
        .into_iter()
        .map(|named| {
            named.metric + &named.label.map(|(name, value)| format!("/{name}/{value}")).unwrap_or_default()
        })
        .collect();
    assert_eq!(names, ["ichido_c", "outbox_a", "outbox_a/x/1", "outbox_a/y/2", "outbox_a/y/3"]);
}

/// Returns the metrics of a program that has one operation behind the layer and calls one model.
fn metrics_of_a_program(store: Store) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        let once = Once::operation("orders.create").class(Class::Mutate).guarantee(Guarantee::Keyed);
        let once = once.identity_header(HeaderName::from_static("x-user-id"));
        once.build(&LeaseKeeper::new(store)).expect("a layer");
        CallMetrics::new("a-model", None);
    });
    recorder.handle().render()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_alerted_or_graphed_metric_is_exported() {
    let dashboard: Value = serde_json::from_str(&shipped("grafana-dashboard.json")).expect("JSON");
    // Comments count as well: they must not mislead.
    let mut names = named(&shipped("prometheus-alerts.yml"));
    let drawn = expressions(&dashboard);
    assert!(30 < drawn.len(), "{drawn:?}");
    names.extend(drawn.iter().flat_map(|expression| named(expression)));
    assert!(60 < names.len(), "{names:?}");

    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let put = server.send(&RawRequest::put("k1", "{}")).await;
    for which in ["2; auto", "3; manual"] {
        server.send(&RawRequest::put("k1", "{}").field("Ichido-Attempt", which)).await;
    }
    server.until_status(put.one("location").expect("a place"), "sent").await;
    let file = sqlite::fresh_file();
    let elsewhere = metrics_of_a_program(Store::open(&file.url, 1).await.expect("a store"));
    names.retain(|named| !shows(&elsewhere, named));
    let mut missing: Vec<&MetricReference> = Vec::new();
    let all_shown = async {
        loop {
            let page = server.get("/metrics").await;
            missing = names.iter().filter(|named| !shows(page.text(), named)).collect();
            if missing.is_empty() {
                return;
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    let is_shown = timeout(SHOWN_WITHIN, all_shown).await.is_ok();
    assert!(is_shown, "no server shows {missing:#?}");
}

/// Returns the anchor of a Markdown heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[test]
fn every_prometheus_alert_links_its_runbook_section() {
    let runbook = include_str!("../../../../../docs/runbook.md");
    let headings = runbook.lines().filter_map(|line| line.strip_prefix("## "));
    let sections: BTreeSet<String> = headings.map(anchor).collect();
    let rules = shipped("prometheus-alerts.yml");
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    assert!(10 < alerts.len(), "{} alerts are too few to be all", alerts.len());
    for alert in alerts {
        let name = alert.lines().next().expect("a name");
        let named =
            alert.split_once("runbook: \"docs/runbook.md#").and_then(|(_, rest)| rest.split_once('"'));
        let (section, _) = named.unwrap_or_else(|| panic!("{name} names no section of the runbook"));
        assert!(sections.contains(section), "{name}: there is no section {section} among {sections:#?}");
    }
}
