//! The collector and what is said to it, by the standard environment variables or the configuration.
//!
//! Guarantee: no error contains a part of a value. A header's value is a secret, and what is not written as one may be one too.

use std::collections::BTreeMap;
use std::env::VarError;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use ichido_client::{Client, ClientSettings, Problems};
use ichido_core::settings::Faults;
use ichido_http::url::{HttpUrl, UrlError, percent_decoded};
use uuid::Uuid;

/// The environment variables. The first of two wins.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
const RESOURCE_ATTRIBUTES: [&str; 1] = ["OTEL_RESOURCE_ATTRIBUTES"];
const SERVICE_NAME: [&str; 1] = ["OTEL_SERVICE_NAME"];
/// The setting that counts where no variable is set.
const SETTING: &str = "traces.endpoint";
/// The path of traces at an endpoint that is not for traces alone.
const PATH: &str = "/v1/traces";
/// The attribute that `OTEL_SERVICE_NAME` sets.
const NAME: &str = "service.name";
/// How long a batch may take, retries included.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How a list is written.
const HELP: &str =
    "write the list like name=value,name=value and percent-encode commas (%2C) and percent signs (%25)";

/// A collector, and the process as it is described there.
#[derive(Debug)]
pub(super) struct Collector {
    pub(super) client: Client,
    pub(super) path: String,
    /// The attributes of this process.
    pub(super) resource: BTreeMap<String, String>,
}

/// Finds the collector; `None` where there is no endpoint. The other variables are read only if there is one.
pub(super) fn resolve(
    endpoint: Option<&str>,
    variable: impl Fn(&str) -> Result<String, VarError>,
) -> Result<Option<Collector>, Faults> {
    let mut variables = Variables { variable, faults: Faults::default() };
    let set = endpoint.map(|url| (SETTING, url.to_owned()));
    let Some((place, url)) = variables.first(ENDPOINTS).or(set) else {
        return variables.faults.or(Some(None));
    };
    let client = variables.client(place, &url);
    let resource = variables.resource();
    variables.faults.or(client.map(|(client, path)| Some(Collector { client, path, resource })))
}

/// The environment, and what is wrong with it.
struct Variables<V> {
    variable: V,
    faults: Faults,
}

impl<V: Fn(&str) -> Result<String, VarError>> Variables<V> {
    /// The first variable that is set, with its value. An empty one counts as not set.
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

    /// The entries of a list, with their positions from 1.
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

    /// A client of the collector, and the path of traces there.
    fn client(&mut self, place: &'static str, url: &str) -> Option<(Client, String)> {
        let headers = self.first(HEADERS).map(|(place, list)| (place, self.headers(place, &list)));
        let (base, path) = self.faults.check(place, endpoint(place, url))?;
        let settings = ClientSettings { total_time_out: SEND_TIMEOUT, ..ClientSettings::new(base) };
        let client = settings.resolve().map_err(|Problems(problems)| {
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
                (Err(_), _) => format!("a name that no HTTP header can have; {HELP}"),
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

/// The URL of the server, and the path of traces there. An endpoint for traces alone is used as it is.
fn endpoint(place: &str, text: &str) -> Result<(String, String), UrlError> {
    let (url, path) = if place == ENDPOINTS[0] {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlError::Malformed);
        }
        let url = HttpUrl::parse(text)?;
        let path = url.target.to_string();
        (url, path)
    } else {
        let (url, prefix) = HttpUrl::parse_base(text)?;
        (url, format!("{prefix}{PATH}"))
    };
    let scheme = if url.is_tls { "https" } else { "http" };
    Ok((format!("{scheme}://{}", url.authority), path))
}

#[cfg(test)]
mod tests;
