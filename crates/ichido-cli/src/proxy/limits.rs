//! How much a proxy asks of its upstream, and for how long. What it takes in is bounded by [`crate::listen::limits`].

use std::time::Duration;

/// The most header fields of an answer. More than requests may have: an answer that is refused was still given.
pub(crate) const ANSWER_HEADERS_MAX: usize = 256;
/// The largest request body that is kept to be sent again; a larger one is streamed and sent once.
pub(crate) const RETRY_BODY_BYTES_MAX: usize = 1024 * 1024;
/// The most idle connections to the upstream.
pub(crate) const UPSTREAM_IDLE_MAX: usize = 64;
/// How long an idle connection to the upstream is kept. Shorter than most servers keep theirs, so that we are the
/// ones who close it.
pub(crate) const UPSTREAM_IDLE: Duration = Duration::from_secs(20);
/// How often a request is put on another connection because the one it was given had closed unused.
pub(crate) const UNUSED_CONNECTIONS_MAX: u32 = 3;
