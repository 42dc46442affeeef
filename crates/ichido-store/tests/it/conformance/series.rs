//! Series: counts per minute and per hour, over all nodes.
// SPEC A14, E3.

use std::future::ready;
use std::time::Duration;

use ichido_core::series::{HOURS_KEPT, MINUTES_KEPT, SeriesRange, SeriesStep, SeriesSubject};
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::counters::{Arrival, SeriesPoint, SubjectCounts};

use super::alerts::{execute, rename_counters};
use crate::both_databases;
use crate::fixture::{StoreFixture, message, queue};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// Moves the clocks to the second after a full hour, and returns that hour: no minute ends during a case.
async fn begin_hour(stores: &[&Store]) -> Timestamp {
    let hour = i64::try_from(HOUR.as_micros()).unwrap();
    let now = stores[0].now().await.unwrap().as_micros();
    let next = now - now.rem_euclid(hour) + hour;
    let ahead = Duration::from_micros(u64::try_from(next - now).unwrap()) + Duration::from_secs(1);
    for store in stores {
        store.advance_clock(ahead);
    }
    Timestamp::from_micros(next)
}

fn orders() -> SeriesSubject {
    SeriesSubject::Queue("orders".to_owned())
}

async fn read(
    store: &Store,
    subject: &SeriesSubject,
    from: Timestamp,
    length: Duration,
    step: Duration,
) -> Vec<SeriesPoint> {
    let step = SeriesStep::new(step).unwrap();
    let range = SeriesRange::new(Some(from), Some(from.plus(length)), step, from).unwrap();
    store.series().read(subject, &range).await.unwrap()
}

fn sent(points: &[SeriesPoint]) -> Vec<u64> {
    points.iter().map(|point| point.counts.sent).collect()
}

/// Counts messages as sent, and flushes.
async fn send(store: &Store, took: &[Duration]) {
    store.counters().sent("orders", took);
    store.series().flush().await.unwrap();
}

fn total(points: &[SeriesPoint]) -> SubjectCounts {
    let mut total = SubjectCounts::default();
    for point in points {
        total.add(&point.counts);
    }
    total
}

