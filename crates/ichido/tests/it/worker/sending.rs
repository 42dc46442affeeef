//! Claiming messages and sending them.
// Spec: D3, D7, E2.

use std::time::Duration;

use ichido::destination::{Handler, JobSuccess};
use ichido::worker::{DestinationConfig, OutboundKey, QueueConfig};
use ichido_core::lifecycle::StateName;
use ichido_store::message::NewMessage;
use ichido_store::testing::while_busy;

use super::fixture::{
    FakeReceiver, LEASE, QUEUE, WorkerFixture, both_databases, key, many, message, message_of, queue,
};
use crate::handler_gate::HandlerGate;

both_databases! {
    #[test]
    async fn a_message_is_sent_once_and_its_audit_shows_it(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|_, _| async { Ok(JobSuccess { receipt: Some("o-1".to_owned()), ..JobSuccess::default() }) });
        let worker = fixture.work(handler);
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Sent).await;
        assert_eq!(receiver.count(), 1);
        let seen = &receiver.calls()[0];
        assert_eq!((seen.attempt, seen.identity.as_str(), &seen.body[..]), (1, "alice", &b"{\"n\":\"k1\"}"[..]));
        let steps = fixture.transitions(id).await;
        let last = steps.last().unwrap();
        assert_eq!((last.to, last.receipt.as_deref(), last.node), (StateName::Sent, Some("o-1"), Some(worker.id())));
        assert_eq!(last.fence, Some(seen.fence));
        worker.stop();
        worker.ended().await;
    }

    #[test]
    async fn new_work_wakes_an_idle_worker_at_once(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        // It would poll only after the test is over.
        let worker = fixture.builder_with(receiver.done(), |_| ()).idle_sleep(Duration::from_hours(1));
        let _worker = worker.start().unwrap();
        // Whichever of the two begins first.
        for key in ["k1", "k2", "k3"] {
            let id = fixture.put(key).await;
            fixture.until(id, StateName::Sent).await;
        }
    }

    // Spec: H9. That fewer apply as attempts end is a test of `worker::slots`.
    #[test]
    async fn operator_raises_the_parallelism_of_a_running_worker(fixture: WorkerFixture) {
        for number in 0..3 {
            fixture.put(&format!("k{number}")).await;
        }
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let handler = receiver.done_after(&gate);
        let _worker = fixture.work_as(handler, |queue| queue.parallelism = many(1));
        gate.reached(1).await;
        let queues = fixture.store.queues();
        queues.set_parallelism(&queue(QUEUE), Some(many(3)), Some("ann")).await.unwrap();
        gate.reached(3).await;
        gate.open(3);
        fixture.until_count(StateName::Sent, 3).await;
    }

    #[test]
    async fn messages_above_free_slots_wait_and_fill_freed_slots(fixture: WorkerFixture) {
        for number in 0..6 {
            fixture.put(&format!("k{number}")).await;
        }
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let handler = receiver.done_after(&gate);
        let _worker = fixture.work_as(handler, |queue| {
            queue.parallelism = many(2);
            queue.batch_size = many(4);
        });
        gate.reached(2).await;
        // Four are claimed: two run, two are held. The last two are left to others.
        fixture.until_count(StateName::Sending, 4).await;
        assert_eq!((fixture.count(StateName::Queued).await, gate.arrived()), (2, 2));
        gate.open(1);
        gate.reached(3).await;
        fixture.until_count(StateName::Sent, 1).await;
        assert_eq!(gate.arrived(), 3);
        gate.open(5);
        fixture.until_count(StateName::Sent, 6).await;
        assert_eq!(receiver.count(), 6);
    }

    #[test]
    async fn slow_message_delays_no_queue(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let inside = gate.clone();
        let slow = receiver.handler(move |_, job| {
            let gate = inside.clone();
            async move {
                if &job.payload[..] == b"{\"n\":\"slow\"}" {
                    gate.pass().await;
                }
                Ok(JobSuccess::default())
            }
        });
        let other = FakeReceiver::default();
        let worker = fixture.builder_with(slow, |queue| queue.parallelism = many(2));
        let worker = worker.handler("mail", other.done()).start().unwrap();
        let stuck = fixture.put("slow").await;
        gate.reached(1).await;
        for number in 0..20 {
            fixture.put(&format!("k{number}")).await;
            fixture.put_in(NewMessage::new(queue("mail"), "alice", key(&format!("m{number}")), Vec::new())).await;
        }
        fixture.until_count(StateName::Sent, 40).await;
        assert_eq!(fixture.row(stuck).await.status, StateName::Sending);
        gate.open(1);
        fixture.until(stuck, StateName::Sent).await;
        drop(worker);
    }

    // Spec: D7.
    #[test]
    async fn a_queue_is_not_served_under_another_kind_of_key(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let first = fixture.work(receiver.done());
        let sent = fixture.put("k1").await;
        fixture.until(sent, StateName::Sent).await;
        first.stop();
        first.ended().await;
        let other = fixture.another_node().await;
        let waiting = other.put("k2").await;
        let changed = other.work_as(receiver.done(), |queue| queue.outbound_key = OutboundKey::Own);
        // On its own: nobody stops it.
        changed.ended().await;
        let row = other.row(waiting).await;
        assert_eq!((row.status, row.attempts, receiver.count()), (StateName::Queued, 0, 1));
        let _again = other.work(receiver.done());
        other.until(waiting, StateName::Sent).await;
    }

    // Spec: D7.
    #[test]
    async fn two_identities_with_one_key_are_two_keys_at_the_destination(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let _worker = fixture.work(receiver.done());
        for identity in ["alice", "bob"] {
            let id = fixture.put_in(message_of(identity, "same")).await;
            fixture.until(id, StateName::Sent).await;
        }
        let calls = receiver.calls();
        assert_eq!(calls.len(), 2);
        assert_ne!(calls[0].key, calls[1].key);
        for call in calls {
            assert_eq!(call.key, OutboundKey::Derived.key_for(&queue(QUEUE), &call.identity, &key("same")).as_str());
        }
    }

    // Spec: D7.
    #[test]
    async fn a_queue_of_unique_keys_sends_the_clients_own(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let _worker = fixture.work_as(receiver.done(), |queue| queue.outbound_key = OutboundKey::Own);
        let id = fixture.put("0190b0a0-7c1e-7c1e-8c1e-0190b0a07c1e").await;
        fixture.until(id, StateName::Sent).await;
        assert_eq!(receiver.calls()[0].key, "0190b0a0-7c1e-7c1e-8c1e-0190b0a07c1e");
    }

    /// Many workers over many messages, each done once.
    // Spec: D3, D16.
    #[test]
    async fn sixteen_workers_send_each_of_many_messages_once(fixture: WorkerFixture) {
        const MESSAGES: usize = 400;
        let receiver = FakeReceiver::default();
        let handler = receiver.done();
        let workers: Vec<_> = (0..16).map(|_| fixture.work(handler.clone())).collect();
        let messages = (0..MESSAGES).map(|number| message(&format!("k{number}"))).collect();
        for answer in fixture.store.messages().enqueue_all(messages).await {
            answer.unwrap();
        }
        fixture.until_count(StateName::Sent, 400).await;
        let mut called: Vec<_> = receiver.calls().into_iter().map(|seen| seen.message).collect();
        called.sort_unstable();
        called.dedup();
        assert_eq!((called.len(), receiver.count()), (MESSAGES, MESSAGES));
        for worker in &workers {
            worker.stop();
        }
        for worker in &workers {
            worker.ended().await;
        }
    }

    /// One key enqueued ten times at once is sent once.
    // Spec: D16.
    #[test]
    async fn key_enqueued_ten_times_at_once_is_sent_once(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let _workers = [fixture.work(receiver.done()), fixture.work(receiver.done())];
        let putting: Vec<_> = (0..10)
            .map(|_| {
                let store = fixture.store.clone();
                tokio::spawn(async move { while_busy(|| store.messages().enqueue(message("same"))).await })
            })
            .collect();
        for put in putting {
            put.await.unwrap();
        }
        let last = fixture.put("last").await;
        fixture.until(last, StateName::Sent).await;
        fixture.until_count(StateName::Sent, 2).await;
        assert_eq!(receiver.count(), 2);
    }

    #[test]
    async fn destination_of_two_queues_limits_calls_of_both(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let inside = gate.clone();
        let handler: Handler = receiver.handler(move |_, _| {
            let gate = inside.clone();
            async move {
                gate.pass().await;
                Ok(JobSuccess::default())
            }
        });
        let target = DestinationConfig { max_parallel: Some(many(2)), ..DestinationConfig::new("broker", handler) };
        let queue_to = |name: &str| QueueConfig { lease: LEASE, ..QueueConfig::new(name, "broker") };
        let worker = fixture.builder().destination(target).queue(queue_to(QUEUE)).queue(queue_to("mail"));
        let _worker = worker.start().unwrap();
        for number in 0..4 {
            fixture.put(&format!("k{number}")).await;
            fixture.put_in(NewMessage::new(queue("mail"), "alice", key(&format!("m{number}")), Vec::new())).await;
        }
        fixture.until_count(StateName::Sending, 8).await;
        gate.reached(2).await;
        for sent in 1..=8 {
            assert_eq!(gate.arrived(), (sent + 1).min(8));
            gate.open(1);
            gate.reached((sent + 2).min(8)).await;
        }
        fixture.until_count(StateName::Sent, 8).await;
    }

    #[test]
    async fn paused_queue_is_not_served(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        fixture.store.queues().pause(&queue(QUEUE), true, Some("olivia")).await.unwrap();
        let _worker = fixture.builder_with(receiver.done(), |_| ()).handler("mail", receiver.done()).start().unwrap();
        let paused = fixture.put("k1").await;
        // Once another queue's message is sent, the worker has looked.
        let other = fixture.put_in(NewMessage::new(queue("mail"), "alice", key("m"), Vec::new())).await;
        fixture.until(other, StateName::Sent).await;
        assert_eq!(fixture.row(paused).await.status, StateName::Queued);
        fixture.store.queues().pause(&queue(QUEUE), false, Some("olivia")).await.unwrap();
        fixture.until(paused, StateName::Sent).await;
    }
}
