//! How many calls are made at once, and when.
// SPEC B4, B9.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::plan::{Assumptions, BatchPlan, estimate};
use ichido_llm::judge::{Judge, Settings, SettingsError, Stop};
use ichido_llm::models::Model;
use tokio::time::Instant;

use super::scripted::{Label, Scripted, form, judge, numbered, parallel, words};

const SLACK: Duration = Duration::from_millis(50);

/// Returns how long a run of 120 items takes, and the maximum number of calls in flight.
async fn takes(count: u32) -> (Duration, usize) {
    let model = Arc::new(Scripted::after(Duration::from_secs(5)));
    let began = Instant::now();
    let report = judge(&model, parallel(count)).run(numbered(120), &Stop::new()).await.unwrap();
    assert!(words(&report).iter().all(|word| *word == "judged"));
    (began.elapsed(), model.max_in_flight())
}

#[tokio::test(start_paused = true)]
async fn run_takes_planned_time_and_keeps_slots() {
    for (count, expected) in [(2, 450), (3, 300)] {
        let (took, in_flight) = takes(count).await;
        let expected = Duration::from_secs(expected);
        assert!(expected <= took && took < expected + SLACK, "{count} at a time: {took:?}");
        assert_eq!(in_flight, usize::try_from(count).unwrap());
        let settings = parallel(count);
        let waits: Vec<Duration> = settings.retry.waits().collect();
        let (interval, latency) = (settings.interval, Duration::from_secs(5));
        let batch = BatchPlan {
            items: 120,
            parallel: settings.parallel,
            interval,
            latency,
            waits: &waits,
            pace: None,
        };
        assert_eq!(estimate(&batch, &Assumptions::DEFAULT).best, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn item_waits_its_interval_in_its_slot() {
    let model = Arc::new(Scripted::after(Duration::from_secs(5)));
    judge(&model, parallel(1)).run(numbered(3), &Stop::new()).await.unwrap();
    let began: Vec<Duration> = model.seen().iter().map(|seen| seen.at).collect();
    // If the wait were outside the slot, the second call would start the moment the first ends.
    for (moment, expected) in began.iter().zip([2_500, 10_000, 17_500].map(Duration::from_millis)) {
        assert!(expected <= *moment && *moment < expected + SLACK, "{began:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_settings_are_refused() {
    let judge = |settings| {
        let model = Arc::new(Scripted::after(Duration::ZERO)) as Arc<dyn Model>;
        Judge::<Label>::new(model, form(), settings).err()
    };
    assert!(matches!(judge(parallel(1_001)), Some(SettingsError::Parallel { found: 1_001 })));
    let interval = Duration::from_hours(2);
    let slow = Settings { interval, ..Settings::DEFAULT };
    assert_eq!(judge(slow), Some(SettingsError::Interval { found: interval }));
    let nowhere = Arc::new(Scripted::after(Duration::ZERO).at(&[])) as Arc<dyn Model>;
    let error = Judge::<Label>::new(nowhere, form(), Settings::DEFAULT).err();
    assert_eq!(error, Some(SettingsError::Endpoints { found: 0 }));
}
