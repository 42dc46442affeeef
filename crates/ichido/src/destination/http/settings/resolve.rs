//! Validates the settings: each part is parsed, and its errors are collected.

use std::ops::RangeInclusive;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use ichido_core::json::Pointer;
use ichido_core::retry::Guarantee;
use ichido_core::settings::ConfigErrors;
use ichido_http::client::CallLimits;
use ichido_http::url::HttpUrl;

use super::{
    HttpSettings, MAX_ANSWER_BYTES, MAX_HEADERS, MAX_RULES, MAX_SECRETS, MAX_TIMEOUT, ReconcileSettings,
    ResponseRule,
};
use crate::destination::DeliveryTerms;
use crate::destination::http::endpoint::EndpointClients;
use crate::destination::http::reconcile::{KEY_PLACEHOLDER, ReconcileEndpoint, ReconcileMeaning};
use crate::destination::http::response::{ResponsePattern, ResponseReader};
use ichido_http::signature::Secret;

use crate::destination::http::Http;

impl HttpSettings {
    pub(super) fn resolved(&self) -> Result<Http, ConfigErrors> {
        let mut problems = ConfigErrors::default();
        self.check_bounds(&mut problems);
        let headers = self.header_map(&mut problems);
        let secrets = self.secrets(&mut problems);
        let mut reach = EndpointClients::new(self.trusted_roots.as_deref(), &self.allow_link_local);
        let post = reach.client("url", &self.url, &mut problems);
        let rules = patterns("rules", &self.rules, &mut problems);
        let key_at = problems.check("key_pointer", Pointer::parse(&self.key_pointer));
        let receipt_at = self.receipt_pointer.as_ref();
        let receipt_at =
            receipt_at.and_then(|pointer| problems.check("receipt_pointer", Pointer::parse(pointer)));
        let settings = self.reconcile.as_ref();
        let reconcile = settings.and_then(|settings| reconcile(settings, &mut reach, &mut problems));
        // A part that could not be parsed is an error, and nothing is built.
        let ((client, url), key_at) = problems.or(post.zip(key_at))?;
        Ok(Http {
            client,
            target: url.target,
            headers,
            secrets,
            limits: self.limits(),
            reader: ResponseReader::new(rules, self.echoes_key, key_at, receipt_at),
            reconcile,
            promise: DeliveryTerms {
                guarantee: self.guarantee,
                timeout: self.total_timeout,
                settle_grace: self.settle_grace,
            },
        })
    }

    fn limits(&self) -> CallLimits {
        CallLimits {
            connect: self.connect_timeout,
            response: self.response_timeout,
            total: self.total_timeout,
            max_response_bytes: self.max_response_bytes,
        }
    }

    fn check_bounds(&self, problems: &mut ConfigErrors) {
        let min = Duration::from_millis(1);
        problems.within("total_timeout", self.total_timeout, min..=MAX_TIMEOUT);
        for (path, timeout) in
            [("connect_timeout", self.connect_timeout), ("response_timeout", self.response_timeout)]
        {
            if timeout < min || self.total_timeout < timeout {
                problems.add(path, "must be at least 1 ms and at most total_timeout");
            }
        }
        problems.within("max_response_bytes", self.max_response_bytes, 1..=MAX_ANSWER_BYTES);
        problems.within("rules", self.rules.len(), 0..=MAX_RULES);
        problems.within("headers", self.headers.len(), 0..=MAX_HEADERS);
        if matches!(self.guarantee, Guarantee::Keyed { keeps_for } if keeps_for < self.total_timeout) {
            problems.add("guarantee", "the receiver must remember a key for at least total_timeout");
        }
        let hosts = [Some(&self.url), self.reconcile.as_ref().map(|settings| &settings.url)];
        for host in &self.allow_link_local {
            let is_used = |url: &&String| {
                HttpUrl::parse(&url.replace(KEY_PLACEHOLDER, KEY_STAND_IN))
                    .is_ok_and(|url| url.authority.host().eq_ignore_ascii_case(host))
            };
            if !hosts.iter().flatten().any(is_used) {
                problems.add(
                    "allow_link_local",
                    format!("{host:?} is not the host of any URL here; remove it, or write it as in the URL"),
                );
            }
        }
    }

