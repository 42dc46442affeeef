//! Settings of an HTTP destination, and their validation.
//!
//! Guarantee: an [`Http`](super::Http) is only built from valid settings. Otherwise all errors are reported at once, with
//! their setting and how to fix it, and without a character of a secret.

mod resolve;

use std::time::Duration;

use ichido_core::retry::Guarantee;

use ichido_core::settings::ConfigErrors;

use super::{Http, ReconcileMeaning, ResponseMeaning};

/// The most signing secrets: the old and the new one, while receivers change over.
pub const MAX_SECRETS: usize = 2;
/// The most rules of a destination.
pub const MAX_RULES: usize = 64;
/// The most header fields of a destination.
pub const MAX_HEADERS: usize = 32;
/// The longest timeout of a call.
pub const MAX_TIMEOUT: Duration = Duration::from_hours(1);
/// The largest limit on the response size.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Settings of an HTTP destination. [`HttpSettings::new`] has the defaults.
#[derive(Clone)]
pub struct HttpSettings {
    /// The URL that messages are posted to.
    pub url: String,
    /// Additional header fields, such as `Authorization`: name and value.
    pub headers: Vec<(String, String)>,
    /// Up to [`MAX_SECRETS`] secrets, `whsec_` and base64; each call is signed with all of them.
    ///
    /// Default: none, unsigned.
    pub signing_secrets: Vec<String>,
    /// The trusted certificates in PEM, instead of the system's.
    pub trusted_roots: Option<String>,
    /// Hosts, as written in the URLs, that may have link-local addresses.
    pub allow_link_local: Vec<String>,
    /// The timeout for connecting: DNS, TCP and TLS. Default: 3 s.
    pub connect_timeout: Duration,
    /// The timeout from then until the response starts. Default: 10 s.
    pub response_timeout: Duration,
    /// The timeout of the whole call, up to the response's last byte. Default: 15 s.
    pub total_timeout: Duration,
    /// How much of a response is read.
    ///
    /// A longer one is judged by status and headers alone, and is not a success if a setting reads its JSON.
    ///
    /// Default: 1 MiB.
    pub max_response_bytes: usize,
    /// What the receiver guarantees about repeated calls.
    pub guarantee: Guarantee,
    /// How long an abandoned call may still be in flight. Default: 1 minute.
    pub settle_grace: Duration,
    /// Whether the receiver promises to echo the key in its responses. Default: no.
    // Spec: D8.
    pub echoes_key: bool,
    /// Where a response's JSON echoes the key, if it does.
    ///
    /// A header `Idempotency-Key` counts as well.
    ///
    /// Default: `/idempotency_key`.
    pub key_pointer: String,
    /// Where a response's JSON has the receiver's own id, such as `/broker_order_id`.
    pub receipt_pointer: Option<String>,
    /// The meaning of responses that differ from the HTTP table; the first match wins.
    pub rules: Vec<DeliveryRule>,
    /// How to look up a call, if the receiver supports it.
    pub reconcile: Option<ReconcileSettings>,
}

/// The meaning of one kind of response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseRule<M> {
    /// A status or a range: `409`, `520-527`.
    pub status: String,
    /// A pointer into the response's JSON, and the text that must be there: `("/error", "already_processed")`.
    pub at: Option<(String, String)>,
    /// What it means.
    pub means: M,
}

/// The meaning of one kind of response to a message.
pub type DeliveryRule = ResponseRule<ResponseMeaning>;

/// The meaning of one kind of response to a lookup.
pub type ReconcileRule = ResponseRule<ReconcileMeaning>;

/// How to look up a call at its receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcileSettings {
    /// The URL, with `{key}` as the placeholder of the key.
    ///
    /// The key is also sent as the header `Idempotency-Key`.
    ///
    /// The header fields of the [settings](HttpSettings::headers) are sent as well.
    pub url: String,
    /// The meaning of its responses; the first match wins.
    ///
    /// A response that none matches leaves the effect unknown.
    pub rules: Vec<ReconcileRule>,
}

ichido_core::debug_only! {
    /// Shows no secrets, no values of header fields, and nothing secret of the URL.
    HttpSettings as http_settings {
        headers: http_settings.headers.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        signing_secrets: http_settings.signing_secrets.len(),
        guarantee,
    }
}

impl HttpSettings {
    /// A destination with this URL and guarantee, and the defaults.
    ///
    /// The guarantee decides what happens after a failed call, so it has no default: with [`Guarantee::None`], a single 500
    /// parks the message.
    // Spec: H8.
    pub fn new(url: impl Into<String>, guarantee: Guarantee) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            signing_secrets: Vec::new(),
            trusted_roots: None,
            allow_link_local: Vec::new(),
            connect_timeout: Duration::from_secs(3),
            response_timeout: Duration::from_secs(10),
            total_timeout: Duration::from_secs(15),
            max_response_bytes: 1 << 20,
            guarantee,
            settle_grace: Duration::from_mins(1),
            echoes_key: false,
            key_pointer: "/idempotency_key".to_owned(),
            receipt_pointer: None,
            rules: Vec::new(),
            reconcile: None,
        }
    }

    /// Builds the destination, or returns all errors.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ichido::destination::http::{DeliveryRule, HttpSettings, ResponseMeaning};
    /// use ichido_core::retry::Guarantee;
    ///
    /// let keyed = Guarantee::Keyed { keeps_for: Duration::from_hours(24) };
    /// let broker = HttpSettings {
    ///     echoes_key: true,
    ///     receipt_pointer: Some("/broker_order_id".to_owned()),
    ///     rules: vec![DeliveryRule {
    ///         status: "409".to_owned(),
    ///         at: Some(("/error".to_owned(), "already_processed".to_owned())),
    ///         means: ResponseMeaning::Processed,
    ///     }],
    ///     ..HttpSettings::new("http://broker.internal:8080/orders", keyed)
    /// };
    /// assert!(broker.resolve().is_ok());
    ///
    /// let wrong = HttpSettings { key_pointer: "key".to_owned(), ..HttpSettings::new("broker.internal", keyed) };
    /// let problems = wrong.resolve().expect_err("two of them");
    /// assert_eq!(problems.0.len(), 2);
    /// ```
    pub fn resolve(&self) -> Result<Http, ConfigErrors> {
        self.resolved()
    }
}
