//! An invalid worker does not start, and all errors are reported.

use std::time::Duration;

use ichido::destination::Job;
use ichido::worker::{BuildError, Queue, Target, Worker, limits};
use ichido_core::retry::{Jitter, Retry, Schedule, ScheduleError};

use super::fixture::{FakeReceiver, WorkerFixture, both_databases, many};

both_databases! {
    #[test]
    async fn all_errors_are_reported_together(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let seconds = Duration::from_secs;
        let short = Queue { lease: seconds(20), ..Queue::new("short", "slow") };
        let unkept = Retry { schedule: Schedule::List(Vec::new()), jitter: Jitter::None, tries: many(1) };
        let broken = Queue {
            batch_size: many(5_001),
            parallelism: many(100_001),
            lease: Duration::from_millis(1),
            retry: unkept,
            ..Queue::new("no blanks", "nowhere")
        };
        let errors = Worker::new(fixture.store.clone())
            .name("")
            .idle_sleep(Duration::ZERO)
            .destination(Target::new("slow", receiver.done().timeout(seconds(20))))
            .destination(Target::new("slow", receiver.done()))
            .destination(Target::new("", receiver.done()))
            .queue(short.clone())
            .queue(short)
            .queue(broken)
            .start()
            .unwrap_err();
        let too_short = || BuildError::LeaseTooShort { queue: "short".to_owned(), lease: seconds(20), timeout: seconds(20) };
        let (queue, destination) = ("no blanks".to_owned(), "nowhere".to_owned());
        let expected = [
            BuildError::NoIdleSleep,
            BuildError::WorkerName,
            BuildError::DestinationTwice { name: "slow".to_owned() },
            BuildError::DestinationName { name: String::new() },
            too_short(),
            BuildError::QueueTwice { queue: "short".to_owned() },
            too_short(),
            BuildError::QueueName { queue: queue.clone() },
            BuildError::NoDestination { queue: queue.clone(), destination },
            BuildError::LeaseBelowLeast { queue: queue.clone(), lease: Duration::from_millis(1) },
            BuildError::TooMany { queue: queue.clone(), what: "batch_size", found: 5_001, max: 5_000 },
            BuildError::TooMany { queue: queue.clone(), what: "parallelism", found: 100_001, max: 100_000 },
            BuildError::Retry { queue, error: ScheduleError::EmptyList },
        ];
        assert_eq!(&errors[..], &expected);
        let text = errors.to_string();
        assert!(text.contains("queue `short`: the lease, 20s, must be longer than the destination's timeout, 20s"), "{text}");
        assert_eq!(text.lines().count(), expected.len());
    }

    #[test]
    async fn a_worker_without_a_queue_is_refused(fixture: WorkerFixture) {
        let errors = fixture.builder().start().unwrap_err();
        assert_eq!(&errors[..], &[BuildError::NoQueue]);
    }

    #[test]
    async fn the_defaults_start(fixture: WorkerFixture) {
        let worker = Worker::new(fixture.store.clone()).handle("orders", |_: Job<u64>| async { Ok(()) });
        let worker = worker.start().unwrap();
        worker.stop();
        worker.ended().await;
    }
}

/// The defaults, without a configuration.
// Spec: D15.
#[test]
fn defaults_match_the_specification() {
    let queue = Queue::new("orders", "broker");
    assert_eq!((queue.batch_size.get(), queue.parallelism.get(), queue.retry.tries.get()), (32, 4, 9));
    assert_eq!(
        (queue.lease, limits::IDLE_SLEEP_DEFAULT),
        (Duration::from_mins(10), Duration::from_millis(200))
    );
}
