//! Progress of a run in a terminal, and its end on a signal.

use std::time::Duration;

use ichido_llm::judge::{Counts, Judge, Stop};
use serde::de::DeserializeOwned;

use crate::bar::Bar;
use crate::exit::Exit;
use crate::out;
use crate::signals::Signals;
use ichido_llm::seconds::format_duration;

const POLL_EVERY: Duration = Duration::from_millis(250);

/// Shows the progress until it is dropped.
pub(super) async fn progress<T: DeserializeOwned>(judge: &Judge<T>) {
    let bar = Bar::new(Some(0), "{bar:30} {pos}/{len} {msg}");
    if !bar.is_shown() {
        return std::future::pending().await;
    }
    let began = tokio::time::Instant::now();
    loop {
        let counts = judge.counts();
        // While stored judgements are looked up, a bar of length zero would be full.
        if 0 < counts.missing {
            let done = counts.answered + counts.fallbacks;
            bar.set(Some(counts.missing), done, render_progress(&counts, began.elapsed()));
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}

/// Formats the pace, throttles, retries and the remaining time.
fn render_progress(counts: &Counts, took: Duration) -> String {
    let done = counts.answered + counts.fallbacks;
    let left = counts.missing.saturating_sub(done);
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let per_second = done as f64 / took.as_secs_f64().max(0.001);
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let left =
        if 0.0 < per_second { Duration::try_from_secs_f64(left as f64 / per_second).ok() } else { None };
    let left =
        left.map_or_else(|| "?".to_owned(), |left| format_duration(Duration::from_secs(left.as_secs())));
    format!(
        "{:.1}/min, {} throttled, {} retries, {left} left",
        per_second * 60.0,
        counts.throttled,
        counts.retries
    )
}

/// The first signal lets calls in flight finish; the second does not.
pub(super) async fn signals(stop: &Stop) -> Result<(), Exit> {
    let mut signals = Signals::listen()?;
    signals.next().await;
    stop.finish();
    out::eprint(
        "\nstopping after the calls in flight, which are already paid for; press again to stop now\n",
    );
    signals.next().await;
    stop.at_once();
    std::future::pending().await
}
