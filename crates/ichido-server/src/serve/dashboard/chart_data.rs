//! What charts are made of: series of the API, read once for all viewers.
//!
//! Guarantee: however many look, a series is read at most once in [`ChartRange::fresh_for`], and at most [`MAX_KEPT`] are kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido_core::series::{SeriesRange, SeriesStep, SeriesSubject};
use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use ichido_store::counters::SubjectCounts;
use ichido_store::error::StoreError;

use super::super::api::ApiState;
use super::super::problem::{Code, Problem};
use super::super::series::{Series, current_series};
use super::cached::Cached;
use super::shell::PageRefusal;

/// Maximum series that are kept; the one that was read first gives way to a new one.
const MAX_KEPT: usize = 64;
/// The range of the rates in tables.
pub(super) const RATE_WINDOW: Duration = Duration::from_mins(5);
/// How old the rates may be.
const RATES_FRESH: Duration = Duration::from_secs(2);
/// How old the counts of models may be.
const MODELS_FRESH: Duration = Duration::from_secs(10);

/// How far back charts go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ChartRange {
    FiveMinutes,
    Hour,
    Day,
}

impl ChartRange {
    pub(super) const ALL: [Self; 3] = [Self::FiveMinutes, Self::Hour, Self::Day];

    /// Returns the range with this text in an address.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.as_str() == text)
    }

    /// Returns its text in an address.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::FiveMinutes => "5m",
            Self::Hour => "1h",
            Self::Day => "24h",
        }
    }

    /// Returns how long it is.
    pub(super) const fn length(self) -> Duration {
        match self {
            Self::FiveMinutes => Duration::from_mins(5),
            Self::Hour => Duration::from_hours(1),
            Self::Day => Duration::from_hours(24),
        }
    }

    /// Returns the length of a bar.
    pub(super) const fn step(self) -> Duration {
        match self {
            Self::FiveMinutes => Duration::from_mins(1),
            Self::Hour => Duration::from_mins(2),
            Self::Day => Duration::from_mins(30),
        }
    }

    /// Returns how old its series may be.
    const fn fresh_for(self) -> Duration {
        match self {
            Self::FiveMinutes => Duration::from_secs(2),
            Self::Hour => Duration::from_secs(5),
            Self::Day => Duration::from_mins(1),
        }
    }

    /// Returns its points until now; the last one still counts.
    fn points(self, now: Timestamp) -> Result<SeriesRange, PageRefusal> {
        let before = self.length().saturating_sub(self.step()).as_micros();
        let before = i64::try_from(before).unwrap_or(i64::MAX);
        let first = Timestamp::from_micros(now.as_micros().saturating_sub(before));
        // The end is exclusive, so a full minute begins its own point.
        let end = Timestamp::from_micros(now.as_micros().saturating_add(1));
        let step = SeriesStep::new(self.step()).unwrap_or(SeriesStep::MINUTE);
        SeriesRange::new(Some(first), Some(end), step, now)
            .map_err(|error| Problem::new(Code::ParameterInvalid, error.to_string()).into())
    }
}

type ByRange = HashMap<(SeriesSubject, ChartRange), Arc<Cached<Series>>>;
type BySubject = std::collections::BTreeMap<SeriesSubject, SubjectCounts>;

/// Reads series for all viewers.
#[derive(Default)]
pub(super) struct ChartData {
    series: Mutex<ByRange>,
    rates: Cached<BySubject>,
    models: Mutex<HashMap<ChartRange, Arc<Cached<BySubject>>>>,
}

impl ChartData {
    /// Returns the series of a subject until now.
    pub(super) async fn series(
        &self,
        api: &ApiState,
        subject: &SeriesSubject,
        range: ChartRange,
        now: Timestamp,
    ) -> Result<Arc<Series>, PageRefusal> {
        let points = range.points(now)?;
        let cached = self.of_subject(subject, range);
        Ok(cached.get(range.fresh_for(), current_series(api, subject, &points, now)).await?)
    }

