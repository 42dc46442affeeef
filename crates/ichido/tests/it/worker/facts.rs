//! The facts that a worker publishes of its queues, so operators need no settings.

use std::time::Duration;

use ichido::dead_letters::RequeuePolicies;
use ichido::destination::JobError;
use ichido_core::lifecycle::StateName;
use ichido_core::retry::Guarantee;
use ichido_store::dead_letter::DeadLetterFilter;
use ichido_store::facts::PublishedQueue;

use super::fixture::{DAY, FakeReceiver, QUEUE, WorkerFixture, both_databases, many, only, poll_pause};

async fn published(fixture: &WorkerFixture) -> PublishedQueue {
    only(fixture.store.facts().list().await.unwrap())
}

both_databases! {
    #[test]
    async fn a_worker_that_started_has_published_its_queues(fixture: WorkerFixture) {
        let builder = fixture.builder_with(FakeReceiver::default().done().keyed(DAY), |queue| {
            queue.requeue = Some(true);
            queue.retry.max_attempts = many(3);
        });
        let worker = builder.name("web-1").start().unwrap();
        worker.started().await;
        let queue = published(&fixture).await;
        assert_eq!((queue.queue.as_str(), queue.key_kind.as_str()), (QUEUE, "derived"));
        assert_eq!(queue.facts.guarantee, Guarantee::Keyed { keeps_for: DAY });
        assert_eq!((queue.facts.requeue, queue.facts.max_attempts), (true, many(3)));
        // Two backoffs of ten minutes, and three calls.
        assert!(Duration::from_mins(20) <= queue.facts.retry_horizon, "{queue:?}");
        let (node, _) = only(queue.nodes);
        assert_eq!((node.id, node.name.as_str()), (worker.id(), "web-1"));
    }

    #[test]
    async fn a_worker_that_ended_leaves_its_facts_until_the_next_one_differs(fixture: WorkerFixture) {
        let worker = fixture.work_as(FakeReceiver::default().done().idempotent(), |queue| queue.requeue = Some(true));
        worker.started().await;
        worker.stop();
        worker.ended().await;
        fixture.pass(DAY);
        assert!(published(&fixture).await.facts.requeue);
        let next = fixture.work(FakeReceiver::default().done());
        next.started().await;
        let queue = published(&fixture).await;
        assert_eq!((queue.facts.requeue, queue.facts.guarantee), (false, Guarantee::None));
    }

    #[test]
    async fn requeue_defaults_to_guarantee(fixture: WorkerFixture) {
        for (receiver, expected) in [
            (FakeReceiver::default().done().idempotent(), true),
            (FakeReceiver::default().done().keyed(DAY), true),
            (FakeReceiver::default().done(), false),
        ] {
            let worker = fixture.work(receiver);
            worker.started().await;
            assert_eq!(published(&fixture).await.facts.requeue, expected);
            worker.stop();
            worker.ended().await;
            fixture.pass(DAY);
        }
    }

    /// Another node considered it gone, as after its machine was suspended.
    #[test]
    async fn a_worker_whose_facts_were_forgotten_publishes_them_again(fixture: WorkerFixture) {
        let worker = fixture.work(FakeReceiver::default().done().idempotent());
        worker.started().await;
        let other = fixture.another_node().await;
        other.pass(DAY);
        let other = other.work(FakeReceiver::default().done().idempotent());
        other.started().await;
        fixture.pass(DAY);
        while !published(&fixture).await.nodes.iter().any(|(node, _)| node.id == worker.id()) {
            poll_pause().await;
        }
    }

    #[test]
    async fn dead_letters_are_judged_by_published_facts(fixture: WorkerFixture) {
        let refusing = FakeReceiver::default().handler(|_, _| async { Err(JobError::dead("no")) });
        let worker = fixture.work_as(refusing, |queue| queue.requeue = Some(true));
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Dead).await;
        let letter = only(fixture.store.dead_letters().page(&DeadLetterFilter::default(), None, 10).await.unwrap());
        let now = fixture.store.now().await.unwrap();
        let policies = RequeuePolicies::published(&fixture.store).await.unwrap();
        assert_eq!(policies.judge(&letter.traits(), now), Ok(()));
        drop(worker);
    }
}
