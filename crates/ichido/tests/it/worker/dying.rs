//! Workers that die or hang.
// Spec: D12, E1, E2, F2.

use std::path::Path;
use std::time::Duration;

use ichido::destination::{Handler, JobSuccess};
use ichido::worker::{DestinationConfig, QueueConfig};
use ichido_core::clock::{HEARTBEAT_DEADLINE, HEARTBEAT_EVERY};
use ichido_core::lifecycle::StateName;
use ichido_core::pace::PerSecond;
use ichido_core::retry::{Guarantee, Schedule};
use ichido_core::verdict::Effect;
use ichido_store::message::NewMessage;
use ichido_store::node::NodeRow;
use uuid::Uuid;

use super::fixture::{
    AFTER_LEASE, BACKOFF, DAY, FakeReceiver, LEASE, WorkerFixture, backoff, both_databases, key, many,
    message, poll_pause, queue,
};
use crate::handler_gate::HandlerGate;

/// The time between two slots of a rarely called destination: no test gets there unless it lets time pass.
const SPACING: Duration = Duration::from_hours(1);

/// A lease that no test reaches: a death is noticed by the heartbeat.
const LONG_LEASE: Duration = Duration::from_hours(12);

/// A handler whose first call waits at a gate.
fn first_gated(receiver: &FakeReceiver, gate: &HandlerGate) -> Handler {
    let gate = gate.clone();
    receiver.handler(move |number, _| {
        let gate = gate.clone();
        async move {
            if number == 1 {
                gate.pass().await;
            }
            Ok(JobSuccess::default())
        }
    })
}

/// Removes the lock files of nodes on SQLite, so heartbeats alone count. Returns how many there were.
fn remove_locks(fixture: &WorkerFixture) -> usize {
    let Some(path) = fixture.url.strip_prefix("sqlite:") else { return 0 };
    let files =
        std::fs::read_dir(Path::new(path).parent().unwrap()).unwrap().map(|file| file.unwrap().path());
    let locks: Vec<_> = files.filter(|file| file.to_string_lossy().contains("-node-")).collect();
    for lock in &locks {
        std::fs::remove_file(lock).unwrap();
    }
    locks.len()
}

async fn own_row(fixture: &WorkerFixture, node: Uuid) -> NodeRow {
    let nodes = fixture.store.nodes().list().await.unwrap();
    nodes.into_iter().find(|row| row.id == node).unwrap()
}

