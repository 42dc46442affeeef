//! What the probe tests, and how it may act on it.

use ichido_core::ledger::Profile;
use ichido_http::signature::Secret;
use ichido_http::url::{Host, HttpUrl};

/// One operation of an API.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where the API is.
    pub url: HttpUrl,
    /// Whether it is known to speak HTTP/2. An `https` URL need not say so: it is negotiated.
    pub is_http2: bool,
    /// The convention that it is expected to follow.
    pub profile: Profile,
    /// The method.
    pub method: String,
    /// Path and query. `{marker}` is replaced by a text of each rule's own, and `{unique}` by one of each key's own.
    pub path: String,
    /// The header lines of each request, with the same texts.
    pub headers: Vec<(String, String)>,
    /// The body, with the same texts.
    pub body: String,
    /// The pointer to the member that makes another request of it; the probe chooses one if it is missing.
    pub vary: Option<String>,
    /// How effects are counted.
    pub counter: Option<Counter>,
    /// A header line of another caller.
    pub second_identity: Option<(String, String)>,
    /// A header line of the same caller with another credential.
    pub fresh_credential: Option<(String, String)>,
    /// Another operation, method and path, that takes the same body.
    pub other_operation: Option<(String, String)>,
    /// Header lines that make a test build of the target behave in a certain way.
    pub provoke: Vec<(Condition, (String, String))>,
    /// Commands that act on the target.
    pub commands: Vec<(Command, String)>,
    /// The consumer's secret, if the target is a webhook's consumer.
    pub webhook: Option<WebhookTarget>,
}

impl Target {
    /// Returns the scheme, host and port.
    pub fn origin(&self) -> String {
        format!("{}://{}", if self.url.is_tls { "https" } else { "http" }, self.url.authority)
    }

    /// Returns whether the target is on this machine, as its URL says.
    pub fn is_local(&self) -> bool {
        match &self.url.host {
            Host::Address(address) => address.is_loopback(),
            Host::Name(name) => name == "localhost",
        }
    }
}

/// A consumer of webhooks.
#[derive(Clone, Debug)]
pub struct WebhookTarget {
    /// The secret that it shares with the sender.
    pub secret: Secret,
}

/// Headers that the probe sets or leaves out itself, so a target's own are not sent. Compressed responses are not read.
pub const OWN_HEADERS: [&str; 6] =
    ["idempotency-key", "host", "content-length", "connection", "transfer-encoding", "accept-encoding"];

/// What stands for each rule's own text.
pub(crate) const MARKER: &str = "{marker}";

/// What stands for a text of each key's own, for an API that deduplicates by content as well.
pub(crate) const UNIQUE: &str = "{unique}";

/// How effects are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counter {
    /// A GET request, and the JSON pointer to a number or to a list in its response.
    Get {
        /// Path and query.
        path: String,
        /// The pointer; empty for the whole response.
        pointer: String,
    },
    /// A command that prints the number. `PROBE_MARKER` in its environment is the rule's text.
    Command(String),
}

ichido_core::words! {
    /// A behaviour of the target that a header line provokes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Condition {
        /// The request is in flight for a second or more.
        Slow = "slow",
        /// The request fails with a 5xx after its effect.
        Fail = "fail",
        /// The request is refused with 429 before anything is done.
        Limit = "limit",
        /// The request is in flight for longer than its claim's lease.
        Outlast = "outlast",
        /// The response is larger than the target stores.
        Large = "large",
    }
}

ichido_core::words! {
    /// What a command does to the target.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Command {
        /// Kills it and starts it again.
        Crash = "crash",
        /// Makes all stored keys expire.
        Expire = "expire",
        /// Stops the store of keys.
        Outage = "outage",
        /// Starts the store of keys again.
        Recover = "recover",
    }
}
