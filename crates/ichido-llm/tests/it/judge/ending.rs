//! A run ends when it must, and reports what is left.
// SPEC B9.

use std::sync::Arc;
use std::time::Duration;

use ichido_llm::judge::{JudgeEnd, Settings, Stop};
use tokio::time::Instant;

use super::scripted::{Scripted, ScriptedCall, YES, at_once, judge, numbered, parallel, words};

/// Twenty of 120 items are throttled to the end.
fn bad_day() -> Scripted {
    Scripted::after(Duration::from_secs(5)).otherwise(|seen| {
        let number: usize = seen.user.trim_start_matches("item ").parse().unwrap();
        if number.is_multiple_of(6) {
            ScriptedCall::Named("ServiceUnavailableException")
        } else {
            ScriptedCall::Says(YES)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn run_with_many_retries_keeps_its_deadline() {
    for minutes in [2, 8, 14] {
        let deadline = Duration::from_mins(minutes);
        let model = Arc::new(bad_day());
        let began = Instant::now();
        let settings = Settings { deadline: Some(deadline), ..parallel(2) };
        let report = judge(&model, settings).run(numbered(120), &Stop::new()).await.unwrap();
        let took = began.elapsed();
        assert!(took <= deadline + Duration::from_millis(50), "{took:?} of {deadline:?}");
        let words = words(&report);
        assert_eq!(words.len(), 120);
        let count = |word| words.iter().filter(|found| **found == word).count();
        assert_eq!(count("judged") + count("deadline") + count("retries_spent"), 120);
        assert_eq!(report.ended == JudgeEnd::Deadline, 0 < count("deadline"));
        assert_eq!(u64::try_from(count("judged")).unwrap(), report.counts.answered);
        assert!(0 < count("judged"));
        assert_eq!(report.counts.in_flight, 0);
        if minutes == 2 {
            assert!(50 < count("deadline"), "{words:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn call_that_would_miss_the_deadline_is_not_started() {
    let model = Arc::new(Scripted::after(Duration::from_secs(5)));
    let settings = Settings { deadline: Some(Duration::from_secs(13)), ..at_once(1) };
    let report = judge(&model, settings).run(numbered(4), &Stop::new()).await.unwrap();
    // The third call would start after ten seconds and end after fifteen.
    assert_eq!(words(&report), ["judged", "judged", "deadline", "deadline"]);
    assert_eq!((model.seen().len(), report.counts.lost), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn stopped_run_finishes_calls_in_flight() {
    let model = Arc::new(Scripted::after(Duration::from_secs(5)));
    let (judge, stop) = (judge(&model, at_once(2)), Stop::new());
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(7)).await;
        stopping.finish();
    });
    let report = judge.run(numbered(10), &stop).await.unwrap();
    assert_eq!(report.ended, JudgeEnd::Stopped);
    assert_eq!(report.counts.answered, 4, "two rounds of two");
    assert_eq!((report.counts.calls, report.counts.lost), (4, 0));
    // The same batch again continues from there.
    let report = judge.run(numbered(10), &Stop::new()).await.unwrap();
    assert_eq!(report.ended, JudgeEnd::Whole);
    assert_eq!((report.counts.known, report.counts.calls), (4, 6));
}

#[tokio::test(start_paused = true)]
async fn run_stopped_at_once_reports_lost_calls() {
    let model = Arc::new(Scripted::after(Duration::from_secs(5)));
    let (judge, stop) = (judge(&model, at_once(2)), Stop::new());
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(7)).await;
        stopping.at_once();
    });
    let began = Instant::now();
    let report = judge.run(numbered(10), &stop).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(8), "it waits for no call");
    assert_eq!((report.counts.answered, report.counts.lost), (2, 2));
}
