//! How much the server accepts, and how long it waits. The operator's settings are in [`RequestLimits`], those of every listening
//! server in [`ichido_http::server::bounds`].

use std::time::Duration;

use ichido_store::message::limits::MAX_REQUEST_BYTES;

/// The limits that an operator sets under `[serve]`.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "each is a maximum, named as in the file")]
pub(crate) struct RequestLimits {
    /// Maximum header fields of one request; more get 431.
    pub(crate) max_headers: usize,
    /// Maximum bytes of a request's target and header fields together; more get 431.
    pub(crate) max_head_bytes: usize,
    /// Maximum body of a message.
    pub(crate) max_body_bytes: usize,
    /// Maximum lines of a batch.
    pub(crate) max_batch_lines: usize,
    /// Maximum bytes of a batch.
    pub(crate) max_batch_bytes: usize,
    /// Maximum requests that wait for the outcome of their message.
    pub(crate) max_waiters: usize,
    /// Maximum listeners to the event feed at once.
    pub(crate) max_listeners: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            max_headers: 64,
            max_head_bytes: 16 << 10,
            max_body_bytes: MAX_BODY_BYTES,
            max_batch_lines: 10_000,
            max_batch_bytes: 64 << 20,
            max_waiters: 512,
            max_listeners: 64,
        }
    }
}

