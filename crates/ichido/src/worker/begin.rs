//! The durable marks before calls, written together: while one write is under way, what arrives meanwhile forms the next.

use ichido_core::fence::Fence;
use ichido_store::Store;
use tokio::sync::{Mutex, oneshot};
use uuid::Uuid;

use ichido_core::sync::lock;

/// The most marks in one write.
const MARKS_MAX: usize = 1_000;

pub(super) struct Beginner {
    store: Store,
    waiting: std::sync::Mutex<Vec<Waiting>>,
    turn: Mutex<()>,
}

struct Waiting {
    call: (Uuid, Fence),
    tell: oneshot::Sender<bool>,
}

impl Beginner {
    pub(super) fn new(store: Store) -> Self {
        Self { store, waiting: std::sync::Mutex::default(), turn: Mutex::new(()) }
    }

    /// Marks that a call is about to begin; `Some(false)` is that it must not, `None` that the store could not say.
    pub(super) async fn begin(&self, message: Uuid, fence: Fence) -> Option<bool> {
        let (tell, mut told) = oneshot::channel();
        lock(&self.waiting).push(Waiting { call: (message, fence), tell });
        loop {
            let _turn = self.turn.lock().await;
            match told.try_recv() {
                Ok(may) => return Some(may),
                Err(oneshot::error::TryRecvError::Closed) => return None,
                Err(oneshot::error::TryRecvError::Empty) => Box::pin(self.write()).await,
            }
        }
    }

    async fn write(&self) {
        let part: Vec<Waiting> = {
            let mut waiting = lock(&self.waiting);
            let count = waiting.len().min(MARKS_MAX);
            waiting.drain(..count).collect()
        };
        let calls: Vec<(Uuid, Fence)> = part.iter().map(|waiting| waiting.call).collect();
        match self.store.claims().begin(&calls).await {
            Ok(marked) => {
                for (waiting, may) in part.into_iter().zip(marked) {
                    // Nobody waits for it any more: its worker stops, and the mark alone does no harm.
                    let _told = waiting.tell.send(may);
                }
            }
            Err(error) => {
                tracing::warn!(
                    error = error.in_full(),
                    calls = calls.len(),
                    "the beginning of calls could not be marked; trying again"
                );
            }
        }
    }
}
