//! What a configuration comes to, in a page.
//!
//! Guarantee: nothing that may be secret is in it.

use std::fmt::Write as _;

use ichido::worker::{Queue, Receiver};
use ichido_core::alert::{Rule, Rules, Terms};
use ichido_core::retry::Guarantee;
use ichido_core::settings::duration;
use ichido_core::text::table;
use serde_json::{Value, json};

use super::{Config, Described, sqlite_file};

/// Where things are kept, without a secret.
fn kept(config: &Config) -> Option<String> {
    let url = config.store.url.as_deref()?;
    Some(match sqlite_file(url) {
        Some(file) => {
            let whole = std::path::absolute(file);
            format!("SQLite, {}", whole.as_deref().unwrap_or(file).display())
        }
        // The address may hold a password.
        None => "PostgreSQL".to_owned(),
    })
}

/// The terms of every alert, and what single queues have of their own, for programs; in the units of the API.
fn alerts(rules: &Rules) -> (Vec<Value>, Vec<Value>) {
    let alert = |rule: Rule, terms: Option<Terms>| match terms {
        None => json!({ "rule": rule.as_str(), "on": false }),
        Some(Terms { window, least, above }) => json!({
            "rule": rule.as_str(),
            "on": true,
            "window_seconds": window.map(|window| window.as_secs()),
            "least": least,
            "above": above,
            "unit": rule.unit().as_str(),
        }),
    };
    let common = Rule::ALL.into_iter().map(|rule| alert(rule, rules.common(rule))).collect();
    let own = rules.of_queues().into_iter().flat_map(|(queue, own)| {
        own.into_iter().map(move |(rule, terms)| {
            let mut told = alert(rule, terms);
            told["queue"] = json!(queue);
            told
        })
    });
    (common, own.collect())
}

/// The alerts that are switched off, a line each.
fn switched_off(rules: &Rules) -> String {
    let common = Rule::ALL.into_iter().filter(|rule| rules.common(*rule).is_none());
    let common = common.map(|rule| format!("alerts: {} is not watched for\n", rule.as_str()));
    let own = rules.of_queues().into_iter().flat_map(|(queue, own)| {
        let off = own.into_iter().filter(|(_, terms)| terms.is_none());
        off.map(move |(rule, _)| format!("alerts: {} of {queue} is not watched for\n", rule.as_str()))
    });
    common.chain(own).collect()
}

/// What a configuration comes to, for programs.
pub fn json(config: &Config) -> Value {
    let worker = &config.worker;
    let queue = |queue: &Queue| {
        json!({
            "name": queue.name,
            "destination": queue.destination,
            "parallelism": queue.parallelism,
            "batch_size": queue.batch_size,
            "retries_max": queue.retry.tries.get() - 1,
            "lease": duration::shown(queue.lease),
            "requeue": queue.requeue,
        })
    };
    let destination = |described: &Described| {
        let (honours_key, keeps_keys_for, repeatable) = match described.guarantee() {
            Some(Guarantee::HonoursKeys { keeps_for }) => (Some(true), Some(keeps_for), Some(false)),
            Some(Guarantee::Repeatable) => (Some(false), None, Some(true)),
            Some(Guarantee::Nothing) => (Some(false), None, Some(false)),
            // A stream honours keys for as long as it says itself.
            None => (Some(true), None, None),
        };
        json!({
            "name": described.name,
            "kind": described.kind,
            "where": described.whereto,
            "honours_key": honours_key,
            "keeps_keys_for": keeps_keys_for.map(duration::shown),
            "repeatable": repeatable,
            "time_out": duration::shown(described.time_out()),
            "can_be_asked": described.can_be_asked(),
        })
    };
    let receiver = |receiver: &Receiver| {
        json!({
            "name": receiver.name,
            "destination": receiver.destination,
            "form": receiver.form.as_str(),
        })
    };
    let (common, of_queues) = alerts(&config.alerts.rules);
    json!({
        "store": kept(config),
        "worker": {
            "name": worker.name,
            "idle_sleep": duration::shown(worker.idle_sleep),
            "stop_within": duration::shown(worker.stop_within),
            "keep_finished": duration::shown(worker.keep_finished),
            "seals_under_a_key": worker.audit_key.is_some(),
        },
        "alerts": common,
        "alerts_of_queues": of_queues,
        "alerts_to": config.alerts.receivers.iter().map(receiver).collect::<Vec<_>>(),
        "queues": config.queues.iter().map(queue).collect::<Vec<_>>(),
        "destinations": config.destinations.iter().map(destination).collect::<Vec<_>>(),
    })
}

/// What a configuration comes to, without a secret.
pub fn text(config: &Config) -> String {
    let mut out = String::new();
    let store = kept(config).unwrap_or_else(|| "none; give one by --store or ICHIDO_STORE".to_owned());
    let worker = &config.worker;
    // A string takes all that is written to it.
    _ = writeln!(
        out,
        "store: {store}\nworker: {}, looks every {} when idle, stops within {}, keeps what has ended for {}, seals the audit trail {}\n",
        worker.name,
        duration::shown(worker.idle_sleep),
        duration::shown(worker.stop_within),
        duration::shown(worker.keep_finished),
        if worker.audit_key.is_some() { "under a key" } else { "without a key" }
    );
    for receiver in &config.alerts.receivers {
        let Receiver { name, destination, form } = receiver;
        _ = writeln!(out, "alerts: told to {name} by {destination}, in the form {}", form.as_str());
    }
    let off = switched_off(&config.alerts.rules);
    out += &off;
    if !config.alerts.receivers.is_empty() || !off.is_empty() {
        out.push('\n');
    }
    let queues = config.queues.iter().map(|queue| {
        [
            queue.name.clone(),
            queue.destination.clone(),
            queue.parallelism.to_string(),
            queue.batch_size.to_string(),
            (queue.retry.tries.get() - 1).to_string(),
            duration::shown(queue.lease),
            if queue.requeue { "yes" } else { "no" }.to_owned(),
        ]
    });
    out += &table(["QUEUE", "DESTINATION", "PARALLELISM", "BATCH", "RETRIES", "LEASE", "REQUEUE"], queues);
    out.push('\n');
    let destinations = config.destinations.iter().map(|described| {
        [
            described.name.clone(),
            described.kind.to_owned(),
            described.whereto.clone(),
            match described.guarantee() {
                Some(Guarantee::HonoursKeys { keeps_for }) => {
                    format!("honours keys for {}", duration::shown(keeps_for))
                }
                Some(Guarantee::Repeatable) => "may be repeated".to_owned(),
                Some(Guarantee::Nothing) => "nothing: what is unknown is parked".to_owned(),
                None => "honours keys for as long as its stream remembers: the worker asks it".to_owned(),
            },
            duration::shown(described.time_out()),
            if described.can_be_asked() { "yes" } else { "no" }.to_owned(),
        ]
    });
    out += &table(["DESTINATION", "KIND", "WHERE", "PROMISES", "TIME-OUT", "ASKED AFTER"], destinations);
    out
}