    fn header_map(&self, problems: &mut ConfigErrors) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (index, (name, value)) in self.headers.iter().enumerate() {
            let path = format!("headers[{index}]");
            let name = match HeaderName::from_bytes(name.as_bytes()) {
                Ok(name) if is_ours(&name) => {
                    problems.add(path, format!("{name} is set by Ichido; remove it"));
                    continue;
                }
                Ok(name) => name,
                Err(_) => {
                    problems.add(path, "its name is not a valid header name");
                    continue;
                }
            };
            // The value may be a secret, and is not shown.
            match HeaderValue::from_str(value) {
                Ok(mut value) => {
                    value.set_sensitive(true);
                    headers.append(name, value);
                }
                Err(_) => problems
                    .add(path, format!("the value of {name} has characters that a header must not have")),
            }
        }
        headers
    }

    fn secrets(&self, problems: &mut ConfigErrors) -> Vec<Secret> {
        problems.within("signing_secrets", self.signing_secrets.len(), 0..=MAX_SECRETS);
        let secrets = self.signing_secrets.iter().enumerate();
        secrets
            .filter_map(|(index, text)| {
                problems.check(&format!("signing_secrets[{index}]"), Secret::parse(text))
            })
            .collect()
    }
}

fn reconcile(
    settings: &ReconcileSettings,
    reach: &mut EndpointClients<'_>,
    problems: &mut ConfigErrors,
) -> Option<ReconcileEndpoint> {
    problems.within("reconcile.rules", settings.rules.len(), 1..=MAX_RULES);
    if !settings.rules.iter().any(|rule| rule.means != ReconcileMeaning::Unknown) {
        problems.add(
            "reconcile.rules",
            "no rule means done or not done, so a lookup could settle nothing; add one",
        );
    }
    let rules = patterns("reconcile.rules", &settings.rules, problems);
    if !settings.url.contains(KEY_PLACEHOLDER) {
        problems.add(
            "reconcile.url",
            "has no {key}, so every message would get the same response; put {key} into the path or the query",
        );
    }
    // Braces are not valid in a URL: it is parsed with a stand-in for the key.
    let (client, url) =
        reach.client("reconcile.url", &settings.url.replace(KEY_PLACEHOLDER, KEY_STAND_IN), problems)?;
    if url.authority.as_str().contains(KEY_STAND_IN) {
        problems
            .add("reconcile.url", "the key cannot be part of the host; put {key} into the path or the query");
    }
    let template = url.target.as_str().replace(KEY_STAND_IN, KEY_PLACEHOLDER);
    Some(ReconcileEndpoint { client, template, rules })
}

/// Replaces the key while a URL is parsed.
const KEY_STAND_IN: &str = "ichido--key--stand-in";

/// Parses rules. One that cannot be parsed is an error.
fn patterns<M: Copy>(
    path: &str,
    rules: &[ResponseRule<M>],
    problems: &mut ConfigErrors,
) -> Vec<(ResponsePattern, M)> {
    let mut patterns = Vec::new();
    for (index, ResponseRule { status, at, means }) in rules.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let status = problems.check(&format!("{path}.status"), statuses(status));
        let at = at.as_ref().and_then(|(pointer, text)| {
            let pointer = problems.check(&format!("{path}.at"), Pointer::parse(pointer))?;
            Some((pointer, text.clone()))
        });
        patterns.extend(status.map(|status| (ResponsePattern { status, at }, *means)));
    }
    patterns
}

/// `409`, or `520-527`.
fn statuses(text: &str) -> Result<RangeInclusive<u16>, String> {
    let status = |text: &str| text.parse::<u16>().ok().filter(|status| (100..=999).contains(status));
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (status(first), status(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err(format!("{text:?} is not a status; write one status or a range: 409, 520-527")),
    }
}

/// Returns whether a header field is set by us or by the connection.
fn is_ours(name: &HeaderName) -> bool {
    const OURS: [&str; 12] = [
        "connection",
        "content-length",
        "content-type",
        "expect",
        "host",
        "idempotency-key",
        "te",
        "traceparent",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "x-idempotency-key",
    ];
    let name = name.as_str();
    OURS.contains(&name) || name.starts_with("ichido-") || name.starts_with("webhook-")
}
