//! Connections that are kept for the next call.
//!
//! Guarantee: no more than [`IDLE_MAX`] are kept, none is used after [`IDLE`], and none that is known to be closed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::peer::Line;

/// The most connections that are kept.
const IDLE_MAX: usize = 64;
/// How long an unused connection is kept. Shorter than most servers keep theirs, so that we are the ones who close it.
const IDLE: Duration = Duration::from_secs(20);

/// Connections nobody uses at the moment, the one used last at the end.
#[derive(Default)]
pub(super) struct Pool(Mutex<Vec<Kept>>);

struct Kept {
    line: Line,
    since: Instant,
}

impl Pool {
    /// A connection that takes a request, if there is one.
    pub(super) async fn take(&self) -> Option<Line> {
        loop {
            let mut line = self.fresh().pop()?.line;
            // The other side may have closed it a moment ago; nothing is written to find out.
            if line.ready().await.is_ok() {
                return Some(line);
            }
        }
    }

    /// Keeps a connection whose answer was read to its end.
    pub(super) fn put(&self, line: Line) {
        let mut kept = self.fresh();
        if kept.len() < IDLE_MAX {
            kept.push(Kept { line, since: Instant::now() });
        }
    }

    /// Those that are still good.
    fn fresh(&self) -> MutexGuard<'_, Vec<Kept>> {
        // A panic in here leaves a list that is whole: each change of it is one call.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.since.elapsed() < IDLE && !kept.line.is_closed());
        kept
    }
}
