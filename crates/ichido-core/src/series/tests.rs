//! Subjects, steps and ranges.

use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn minutes(count: u64) -> SeriesStep {
    SeriesStep::new(Duration::from_mins(count)).unwrap()
}

#[test]
fn subjects_are_parsed_as_they_are_written() {
    for text in [
        "queue:orders",
        "queue:a:b",
        "destination:broker",
        "operation:POST /orders",
        "model:a model",
        "queues",
        "operations",
        "models",
    ] {
        let subject = SeriesSubject::parse(text).unwrap();
        assert_eq!(subject.to_string(), text);
        assert_eq!(SeriesSubject::of_about(&subject.about()), Some(subject));
    }
    assert_eq!(SeriesSubject::of_about("trail"), None);
    for text in ["", "orders", "queue:", "queue", "node:1", "Queue:orders", "queue orders"] {
        assert_eq!(SeriesSubject::parse(text), None, "{text}");
    }
    // Alerts find the counts of queues and operations, and skip the totals.
    let orders = SeriesSubject::Queue("orders".to_owned());
    assert_eq!(AlertSubject::parse(&orders.about()), Some(AlertSubject::Queue("orders".to_owned())));
    assert_eq!(AlertSubject::parse(&SeriesSubject::Queues.about()), None);
}

#[test]
fn a_step_is_whole_minutes() {
    for millis in [0, 1, 30_000, 90_000, 60_001] {
        assert_eq!(SeriesStep::new(Duration::from_millis(millis)), None, "{millis}");
    }
    assert_eq!(SeriesStep::new(HOURS_KEPT + MINUTE), None);
    assert_eq!((minutes(1).kept_for(), minutes(90).kept_for()), (MINUTES_KEPT, MINUTES_KEPT));
    assert_eq!((minutes(60).kept_for(), minutes(1_440).kept_for()), (HOURS_KEPT, HOURS_KEPT));
}

#[test]
fn missing_ends_are_sixty_points_away() {
    let now = at("2026-11-15T03:30:20Z");
    let range = SeriesRange::new(None, None, minutes(1), now).unwrap();
    assert_eq!((range.from(), range.to()), (at("2026-11-15T02:31:00Z"), at("2026-11-15T03:31:00Z")));
    let since = SeriesRange::new(Some(now), None, minutes(1), now).unwrap();
    assert_eq!((since.from(), since.to()), (at("2026-11-15T03:30:00Z"), at("2026-11-15T04:30:00Z")));
    let until = SeriesRange::new(None, Some(at("2026-11-15T03:30:00Z")), minutes(1), now).unwrap();
    assert_eq!((until.from(), until.to()), (at("2026-11-15T02:30:00Z"), at("2026-11-15T03:30:00Z")));
}

#[test]
fn empty_and_long_ranges_are_refused() {
    let (from, now) = (at("2026-11-15T03:00:00Z"), at("2026-11-16T04:00:00Z"));
    let range = |from, to, step| SeriesRange::new(Some(from), Some(to), step, now);
    assert_eq!(range(from, from, minutes(1)), Err(SeriesRangeError::Empty));
    assert_eq!(range(now, from, minutes(1)), Err(SeriesRangeError::Empty));
    let most = range(from, now, minutes(1)).unwrap();
    assert_eq!(most.starts().count(), MAX_POINTS as usize);
    let more = range(from, now.plus(Duration::from_micros(1)), minutes(1)).unwrap_err();
    assert_eq!(
        more.to_string(),
        "the range has 1501 points of 1m, and at most 1500 are returned; use a longer step or a shorter range"
    );
    let all = range(at("0000-01-01T00:00:00Z"), at("9999-12-31T00:00:00Z"), minutes(1));
    assert!(matches!(all, Err(SeriesRangeError::TooManyPoints { .. })));
}

proptest! {
    #[test]
    fn points_begin_at_multiples_of_the_step_and_cover_the_range(
        from in -100_000_000_000_000_000_i64..200_000_000_000_000_000,
        length in 1_i64..80_000_000_000,
        step in 1_u64..3_000,
    ) {
        let (start, end) = (Timestamp::from_micros(from), Timestamp::from_micros(from + length));
        let step = minutes(step);
        let range = SeriesRange::new(Some(start), Some(end), step, start).unwrap();
        prop_assert!(range.from() <= start && end <= range.to());
        prop_assert!(start < range.from().plus(step.get()) && range.to() < end.plus(step.get()));
        let starts: Vec<_> = range.starts().collect();
        prop_assert_eq!(starts.first(), Some(&range.from()));
        prop_assert_eq!(starts.last().unwrap().plus(step.get()), range.to());
        for at in starts {
            prop_assert_eq!(at.as_micros().rem_euclid(step.micros()), 0);
        }
    }
}
