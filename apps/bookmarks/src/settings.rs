//! Settings of the service, and its limits.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ichido::retry::Retry;
use ichido_llm::models::Model;

use crate::alert_webhook::AlertWebhook;
use crate::fetch::guard::is_public;

/// The limits of the service.
pub mod limits {
    use std::time::Duration;

    /// Default and minimum for how long the response under a key is kept: devices hold back what they sent longer ago.
    // SPEC A2, A13.
    pub const KEEP_RESPONSES: Duration = Duration::from_hours(72);
    /// Default for how long a finished job is kept.
    pub const KEEP_FINISHED: Duration = Duration::from_hours(90 * 24);
    /// Minimum for the same.
    pub const MIN_KEEP_FINISHED: Duration = Duration::from_hours(1);
    /// How long a key stays blocked by a process that died with it. The claim is renewed meanwhile, so a short lease
    /// costs little.
    pub const KEY_LEASE: Duration = Duration::from_secs(5);
    /// How long a session lasts.
    pub const SESSION_FOR: Duration = Duration::from_hours(90 * 24);
    /// Maximum wrong tokens per minute, over all callers, that are simply refused; further callers have to wait.
    pub const MAX_WRONG_TOKENS_A_MINUTE: u32 = 30;
    /// Maximum length of a person's name, in bytes.
    pub const MAX_NAME_BYTES: usize = 64;
    /// Maximum number of names shown for an unknown one.
    pub const MAX_NAMES_SHOWN: usize = 20;
    /// How long removing a person waits for running jobs: longer than the lease of one.
    pub const REMOVE_WITHIN: Duration = Duration::from_mins(3);
    /// Maximum number of failed jobs that a retry requeues in one transaction, which blocks others.
    pub const MAX_RETRIED_AT_ONCE: u32 = 500;
    /// Maximum size of a request body.
    pub const MAX_BODY_BYTES: usize = 16 * 1024;
    /// Maximum size of a file to import.
    pub const MAX_IMPORT_BYTES: usize = 16 << 20;
    /// Maximum number of links in it.
    pub const MAX_IMPORTED_LINKS: usize = 50_000;
    /// How many links are imported in one transaction, which blocks other saves on SQLite.
    pub const IMPORTED_AT_ONCE: usize = 200;
    /// Timeout for an import. Sent again, it continues with the rest.
    pub const IMPORT_WAIT: Duration = Duration::from_mins(10);
    /// How many bookmarks are exported in one query.
    pub const EXPORTED_AT_ONCE: u32 = 500;
    /// Maximum length of a URL, before and after canonicalization.
    pub const MAX_URL_BYTES: usize = 2_048;
    /// Maximum length of a search query, in characters.
    pub const MAX_SEARCH_CHARS: usize = 200;
    /// Maximum number of bookmarks on one page of the list.
    pub const MAX_PAGE: u32 = 100;
    /// Default number of bookmarks on a page.
    pub const PAGE_DEFAULT: u32 = 50;
    /// Maximum number of clients; more wait for a moment and are then refused.
    pub const MAX_CLIENTS: usize = 256;
    /// Timeout for a request's head, and for an idle connection.
    pub const HEAD_WAIT: Duration = Duration::from_secs(15);
    /// Timeout for a whole request.
    pub const REQUEST_WAIT: Duration = Duration::from_secs(30);
    /// How long requests in flight may continue after a stop.
    pub const DRAIN_WITHIN: Duration = Duration::from_secs(20);
    /// Timeout of the store's readiness check.
    pub const READY_WITHIN: Duration = Duration::from_secs(3);

