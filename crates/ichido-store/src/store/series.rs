//! Counts per minute and per hour, from all nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use ichido_core::alert::{AlertSubject, MAX_WINDOW};
use ichido_core::series::{HOURS_KEPT, MINUTES_KEPT, SeriesRange, SeriesSubject};

use super::Series;
use crate::check;
use crate::counters::{MAX_SUMS, SeriesPoint, SubjectCounts, by_subject, points, rows};
use crate::error::StoreError;
use crate::future::StoreFuture;
use crate::micros;
use crate::statement::{SqlValue, column, paired};

/// How long after its end an hour is rolled up: longer than a statement that counts for it may take.
const ROLL_UP_AFTER: Duration = Duration::from_mins(1);

/// The maximum number of sums that one series has: all its points, with many different durations in each.
const MAX_READ: u32 = 200_000;

// Alerts read minutes, too.
const _: () = assert!(MAX_WINDOW.as_secs() < MINUTES_KEPT.as_secs());

impl<'s> Series<'s> {
    /// Adds the counts of this process to those of this minute.
    ///
    /// Counts that could not be added are counted again, but not after a lost answer, because they may have been added.
    /// A caller that stops waiting loses none: a task of its own adds them, one at a time.
    pub fn flush(self) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            let store = self.0.clone();
            match tokio::spawn(async move { store.series().add().await }).await {
                Ok(added) => added,
                Err(_) => Err(StoreError::Busy), // The runtime stops.
            }
        })
    }

    async fn add(self) -> Result<(), StoreError> {
        let _turn = self.0.counters.flushing.lock().await;
        let replays = self.0.add_replays().await;
        self.add_counts().await.and(replays)
    }

    async fn add_counts(self) -> Result<(), StoreError> {
        let counters = &self.0.counters;
        let taken = counters.take();
        let all = counters.with_sums(&taken);
        let rows = rows(&all);
        if rows.is_empty() {
            return Ok(());
        }
        let columns = [
            column(&rows, |row| row.about),
            column(&rows, |row| row.kind),
            column(&rows, |row| row.slot),
            column(&rows, |row| row.count),
            column(&rows, |row| row.micros),
        ];
        let values = [SqlValue::Rows(&columns), SqlValue::Now];
        let added = self.0.driver.execute(paired!("counter_add"), &values).await;
        if added.is_err() && !matches!(added, Err(StoreError::Unknown(_))) {
            counters.restore(taken);
        }
        added.map(drop)
    }

    /// Sums the counts of all nodes by queue and operation, for the minutes that began within the window.
    pub fn sums(self, window: Duration) -> StoreFuture<'s, BTreeMap<AlertSubject, SubjectCounts>> {
        Box::pin(async move {
            let counted = self.by_subject(window).await?.into_iter();
            let sums = counted.filter_map(|(subject, counted)| match subject {
                SeriesSubject::Queue(name) => Some((AlertSubject::Queue(name), counted)),
                SeriesSubject::Operation(name) => Some((AlertSubject::Operation(name), counted)),
                SeriesSubject::Destination(_)
                | SeriesSubject::Model(_)
                | SeriesSubject::Queues
                | SeriesSubject::Operations
                | SeriesSubject::Models => None,
            });
            Ok(sums.collect())
        })
    }

    /// Sums the counts of all nodes by subject, for the minutes that began within the window.
    ///
    /// It reads the rows of all subjects in these minutes, so it is meant for a short window.
    pub fn by_subject(self, window: Duration) -> StoreFuture<'s, BTreeMap<SeriesSubject, SubjectCounts>> {
        Box::pin(async move {
            let values = [micros(window).into(), SqlValue::Now, MAX_SUMS.into()];
            by_subject(&self.0.driver.all(paired!("counter_sums"), &values).await?)
        })
    }

    /// Sums the counts of all nodes by language model, for the minutes that began within the window.
    ///
    /// It reads only the rows of models, so the window may be a day.
    pub fn by_model(self, window: Duration) -> StoreFuture<'s, BTreeMap<SeriesSubject, SubjectCounts>> {
        Box::pin(async move {
            let values = [micros(window).into(), SqlValue::Now, MAX_SUMS.into()];
            by_subject(&self.0.driver.all(paired!("counter_models"), &values).await?)
        })
    }

    /// Reads the counts of all nodes about a subject: every point of the range, oldest first.
    ///
    /// A step of whole hours reads counts per hour, and those per minute only for hours that are not rolled up yet. Any other step
    /// reads counts per minute. Points without counts, or older than what is kept, are zero.
    pub fn read(
        self,
        subject: &'s SeriesSubject,
        range: &'s SeriesRange,
    ) -> StoreFuture<'s, Vec<SeriesPoint>> {
        Box::pin(async move {
            let about = subject.about();
            let values = [
                about.as_str().into(),
                range.from().into(),
                range.to().into(),
                micros(range.step().get()).into(),
                // One more shows that there are more.
                (i64::from(MAX_READ) + 1).into(),
                SqlValue::Now,
            ];
            let rows = if range.step().is_hourly() {
                self.0.driver.all(paired!("series_hours"), &values).await?
            } else {
                let [values @ .., _] = &values;
                self.0.driver.all(paired!("series_minutes"), values).await?
            };
            let found = u32::try_from(rows.len()).unwrap_or(u32::MAX);
            check::number("the number of sums in a series", found, 0..=MAX_READ)?;
            points(range, &rows)
        })
    }

    /// Sums the minutes of the oldest finished hour that is not rolled up yet. Returns how many rows, or 0.
    ///
    /// It is one statement, and rolling up an hour again has the same result.
    pub fn roll_up(self) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let values = [micros(Duration::from_hours(1) + ROLL_UP_AFTER).into(), SqlValue::Now];
            self.0.driver.execute(paired!("counter_roll_up"), &values).await
        })
    }

    /// Deletes the counts of the oldest minute and the oldest hour that are no longer kept, and the oldest replays. Returns how many
    /// rows, or 0.
    ///
    /// Minutes of an hour that is not rolled up yet are kept.
    pub fn sweep(self) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let values = [micros(MINUTES_KEPT).into(), SqlValue::Now];
            let minutes = self.0.driver.execute(paired!("counter_sweep"), &values).await?;
            let values = [micros(HOURS_KEPT).into(), SqlValue::Now];
            let hours = self.0.driver.execute(paired!("counter_hour_sweep"), &values).await?;
            Ok(minutes + hours + self.0.sweep_replays().await?)
        })
    }
}
