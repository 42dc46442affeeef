//! Settings of a NATS destination, and their validation before the server is contacted.
//!
//! Guarantee: a [`NatsPlan`] is only built from valid settings. Otherwise all errors are reported at once, with their
//! setting and how to fix it, and without a character of a secret.

use std::fmt;
use std::time::Duration;

use async_nats::{ConnectOptions, ServerAddr};
use ichido_core::settings::ConfigErrors;
use ichido_http::trust;
use rustls::ClientConfig;

use super::connection::{CLOSE_WITHIN, NatsServers};
use super::start::NatsPlan;

/// The most servers.
pub const MAX_URLS: usize = 16;
/// The longest timeout of a call.
pub const MAX_TIMEOUT: Duration = Duration::from_hours(1);
/// The smallest `settle_grace`: an abandoned connection may still be written to for this long.
pub const MIN_SETTLE_GRACE: Duration = CLOSE_WITHIN;

/// The longest subject: well below the servers' limit on a protocol line.
const MAX_SUBJECT_BYTES: usize = 1024;

/// Settings of a NATS destination. [`NatsSettings::new`] has the defaults.
#[derive(Clone)]
pub struct NatsSettings {
    /// The servers of one cluster, any of which will do: `nats://host:4222`, or `tls://host:4222` to require TLS.
    ///
    /// With `nats://`, TLS is used if the server asks for it.
    pub urls: Vec<String>,
    /// The subject to publish to. A stream must cover it.
    pub subject: String,
    /// The credentials. Default: none.
    pub credentials: Option<Credentials>,
    /// The trusted certificates in PEM, instead of the system's.
    pub trusted_roots: Option<String>,
    /// The timeout for connecting to any of the servers. Default: 3 s.
    pub connect_timeout: Duration,
    /// The timeout of a whole call, including connecting. Default: 10 s.
    pub timeout: Duration,
    /// How long an abandoned publish may still be in flight, at least [`MIN_SETTLE_GRACE`].
    ///
    /// Default: 1 minute.
    pub settle_grace: Duration,
}

/// Credentials for the server.
#[derive(Clone)]
pub enum Credentials {
    /// A user and a password.
    Password {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// A token.
    Token(String),
    /// The seed of an nkey, `SU…`.
    Nkey(String),
    /// The content of a `.creds` file: a user's JWT and seed.
    Creds(String),
}

/// Shows only the kind.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password { .. } => "Password",
            Self::Token(_) => "Token",
            Self::Nkey(_) => "Nkey",
            Self::Creds(_) => "Creds",
        })
    }
}

ichido_core::debug_only! {
    /// Shows nothing of the credentials, nor of the URLs, which may contain some by mistake.
    NatsSettings as nats_settings { subject, credentials, timeout }
}

impl NatsSettings {
    /// A destination with this URL and subject, and the defaults.
    pub fn new(url: impl Into<String>, subject: impl Into<String>) -> Self {
        Self {
            urls: vec![url.into()],
            subject: subject.into(),
            credentials: None,
            trusted_roots: None,
            connect_timeout: Duration::from_secs(3),
            timeout: Duration::from_secs(10),
            settle_grace: Duration::from_mins(1),
        }
    }

    /// Validates the settings. Returns a plan or all errors; the server is not contacted yet.
    ///
    /// ```
    /// use ichido::destination::nats::{Credentials, NatsSettings};
    ///
    /// let orders = NatsSettings {
    ///     credentials: Some(Credentials::Token("s3cret".to_owned())),
    ///     ..NatsSettings::new("nats://nats.internal:4222", "orders.placed")
    /// };
    /// assert!(orders.resolve().is_ok());
    ///
    /// let wrong = NatsSettings::new("http://nats.internal", "orders.*");
    /// let problems = wrong.resolve().expect_err("two of them");
    /// assert_eq!(problems.0.len(), 2);
    /// ```
    pub fn resolve(&self) -> Result<NatsPlan, ConfigErrors> {
        let mut problems = ConfigErrors::default();
        self.check_times(&mut problems);
        problems.check("subject", check_subject(&self.subject));
        problems.within("urls", self.urls.len(), 1..=MAX_URLS);
        let mut servers = Vec::new();
        for (index, url) in self.urls.iter().enumerate() {
            servers.extend(problems.check(&format!("urls[{index}]"), server(url)));
        }
        if let Some(credentials) = &self.credentials {
            // They are parsed again for each connection; this only checks that they can be.
            problems.check("credentials", credentials.added_to(ConnectOptions::new()));
        }
        let tls = self.tls(&servers, &mut problems);
        let credentials = self.credentials.clone();
        problems.or(Some(NatsPlan {
            nats_servers: NatsServers { servers, credentials, tls, connect_timeout: self.connect_timeout },
            subject: self.subject.clone(),
            timeout: self.timeout,
            settle_grace: self.settle_grace,
        }))
    }

