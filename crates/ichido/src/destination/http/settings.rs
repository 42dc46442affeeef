//! What an HTTP destination is told, and all that can be wrong with it.
//!
//! Guarantee: an [`Http`](super::Http) is only made of settings that make sense; where they do not, every problem is said at once,
//! with its place and how to mend it, and without a character of a secret.

mod resolve;

use std::time::Duration;

use ichido_core::retry::Guarantee;

use ichido_core::settings::Faults;

use super::{Found, Http, Meaning};

/// The most signing secrets: the old one and the new one, while receivers change over.
pub const SECRETS_MAX: usize = 2;
/// The most rules of a destination's own.
pub const RULES_MAX: usize = 64;
/// The most header fields of a destination's own.
pub const HEADERS_MAX: usize = 32;
/// The longest time that a call may be given.
pub const TIME_OUT_MAX: Duration = Duration::from_hours(1);
/// The largest answer that may be asked to be read.
pub const ANSWER_BYTES_MAX: usize = 16 << 20;

/// An HTTP destination as a person describes it. [`HttpSettings::new`] has the rest as it is mostly wanted.
#[derive(Clone)]
pub struct HttpSettings {
    /// Where messages are posted to.
    pub url: String,
    /// Header fields of its own, such as `Authorization`: name and value.
    pub headers: Vec<(String, String)>,
    /// Up to [`SECRETS_MAX`] secrets, `whsec_` and base64; each call is signed with all of them. None: not signed.
    pub signing_secrets: Vec<String>,
    /// The certificates in PEM that are believed in place of the system's.
    pub trusted_roots: Option<String>,
    /// Hosts, as the URLs write them, that may be at link-local addresses.
    pub allow_link_local: Vec<String>,
    /// The longest that it may take to connect: name, TCP and TLS. 3 s.
    pub connect_time_out: Duration,
    /// The longest from then until the answer begins. 10 s.
    pub answer_time_out: Duration,
    /// The longest for all of it, to the answer's last byte. 15 s.
    pub total_time_out: Duration,
    /// How much of an answer is read; one that is longer is judged by its status and header fields alone. 1 MiB.
    pub answer_bytes_max: usize,
    /// What the receiver promises about repetitions. Nothing.
    pub guarantee: Guarantee,
    /// How long a call may still be travelling after it was given up on. 1 minute.
    pub settles_within: Duration,
    /// Whether the receiver promises to carry the key back in its answers (SPEC D8). No.
    pub echoes_key: bool,
    /// Where an answer's JSON carries the key back, if it does; a header field `Idempotency-Key` counts as well.
    /// `/idempotency_key`.
    pub key_pointer: String,
    /// Where an answer's JSON has the receiver's own name for what it did, such as `/broker_order_id`.
    pub receipt_pointer: Option<String>,
    /// What its answers mean, where that is not what the table of HTTP says; the first that fits wins.
    pub rules: Vec<AnswerRule>,
    /// How it is asked what became of a call, if it can be.
    pub reconcile: Option<ReconcileSettings>,
}

/// What one kind of answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule<M> {
    /// A status, or two with a dash between them: `409`, `520-527`.
    pub status: String,
    /// A pointer into the answer's JSON, and the text of what must be there: `("/error", "already_processed")`.
    pub at: Option<(String, String)>,
    /// What it means then.
    pub means: M,
}

/// What one kind of answer to a message means.
pub type AnswerRule = Rule<Meaning>;

/// What one kind of answer to the question what became of a message means.
pub type FoundRule = Rule<Found>;

/// How a receiver is asked what became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcileSettings {
    /// Where to: `{key}` stands for the key, which is sent as the header field `Idempotency-Key` too. The header fields of the
    /// [settings](HttpSettings::headers) go there as well.
    pub url: String,
    /// What its answers mean, the first that fits. An answer that none fits leaves the effect unknown.
    pub rules: Vec<FoundRule>,
}

ichido_core::debug_only! {
    /// Neither secrets nor the values of header fields, and of the URL nothing that may be one.
    HttpSettings as http_settings {
        headers: http_settings.headers.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        signing_secrets: http_settings.signing_secrets.len(),
        guarantee,
    }
}

impl HttpSettings {
    /// A destination about which nothing is known but where it is.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            signing_secrets: Vec::new(),
            trusted_roots: None,
            allow_link_local: Vec::new(),
            connect_time_out: Duration::from_secs(3),
            answer_time_out: Duration::from_secs(10),
            total_time_out: Duration::from_secs(15),
            answer_bytes_max: 1 << 20,
            guarantee: Guarantee::Nothing,
            settles_within: Duration::from_mins(1),
            echoes_key: false,
            key_pointer: "/idempotency_key".to_owned(),
            receipt_pointer: None,
            rules: Vec::new(),
            reconcile: None,
        }
    }

    /// The destination, or everything that is wrong.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ichido::destination::http::{AnswerRule, HttpSettings, Meaning};
    /// use ichido_core::retry::Guarantee;
    ///
    /// let broker = HttpSettings {
    ///     guarantee: Guarantee::HonoursKeys { keeps_for: Duration::from_hours(24) },
    ///     echoes_key: true,
    ///     receipt_pointer: Some("/broker_order_id".to_owned()),
    ///     rules: vec![AnswerRule {
    ///         status: "409".to_owned(),
    ///         at: Some(("/error".to_owned(), "already_processed".to_owned())),
    ///         means: Meaning::Processed,
    ///     }],
    ///     ..HttpSettings::new("http://broker.internal:8080/orders")
    /// };
    /// assert!(broker.resolve().is_ok());
    ///
    /// let wrong = HttpSettings { key_pointer: "key".to_owned(), ..HttpSettings::new("broker.internal") };
    /// let problems = wrong.resolve().expect_err("two of them");
    /// assert_eq!(problems.0.len(), 2);
    /// ```
    pub fn resolve(&self) -> Result<Http, Faults> {
        self.resolved()
    }
}