/// Lower bound of the setting for a request's head. A key and the fields that browsers and proxies add must fit.
pub(crate) const MIN_HEAD_BYTES: usize = 1 << 10;
pub(crate) const MIN_HEADERS: u32 = 8;
/// Upper bound of the setting for a body: the store accepts nothing larger.
pub(crate) const MAX_BODY_BYTES: usize = MAX_REQUEST_BYTES;
/// Upper bounds of the settings for a batch. Its results stay in memory until it ends.
pub(crate) const MAX_BATCH_LINES: u32 = 1_000_000;
pub(crate) const MAX_BATCH_BYTES: usize = 1 << 30;
/// Upper bound of the setting for the feed: unread events take memory.
pub(crate) const MAX_LISTENERS: u32 = 10_000;
/// Maximum length of a field value to search for.
pub(crate) const MAX_FIELD_BYTES: usize = 16 << 10;
/// Maximum body that is parsed inline; a larger one is parsed on a blocking thread.
pub(crate) const MAX_INLINE_BYTES: usize = 64 * 1024;
/// Maximum bodies that are parsed there at once, and maximum per token. Parsing a small text may take much memory.
pub(crate) const MAX_LARGE_PARSES: usize = 4;
pub(crate) const MAX_LARGE_PARSES_PER_TOKEN: usize = 2;
/// Maximum bytes of a body that are handed to a connection at once.
pub(crate) const MAX_PIECE_BYTES: usize = 64 * 1024;
/// Maximum time that a request may wait for the outcome of its message.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(30);
/// Maximum time from now to the first attempt of a message: a year. Anything longer is a typing error.
pub(crate) const MAX_DELAY: Duration = Duration::from_hours(366 * 24);
/// At most one in this many concurrent requests may wait, whatever the setting. Others get a response at once, so there is always
/// room for new requests.
pub(crate) const WAITERS_SHARE: usize = 2;
/// How often waiting requests are checked, all with one statement.
pub(crate) const WAIT_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The same after the store failed.
pub(crate) const WAIT_POLL_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum length of a line in a batch. It has a message in base64, its key, and some room.
pub(crate) const MAX_LINE_BYTES: usize = MAX_REQUEST_BYTES / 3 * 4 + 16 * 1024;
/// Maximum batches at once: each holds a chunk and its results in memory.
pub(crate) const MAX_BATCHES: usize = 16;
/// Maximum batches at once per token.
pub(crate) const MAX_BATCHES_PER_TOKEN: usize = 4;
/// Maximum lines of a batch that are enqueued together.
pub(crate) const MAX_CHUNK_LINES: usize = 500;
/// Maximum bytes of a batch that are enqueued together, less one line.
pub(crate) const MAX_CHUNK_BYTES: usize = 4 << 20;
/// How often the queues with limits are counted, and the time limit for it. One statement counts all of them.
pub(crate) const COUNTS_INTERVAL: Duration = Duration::from_secs(1);
/// Time limit for the store's readiness check.
pub(crate) const READY_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a server waits for its own worker to start before it serves requests.
pub(crate) const WORKER_START_TIMEOUT: Duration = Duration::from_secs(5);
/// How old the token list may be before it is read again. A revoked token is refused after this time and one read; the event feed
/// rechecks its listeners.
pub(crate) const TOKENS_FRESH: Duration = Duration::from_secs(2);
/// Time limit for reading the list, and how long to wait after a failed read. Requests do not queue up behind a store that does
/// not respond.
pub(crate) const TOKENS_READ_TIMEOUT: Duration = Duration::from_secs(5);
pub(crate) const TOKENS_RETRY_AFTER: Duration = Duration::from_secs(1);
/// How old the list may be while the store is unreachable. This bounds how long a revoked token stays valid.
pub(crate) const TOKENS_STALE: Duration = Duration::from_secs(10);
/// Maximum messages on one page of a listing.
pub(crate) const MAX_LIST: u32 = 200;
/// How many messages a listing reads at once. Their requests are read too, so this bounds its memory.
pub(crate) const LIST_PART: u32 = 32;
/// Maximum messages, less one part, that one request scans for a field.
pub(crate) const MAX_LIST_SCANNED: u32 = 1_000;
/// Maximum listings at once by viewers, operators and admins, and maximum per token; more wait.
pub(crate) const MAX_LISTINGS: usize = 4;
pub(crate) const MAX_LISTINGS_PER_TOKEN: usize = 3;
/// The same for producers, who never delay the others.
pub(crate) const MAX_PRODUCER_LISTINGS: usize = 2;
pub(crate) const MAX_PRODUCER_LISTINGS_PER_TOKEN: usize = 1;
/// Maximum JSON body of an operator's request.
pub(crate) const MAX_JSON_BODY_BYTES: usize = 32 * 1024;
/// Maximum bulk operations that run at once.
pub(crate) const MAX_OPERATIONS: usize = 4;
/// How many finished bulk operations keep their result in memory.
pub(crate) const OPERATIONS_REMEMBERED: usize = 50;
/// How long they may take to end when the server stops. Each has at most one batch in flight.
pub(crate) const OPERATIONS_STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum records of unknown outcome on one page.
pub(crate) const MAX_UNKNOWN: u32 = 100;
/// Maximum requests and messages that a look-up by key returns.
pub(crate) const MAX_KEYS_FOUND: u32 = 100;
/// Maximum recorded events of a message, the newest ones, that its current state and the history of its key are read from.
pub(crate) const MAX_NEWEST_EVENTS: u32 = 100;
/// Maximum incidents on one page.
pub(crate) const MAX_ALERTS: u32 = 200;
/// Maximum body of a stored response that is shown.
pub(crate) const MAX_RECORD_BODY_BYTES: usize = 1 << 20;
/// Maximum listeners to the feed per token.
pub(crate) const MAX_FEED_LISTENERS_PER_TOKEN: usize = 16;
/// Maximum messages that one listener watches.
pub(crate) const MAX_FEED_MESSAGES: usize = 20;
/// How often one task polls for all listeners.
pub(crate) const FEED_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How many watched messages are read in full at each poll. They take turns, even if they seem unchanged.
pub(crate) const FEED_FULL_READS: usize = 10;
/// How many of the last actions are checked for new ones.
pub(crate) const MAX_FEED_ACTIONS: u32 = 200;
/// How many pieces, at most one per poll, are buffered for a slow listener.
pub(crate) const MAX_FEED_BUFFERED: usize = 16;
/// How long a listener with a full buffer has before it is cut off.
pub(crate) const MAX_FEED_SLOW: Duration = Duration::from_secs(30);
/// How long a poll may take before listeners learn that the store does not respond. With the poll's interval, they learn it within
/// three seconds.
pub(crate) const FEED_STORE_AWAY_AFTER: Duration = Duration::from_millis(1500);
/// Maximum silence on a stream.
pub(crate) const FEED_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// How long a stream lasts before the client must reconnect.
pub(crate) const FEED_STREAM_LIFETIME: Duration = Duration::from_mins(10);

/// How many lines of a batch are read before the task yields.
pub(super) const LINES_PER_YIELD: usize = 32;
