//! Settings of a model behind HTTP, and their validation.

use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue};
use ichido::destination::http::MAX_TIMEOUT;
use ichido::destination::http::endpoint::EndpointClients;
use ichido_core::settings::ConfigErrors;
use ichido_http::client::CallLimits;
use ichido_http::url::HttpUrl;

use super::{ApiDialect, HttpEndpoint, HttpModel, MAX_ANSWER_BYTES};

/// Maximum number of endpoints of one model.
pub const MAX_ENDPOINTS: usize = 16;
/// Maximum length of a model's name.
const MAX_MODEL_BYTES: usize = 256;

/// Where to reach a model over HTTP; [`ServiceSettings::new`] sets defaults.
#[derive(Clone)]
pub struct ServiceSettings {
    /// The provider's name of the model.
    pub model: String,
    /// The base URL of the API, one per endpoint: `https://api.openai.com/v1`, `https://api.anthropic.com`.
    pub base_urls: Vec<String>,
    /// The API key. `None` for a server that needs none.
    pub api_key: Option<String>,
    /// Trusted root certificates in PEM, instead of the system's.
    pub trusted_roots: Option<String>,
    /// Hosts, as written in the URLs, that may resolve to link-local addresses.
    pub allow_link_local: Vec<String>,
    /// Timeout for connecting: DNS, TCP and TLS. Default: 3 s.
    pub connect_timeout: Duration,
    /// Timeout for the whole call, to the response's last byte. Default: 2 minutes, because a model answers when it has
    /// finished.
    pub timeout: Duration,
}

ichido_core::debug_only! {
    /// Hides the key.
    ServiceSettings as service_settings { model, has_api_key: service_settings.api_key.is_some(), timeout }
}

impl ServiceSettings {
    /// Creates settings for a model with one endpoint.
    pub fn new(model: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            base_urls: vec![base_url.into()],
            api_key: None,
            trusted_roots: None,
            allow_link_local: Vec::new(),
            connect_timeout: Duration::from_secs(3),
            timeout: Duration::from_mins(2),
        }
    }

    /// Validates the settings and returns the model, or every problem.
    pub(in crate::models) fn resolve(&self, api: ApiDialect) -> Result<HttpModel, ConfigErrors> {
        let mut problems = ConfigErrors::default();
        self.check(&mut problems);
        let mut headers = HeaderMap::new();
        for (name, value) in api.fields {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(key) = &self.api_key {
            let (name, value) = (api.key_field)(key);
            match HeaderValue::from_str(&value).ok().filter(|_| !key.trim().is_empty()) {
                Some(mut value) => {
                    value.set_sensitive(true);
                    headers.insert(HeaderName::from_static(name), value);
                }
                None => problems.add("api_key", "is empty or has characters that a header must not have"),
            }
        }
        let mut reach = EndpointClients::new(self.trusted_roots.as_deref(), &self.allow_link_local);
        let (mut names, mut endpoints) = (Vec::new(), Vec::new());
        for (index, url) in self.base_urls.iter().enumerate() {
            let setting = format!("base_urls[{index}]");
            let Some((client, url)) = reach.client(&setting, url, &mut problems) else { continue };
            let (name, Some(target)) = (name(&url), target(&url, api.path)) else {
                problems.add(setting, "is not a URL");
                continue;
            };
            if names.contains(&name) {
                problems.add(setting, "is listed twice; remove one");
            }
            names.push(name);
            endpoints.push(HttpEndpoint { client, target });
        }
        problems.or(Some(HttpModel {
            model: self.model.clone(),
            names,
            endpoints,
            headers,
            limits: CallLimits {
                connect: self.connect_timeout,
                response: self.timeout,
                total: self.timeout,
                max_response_bytes: MAX_ANSWER_BYTES,
            },
            api_key: self.api_key.clone(),
            api,
        }))
    }

    fn check(&self, problems: &mut ConfigErrors) {
        let is_visible = self.model.bytes().all(|byte| byte.is_ascii_graphic());
        if self.model.is_empty() || MAX_MODEL_BYTES < self.model.len() || !is_visible {
            let why = format!(
                "must be the provider's model name: 1 to {MAX_MODEL_BYTES} visible ASCII characters without a space"
            );
            problems.add("model", why);
        }
        problems.within("base_urls", self.base_urls.len(), 1..=MAX_ENDPOINTS);
        let least = Duration::from_millis(1);
        problems.within("timeout", self.timeout, least..=MAX_TIMEOUT);
        if self.connect_timeout < least || self.timeout < self.connect_timeout {
            problems.add("connect_timeout", "must be at least 1 ms and at most timeout");
        }
    }
}

/// Returns an endpoint's name: its URL without the query, which may hold a secret.
fn name(url: &HttpUrl) -> String {
    let scheme = if url.is_tls { "https" } else { "http" };
    format!("{scheme}://{}{}", url.authority, url.target.path().trim_end_matches('/'))
}

/// Appends the API's path to that of the base URL and keeps its query.
fn target(url: &HttpUrl, path: &str) -> Option<PathAndQuery> {
    let base = url.target.path().trim_end_matches('/');
    let query = url.target.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{base}{path}{query}").parse().ok()
}
