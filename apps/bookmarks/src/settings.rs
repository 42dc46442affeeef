//! What somebody decides about this service, and its bounds.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ichido_core::retry::Retry;
use ichido_llm::models::Model;

use crate::fetch::guard::is_public;

/// The bounds of this service.
pub mod limits {
    use std::time::Duration;

    /// How long the answer under a key is kept (SPEC A2).
    pub const KEYS_KEPT_FOR: Duration = Duration::from_hours(72);
    /// How long a key stays blocked by a process that died with it. The claim is renewed all the while, so that a short one costs little.
    pub const KEY_LEASE: Duration = Duration::from_secs(5);
    /// How long a second save of the same URL is the first bookmark, unless it is set otherwise (SPEC A7).
    pub const SAME_URL_FOR: Duration = Duration::from_hours(72);
    /// How long somebody stays signed in.
    pub const SESSION_FOR: Duration = Duration::from_hours(90 * 24);
    /// The most sign-ins with a wrong token in a minute, of all together, that are just refused; more are told to wait.
    pub const WRONG_TOKENS_A_MINUTE_MAX: u32 = 30;
    /// The longest name of a person, in bytes.
    pub const NAME_BYTES_MAX: usize = 64;
    /// How many names are shown to who asks for one that there is not.
    pub const NAMES_SHOWN_MAX: usize = 20;
    /// How long is waited, when somebody is removed, for their jobs that are under way: longer than a claim on one holds.
    pub const REMOVE_WITHIN: Duration = Duration::from_mins(3);
    /// The most failed jobs that an operator's retry puts back in one transaction, which others wait for.
    pub const RETRIED_AT_ONCE_MAX: u32 = 500;
    /// The largest request body.
    pub const BODY_BYTES_MAX: usize = 16 * 1024;
    /// The longest URL, before and after it is brought into canonical form.
    pub const URL_BYTES_MAX: usize = 2_048;
    /// The longest hint, in characters, where a link was found.
    pub const HINT_CHARS_MAX: usize = 200;
    /// The longest query of a search, in characters.
    pub const SEARCH_CHARS_MAX: usize = 200;
    /// The most bookmarks of one page of the list.
    pub const PAGE_MAX: u32 = 100;
    /// How many there are where nothing is said.
    pub const PAGE_DEFAULT: u32 = 50;
    /// The most connections to PostgreSQL of the app itself, and the most readers of a file.
    pub const CONNECTIONS_MAX: u32 = 8;
    /// The most clients at once; more wait for a moment, and are then refused.
    pub const CLIENTS_MAX: usize = 256;
    /// How long a request's head may take to come, and a connection be idle.
    pub const HEAD_WAIT: Duration = Duration::from_secs(15);
    /// How long a request may take in all.
    pub const REQUEST_WAIT: Duration = Duration::from_secs(30);
    /// How long what is in flight may go on after a stop.
    pub const DRAIN_WITHIN: Duration = Duration::from_secs(20);
    /// How long the store may take to say that it is there.
    pub const READY_WITHIN: Duration = Duration::from_secs(3);

    /// The most bytes of a page that are read; a longer one is refused.
    pub const PAGE_BYTES_MAX: usize = 2 << 20;
    /// How many redirects are followed.
    pub const REDIRECTS_MAX: usize = 5;
    /// How long a page may take in all, unless it is set otherwise.
    pub const PAGE_WITHIN: Duration = Duration::from_secs(20);
    /// The longest `Retry-After` of a page that is heeded; a longer one is taken as this.
    pub const PAGE_RETRY_AFTER_MAX: Duration = Duration::from_hours(1);
    /// The longest title that is kept, in characters.
    pub const TITLE_CHARS_MAX: usize = 300;
    /// The longest text of a page that is kept and summarised, in characters.
    pub const TEXT_CHARS_MAX: usize = 20_000;
    /// The longest summary, in characters.
    pub const SUMMARY_CHARS_MAX: usize = 400;
    /// The most tokens of a model's summary.
    pub const SUMMARY_TOKENS_MAX: u32 = 400;
    /// How many pages are read at once, and how many summaries asked for.
    pub const PARALLEL: u32 = 16;
}

/// What somebody decides. [`Settings::new`] has the rest as it is mostly wanted.
#[derive(Clone)]
pub struct Settings {
    /// Where everything is kept: `sqlite:FILE` or `postgres://…`.
    pub store: String,
    /// Where it listens.
    pub listen: SocketAddr,
    /// The origin under which people reach it, such as `https://bookmarks.example`, where that is not where it listens.
    pub public_origin: Option<String>,
    /// How long a second save of the same URL is the first bookmark (SPEC A7).
    pub same_url_for: Duration,
    /// How often a job is tried, and how long is waited in between (SPEC A10).
    pub retry: Retry,
    /// Which addresses pages may be fetched from.
    pub may_reach: fn(IpAddr) -> bool,
    /// How long a page may take in all.
    pub page_within: Duration,
    /// Who summarises; nobody is the built-in extract.
    pub model: Option<Arc<dyn Model>>,
}

impl Settings {
    /// A service on a store, of which nothing else is said.
    pub fn new(store: impl Into<String>, listen: SocketAddr) -> Self {
        Self {
            store: store.into(),
            listen,
            public_origin: None,
            same_url_for: limits::SAME_URL_FOR,
            retry: Retry::JOB,
            may_reach: is_public,
            page_within: limits::PAGE_WITHIN,
            model: None,
        }
    }

    /// Whether browsers reach it by TLS, so that its cookie goes no other way.
    pub(crate) fn is_secure(&self) -> bool {
        self.public_origin.as_deref().is_some_and(|origin| origin.starts_with("https://"))
    }
}