    /// Returns the counts of all subjects in the last [`RATE_WINDOW`], with one statement.
    pub(super) async fn recent(&self, api: &ApiState) -> Result<Arc<BySubject>, StoreError> {
        self.rates.get(RATES_FRESH, api.store.series().by_subject(RATE_WINDOW)).await
    }

    /// Returns the counts of all language models in a range, with one statement.
    pub(super) async fn models(
        &self,
        api: &ApiState,
        range: ChartRange,
    ) -> Result<Arc<BySubject>, StoreError> {
        let cached = Arc::clone(lock(&self.models).entry(range).or_default());
        cached.get(MODELS_FRESH, api.store.series().by_model(range.length())).await
    }

    fn of_subject(&self, subject: &SeriesSubject, range: ChartRange) -> Arc<Cached<Series>> {
        let mut series = lock(&self.series);
        let key = (subject.clone(), range);
        if !series.contains_key(&key) && MAX_KEPT <= series.len() {
            let oldest = series.iter().min_by_key(|(_, cached)| cached.read_at()).map(|(key, _)| key.clone());
            oldest.map(|oldest| series.remove(&oldest));
        }
        Arc::clone(series.entry(key).or_default())
    }
}

/// Returns how many messages were sent per second, in the last full minute and this one.
pub(super) fn sent_per_second(series: &Series, now: Timestamp) -> f64 {
    let last = series.points.len().saturating_sub(2);
    let recent = series.points.get(last..).unwrap_or_default();
    let since = recent.first().and_then(|point| Timestamp::parse(&point.at));
    let elapsed = since.map_or(Duration::ZERO, |since| now.since(since)).max(Duration::from_secs(1));
    let sent: u64 = recent.iter().map(|point| point.counts.sent).sum();
    number(sent) / elapsed.as_secs_f64()
}

/// Returns a count as a number to draw or divide.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(super) fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::super::super::series::{SeriesCounts, TimedCounts};
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn a_range_has_all_its_bars_and_the_last_one_still_counts() {
        for (range, now, from, to, bars) in [
            (
                ChartRange::FiveMinutes,
                "2026-11-15T03:30:20Z",
                "2026-11-15T03:26:00Z",
                "2026-11-15T03:31:00Z",
                5,
            ),
            (
                ChartRange::FiveMinutes,
                "2026-11-15T03:30:00Z",
                "2026-11-15T03:26:00Z",
                "2026-11-15T03:31:00Z",
                5,
            ),
            (ChartRange::Hour, "2026-11-15T03:31:20Z", "2026-11-15T02:32:00Z", "2026-11-15T03:32:00Z", 30),
            (ChartRange::Day, "2026-11-15T03:31:20Z", "2026-11-14T04:00:00Z", "2026-11-15T04:00:00Z", 48),
        ] {
            let points = range.points(at(now)).unwrap();
            assert_eq!((points.from(), points.to()), (at(from), at(to)), "{range:?}");
            assert_eq!(points.starts().count(), bars, "{range:?}");
            assert_eq!(ChartRange::parse(range.as_str()), Some(range));
            // What is older is deleted, so it would look like nothing.
            assert!(points.kept_from(at(now)) <= points.from(), "{range:?}");
        }
        assert_eq!(ChartRange::parse("7d"), None);
    }

    #[test]
    fn the_rate_is_that_of_the_last_full_minute_and_this_one() {
        let point = |at: &str, sent| TimedCounts {
            at: at.to_owned(),
            counts: SeriesCounts { sent, ..SeriesCounts::default() },
        };
        let points = vec![
            point("2026-11-15T03:28:00Z", 90_000),
            point("2026-11-15T03:29:00Z", 24_000),
            point("2026-11-15T03:30:00Z", 8_000),
        ];
        let series = Series { points, ..Series::default() };
        let now = at("2026-11-15T03:30:20Z");
        let rates = [&series, &Series::default()].map(|series| sent_per_second(series, now).to_string());
        assert_eq!(rates, ["400", "0"]);
    }
}
