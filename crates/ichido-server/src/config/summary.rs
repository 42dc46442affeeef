//! A summary of a configuration.
//!
//! Guarantee: it contains nothing that may be secret.

use ichido::worker::{AlertReceiver, QueueConfig};
use ichido_core::alert::{AlertRule, AlertRules, AlertTerms};
use ichido_core::retry::Guarantee;
use ichido_core::settings::duration;
use ichido_core::text::table;
use serde_json::{Value, json};

use super::{Config, DestinationSettings, sqlite_file};

/// Describes the store, without secrets.
fn store_summary(config: &Config) -> Option<String> {
    let url = config.store.url.as_deref()?;
    Some(match sqlite_file(url) {
        Some(file) => {
            let whole = std::path::absolute(file);
            format!("SQLite, {}", whole.as_deref().unwrap_or(file).display())
        }
        // The URL may contain a password.
        None => "PostgreSQL".to_owned(),
    })
}

/// Returns the terms of every alert as JSON, and those of single queues.
///
/// Units are those of the API.
fn alerts(rules: &AlertRules) -> (Vec<Value>, Vec<Value>) {
    let alert = |rule: AlertRule, terms: Option<AlertTerms>| match terms {
        None => json!({ "rule": rule.as_str(), "on": false }),
        Some(AlertTerms { window, min_samples: least, above }) => json!({
            "rule": rule.as_str(),
            "on": true,
            "window_seconds": window.map(|window| window.as_secs()),
            "min_samples": least,
            "above": above,
            "unit": rule.unit().as_str(),
        }),
    };
    let common = AlertRule::ALL.into_iter().map(|rule| alert(rule, rules.common(rule))).collect();
    let own = rules.of_queues().into_iter().flat_map(|(queue, own)| {
        own.into_iter().map(move |(rule, terms)| {
            let mut entry = alert(rule, terms);
            entry["queue"] = json!(queue);
            entry
        })
    });
    (common, own.collect())
}

/// Returns the summary as JSON.
pub fn json(config: &Config) -> Value {
    let worker = &config.worker;
    let queue = |queue: &QueueConfig| {
        json!({
            "name": queue.name,
            "destination": queue.destination,
            "parallelism": queue.parallelism,
            "batch_size": queue.batch_size,
            "max_retries": queue.retry.max_attempts.get() - 1,
            "lease": duration::format(queue.lease),
            "requeue": queue.requeue,
        })
    };
    let destination = |destination: &DestinationSettings| {
        let guarantee = destination.guarantee();
        let keeps_for =
            if let Some(Guarantee::Keyed { keeps_for }) = guarantee { Some(keeps_for) } else { None };
        json!({
            "name": destination.name,
            "kind": destination.kind,
            "endpoint": destination.endpoint,
            // A stream deduplicates by key for as long as its own configuration says.
            "guarantee": guarantee.map_or("keyed", Guarantee::as_str),
            "keeps_keys_for": keeps_for.map(duration::format),
            "timeout": duration::format(destination.timeout()),
            "can_reconcile": destination.can_reconcile(),
        })
    };
    let receiver = |receiver: &AlertReceiver| {
        json!({
            "name": receiver.name,
            "destination": receiver.destination,
            "format": receiver.format.as_str(),
        })
    };
    let (common, of_queues) = alerts(&config.alerts.rules);
    json!({
        "store": store_summary(config),
        "worker": {
            "name": worker.name,
            "idle_sleep": duration::format(worker.idle_sleep),
            "stop_timeout": duration::format(worker.stop_timeout),
            "keep_finished": duration::format(worker.keep_finished),
            "has_audit_key": worker.audit_key.is_some(),
        },
        "alerts": common,
        "alerts_of_queues": of_queues,
        "alerts_to": config.alerts.receivers.iter().map(receiver).collect::<Vec<_>>(),
        "queues": config.queues.iter().map(queue).collect::<Vec<_>>(),
        "destinations": config.destinations.iter().map(destination).collect::<Vec<_>>(),
    })
}

/// Returns the summary as text, with the same content as [`json()`].
pub fn text(config: &Config) -> String {
    let all = json(config);
    let store =
        all["store"].as_str().unwrap_or("not set; commands use --store or ICHIDO_STORE, else ./ichido.db");
    let worker = |member: &str| cell(&all["worker"][member]);
    let seals = if config.worker.audit_key.is_some() { "with a key" } else { "without a key" };
    let receivers =
        rows(&all["alerts_to"], ["name", "destination", "format"]).map(|[name, destination, format]| {
            format!("alerts: sent to {name} through {destination}, as {format}\n")
        });
    let alerts = [&all["alerts"], &all["alerts_of_queues"]].into_iter().filter_map(Value::as_array).flatten();
    let off = alerts.filter(|alert| alert["on"] == false).map(|alert| {
        let of = alert["queue"].as_str().map(|queue| format!(" for {queue}")).unwrap_or_default();
        format!("alerts: {}{of} is off\n", cell(&alert["rule"]))
    });
    let mut alerts: String = receivers.chain(off).collect();
    if !alerts.is_empty() {
        alerts.push('\n');
    }
    let queues = table(
        ["QUEUE", "DESTINATION", "PARALLELISM", "BATCH", "RETRIES", "LEASE", "REQUEUE"],
        rows(
            &all["queues"],
            ["name", "destination", "parallelism", "batch_size", "max_retries", "lease", "requeue"],
        ),
    );
    let destinations = rows(&all["destinations"], ["name", "kind", "endpoint", "timeout", "can_reconcile"]);
    let destinations =
        destinations.zip(&config.destinations).map(|([name, kind, address, timeout, asked], destination)| {
            [name, kind, address, guarantee_text(destination.guarantee()), timeout, asked]
        });
    let destinations =
        table(["DESTINATION", "KIND", "ENDPOINT", "GUARANTEE", "TIMEOUT", "RECONCILES"], destinations);
    format!(
        "store: {store}\nworker: {}, polls every {} when idle, stops within {}, keeps finished messages for {}, seals the audit trail {seals}\n\n{alerts}{queues}\n{destinations}",
        worker("name"),
        worker("idle_sleep"),
        worker("stop_timeout"),
        worker("keep_finished"),
    )
}

/// Returns these members of each object in a list.
fn rows<const N: usize>(list: &Value, members: [&str; N]) -> impl Iterator<Item = [String; N]> {
    let rows = list.as_array().into_iter().flatten();
    rows.map(move |row| members.map(|member| cell(&row[member])))
}

fn cell(value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn guarantee_text(guarantee: Option<Guarantee>) -> String {
    match guarantee {
        Some(Guarantee::Keyed { keeps_for }) => {
            format!("keyed: deduplicates for {}", duration::format(keeps_for))
        }
        Some(Guarantee::Idempotent) => "idempotent: may be repeated".to_owned(),
        Some(Guarantee::Transactional) => "transactional: commits with its settlement".to_owned(),
        Some(Guarantee::None) => "none: unknown effects are parked".to_owned(),
        None => "keyed: for the duplicate window of its stream".to_owned(),
    }
}
