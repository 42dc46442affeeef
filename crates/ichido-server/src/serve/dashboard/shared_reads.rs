//! Reads of the API that open pages share: many viewers of the same page cost the store what one costs.
//!
//! Guarantee: a response is shared only among callers of the same role, who see the same, and for at most [`FRESH`]. While one page reads,
//! the others wait for it. Only a page that refreshes itself takes a shared response: what a person opens is read anew. After a change by
//! a person here nothing is shared that was read before it. Large responses are not kept, and at most [`MAX_SHARED`] are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use ichido_core::sync::lock;
use ichido_store::token::TokenRole;
use tokio::task_local;

use super::cached::Cached;

/// How old a shared response may be. A page waits longer after an event, so it sees what the event is about.
pub(super) const FRESH: Duration = Duration::from_millis(500);
/// Maximum responses that are kept.
const MAX_SHARED: usize = 64;
/// Maximum bytes of a response that is kept.
const MAX_SHARED_BYTES: usize = 256 << 10;

/// The header with which the script refreshes a page.
const REFRESH: HeaderName = HeaderName::from_static("ichido-refresh");

task_local! {
    static IS_REFRESH: bool;
}

/// Whether an open page refreshes itself.
pub(super) fn is_refresh(headers: &HeaderMap) -> bool {
    headers.contains_key(REFRESH)
}

/// Handles a request, which may take shared responses if an open page refreshes itself.
pub(super) async fn sharing<T>(is_refresh: bool, work: impl Future<Output = T>) -> T {
    IS_REFRESH.scope(is_refresh, work).await
}

fn may_share() -> bool {
    IS_REFRESH.try_with(|is_refresh| *is_refresh).unwrap_or_default()
}

/// A response, read once for all who may share it.
type SharedRead = Arc<Cached<Bytes>>;

/// The responses that were read lately, by role and address.
#[derive(Default)]
pub(super) struct SharedReads(Mutex<HashMap<(&'static str, String), SharedRead>>);

impl SharedReads {
    /// Returns a response that was just read, or reads it.
    pub(super) async fn get<E>(
        &self,
        role: &TokenRole,
        target: &str,
        read: impl Future<Output = Result<Bytes, E>>,
    ) -> Result<Bytes, E> {
        let Some(shared) = self.entry(role, target) else { return read.await };
        let fresh_for = if may_share() { FRESH } else { Duration::ZERO };
        let bytes = shared.get(fresh_for, read).await?;
        if MAX_SHARED_BYTES < bytes.len() {
            lock(&self.0).retain(|_, kept| !Arc::ptr_eq(kept, &shared));
        }
        Ok(Bytes::clone(&bytes))
    }

    /// Shares nothing that was read until now. Reads that are running are not shared with later pages.
    pub(super) fn forget(&self) {
        lock(&self.0).clear();
    }

    /// Returns where a response is shared; `None` for a producer, who sees only its own.
    fn entry(&self, role: &TokenRole, target: &str) -> Option<SharedRead> {
        let role = match role {
            TokenRole::Viewer => "viewer",
            TokenRole::Operator => "operator",
            TokenRole::Admin => "admin",
            TokenRole::Producer { .. } => return None,
        };
        let mut reads = lock(&self.0);
        if MAX_SHARED <= reads.len() {
            reads.retain(|_, shared| shared.is_needed(FRESH));
        }
        if MAX_SHARED <= reads.len() {
            return None;
        }
        Some(Arc::clone(reads.entry((role, target.to_owned())).or_default()))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use tokio::time::advance;

    use super::*;

    /// Reads the number of reads so far.
    async fn read(reads: &SharedReads, role: &TokenRole, target: &str, count: &Cell<u8>) -> u8 {
        let read = async {
            tokio::task::yield_now().await;
            count.set(count.get() + 1);
            Ok::<_, Infallible>(Bytes::copy_from_slice(&[count.get()]))
        };
        sharing(true, reads.get(role, target, read)).await.unwrap()[0]
    }

    #[tokio::test(start_paused = true)]
    async fn pages_of_one_role_share_a_read_for_a_moment() {
        let (reads, count) = (SharedReads::default(), Cell::new(0));
        let viewer = |target| read(&reads, &TokenRole::Viewer, target, &count);
        assert_eq!(tokio::join!(viewer("/a"), viewer("/a"), viewer("/a")), (1, 1, 1));
        assert_eq!(viewer("/b").await, 2, "another page");
        assert_eq!(read(&reads, &TokenRole::Admin, "/a", &count).await, 3, "another role");
        let producer = TokenRole::Producer { identity: "ann".to_owned(), queues: Vec::new() };
        assert_eq!(read(&reads, &producer, "/a", &count).await, 4);
        assert_eq!(read(&reads, &producer, "/a", &count).await, 5, "a producer shares nothing");
        assert_eq!(viewer("/a").await, 1);
        reads.forget();
        assert_eq!(viewer("/a").await, 6, "somebody changed something");
        advance(FRESH).await;
        assert_eq!(viewer("/a").await, 7);
        advance(Duration::from_millis(1)).await;
        let opened =
            reads.get(&TokenRole::Viewer, "/a", async { Ok::<_, Infallible>(Bytes::from_static(&[9])) });
        assert_eq!(opened.await.unwrap()[0], 9, "what a person opens is read anew");
        assert_eq!(viewer("/a").await, 9, "and shared with pages that refresh themselves");
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_began_before_a_change_is_not_shared_after_it() {
        let (reads, count) = (SharedReads::default(), Cell::new(0));
        let (before, after) = tokio::join!(read(&reads, &TokenRole::Viewer, "/a", &count), async {
            reads.forget();
            read(&reads, &TokenRole::Viewer, "/a", &count).await
        });
        assert_ne!(before, after);
        assert_eq!(read(&reads, &TokenRole::Viewer, "/a", &count).await, after, "the later one is shared");
    }

    #[tokio::test(start_paused = true)]
    async fn shared_reads_are_bounded() {
        let (reads, count) = (SharedReads::default(), Cell::new(0));
        for index in 0..=MAX_SHARED {
            read(&reads, &TokenRole::Viewer, &format!("/{index}"), &count).await;
        }
        assert_eq!(lock(&reads.0).len(), MAX_SHARED);
        advance(FRESH).await;
        read(&reads, &TokenRole::Viewer, "/new", &count).await;
        assert_eq!(lock(&reads.0).len(), 1, "old ones make room");
    }
}
