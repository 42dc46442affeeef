//! Progress of a run, and its end on a signal.

use std::time::Duration;

use ichido_llm::articles::plan::Plan;
use ichido_llm::articles::progress::Progress;
use ichido_llm::judge::{Judge, Stop};
use serde::de::DeserializeOwned;

use crate::bar::Bar;
use crate::exit::Exit;
use crate::out;
use crate::signals::Signals;

const POLL_EVERY: Duration = Duration::from_millis(250);

/// Shows the progress, in a terminal as a bar, and announces pauses, until it is dropped.
pub(super) async fn progress<T: DeserializeOwned>(judge: &Judge<T>, plan: &Plan) {
    let bar = Bar::new(Some(0), "{bar:20} {pos}/{len} {msg}");
    let (mut progress, began) = (Progress::default(), tokio::time::Instant::now());
    loop {
        let counts = judge.counts();
        // While stored judgements are looked up, a bar of length zero would be full.
        if 0 < counts.missing {
            let done = counts.answered + counts.fallbacks;
            let (text, pause) = progress.look(&counts, judge.paused(), began.elapsed(), plan);
            bar.set(Some(counts.missing), done, text);
            if let Some(pause) = pause {
                out::eprint(&pause);
            }
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}

/// The first signal lets calls in flight finish; the second does not.
pub(super) async fn signals(stop: &Stop) -> Result<(), Exit> {
    let mut signals = Signals::listen()?;
    signals.next().await;
    stop.finish();
    out::eprint("stopping after the calls in flight, which are already paid for; press again to stop now\n");
    signals.next().await;
    stop.at_once();
    std::future::pending().await
}
