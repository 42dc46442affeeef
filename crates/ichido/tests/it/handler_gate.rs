//! A gate inside a handler, so a test decides when it goes on.

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

/// A gate that stops a handler until it is opened.
#[derive(Clone)]
pub(crate) struct HandlerGate(Arc<(watch::Sender<usize>, Semaphore)>);

impl HandlerGate {
    pub(crate) fn shut() -> Self {
        Self(Arc::new((watch::Sender::new(0), Semaphore::new(0))))
    }

    /// The handler's side: reports its arrival, and waits.
    pub(crate) async fn pass(&self) {
        self.0.0.send_modify(|count| *count += 1);
        self.0.1.acquire().await.unwrap().forget();
    }

    /// Waits until `count` have arrived at the gate in total.
    pub(crate) async fn reached(&self, count: usize) {
        self.0.0.subscribe().wait_for(|reached| count <= *reached).await.unwrap();
    }

    /// How many have arrived at the gate in total.
    pub(crate) fn arrived(&self) -> usize {
        *self.0.0.borrow()
    }

    /// Lets `count` pass.
    pub(crate) fn open(&self, count: usize) {
        self.0.1.add_permits(count);
    }
}