both_databases! {
    /// The death counts as an attempt, and the message is sent again under the same key and a greater fence.
    // Spec: D12, E1.
    #[test]
    async fn message_of_dead_worker_is_resent_if_keyed(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let worker = fixture.work(first_gated(&receiver, &gate).keyed(DAY));
        let id = fixture.put("k1").await;
        gate.reached(1).await;
        drop(worker);
        let other = fixture.another_node().await;
        other.pass(AFTER_LEASE);
        let _worker = other.work(first_gated(&receiver, &gate).keyed(DAY));
        let row = other.until(id, StateName::Failed).await;
        assert_eq!((row.attempts, row.effect), (1, Effect::Unknown));
        other.pass(BACKOFF);
        other.until(id, StateName::Sent).await;
        let calls = receiver.calls();
        assert_eq!((calls.len(), &calls[0].key), (2, &calls[1].key));
        assert!(calls[0].fence < calls[1].fence);
    }

    /// Started messages are parked, unstarted ones are sent.
    // Spec: F2.
    #[test]
    async fn dead_worker_without_keys_parks_only_started_messages(fixture: WorkerFixture) {
        let mut ids = Vec::new();
        for number in 0..3 {
            ids.push(fixture.put(&format!("k{number}")).await);
        }
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let worker = fixture.work_as(first_gated(&receiver, &gate), |queue| queue.parallelism = many(1));
        gate.reached(1).await;
        fixture.until_count(StateName::Sending, 3).await;
        drop(worker);
        let other = fixture.another_node().await;
        other.pass(AFTER_LEASE);
        let _worker = other.work(first_gated(&receiver, &gate));
        let row = other.until(ids[0], StateName::Parked).await;
        assert_eq!(row.effect, Effect::Unknown);
        for id in &ids[1..] {
            let row = other.until_row(*id, |row| row.status == StateName::Sent).await;
            assert_eq!((row.attempts, receiver.calls_of(*id)), (1, 1));
        }
        assert_eq!(receiver.calls_of(ids[0]), 1);
    }

    /// A message called without a promise about keys is not called again by a worker with one.
    // Spec: F2, D12.
    #[test]
    async fn call_made_without_keys_is_not_repeated_by_keyed_worker(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let worker = fixture.work(first_gated(&receiver, &gate));
        let id = fixture.put("k1").await;
        gate.reached(1).await;
        drop(worker);
        let other = fixture.another_node().await;
        other.pass(AFTER_LEASE);
        let _worker = other.work(first_gated(&receiver, &gate).keyed(DAY));
        let row = other.until_row(id, |row| row.status != StateName::Sending).await;
        assert_eq!((row.status, row.effect), (StateName::Parked, Effect::Unknown));
        assert_eq!(receiver.count(), 1);
    }

    /// A worker suspended past its lease starts no further call, and cannot settle.
    // Spec: D12.
    #[test]
    async fn stuck_worker_does_not_call_after_its_lease(fixture: WorkerFixture) {
        for (round, marks) in [(1, false), (2, true)] {
            let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
            let mut ids = Vec::new();
            for number in 0..2 {
                ids.push(fixture.put(&format!("{marks}{number}")).await);
            }
            let stuck = fixture.work_as(first_gated(&receiver, &gate).keyed(DAY), |queue| {
                queue.parallelism = many(1);
                queue.start_marks = Some(marks);
            });
            gate.reached(1).await;
            fixture.until_count(StateName::Sending, 2).await;
            // To the others its lease has lapsed, and they take everything.
            let other = fixture.another_node().await;
            other.pass(AFTER_LEASE * round);
            let elsewhere = FakeReceiver::default();
            let worker = other.work(elsewhere.done().keyed(DAY));
            for id in &ids {
                other.until(*id, StateName::Sent).await;
            }
            worker.stop();
            worker.ended().await;
            // It resumes and finds that time has passed. Its next message shows that it has processed what it held.
            fixture.pass(AFTER_LEASE);
            gate.open(1);
            let after = fixture.put(&format!("{marks}-after")).await;
            fixture.until(after, StateName::Sent).await;
            assert_eq!((receiver.count(), elsewhere.count()), (2, 2), "marks: {marks}");
            assert_eq!(receiver.calls_of(after), 1);
            stuck.stop();
            stuck.ended().await;
            for id in ids {
                assert_eq!(fixture.row(id).await.status, StateName::Sent);
            }
            let same = elsewhere.calls().into_iter().find(|seen| seen.message == receiver.calls()[0].message);
            let same = same.unwrap();
            assert_eq!(same.key, receiver.calls()[0].key);
            assert!(receiver.calls()[0].fence < same.fence);
        }
    }

    /// The same past its heartbeat, although its lease runs for much longer.
    // Spec: D12.
    #[test]
    async fn worker_past_its_heartbeat_does_not_call(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let ids = [fixture.put("k1").await, fixture.put("k2").await];
        let stuck = fixture.work_as(first_gated(&receiver, &gate).keyed(DAY), |queue| {
            queue.parallelism = many(1);
            queue.lease = LONG_LEASE;
        });
        gate.reached(1).await;
        fixture.until_count(StateName::Sending, 2).await;
        remove_locks(&fixture);
        let other = fixture.another_node().await;
        other.pass(HEARTBEAT_DEADLINE);
        let elsewhere = FakeReceiver::default();
        let worker = other.work(elsewhere.done().keyed(DAY));
        for id in ids {
            other.until(id, StateName::Sent).await;
        }
        worker.stop();
        worker.ended().await;
        // It resumes. Its next message shows that it has processed what it held.
        fixture.pass(HEARTBEAT_DEADLINE);
        gate.open(1);
        let after = fixture.put("after").await;
        fixture.until(after, StateName::Sent).await;
        assert_eq!((receiver.count(), elsewhere.count()), (2, 2));
        assert_eq!(receiver.calls_of(after), 1);
        stuck.stop();
        stuck.ended().await;
    }

    /// A death is noticed although the lease runs for much longer.
    // Spec: D12.
    #[test]
    async fn message_of_dead_worker_is_rescued_before_its_lease_ends(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let handler = || first_gated(&receiver, &gate).keyed(DAY);
        let worker = fixture.work_as(handler(), |queue| queue.lease = LONG_LEASE);
        let id = fixture.put("k1").await;
        gate.reached(1).await;
        drop(worker);
        fixture.pass(HEARTBEAT_DEADLINE);
        let _next = fixture.work(handler());
        fixture.until(id, StateName::Failed).await;
        fixture.pass(BACKOFF);
        fixture.until(id, StateName::Sent).await;
        assert_eq!(receiver.count(), 2);
    }

    /// Otherwise others would take the messages of its last calls.
    // Spec: D12.
    #[test]
    async fn draining_worker_sends_heartbeats_until_its_calls_have_ended(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let worker = fixture.work(first_gated(&receiver, &gate).keyed(DAY));
        let id = fixture.put("k1").await;
        gate.reached(1).await;
        worker.stop();
        for _ in 0..3 {
            fixture.pass(HEARTBEAT_EVERY);
            let now = fixture.store.now().await.unwrap();
            while own_row(&fixture, worker.id()).await.seen_at < now {
                poll_pause().await;
            }
        }
        gate.open(1);
        worker.ended().await;
        assert_eq!(fixture.row(id).await.status, StateName::Sent);
        assert!(own_row(&fixture, worker.id()).await.gone);
        assert_eq!(remove_locks(&fixture), 0, "its own is removed");
    }

    /// A late response settles a parked message.
    // Spec: F2.
    #[test]
    async fn a_late_success_settles_what_was_parked(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let _late = fixture.work(first_gated(&receiver, &gate));
        let id = fixture.put("k1").await;
        gate.reached(1).await;
        let other = fixture.another_node().await;
        other.pass(AFTER_LEASE);
        let _worker = other.work(receiver.done());
        other.until(id, StateName::Parked).await;
        gate.open(1);
        fixture.until(id, StateName::Sent).await;
        assert_eq!(receiver.count(), 1);
    }

    /// Of the messages that a worker died with, one at a time is in a worker's hands; the others do not wait for it.
    // Spec: E2.
    #[test]
    async fn messages_of_dead_worker_are_rescued_one_at_a_time(fixture: WorkerFixture) {
        let gated = |receiver: &FakeReceiver, gate: &HandlerGate| {
            let gate = gate.clone();
            let handler = receiver.handler(move |_, job| {
                let gate = gate.clone();
                async move {
                    if &job.payload[..] != b"{\"n\":\"fresh\"}" {
                        gate.pass().await;
                    }
                    Ok(JobSuccess::default())
                }
            });
            handler.idempotent()
        };
        let mut ids = Vec::new();
        for number in 0..4 {
            ids.push(fixture.put(&format!("k{number}")).await);
        }
        let gate = HandlerGate::shut();
        let worker = fixture.work(gated(&FakeReceiver::default(), &gate));
        gate.reached(4).await;
        drop(worker);
        let other = fixture.another_node().await;
        other.pass(AFTER_LEASE);
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let _worker = other.work(gated(&receiver, &gate));
        for taken in 1..=4 {
            gate.reached(taken).await;
            let fresh = NewMessage { key: key(&format!("fresh{taken}")), ..message("fresh") };
            let fresh = fixture.put_in(fresh).await;
            other.until(fresh, StateName::Sent).await;
            let left = i64::try_from(4 - taken).unwrap();
            assert_eq!((gate.arrived(), other.count(StateName::Sending).await), (taken, 1));
            assert_eq!(other.count(StateName::Queued).await, left);
            gate.open(1);
        }
        for id in ids {
            assert_eq!(other.until(id, StateName::Sent).await.attempts, 1);
        }
    }

    /// It waits for a slot of its destination's pace, however often the process is killed meanwhile.
    // Spec: E2.
    #[test]
    async fn message_waiting_for_pace_is_not_charged_with_death(fixture: WorkerFixture) {
        for (round, guarantee) in [Guarantee::None, Guarantee::Idempotent, Guarantee::Keyed { keeps_for: DAY }].into_iter().enumerate() {
            let receiver = FakeReceiver::default();
            let worker = |node: &WorkerFixture| {
                let handler = match guarantee {
                    Guarantee::None => receiver.done(),
                    Guarantee::Idempotent => receiver.done().idempotent(),
                    Guarantee::Keyed { keeps_for } => receiver.done().keyed(keeps_for),
                    Guarantee::Transactional => panic!("not in the list"),
                };
                let mut target = DestinationConfig::new("broker", handler);
                target.pace.min_rate = PerSecond::MIN;
                target.pace.max_rate = Some(PerSecond::clamped(1.0 / SPACING.as_secs_f64()));
                let name = format!("paced{round}");
                let orders = QueueConfig { lease: LEASE, retry: backoff(), ..QueueConfig::new(&name, "broker") };
                node.builder().destination(target).queue(orders).handler("mail", FakeReceiver::default().done()).start().unwrap()
            };
            let put = async |key: &str| {
                let queue = queue(&format!("paced{round}"));
                fixture.put_in(NewMessage { queue, ..message(key) }).await
            };
            let mut node = fixture.another_node().await;
            let mut passed = SPACING * 3 * u32::try_from(round).unwrap();
            node.pass(passed);
            let running = worker(&node);
            let first = put("first").await;
            node.until(first, StateName::Sent).await;
            let waits = put("waits").await;
            let mut running = Some(running);
            for kill in 0..4 {
                // The worker could have claimed it by the time it has sent a message enqueued later.
                for mail in 0..3 {
                    let key = key(&format!("{round}-{kill}-{mail}"));
                    let mail = fixture.put_in(NewMessage::new(queue("mail"), "alice", key, Vec::new())).await;
                    node.until(mail, StateName::Sent).await;
                }
                let row = node.row(waits).await;
                assert_eq!((row.status, row.attempts), (StateName::Queued, 0), "{:?}", node.kinds(waits).await);
                drop(running.take());
                node = fixture.another_node().await;
                passed += AFTER_LEASE;
                node.pass(passed);
                running = Some(worker(&node));
            }
            node.pass(SPACING);
            let row = node.until_row(waits, |row| row.status != StateName::Queued && row.status != StateName::Sending).await;
            assert_eq!((row.status, row.attempts, receiver.calls_of(waits)), (StateName::Sent, 1, 1));
        }
    }

    /// It waits for a slot of its queue, behind a call that kills every worker.
    // Spec: E2.
    #[test]
    async fn message_waiting_for_turn_is_not_charged_with_death(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let (mut node, mut passed) = (fixture.another_node().await, Duration::ZERO);
        let worker = |node: &WorkerFixture| {
            let inside = gate.clone();
            let handler = receiver.handler(move |_, job| {
                let gate = inside.clone();
                async move {
                    if &job.payload[..] == b"{\"n\":\"bad\"}" {
                        gate.pass().await;
                    }
                    Ok(JobSuccess::default())
                }
            });
            node.work_as(handler.idempotent(), |queue| {
                queue.parallelism = many(1);
                queue.retry.schedule = Schedule::List(vec![Duration::from_millis(1)]);
            })
        };
        let bad = fixture.put_in(NewMessage { priority: 0, ..message("bad") }).await;
        let mut running = worker(&node);
        gate.reached(1).await;
        let waits = fixture.put("waits").await;
        // It is claimed, alone, and has no slot.
        node.until(waits, StateName::Sending).await;
        for deaths in 2.. {
            drop(running);
            node = fixture.another_node().await;
            passed += AFTER_LEASE;
            node.pass(passed);
            running = worker(&node);
            let ended = async |id| matches!(node.row(id).await.status, StateName::Sent | StateName::Dead | StateName::Parked);
            while gate.arrived() < deaths && !(ended(bad).await && ended(waits).await) {
                poll_pause().await;
            }
            if gate.arrived() < deaths {
                break;
            }
        }
        let row = node.row(waits).await;
        assert_eq!((row.status, receiver.calls_of(waits)), (StateName::Sent, 1), "{:?}", node.kinds(waits).await);
        let row = node.row(bad).await;
        assert_eq!((row.status, row.last_error.as_deref()), (StateName::Dead, Some("WORKER_DIED")));
        assert!(row.last_error_text.is_some_and(|text| !text.is_empty()));
    }

    /// A message that kills its worker is identified and dead-lettered; its neighbours are sent, and charged with nothing.
    // Spec: E2.
    #[test]
    async fn message_that_kills_workers_does_not_charge_others(fixture: WorkerFixture) {
        let mut good = Vec::new();
        let mut bad = None;
        for number in 0..8 {
            if number == 2 {
                bad = Some(fixture.put("bad").await);
            }
            good.push(fixture.put(&format!("k{number}")).await);
        }
        let bad = bad.unwrap();
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let mut deaths = 0;
        let mut node = fixture.another_node().await;
        let mut passed = Duration::ZERO;
        loop {
            let inside = gate.clone();
            let handler = receiver.handler(move |_, job| {
                let gate = inside.clone();
                async move {
                    if &job.payload[..] == b"{\"n\":\"bad\"}" {
                        gate.pass().await;
                    }
                    Ok(JobSuccess::default())
                }
            });
            let worker = node.work_as(handler.idempotent(), |queue| {
                queue.parallelism = many(3);
                queue.retry.schedule = Schedule::List(vec![Duration::from_millis(1)]);
            });
            // Either it meets the bad one, and dies of it, or finds it dead.
            while gate.arrived() == deaths && node.row(bad).await.status != StateName::Dead {
                poll_pause().await;
            }
            if gate.arrived() == deaths {
                // It holds other messages by now, and would kill them too.
                worker.stop();
                worker.ended().await;
                break;
            }
            deaths = gate.arrived();
            drop(worker);
            // The next worker finds the lease lapsed, and later the wait after a death, too.
            node = fixture.another_node().await;
            passed += AFTER_LEASE;
            node.pass(passed);
        }
        let _worker = node.work(receiver.done().idempotent());
        for id in good {
            let row = node.until(id, StateName::Sent).await;
            assert_eq!(row.attempts, 1, "{:?}", node.kinds(id).await);
        }
        let row = node.row(bad).await;
        // Once among others, which charges nobody, and twice alone.
        assert_eq!((receiver.calls_of(bad), row.effect), (3, Effect::Unknown));
    }
}
