//! How much the server takes in, and how long it waits. What an operator may choose is [`RequestLimits`], and what every server that listens
//! has to choose is in [`ichido_http::server::bounds`].

use std::time::Duration;

use ichido_store::message::limits::REQUEST_BYTES_MAX;

/// What an operator may choose, under `[serve]`.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "each is the most of something, and is called as in the file")]
pub(crate) struct RequestLimits {
    /// The most header fields of one request; one more is answered 431.
    pub(crate) headers_max: usize,
    /// The most bytes of a request's target and header fields together; one more is answered 431.
    pub(crate) head_bytes_max: usize,
    /// The largest body of a message.
    pub(crate) body_bytes_max: usize,
    /// The most lines of a batch.
    pub(crate) batch_lines_max: usize,
    /// The most bytes of a batch.
    pub(crate) batch_bytes_max: usize,
    /// The most requests that may wait for their message to end.
    pub(crate) waiters_max: usize,
    /// The most who listen to the feed of events at once.
    pub(crate) listeners_max: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            headers_max: 64,
            head_bytes_max: 16 << 10,
            body_bytes_max: MAX_BODY_BYTES,
            batch_lines_max: 10_000,
            batch_bytes_max: 64 << 20,
            waiters_max: 512,
            listeners_max: 64,
        }
    }
}

