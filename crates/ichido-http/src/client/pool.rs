//! Connections that are kept for the next request.
//!
//! Guarantee: at most [`MAX_IDLE`] are kept, none is used after [`IDLE_TIMEOUT`], and none that is known to be closed.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use http_body::Body;
use ichido_core::sync::lock;
use tokio::time::Instant;

use super::connect::ClientConnection;

/// The most idle connections.
const MAX_IDLE: usize = 64;
/// How long an idle connection is kept. Most servers keep theirs for longer, so we are the ones who close it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// Idle connections, the one used last at the end.
pub(super) struct Pool<B>(Mutex<Vec<IdleConnection<B>>>);

struct IdleConnection<B> {
    connection: ClientConnection<B>,
    since: Instant,
}

impl<B> Default for Pool<B> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<B: Body + 'static> Pool<B> {
    /// A connection that takes a request, if there is one.
    pub(super) async fn take(&self) -> Option<ClientConnection<B>> {
        loop {
            let mut connection = self.usable().pop()?.connection;
            // The server may have closed it a moment ago; nothing is written to find out.
            if connection.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose response was read to its end.
    pub(super) fn put(&self, connection: ClientConnection<B>) {
        let mut idle = self.usable();
        if idle.len() < MAX_IDLE {
            idle.push(IdleConnection { connection, since: Instant::now() });
        }
    }

    fn usable(&self) -> MutexGuard<'_, Vec<IdleConnection<B>>> {
        // A panic while it is locked leaves a whole list: each change of it is one call.
        let mut idle = lock(&self.0);
        idle.retain(|idle| idle.since.elapsed() < IDLE_TIMEOUT && !idle.connection.is_closed());
        idle
    }
}
