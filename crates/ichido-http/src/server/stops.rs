//! Requests to stop a server.
//!
//! Guarantee: no request to stop is missed, however late a task waits for it, because requests are counted.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts how often a server was asked to stop.
///
/// After the first request the server drains; after the second it stops at once. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Stops(Arc<watch::Sender<u32>>);

impl Stops {
    /// Asks the server to stop.
    pub fn stop(&self) {
        self.0.send_modify(|count| *count = count.saturating_add(1));
    }

    /// Waits until the server was asked to stop.
    pub async fn first(&self) {
        self.reach(1).await;
    }

    /// Waits until the server was asked to stop twice.
    pub async fn second(&self) {
        self.reach(2).await;
    }

    /// Waits for a request to stop. The end of `loss` counts as one.
    pub(super) async fn first_or(&self, loss: impl Future<Output = ()>) {
        tokio::select! {
            () = self.first() => (),
            () = loss => self.stop(),
        }
    }

    async fn reach(&self, count: u32) {
        // This cannot fail: we hold the sender.
        _ = self.0.subscribe().wait_for(|asked| count <= *asked).await;
    }
}