/// The least that may be chosen for a head: what a browser or a proxy adds must have room beside a key.
pub(crate) const MIN_HEAD_BYTES: usize = 1 << 10;
pub(crate) const MIN_HEADERS: u32 = 8;
/// The most that may be chosen for a body: the store takes no larger one.
pub(crate) const MAX_BODY_BYTES: usize = REQUEST_BYTES_MAX;
/// The most that may be chosen for a batch, of which the results are kept in memory until it ends.
pub(crate) const MAX_BATCH_LINES: u32 = 1_000_000;
pub(crate) const MAX_BATCH_BYTES: usize = 1 << 30;
/// The most that may be chosen for the feed: what one listener has not read takes memory.
pub(crate) const MAX_LISTENERS: u32 = 10_000;
/// The longest value of a field that is looked for.
pub(crate) const FIELD_BYTES_MAX: usize = 16 << 10;
/// The largest body that is understood where it is read; what is larger is handed to a thread that may take its time.
pub(crate) const INLINE_BYTES_MAX: usize = 64 * 1024;
/// The most of them that are looked at there at once, and the most with one token: a small text may need much memory while it is.
pub(crate) const LARGE_PARSES_MAX: usize = 4;
pub(crate) const LARGE_PARSES_PER_TOKEN_MAX: usize = 2;
/// The largest piece of a body that is handed to a connection at once.
pub(crate) const PIECE_BYTES_MAX: usize = 64 * 1024;
/// The longest that a request may wait for its message to end.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(30);
/// One of so many requests at once may wait, whatever was chosen; more are told at once that theirs has not ended yet. So there is
/// always room for others.
pub(crate) const WAITERS_SHARE: usize = 2;
/// How often those who wait are looked after, all by one statement.
pub(crate) const WAIT_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The same when the store did not answer.
pub(crate) const WAIT_POLL_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The longest line of a batch: a message in base64, its key, and a little more.
pub(crate) const LINE_BYTES_MAX: usize = REQUEST_BYTES_MAX / 3 * 4 + 16 * 1024;
/// The most batches at once: each holds a chunk and its results in memory.
pub(crate) const BATCHES_MAX: usize = 16;
/// The most of them with one token.
pub(crate) const BATCHES_PER_TOKEN_MAX: usize = 4;
/// The most lines of a batch that are put in together.
pub(crate) const CHUNK_LINES_MAX: usize = 500;
/// The most bytes of a batch that are put in together, less one line.
pub(crate) const CHUNK_BYTES_MAX: usize = 4 << 20;
/// How often the queues that have bounds are counted, all by one statement, and how long that may take.
pub(crate) const COUNTS_INTERVAL: Duration = Duration::from_secs(1);
/// How long the store may take to show that it is there.
pub(crate) const READY_TIMEOUT: Duration = Duration::from_secs(2);
/// For how long a node counts as alive after it was last heard of: it says so every ten seconds.
pub(crate) const NODE_ALIVE_WITHIN: Duration = ichido_store::facts::ALIVE_WITHIN;
/// How long a server waits for its own worker to start before it answers.
pub(crate) const WORKER_START_TIMEOUT: Duration = Duration::from_secs(5);
/// How old the list of tokens may be before it is read again. A token that was revoked lets nobody in after this and one look, and the
/// feed of events looks at each of its own.
pub(crate) const TOKENS_FRESH: Duration = Duration::from_secs(2);
/// How long reading the list may take, and for how long it is not tried again once it could not be read: nobody waits in line for a
/// store that does not answer.
pub(crate) const TOKENS_READ_TIMEOUT: Duration = Duration::from_secs(5);
pub(crate) const TOKENS_RETRY_AFTER: Duration = Duration::from_secs(1);
/// How old it may be when the store cannot be asked: the bound on how long a revoked token can be good for.
pub(crate) const TOKENS_STALE: Duration = Duration::from_secs(10);
/// The most messages of one page of a listing.
pub(crate) const LIST_MAX: u32 = 200;
/// How many messages a listing reads at once: their requests come with them, so that this bounds its memory.
pub(crate) const LIST_PART: u32 = 32;
/// The most messages that one request looks at, less one part, when it looks for a field.
pub(crate) const LIST_SCANNED_MAX: u32 = 2_000;
/// The most listings at once of those who may look at everything, and the most with one token; more wait for their turn.
pub(crate) const LISTINGS_MAX: usize = 4;
pub(crate) const LISTINGS_PER_TOKEN_MAX: usize = 3;
/// The same of producers, who keep nobody else waiting.
pub(crate) const PRODUCER_LISTINGS_MAX: usize = 2;
pub(crate) const PRODUCER_LISTINGS_PER_TOKEN_MAX: usize = 1;
/// The longest body that says how something is to be done.
pub(crate) const JSON_BODY_BYTES_MAX: usize = 32 * 1024;
/// The most operations on many messages that run at once.
pub(crate) const OPERATIONS_MAX: usize = 4;
/// Of how many that have ended it is remembered what they came to.
pub(crate) const OPERATIONS_REMEMBERED: usize = 50;
/// How long they may take to end when the server stops: each has at most a batch under way.
pub(crate) const OPERATIONS_STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The most records of unknown outcome on one page.
pub(crate) const UNKNOWN_MAX: u32 = 100;
/// The most incidents of alerts on one page.
pub(crate) const ALERTS_MAX: u32 = 200;
/// The longest body of a kept response that is shown.
pub(crate) const RECORD_BODY_BYTES_MAX: usize = 1 << 20;
/// The most who listen to the feed with one token.
pub(crate) const FEED_LISTENERS_PER_TOKEN_MAX: usize = 16;
/// The most messages that one listener of the feed watches.
pub(crate) const FEED_MESSAGES_MAX: usize = 20;
/// How often one task looks for all listeners.
pub(crate) const FEED_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How many of the watched messages are looked at whole at each look, in turn, whether they seem to have moved or not.
pub(crate) const FEED_FULL_READS: usize = 10;
/// How many of the last actions are looked at for new ones.
pub(crate) const FEED_ACTIONS_MAX: u32 = 200;
/// How many pieces, one a look at most, wait for one that does not read.
pub(crate) const FEED_BUFFERED_MAX: usize = 16;
/// How long it may then not read before it is cut off.
pub(crate) const FEED_SLOW_MAX: Duration = Duration::from_secs(30);
/// How long there may be silence.
pub(crate) const FEED_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// How long one may listen before it must ask again.
pub(crate) const FEED_STREAM_LIFETIME: Duration = Duration::from_mins(10);

/// How many lines of a batch are read before others get their turn.
pub(super) const LINES_PER_YIELD: usize = 32;
