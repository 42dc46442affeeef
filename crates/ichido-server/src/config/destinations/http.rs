//! HTTP destinations, and the mock broker, which is an HTTP destination with other defaults.

use std::time::Duration;

use ichido::destination::Destination;
use ichido::destination::http::{
    HttpSettings, ReconcileMeaning, ReconcileSettings, ResponseMeaning, ResponseRule,
};
use ichido_core::retry::Guarantee;

use super::super::document::Section;
use super::super::setting::Presets;
use super::PLACEHOLDER;
use crate::redacted::{self, origin};

/// The default address of `ichido mock-broker`.
const MOCK_BROKER_URL: &str = "http://127.0.0.1:8090/orders";
/// A header field is secret if its name contains one of these.
const SECRET_PARTS: [&str; 7] =
    ["authorization", "cookie", "token", "secret", "password", "api-key", "apikey"];

/// Returns the defaults of the mock broker.
///
/// It never forgets a key, and is asked about effects at the host of its URL.
// Spec: D18.
pub(in super::super) fn mock_broker_presets(section: &Section<'_>) -> Presets {
    let url = section.explicit::<String>("url").and_then(|url| section.source.outside.resolve(&url).ok());
    let url = url.unwrap_or_else(|| MOCK_BROKER_URL.to_owned());
    let guarantee = section.explicit::<String>("guarantee").unwrap_or_else(|| "keyed".to_owned());
    let asked = format!("{}/orders/by-key/{{key}}", origin(&url));
    let reconcile = format!(
        r#"{{ url = {asked:?}, rules = [{{ status = "200", at = "/status", is = "accepted", means = "done" }}, {{ status = "404", at = "/error", is = "no_such_order", means = "not_done" }}] }}"#
    );
    let rules = r#"[{ status = "409", at = "/error", is = "already_processed", means = "processed" }, { status = "409", at = "/error", is = "in_progress", means = "in_progress" }]"#;
    let presets = [
        ("url", format!("{MOCK_BROKER_URL:?}")),
        ("settle_grace", r#""1s""#.to_owned()),
        ("guarantee", format!("{guarantee:?}")),
        ("echoes_key", "true".to_owned()),
        ("receipt_pointer", r#""/broker_order_id""#.to_owned()),
        ("rules", rules.to_owned()),
        ("reconcile", reconcile),
    ];
    let keeps_keys_for = (guarantee == "keyed").then(|| ("keeps_keys_for", r#""365d""#.to_owned()));
    presets.into_iter().chain(keeps_keys_for).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Reads an HTTP destination: its address for display, and the destination.
pub(super) fn read(section: &Section<'_>) -> Option<(String, Destination)> {
    let url = section.resolved("url");
    let secrets = section.resolved_list("signing_secrets");
    let settings = HttpSettings {
        headers: headers(section),
        signing_secrets: secrets.iter().map(|(_, secret)| secret.clone()).collect(),
        trusted_roots: section.resolved("trusted_roots"),
        allow_link_local: section.get_or_default("allow_link_local"),
        connect_timeout: section.get_or_default("connect_timeout"),
        response_timeout: section.get_or_default("response_timeout"),
        total_timeout: section.get_or_default("total_timeout"),
        max_response_bytes: section.get_or_default("max_response_bytes"),
        guarantee: guarantee(section),
        settle_grace: section.get_or_default("settle_grace"),
        echoes_key: section.get_or_default("echoes_key"),
        key_pointer: section.get_or_default("key_pointer"),
        receipt_pointer: section.get("receipt_pointer"),
        rules: rules(section, ResponseMeaning::parse, ResponseMeaning::Sent),
        reconcile: section.section("reconcile").and_then(|inside| {
            let rules = rules(&inside, ReconcileMeaning::parse, ReconcileMeaning::Done);
            Some(ReconcileSettings { url: inside.resolved("url")?, rules })
        }),
        url: url.clone().unwrap_or_else(|| PLACEHOLDER.to_owned()),
    };
    let resolved = settings.resolve();
    let url = url?;
    // A URL from a variable or a file may be a secret as a whole.
    let is_reference = section.explicit::<String>("url").is_some_and(|written| written != url);
    let shown = if is_reference { origin(&url).to_owned() } else { redacted::url(&url) };
    let faults = match resolved {
        Ok(http) => return Some((shown, http.into())),
        Err(faults) => faults,
    };
    for fault in faults.0 {
        section.report(&setting_path(&fault.place, &settings, &secrets), fault.what);
    }
    None
}

fn headers(section: &Section<'_>) -> Vec<(String, String)> {
    let outside = section.source.outside;
    let fields = section.fields("headers").into_iter().filter_map(|(name, text)| {
        let lower = name.to_lowercase();
        let is_secret = SECRET_PARTS.iter().any(|part| lower.contains(part));
        let resolved = if is_secret { outside.secret(text) } else { outside.resolve_if_needed(text) };
        Some((name.to_owned(), section.checked(&format!("headers.{name}"), resolved)??))
    });
    fields.collect()
}

/// Returns the path of a setting in the file, usually its own name.
fn setting_path(place: &str, settings: &HttpSettings, secrets: &[(usize, String)]) -> String {
    let index = |name: &str| {
        let index: usize = place.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
        Some(index)
    };
    // In the file, header fields have names, and secrets that could not be resolved count too.
    if let Some((name, _)) = index("headers").and_then(|index| settings.headers.get(index)) {
        format!("headers.{name}")
    } else if let Some((index, _)) = index("signing_secrets").and_then(|index| secrets.get(index)) {
        format!("signing_secrets[{index}]")
    } else if place == "guarantee" {
        "keeps_keys_for".to_owned()
    } else {
        place.to_owned()
    }
}

/// Returns the guarantee as it is written; none if it is missing or not complete.
pub(super) fn declared(section: &Section<'_>) -> Guarantee {
    match (section.get::<String>("guarantee").as_deref(), section.get("keeps_keys_for")) {
        (Some("keyed"), Some(keeps_for)) => Guarantee::Keyed { keeps_for },
        (Some("idempotent"), _) => Guarantee::Idempotent,
        _ => Guarantee::None,
    }
}

/// Reads the guarantee, and checks that it has a time if it is keyed, and only then.
// Spec: F2, H8.
fn guarantee(section: &Section<'_>) -> Guarantee {
    let guarantee = section.get::<String>("guarantee");
    let (is_keyed, has_time) = (guarantee.as_deref() == Some("keyed"), section.has("keeps_keys_for"));
    if is_keyed && section.get::<Duration>("keeps_keys_for").is_none() && !has_time {
        section.report(
            "keeps_keys_for",
            "is required with guarantee = \"keyed\"; set how long the receiver remembers a key, such as \"24h\"",
        );
    }
    // A missing guarantee is an error of its own.
    if guarantee.is_some() && !is_keyed && has_time {
        section.report("keeps_keys_for", "requires guarantee = \"keyed\"; add that, or remove this");
    }
    declared(section)
}

/// Replaces a missing status.
const PLACEHOLDER_STATUS: &str = "200";

/// Reads rules.
///
/// Errors were reported; a placeholder replaces a wrong rule, so the others keep their numbers.
fn rules<M: Copy>(
    section: &Section<'_>,
    meaning: fn(&str) -> Option<M>,
    placeholder: M,
) -> Vec<ResponseRule<M>> {
    let rule = |row: &Section<'_>| {
        let at = match (row.get("at"), row.get("is")) {
            (Some(at), Some(is)) => Some((at, is)),
            (None, None) => None,
            _ => {
                let what = "`at` and `is` belong together: a JSON pointer, and the text that must be there; set both, or neither";
                row.report("", what);
                None
            }
        };
        let status = row.get("status").unwrap_or_else(|| PLACEHOLDER_STATUS.to_owned());
        ResponseRule { status, at, means: row.word("means", meaning).unwrap_or(placeholder) }
    };
    section.rows("rules").iter().map(rule).collect()
}
