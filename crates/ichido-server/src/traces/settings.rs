//! The collector and its headers, from the standard environment variables or the configuration.
//!
//! Guarantee: no error contains a part of a value. Header values are secrets, and malformed entries may be too.

use std::collections::BTreeMap;
use std::env::VarError;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use ichido_client::{Client, ClientConfigErrors, ClientSettings};
use ichido_core::settings::ConfigErrors;
use ichido_http::url::{HttpUrl, UrlError, percent_decoded};
use uuid::Uuid;

/// What is exported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    /// The environment variables; the first one wins.
    endpoints: [&'static str; 2],
    headers: [&'static str; 2],
    /// The path at an endpoint for all signals.
    path: &'static str,
}

pub(super) const TRACES: Signal = Signal {
    endpoints: ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"],
    headers: ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"],
    path: "/v1/traces",
};
pub(super) const METRICS: Signal = Signal {
    endpoints: ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"],
    headers: ["OTEL_EXPORTER_OTLP_METRICS_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"],
    path: "/v1/metrics",
};
const RESOURCE_ATTRIBUTES: [&str; 1] = ["OTEL_RESOURCE_ATTRIBUTES"];
const SERVICE_NAME: [&str; 1] = ["OTEL_SERVICE_NAME"];
/// The setting that applies if no variable is set.
const SETTING: &str = "traces.endpoint";
/// The attribute that `OTEL_SERVICE_NAME` sets.
const NAME: &str = "service.name";
/// Time limit for a batch, including retries.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// The syntax of a list.
const HELP: &str =
    "write the list like name=value,name=value and percent-encode commas (%2C) and percent signs (%25)";

/// A collector, and how this process describes itself to it.
#[derive(Debug)]
pub(super) struct Collector {
    pub(super) client: Client,
    pub(super) path: String,
    /// The attributes of this process.
    pub(super) resource: BTreeMap<String, String>,
}

/// Finds the collector; `None` if there is no endpoint.
///
/// Other variables are read only if there is one.
pub(super) fn resolve(
    signal: Signal,
    endpoint: Option<&str>,
    variable: impl Fn(&str) -> Result<String, VarError>,
) -> Result<Option<Collector>, ConfigErrors> {
    let mut variables = Variables { signal, variable, faults: ConfigErrors::default() };
    let set = endpoint.map(|url| (SETTING, url.to_owned()));
    let Some((place, url)) = variables.first(signal.endpoints).or(set) else {
        return variables.faults.or(Some(None));
    };
    let client = variables.client(place, &url);
    let resource = variables.resource();
    variables.faults.or(client.map(|(client, path)| Some(Collector { client, path, resource })))
}

/// The environment, and its errors so far.
struct Variables<V> {
    signal: Signal,
    variable: V,
    faults: ConfigErrors,
}

impl<V: Fn(&str) -> Result<String, VarError>> Variables<V> {
    /// Returns the first variable that is set, with its value.
    ///
    /// An empty one counts as unset.
    fn first<const N: usize>(&mut self, names: [&'static str; N]) -> Option<(&'static str, String)> {
        names.into_iter().find_map(|name| match (self.variable)(name) {
            Ok(value) => Some((name, value)).filter(|(_, value)| !value.is_empty()),
            Err(VarError::NotPresent) => None,
            Err(VarError::NotUnicode(_)) => {
                self.faults.add(name, "is not UTF-8; set it again, or unset it");
                None
            }
        })
    }

    /// Returns the entries of a list, with their positions from 1.
    fn entries(&mut self, place: &'static str, list: &str) -> Vec<(usize, String, String)> {
        let written = list.split(',').map(str::trim).zip(1..).filter(|(entry, _)| !entry.is_empty());
        let mut entries = Vec::new();
        for (entry, position) in written {
            let decoded = |text: &str| percent_decoded(text.trim());
            let what = match entry.split_once('=').map(|(name, value)| (decoded(name), decoded(value))) {
                Some((Some(name), Some(value))) if !name.is_empty() => {
                    entries.push((position, name, value));
                    continue;
                }
                Some((Some(_), Some(_))) => "has no name",
                Some(_) => "is not percent-encoded correctly",
                None => "has no `=`",
            };
            self.faults.add(place, format!("entry {position} {what}; {HELP}"));
        }
        entries
    }

    /// Returns a client of the collector, and the path of the signal.
    fn client(&mut self, place: &'static str, url: &str) -> Option<(Client, String)> {
        let headers =
            self.first(self.signal.headers).map(|(place, list)| (place, self.headers(place, &list)));
        let (base, path) = self.faults.check(place, endpoint(self.signal, place, url))?;
        let settings = ClientSettings { total_timeout: SEND_TIMEOUT, ..ClientSettings::new(base) };
        let client = settings.resolve().map_err(|ClientConfigErrors(problems)| {
            for problem in problems {
                self.faults.add(place, problem.trim_start_matches("base_url "));
            }
        });
        let (place, headers) = headers.unwrap_or_default();
        let client = self.faults.check(place, client.ok()?.with_headers(headers))?;
        Some((client, path))
    }

    fn headers(&mut self, place: &'static str, list: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (position, name, value) in self.entries(place, list) {
            let what = match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&value)) {
                (Ok(name), Ok(mut value)) => {
                    value.set_sensitive(true);
                    headers.insert(name, value);
                    continue;
                }
                (Err(_), _) => format!("an invalid HTTP header name; {HELP}"),
                (Ok(_), Err(_)) => "a value with characters other than visible ASCII; remove them".to_owned(),
            };
            self.faults.add(place, format!("entry {position} has {what}"));
        }
        headers
    }

    fn resource(&mut self) -> BTreeMap<String, String> {
        let mut resource = BTreeMap::from([
            (NAME.to_owned(), "ichido".to_owned()),
            ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("service.instance.id".to_owned(), Uuid::now_v7().to_string()),
        ]);
        if let Some((place, list)) = self.first(RESOURCE_ATTRIBUTES) {
            resource.extend(self.entries(place, &list).into_iter().map(|(_, name, value)| (name, value)));
        }
        if let Some((_, name)) = self.first(SERVICE_NAME) {
            resource.insert(NAME.to_owned(), name);
        }
        resource
    }
}

/// Returns the URL of the server, and the path of a signal.
///
/// An endpoint for one signal is used unchanged.
fn endpoint(signal: Signal, place: &str, text: &str) -> Result<(String, String), UrlError> {
    let (url, path) = if place == signal.endpoints[0] {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlError::Malformed);
        }
        let url = HttpUrl::parse(text)?;
        let path = url.target.to_string();
        (url, path)
    } else {
        let (url, prefix) = HttpUrl::parse_base(text)?;
        (url, format!("{prefix}{}", signal.path))
    };
    let scheme = if url.is_tls { "https" } else { "http" };
    Ok((format!("{scheme}://{}", url.authority), path))
}

#[cfg(test)]
mod tests;
