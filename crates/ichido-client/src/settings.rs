//! The settings of a client and their validation.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http_body_util::Full;
use ichido_core::hops::HopName;
use ichido_core::ledger::Profile;
use ichido_core::retry::{Budget, BudgetSettings, Retry};
use ichido_core::settings::{ConfigError, ConfigErrors};
use ichido_http::client::{CallLimits, HttpClient};
use ichido_http::trust;
use ichido_http::url::HttpUrl;

use crate::client::Client;
use crate::decision::RetryRules;
use crate::token::Token;

/// The longest duration of any setting.
pub const MAX_TIME: Duration = Duration::from_hours(24);
/// The highest limit for response bodies.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;

/// The settings of a client. [`ClientSettings::new`] sets the defaults.
#[derive(Clone)]
pub struct ClientSettings {
    /// The server's URL, such as `https://ichido.example`, with an optional path prefix.
    pub base_url: String,
    /// The caller's token.
    pub token: Option<Token>,
    /// How often to try, and how long to wait in between. [`Retry::CLIENT`]: 1 s, 2 s, and 0 to 10 % more; 3
    /// attempts.
    // Spec: A9.
    pub retry: Retry,
    /// The retries that all calls share, so a failing server is not overloaded.
    ///
    /// [`BudgetSettings::DEFAULT`]: 10 in reserve, and one more for every five calls that succeed at once. `None`
    /// means no shared limit.
    pub budget: Option<BudgetSettings>,
    /// How the server reports about keys. [`Profile::Ichido`].
    pub profile: Profile,
    /// Our name in `Ichido-Hops`, which goes to servers of the profile `ichido`. `client`.
    // Spec: F1.
    pub hop_name: String,
    /// The longest `Retry-After` that the client waits for. 1 minute.
    pub max_retry_after: Duration,
    /// The timeout for connecting: name lookup, TCP and TLS. 5 s.
    pub connect_timeout: Duration,
    /// The timeout of one attempt, to the last byte of the response. 30 s.
    pub attempt_timeout: Duration,
    /// The timeout of all attempts and the waits between them. 2 minutes.
    pub total_timeout: Duration,
    /// The largest response body that is read. 1 MiB.
    pub max_response_bytes: usize,
    /// Root certificates in PEM that replace the system's.
    pub trusted_roots: Option<String>,
}

/// All errors in the settings, each with its location and how to fix it.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ClientConfigErrors(pub Vec<String>);

impl From<ConfigErrors> for ClientConfigErrors {
    fn from(faults: ConfigErrors) -> Self {
        Self(faults.0.into_iter().map(|ConfigError { place, what }| format!("{place} {what}")).collect())
    }
}

ichido_core::debug_only! {
    /// Shows nothing of the URL, which may contain a secret by mistake.
    ClientSettings as client_settings { token, retry, budget, profile, total_timeout }
}

impl ClientSettings {
    /// Creates the default settings for a server.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            token: None,
            retry: Retry::CLIENT,
            budget: Some(BudgetSettings::DEFAULT),
            profile: Profile::Ichido,
            hop_name: "client".to_owned(),
            max_retry_after: Duration::from_mins(1),
            connect_timeout: Duration::from_secs(5),
            attempt_timeout: Duration::from_secs(30),
            total_timeout: Duration::from_mins(2),
            max_response_bytes: 1 << 20,
            trusted_roots: None,
        }
    }

    /// Builds the client, or returns every error.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ichido_client::ClientSettings;
    ///
    /// assert!(ClientSettings::new("http://127.0.0.1:4180").resolve().is_ok());
    /// let wrong = ClientSettings { attempt_timeout: Duration::ZERO, ..ClientSettings::new("127.0.0.1") };
    /// assert_eq!(wrong.resolve().expect_err("two of them").0.len(), 2);
    /// ```
    pub fn resolve(self) -> Result<Client, ClientConfigErrors> {
        let mut faults = ConfigErrors::default();
        let least = Duration::from_millis(1);
        for (place, time) in [
            ("connect_timeout", self.connect_timeout),
            ("attempt_timeout", self.attempt_timeout),
            ("total_timeout", self.total_timeout),
        ] {
            faults.within(place, time, least..=MAX_TIME);
        }
        faults.within("max_retry_after", self.max_retry_after, Duration::ZERO..=MAX_TIME);
        faults.within("max_response_bytes", self.max_response_bytes, 1..=MAX_ANSWER_BYTES);
        let hop_name = faults.check("hop_name:", HopName::parse(&self.hop_name));
        let http = faults.check("base_url", self.http());
        let retry = faults.check("retry:", self.retry.checked());
        let limits = CallLimits {
            connect: self.connect_timeout,
            response: self.attempt_timeout,
            total: self.attempt_timeout,
            max_response_bytes: self.max_response_bytes,
        };
        let ((retry, hop_name), (http, prefix)) = faults.or(retry.zip(hop_name).zip(http))?;
        Ok(Client {
            http,
            prefix,
            headers: self.token.iter().map(|token| (AUTHORIZATION, token.field())).collect(),
            hop_name,
            rules: RetryRules { retry, max_retry_after: self.max_retry_after, profile: self.profile },
            budget: Mutex::new(self.budget.map(Budget::full)),
            limits,
            total: self.total_timeout,
        })
    }

    /// Builds the HTTP client and the path prefix.
    fn http(&self) -> Result<(HttpClient<Full<Bytes>>, String), String> {
        let (url, prefix) = HttpUrl::parse_base(&self.base_url).map_err(|error| error.to_string())?;
        let trusted = || trust::https(self.trusted_roots.as_deref());
        let tls = url.is_tls.then(trusted).transpose();
        let tls = tls.map_err(|error| format!("cannot be called with TLS: {error}"))?;
        let http = HttpClient::new(&url, tls, |_| true).map_err(|error| error.to_string())?;
        Ok((http, prefix))
    }
}