    /// How much of a page is read, in bytes, as sent and inflated.
    pub const MAX_PAGE_BYTES: usize = 2 << 20;
    /// Maximum size of a site's icon, in bytes; a larger one is not shown.
    pub const MAX_ICON_BYTES: usize = 64 << 10;
    /// Maximum timeout for an icon.
    pub const ICON_WITHIN: Duration = Duration::from_secs(5);
    /// How long a host without an icon is not asked for one again.
    pub const NO_ICON_FOR: Duration = Duration::from_hours(24);
    /// How many of a person's newest jobs can delay the next one.
    pub const MAX_TURNS: u8 = 120;
    /// How many imported links of a file have the same turn.
    pub const IMPORTS_PER_TURN: usize = 40;
    /// Maximum number of redirects followed.
    pub const MAX_REDIRECTS: usize = 5;
    /// Default timeout for a page.
    pub const PAGE_WITHIN: Duration = Duration::from_secs(20);
    /// Maximum `Retry-After` of a page; a longer one counts as this.
    pub const MAX_PAGE_RETRY_AFTER: Duration = Duration::from_hours(1);
    /// Maximum length of a stored title, in characters.
    pub const MAX_TITLE_CHARS: usize = 300;
    /// Maximum length of a page's text that is stored and summarised, in characters.
    pub const MAX_TEXT_CHARS: usize = 20_000;
    /// Maximum number of words of a page's text that are indexed. PostgreSQL counts positions up to 16,383, and the
    /// other fields come first.
    pub const MAX_TEXT_WORDS: usize = 12_000;
    /// Maximum length of an indexed word, in characters; the rest does not count.
    pub const MAX_WORD_CHARS: usize = 64;
    /// Maximum number of tags of a bookmark.
    pub const MAX_TAGS: usize = 20;
    /// Maximum length of a tag, in characters.
    pub const MAX_TAG_CHARS: usize = 40;
    /// Maximum length of a summary, in characters.
    pub const MAX_SUMMARY_CHARS: usize = 400;
    /// Default maximum number of tokens of a model's summary. It needs about 200; the rest is for models that reason
    /// first, because their reasoning counts as well.
    pub const SUMMARY_TOKENS: u32 = ichido_llm::articles::DEFAULT_OUTPUT_TOKENS;
    /// How many pages are read, and how many summaries requested, in parallel.
    pub const PARALLEL: u32 = 16;
}

/// Settings of the service; [`Settings::new`] sets defaults.
#[derive(Clone)]
pub struct Settings {
    /// The store: `sqlite:FILE` or `postgres://…`.
    pub store: String,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The public origin, such as `https://bookmarks.example`, if it is not the listen address.
    pub public_origin: Option<String>,
    /// How often a job is attempted, and the backoff between attempts.
    // SPEC A10.
    pub retry: Retry,
    /// How long the response under a key is kept.
    // SPEC A2.
    pub keep_responses: Duration,
    /// How long a finished job is kept. A dead letter is kept until somebody retries its bookmark or deletes it.
    pub keep_finished: Duration,
    /// Where alerts are sent; `None` only records them.
    // SPEC A15.
    pub alert_webhook: Option<AlertWebhook>,
    /// Which addresses pages may be fetched from.
    pub may_reach: fn(IpAddr) -> bool,
    /// Timeout for a page.
    pub page_within: Duration,
    /// The model that summarises; `None` uses the built-in extract.
    pub model: Option<Arc<dyn Model>>,
    /// Maximum number of tokens of its summary. One that does not fit is asked for once more with twice as many.
    pub summary_tokens: u32,
}

impl Settings {
    /// Creates settings for a store, with defaults.
    pub fn new(store: impl Into<String>, listen: SocketAddr) -> Self {
        Self {
            store: store.into(),
            listen,
            public_origin: None,
            retry: Retry::JOB,
            keep_responses: limits::KEEP_RESPONSES,
            keep_finished: limits::KEEP_FINISHED,
            alert_webhook: None,
            may_reach: is_public,
            page_within: limits::PAGE_WITHIN,
            model: None,
            summary_tokens: limits::SUMMARY_TOKENS,
        }
    }

    /// Returns whether browsers use TLS, so the cookie is only sent over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.public_origin.as_deref().is_some_and(|origin| origin.starts_with("https://"))
    }
}
