//! Idle connections for the next request.
//!
//! Guarantee: the pool keeps at most [`MAX_IDLE`] connections, and returns none that is older than [`IDLE_TIMEOUT`]
//! or known to be closed.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use http_body::Body;
use ichido_core::sync::lock;
use tokio::time::Instant;

use super::connect::ClientConnection;

/// The maximum number of idle connections.
const MAX_IDLE: usize = 64;
/// How long an idle connection is kept. Most servers keep theirs longer, so the client closes it first.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// Idle connections; the most recently used one is last.
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
    /// Takes a connection that is ready for a request, if there is one.
    pub(super) async fn take(&self) -> Option<ClientConnection<B>> {
        loop {
            let mut connection = self.usable().pop()?.connection;
            // The server may have just closed it; nothing is written to find out.
            if connection.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    /// Returns a connection whose response was read completely.
    pub(super) fn put(&self, connection: ClientConnection<B>) {
        let mut idle = self.usable();
        if idle.len() < MAX_IDLE {
            idle.push(IdleConnection { connection, since: Instant::now() });
        }
    }

    fn usable(&self) -> MutexGuard<'_, Vec<IdleConnection<B>>> {
        // A panic under the lock leaves the list intact: each change is one call.
        let mut idle = lock(&self.0);
        idle.retain(|idle| idle.since.elapsed() < IDLE_TIMEOUT && !idle.connection.is_closed());
        idle
    }
}