/// Lets the roll-up fail after some of its rows, until it is called again.
async fn refuse_roll_up(fixture: &StoreFixture, refuses: bool) {
    let (postgres, sqlite) = if refuses {
        (
            "ALTER TABLE ichido.counter_hours ADD CONSTRAINT no_sent CHECK (kind <> 'sent')",
            "CREATE TRIGGER no_sent BEFORE INSERT ON ichido_counter_hours WHEN new.kind = 'sent' BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
    } else {
        ("ALTER TABLE ichido.counter_hours DROP CONSTRAINT no_sent", "DROP TRIGGER no_sent")
    };
    execute(fixture, postgres, sqlite).await;
}

both_databases! {
    #[test]
    async fn counts_are_in_the_minute_of_their_flush(fixture: StoreFixture) {
        let (store, from) = (&fixture.store, begin_hour(&[&fixture.store]).await);
        fixture.enqueue("k1").await;
        fixture.put(message("k1")).await;
        let mut other = message("k1");
        other.request = message("k2").request;
        fixture.conflict(other).await;
        store.series().flush().await.unwrap();
        fixture.pass(MINUTE);
        let counters = store.counters();
        counters.serve("orders", "shop");
        counters.claimed("orders", [Duration::from_millis(5)].into_iter());
        counters.executed("orders", 4);
        counters.retried("orders", true);
        counters.sent("orders", &[Duration::from_secs(2)]);
        counters.dead("orders", Some(Duration::from_secs(4)));
        counters.parked("orders");
        counters.fenced("orders");
        counters.request_arrived("create", Arrival::New, true);
        store.series().flush().await.unwrap();
        let points = read(store, &orders(), from, 3 * MINUTE, MINUTE).await;
        assert_eq!(points.iter().map(|point| point.at).collect::<Vec<_>>(), [0, 1, 2].map(|n| from.plus(n * MINUTE)));
        let [first, second, third] = &points[..] else { panic!("{points:?}") };
        let first = &first.counts;
        assert_eq!((first.accepted(), first.repeated, first.conflicts, first.executed), (1, 1, 1, 0));
        let second = &second.counts;
        assert_eq!((second.executed, second.retried, second.retry_failed, second.sent), (4, 1, 1, 1));
        assert_eq!((second.dead, second.parked, second.fenced), (1, 1, 1));
        assert_eq!((second.waited.count(), second.waited.micros), (1, 5_000));
        assert_eq!((second.left.count(), second.left.micros), (2, 6_000_000));
        assert_eq!(third.counts, SubjectCounts::default());
        // The destination and the totals have the same deliveries.
        let shop = read(store, &SeriesSubject::Destination("shop".to_owned()), from, 3 * MINUTE, MINUTE).await;
        assert_eq!((shop[0].counts.clone(), &shop[1].counts), (SubjectCounts::default(), second));
        let queues = read(store, &SeriesSubject::Queues, from, 3 * MINUTE, MINUTE).await;
        assert_eq!(queues, points);
        let create = SeriesSubject::Operation("create".to_owned());
        for subject in [create, SeriesSubject::Operations] {
            let counted = total(&read(store, &subject, from, 3 * MINUTE, MINUTE).await);
            assert_eq!((counted.accepted(), counted.executed, counted.sent), (1, 1, 0));
        }
        // The end is exclusive.
        assert_eq!(sent(&read(store, &orders(), from, MINUTE, MINUTE).await), [0]);
    }

    #[test]
    async fn models_are_counted_apart_from_queues(fixture: StoreFixture) {
        let (store, from) = (&fixture.store, begin_hour(&[&fixture.store]).await);
        let counters = store.counters();
        counters.serve("orders", "shop");
        counters.executed("orders", 5);
        counters.throttled("orders");
        counters.model_called("a model", false);
        counters.model_called("a model", true);
        counters.model_throttled("a model");
        counters.model_replied("a model", 300, 20);
        counters.model_billed_twice("a model", 2);
        counters.model_called("other", false);
        store.series().flush().await.unwrap();
        let model = SeriesSubject::Model("a model".to_owned());
        let counted = SubjectCounts {
            executed: 2, retried: 1, throttled: 1, tokens_in: 300, tokens_out: 20, billed_twice: 2, ..SubjectCounts::default()
        };
        assert_eq!(total(&read(store, &model, from, HOUR, MINUTE).await), counted);
        assert_eq!(total(&read(store, &SeriesSubject::Models, from, HOUR, MINUTE).await).executed, 3);
        let models = store.series().by_model(HOURS_KEPT).await.unwrap();
        assert_eq!((models.len(), &models[&model]), (2, &counted));
        let all = store.series().by_subject(5 * MINUTE).await.unwrap();
        let shop = &all[&SeriesSubject::Destination("shop".to_owned())];
        assert_eq!((shop.executed, shop.throttled, all.len()), (5, 1, 6));
        // Alerts see neither.
        let alerted = store.series().sums(5 * MINUTE).await.unwrap();
        assert_eq!(alerted.len(), 1, "{alerted:?}");
        store.advance_clock(6 * MINUTE);
        assert!(store.series().by_subject(5 * MINUTE).await.unwrap().is_empty());
        assert_eq!(store.series().by_model(HOUR).await.unwrap().len(), 2);
    }

    #[test]
    async fn nodes_are_merged_and_so_are_their_durations(fixture: StoreFixture) {
        let node = fixture.another_node().await;
        let from = begin_hour(&[&fixture.store, &node]).await;
        let all: Vec<_> = (1..=100).map(|number| Duration::from_millis(number * 10)).collect();
        let (some, others) = all.split_at(30);
        send(&fixture.store, some).await;
        send(&node, others).await;
        let points = read(&node, &orders(), from, MINUTE, MINUTE).await;
        let left = &points[0].counts.left;
        assert_eq!((sent(&points), left.count(), left.micros), (vec![100], 100, 50_500_000));
        for (percent, exact) in [(50, 0.5), (99, 0.99)] {
            let found = left.percentile(percent).value;
            assert!((exact * 0.8..=exact * 1.26).contains(&found), "p{percent} {found}");
        }
    }

    #[test]
    async fn a_step_sums_its_minutes(fixture: StoreFixture) {
        let from = begin_hour(&[&fixture.store]).await;
        for minute in 0..12 {
            send(&fixture.store, &vec![Duration::from_secs(minute); 1 + usize::from(minute == 7)]).await;
            fixture.pass(MINUTE);
        }
        let of = async |length, step| sent(&read(&fixture.store, &orders(), from, length, step).await);
        assert_eq!(of(12 * MINUTE, 5 * MINUTE).await, [5, 6, 2]);
        assert_eq!(of(20 * MINUTE, 10 * MINUTE).await, [11, 2]);
        assert_eq!(of(HOUR, HOUR).await, [13]);
        // Steps begin at multiples of their length.
        let late = read(&fixture.store, &orders(), from.plus(3 * MINUTE), MINUTE, 5 * MINUTE).await;
        assert_eq!((late[0].at, sent(&late)), (from, vec![5]));
        assert_eq!(sent(&read(&fixture.store, &SeriesSubject::Queue("mail".to_owned()), from, HOUR, MINUTE).await), [0; 60]);
    }

    #[test]
    async fn rolled_up_hours_are_the_sums_of_their_minutes(fixture: StoreFixture) {
        let (store, from) = (&fixture.store, begin_hour(&[&fixture.store]).await);
        for (pause, took) in [(30 * MINUTE, 1), (30 * MINUTE, 2), (3 * HOUR, 3), (10 * MINUTE, 4), (Duration::ZERO, 5)] {
            fixture.enqueue(&format!("k{took}")).await;
            send(store, &[Duration::from_secs(took), Duration::from_millis(took)]).await;
            fixture.pass(pause);
        }
        let hours = async || read(store, &orders(), from, 5 * HOUR, HOUR).await;
        let before = hours().await;
        assert_eq!(sent(&before), [4, 2, 0, 0, 4]);
        assert_eq!(total(&before), total(&read(store, &orders(), from, 5 * HOUR, MINUTE).await));
        // Two hours with counts are over, one after the other; the last one is not.
        assert_ne!(store.series().roll_up().await.unwrap(), 0);
        assert_eq!(hours().await, before);
        assert_ne!(store.series().roll_up().await.unwrap(), 0);
        assert_eq!(store.series().roll_up().await.unwrap(), 0);
        assert_eq!(hours().await, before);
        assert_eq!(sent(&read(store, &orders(), from, 24 * HOUR, 24 * HOUR).await).iter().sum::<u64>(), 10);
        // What is counted now is there at once.
        send(store, &[MINUTE]).await;
        assert_eq!(sent(&hours().await), [4, 2, 0, 0, 5]);
        fixture.pass(HOUR);
        assert_ne!(store.series().roll_up().await.unwrap(), 0);
        assert_eq!(sent(&hours().await), [4, 2, 0, 0, 5]);
        execute(&fixture, "DELETE FROM ichido.counters", "DELETE FROM ichido_counters").await;
        assert_eq!(sent(&hours().await), [4, 2, 0, 0, 5], "from the hours alone");
    }

    /// A statement for the hour may still be running.
    #[test]
    async fn an_hour_is_rolled_up_a_minute_after_its_end(fixture: StoreFixture) {
        begin_hour(&[&fixture.store]).await;
        send(&fixture.store, &[MINUTE]).await;
        fixture.pass(HOUR);
        assert_eq!(fixture.store.series().roll_up().await.unwrap(), 0);
        fixture.pass(MINUTE);
        assert_ne!(fixture.store.series().roll_up().await.unwrap(), 0);
    }

    #[test]
    async fn failed_roll_up_leaves_nothing_and_is_repeated(fixture: StoreFixture) {
        let (store, from) = (&fixture.store, begin_hour(&[&fixture.store]).await);
        fixture.enqueue("k1").await;
        send(store, &[MINUTE, HOUR]).await;
        fixture.pass(2 * HOUR);
        let before = read(store, &orders(), from, HOUR, HOUR).await;
        refuse_roll_up(&fixture, true).await;
        store.series().roll_up().await.unwrap_err();
        assert_eq!(read(store, &orders(), from, HOUR, HOUR).await, before);
        refuse_roll_up(&fixture, false).await;
        assert_ne!(store.series().roll_up().await.unwrap(), 0);
        assert_eq!(read(store, &orders(), from, HOUR, HOUR).await, before);
    }

    /// Only one node has the task, but a slow one may not know yet that it lost it.
    #[test]
    async fn two_nodes_may_roll_up_the_same_hour(fixture: StoreFixture) {
        let node = fixture.another_node().await;
        let from = begin_hour(&[&fixture.store, &node]).await;
        send(&fixture.store, &[MINUTE, HOUR]).await;
        for store in [&fixture.store, &node] {
            store.advance_clock(2 * HOUR);
        }
        let before = read(&node, &orders(), from, HOUR, HOUR).await;
        let (one, other) = tokio::join!(fixture.store.series().roll_up(), node.series().roll_up());
        assert_ne!(one.unwrap() + other.unwrap(), 0);
        assert_eq!(read(&node, &orders(), from, HOUR, HOUR).await, before);
    }

    #[test]
    async fn minutes_are_kept_for_25_hours_and_hours_for_90_days(fixture: StoreFixture) {
        let (store, from) = (&fixture.store, begin_hour(&[&fixture.store]).await);
        let minutes = async || total(&read(store, &orders(), from, HOUR, MINUTE).await).sent;
        let hours = async || total(&read(store, &orders(), from, HOUR, HOUR).await).sent;
        send(store, &[MINUTE]).await;
        fixture.pass(MINUTE);
        send(store, &[MINUTE]).await;
        fixture.pass(MINUTES_KEPT.saturating_sub(2 * MINUTE));
        assert_eq!(store.series().sweep().await.unwrap(), 0);
        fixture.pass(MINUTE);
        assert_eq!(store.series().sweep().await.unwrap(), 0, "it is not rolled up yet");
        assert_ne!(store.series().roll_up().await.unwrap(), 0);
        assert_ne!(store.series().sweep().await.unwrap(), 0);
        assert_eq!((store.series().sweep().await.unwrap(), minutes().await, hours().await), (0, 1, 2));
        fixture.pass(MINUTE);
        assert_ne!(store.series().sweep().await.unwrap(), 0);
        assert_eq!((minutes().await, hours().await), (0, 2));
        fixture.pass(HOURS_KEPT.saturating_sub(MINUTES_KEPT + 2 * MINUTE));
        assert_eq!((store.series().sweep().await.unwrap(), hours().await), (0, 2));
        fixture.pass(2 * MINUTE);
        assert_ne!(store.series().sweep().await.unwrap(), 0);
        assert_eq!((store.series().sweep().await.unwrap(), hours().await), (0, 0));
    }

    #[test]
    async fn counts_of_a_failed_flush_are_in_the_next(fixture: StoreFixture) {
        let (store, from) = (&fixture.store, begin_hour(&[&fixture.store]).await);
        store.counters().serve("orders", "shop");
        fixture.enqueue("k1").await;
        store.counters().sent("orders", &[MINUTE]);
        rename_counters(&fixture, false).await;
        store.series().flush().await.unwrap_err();
        rename_counters(&fixture, true).await;
        fixture.pass(MINUTE);
        send(store, &[HOUR]).await;
        for (subject, accepted) in
            [(orders(), 1), (SeriesSubject::Queues, 1), (SeriesSubject::Destination("shop".to_owned()), 0)]
        {
            let points = read(store, &subject, from, 2 * MINUTE, MINUTE).await;
            assert_eq!((sent(&points), points[1].counts.accepted()), (vec![0, 2], accepted), "{subject}");
        }
    }

    /// A worker that stops aborts its maintenance.
    #[test]
    async fn counts_survive_a_caller_that_stops_waiting_for_their_flush(fixture: StoreFixture) {
        let (store, from) = (&fixture.store, begin_hour(&[&fixture.store]).await);
        store.counters().sent("orders", &[MINUTE]);
        // Polled once. A quick writer may have it done by then.
        tokio::select! { biased; done = store.series().flush() => done.unwrap(), () = ready(()) => {} }
        store.series().flush().await.unwrap();
        assert_eq!(sent(&read(store, &orders(), from, MINUTE, MINUTE).await), [1]);
    }

    /// One tenant's name must not select the counts of another.
    #[test]
    async fn a_subject_is_compared_exactly(fixture: StoreFixture) {
        let from = begin_hour(&[&fixture.store]).await;
        assert_eq!(queue().as_str(), "orders");
        send(&fixture.store, &[MINUTE]).await;
        for name in ["order", "orders2", "ORDERS", "%", "queue orders"] {
            let points = read(&fixture.store, &SeriesSubject::Queue(name.to_owned()), from, HOUR, HOUR).await;
            assert_eq!(sent(&points), [0], "{name}");
        }
    }
}
