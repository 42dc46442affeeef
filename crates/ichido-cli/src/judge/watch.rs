//! Progress of a run, and its end on a signal.

use std::time::Duration;

use ichido_llm::articles::plan::Plan;
use ichido_llm::articles::progress::Progress;
use ichido_llm::articles::{Article, Judgement};
use ichido_llm::judge::{Judge, Stop};

use crate::bar::Bar;
use crate::exit::Exit;
use crate::out;
use crate::signals::Signals;

const POLL_EVERY: Duration = Duration::from_millis(250);

/// Shows the progress, in a terminal as a bar, and what a person wants to know at once, until it is dropped.
pub(super) async fn progress(judge: &Judge<Judgement>, plan: &Plan, articles: &[Article], stop: &Stop) {
    let bar = Bar::new(Some(0), "{bar:20} {pos}/{len} {msg}");
    let (mut progress, began) = (Progress::default(), tokio::time::Instant::now());
    let mut done = 0;
    loop {
        let counts = judge.counts();
        if stop.is_given() {
            // The rest gets its fallback, which is no progress.
            bar.set(Some(counts.missing), done, format!("stopping, calls in flight: {}", counts.in_flight));
        } else if 0 < counts.missing {
            // While stored judgements are looked up, a bar of length zero would be full.
            done = counts.answered + counts.fallbacks;
            let (text, pause) = progress.look(&counts, judge.paused(), began.elapsed(), plan);
            bar.set(Some(counts.missing), done, text);
            let news = progress.news(articles, &judge.take_given_up(), &judge.endpoints(), &counts, plan);
            let news = news + &pause.unwrap_or_default();
            if !news.is_empty() {
                out::eprint(&news);
            }
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}

/// The first signal lets calls in flight finish; the second does not.
pub(super) async fn signals(judge: &Judge<Judgement>, stop: &Stop) -> Result<(), Exit> {
    let mut signals = Signals::listen()?;
    signals.next().await;
    stop.finish();
    if 0 < judge.counts().in_flight {
        out::eprint(
            "stopping after the calls in flight, which are already paid for; press again to stop now\n",
        );
    }
    signals.next().await;
    stop.at_once();
    std::future::pending().await
}
