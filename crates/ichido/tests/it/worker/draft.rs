//! An invalid worker does not start, and all errors are reported.

use std::time::Duration;

use ichido::destination::{Handler, Job};
use ichido::worker::{DestinationConfig, QueueConfig, Worker, WorkerConfigError, limits};
use ichido_core::retry::{Jitter, Retry, Schedule, ScheduleError};

use super::fixture::{FakeReceiver, WorkerFixture, both_databases, many};

both_databases! {
    #[test]
    async fn all_errors_are_reported_together(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let seconds = Duration::from_secs;
        let short = QueueConfig { lease: seconds(20), ..QueueConfig::new("short", "slow") };
        let unkept = Retry { schedule: Schedule::List(Vec::new()), jitter: Jitter::None, max_attempts: many(1) };
        let broken = QueueConfig {
            batch_size: many(5_001),
            parallelism: many(100_001),
            lease: Duration::from_millis(1),
            retry: unkept,
            ..QueueConfig::new("no blanks", "nowhere")
        };
        let errors = Worker::new(fixture.store.clone())
            .name("")
            .idle_sleep(Duration::ZERO)
            .destination(DestinationConfig::new("slow", receiver.done().timeout(seconds(20))))
            .destination(DestinationConfig::new("slow", receiver.done()))
            .destination(DestinationConfig::new("", receiver.done()))
            .queue(short.clone())
            .queue(short)
            .queue(broken)
            .start()
            .unwrap_err();
        let too_short = || WorkerConfigError::LeaseTooShort { queue: "short".to_owned(), lease: seconds(20), timeout: seconds(20) };
        let (queue, destination) = ("no blanks".to_owned(), "nowhere".to_owned());
        let expected = [
            WorkerConfigError::NoIdleSleep,
            WorkerConfigError::WorkerName,
            WorkerConfigError::DuplicateDestination { name: "slow".to_owned() },
            WorkerConfigError::DestinationName { name: String::new() },
            too_short(),
            WorkerConfigError::DuplicateQueue { queue: "short".to_owned() },
            too_short(),
            WorkerConfigError::QueueName { queue: queue.clone() },
            WorkerConfigError::NoDestination { queue: queue.clone(), destination },
            WorkerConfigError::LeaseBelowMinimum { queue: queue.clone(), lease: Duration::from_millis(1) },
            WorkerConfigError::TooMany { queue: queue.clone(), what: "batch_size", found: 5_001, max: 5_000 },
            WorkerConfigError::TooMany { queue: queue.clone(), what: "parallelism", found: 100_001, max: 100_000 },
            WorkerConfigError::Retry { queue, error: ScheduleError::EmptyList },
        ];
        assert_eq!(&errors[..], &expected);
        let text = errors.to_string();
        assert!(text.contains("queue `short`: the lease, 20s, must be longer than the destination's timeout, 20s"), "{text}");
        assert_eq!(text.lines().count(), expected.len());
    }

    #[test]
    async fn a_worker_without_a_queue_is_refused(fixture: WorkerFixture) {
        let errors = fixture.builder().start().unwrap_err();
        assert_eq!(&errors[..], &[WorkerConfigError::NoQueue]);
    }

    #[test]
    async fn the_defaults_start(fixture: WorkerFixture) {
        let worker = Worker::new(fixture.store.clone()).handler("orders", Handler::json(|_: Job<u64>| async { Ok(()) }));
        let worker = worker.start().unwrap();
        worker.stop();
        worker.ended().await;
    }
}

/// The defaults, without a configuration.
// Spec: D15.
#[test]
fn defaults_match_the_specification() {
    let queue = QueueConfig::new("orders", "broker");
    assert_eq!((queue.batch_size.get(), queue.parallelism.get(), queue.retry.max_attempts.get()), (32, 4, 9));
    assert_eq!(
        (queue.lease, limits::IDLE_SLEEP_DEFAULT),
        (Duration::from_mins(10), Duration::from_millis(200))
    );
}