    fn check_times(&self, problems: &mut ConfigErrors) {
        let min = Duration::from_millis(1);
        problems.within("timeout", self.timeout, min..=MAX_TIMEOUT);
        if self.connect_timeout < min || self.timeout < self.connect_timeout {
            problems.add("connect_timeout", "must be at least 1 ms and at most timeout");
        }
        problems.within("settle_grace", self.settle_grace, MIN_SETTLE_GRACE..=MAX_TIMEOUT);
    }

    /// Configures TLS.
    ///
    /// If TLS may not be needed, missing system certificates are not an error yet.
    fn tls(&self, servers: &[ServerAddr], problems: &mut ConfigErrors) -> Option<ClientConfig> {
        let is_needed = self.trusted_roots.is_some() || servers.iter().any(ServerAddr::tls_required);
        let config = trust::client(self.trusted_roots.as_deref());
        if is_needed { problems.check("trusted_roots", config) } else { config.ok() }
    }
}

impl Credentials {
    /// Adds these credentials to the options.
    ///
    /// The error says why they cannot be parsed, without a character of them.
    pub(super) fn added_to(&self, options: ConnectOptions) -> Result<ConnectOptions, &'static str> {
        match self {
            Self::Password { user, password } => Ok(options.user_and_password(user.clone(), password.clone())),
            Self::Token(token) => Ok(options.token(token.clone())),
            Self::Nkey(seed) => {
                let is_seed = seed.starts_with("SU") && seed.bytes().all(|byte| byte.is_ascii_alphanumeric());
                if is_seed {
                    Ok(options.nkey(seed.clone()))
                } else {
                    Err("is not the seed of a user nkey, which starts with SU; give the seed, not the public key")
                }
            }
            Self::Creds(content) => options.credentials(content).map_err(|_| {
                "is not the content of a .creds file, a JWT and a seed between markers; give the file's content \
                    unchanged"
            }),
        }
    }
}

fn server(url: &str) -> Result<ServerAddr, &'static str> {
    let server: ServerAddr = url
        .parse()
        .map_err(|_| "is not the URL of a NATS server; write nats://host:4222 or tls://host:4222")?;
    if !matches!(server.scheme(), "nats" | "tls") {
        Err("must start with nats:// or tls://")
    } else if server.has_user_pass() || server.password().is_some() {
        Err("must not contain a user or password; set them in credentials")
    } else if server.host().is_empty() {
        Err("has no host; write nats://host:4222")
    } else if server.port() == 0 {
        Err("must not have port 0")
    } else {
        Ok(server)
    }
}

fn check_subject(subject: &str) -> Result<(), String> {
    let is_token = |token: &str| {
        !token.is_empty() && token.chars().all(|char| !char.is_whitespace() && !char.is_control())
    };
    if MAX_SUBJECT_BYTES < subject.len() {
        Err(format!("has {} bytes; at most {MAX_SUBJECT_BYTES} are allowed", subject.len()))
    } else if !subject.split('.').all(is_token) {
        Err(format!(
            "{subject:?} is not a subject; write words separated by dots, without white space: orders.placed"
        ))
    } else if subject.split('.').any(|token| matches!(token, "*" | ">")) {
        Err(format!(
            "{subject:?} has a wildcard, but a message is published to one subject; write it in full"
        ))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_is_words_separated_by_dots() {
        for fine in ["orders", "orders.placed", "orders.eu-1.placed_2", "a*b.c"] {
            assert_eq!(check_subject(fine), Ok(()), "{fine}");
        }
        let long = "x".repeat(MAX_SUBJECT_BYTES + 1);
        for wrong in
            ["", ".", "orders.", "orders..placed", "or ders", "orders.*", "orders.>", "a\r\nPUB", &long]
        {
            assert!(check_subject(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_url_names_one_server_and_no_secret() {
        for fine in ["nats://broker:4222", "tls://broker", "broker.internal:4222", "nats://[::1]:4222"] {
            assert!(server(fine).is_ok(), "{fine}");
        }
        for wrong in
            ["", "http://broker", "ws://broker", "nats://ann:pw@broker", "nats://ann@broker", "nats://b:0"]
        {
            assert!(server(wrong).is_err(), "{wrong}");
        }
    }
}
