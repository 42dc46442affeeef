//! The pace that all workers share.
// Spec: B4, D6.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido::destination::{Handler, JobError, JobSuccess};
use ichido::worker::{DestinationConfig, PaceChange, Paces, QueueConfig, WorkerHandle};
use ichido_core::lifecycle::StateName;
use ichido_core::pace::{Circuit, CircuitSettings, PaceSettings, PerSecond, Rate};
use ichido_core::time::Timestamp;
use ichido_store::message::{MessageFilter, NewMessage};

use super::fixture::{
    BACKOFF, FakeReceiver, LEASE, QUEUE, WorkerFixture, backoff, both_databases, key, many, message,
    poll_pause, queue,
};

/// So long that no test reaches it without moving the clock.
const REST: Duration = Duration::from_hours(1);
const CIRCUIT: CircuitSettings = CircuitSettings {
    failures: NonZeroU32::new(3).unwrap(),
    rest: REST,
    max_rest: Duration::from_hours(8),
    probes: NonZeroU32::MIN,
};

/// A receiver that is up, and fails on every bad message.
fn bad_fail(receiver: &FakeReceiver) -> Handler {
    receiver.handler(|_, job| async move {
        if job.payload.starts_with(b"{\"n\":\"bad") {
            Err(JobError::unreachable("it broke"))
        } else {
            Ok(JobSuccess::default())
        }
    })
}

/// A worker whose destination has its own pace.
fn paced(
    fixture: &WorkerFixture,
    handler: Handler,
    change: impl FnOnce(&mut DestinationConfig),
) -> WorkerHandle {
    let mut target = DestinationConfig::new("broker", handler);
    change(&mut target);
    let orders = QueueConfig {
        lease: LEASE,
        parallelism: many(1),
        retry: backoff(),
        ..QueueConfig::new(QUEUE, "broker")
    };
    let worker = fixture.builder().destination(target).queue(orders);
    // Another destination, which shows that the worker continues.
    worker.handler("mail", FakeReceiver::default().done()).start().unwrap()
}

fn by_ann() -> PaceChange {
    PaceChange { by: "ann".to_owned(), at: Timestamp::from_secs(1) }
}

/// Waits until a worker has sent something to the other destination.
async fn goes_on(fixture: &WorkerFixture, name: &str) {
    let id = fixture.put_in(NewMessage::new(queue("mail"), "alice", key(name), Vec::new())).await;
    fixture.until(id, StateName::Sent).await;
}

/// Lets time pass while nothing is held or about to be: the claim would lapse with it.
async fn pass_at_rest(fixture: &WorkerFixture, time: Duration) {
    loop {
        let now = fixture.store.now().await.unwrap();
        let rows = fixture.store.messages().list(&MessageFilter::default(), 100).await.unwrap();
        let at_rest = rows.iter().all(|row| match row.status {
            StateName::Queued | StateName::Failed => row.next_attempt.is_some_and(|due| now < due),
            stage => stage != StateName::Sending,
        });
        if at_rest {
            return fixture.pass(time);
        }
        poll_pause().await;
    }
}

both_databases! {
    /// A throttle with a wait pauses every worker, and they continue automatically.
    // Spec: D6.
    #[test]
    async fn throttling_pauses_all_workers_as_long_as_asked(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|number, _| async move {
            if number == 1 { Err(JobError::throttled(Some(Duration::from_mins(30)), "slow down")) } else { Ok(JobSuccess::default()) }
        });
        let other = fixture.another_node().await;
        let _workers = [paced(&fixture, handler.clone(), |_| ()), paced(&other, handler, |_| ())];
        for name in ["m1", "m2"] {
            goes_on(&fixture, name).await;
        }
        let refused = fixture.put("k1").await;
        fixture.until(refused, StateName::Failed).await;
        let shared = Paces::new(fixture.store.clone()).read("broker").await.unwrap();
        assert!(fixture.store.now().await.unwrap().plus(Duration::from_mins(29)) < shared.pace.paused_until);
        assert!(matches!(shared.pace.rate, Rate::Paced(_)), "{shared:?}");
        let waiting = fixture.put("k2").await;
        for name in ["m3", "m4", "m5"] {
            goes_on(&fixture, name).await;
        }
        // If it were claimed, it would be given back with its attempt.
        fixture.until_row(waiting, |row| row.status == StateName::Queued && row.attempts == 0).await;
        assert_eq!(receiver.count(), 1);
        for node in [&fixture, &other] {
            node.pass(Duration::from_mins(40));
        }
        other.until(waiting, StateName::Sent).await;
        other.until(refused, StateName::Sent).await;
        assert_eq!(receiver.count(), 3);
    }

    /// Messages that were claimed when the pause began were given back.
    #[test]
    async fn paused_messages_continue_when_pause_is_lifted(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|number, _| async move {
            if number == 1 { Err(JobError::throttled(Some(Duration::from_mins(30)), "slow down")) } else { Ok(JobSuccess::default()) }
        });
        for number in 0..4 {
            fixture.put(&format!("k{number}")).await;
        }
        let at_most = |target: &mut DestinationConfig| target.pace.max_rate = Some(PerSecond::clamped(10.0));
        let _worker = paced(&fixture, handler, at_most);
        fixture.until_count(StateName::Failed, 1).await;
        fixture.until_count(StateName::Queued, 3).await;
        Paces::new(fixture.store.clone()).resume("broker").await.unwrap();
        fixture.pass(Duration::from_secs(15));
        fixture.until_count(StateName::Sent, 3).await;
    }

    #[test]
    async fn a_destination_that_an_operator_paused_is_not_called(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let paces = Paces::new(fixture.store.clone());
        paces.pause("broker", &by_ann()).await.unwrap();
        let _worker = paced(&fixture, receiver.done(), |_| ());
        let id = fixture.put("k0").await;
        for name in ["m1", "m2"] {
            goes_on(&fixture, name).await;
        }
        fixture.until_row(id, |row| row.status == StateName::Queued && row.attempts == 0).await;
        let shown = paces.read("broker").await.unwrap();
        assert_eq!((receiver.count(), shown.is_paused, shown.pause_change), (0, true, Some(by_ann())));
        paces.resume("broker").await.unwrap();
        fixture.until(id, StateName::Sent).await;
        assert_eq!(paces.read("broker").await.unwrap().pause_change, None);
    }

    /// All workers together respect a limit: no slot is granted twice.
    #[test]
    async fn a_rate_is_shared_by_all_workers(fixture: WorkerFixture) {
        const SPACING: Duration = Duration::from_millis(5);
        let before = fixture.store.now().await.unwrap();
        let receiver = FakeReceiver::default();
        let other = fixture.another_node().await;
        let at_most = |target: &mut DestinationConfig| target.pace.max_rate = Some(PerSecond::clamped(200.0));
        let _workers = [paced(&fixture, receiver.done(), at_most), paced(&other, receiver.done(), at_most)];
        for number in 0..40 {
            fixture.put(&format!("k{number}")).await;
        }
        fixture.until_count(StateName::Sent, 40).await;
        let shared = Paces::new(fixture.store.clone()).read("broker").await.unwrap();
        assert!(before.plus(SPACING * 39) <= shared.pace.last_slot, "{before} {shared:?}");
        assert_eq!(receiver.count(), 40);
    }

    #[test]
    async fn a_rate_is_set_while_workers_run(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let _worker = paced(&fixture, receiver.done(), |_| ());
        let paces = Paces::new(fixture.store.clone());
        let id = fixture.put("k0").await;
        fixture.until(id, StateName::Sent).await;
        assert_eq!(paces.read("broker").await.unwrap().pace.last_slot, Timestamp::EPOCH, "nothing limits it");
        let rate = PerSecond::clamped(100.0);
        paces.set_max_rate("broker", Some(rate), &by_ann()).await.unwrap();
        let before = fixture.store.now().await.unwrap();
        for number in 1..=10 {
            fixture.put(&format!("k{number}")).await;
        }
        fixture.until_count(StateName::Sent, 11).await;
        let shared = paces.read("broker").await.unwrap();
        assert_eq!(shared.max_rate, Some(rate));
        assert!(before.plus(Duration::from_millis(90)) <= shared.pace.last_slot, "{before} {shared:?}");
    }

    /// All workers leave a destination that is down alone, probe it after its rest, and then serve it.
    #[test]
    async fn destination_that_is_down_is_not_called(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|number, _| async move {
            if number <= 3 { Err(JobError::unreachable("refused")) } else { Ok(JobSuccess::default()) }
        });
        let _worker = paced(&fixture, handler, |target| target.pace = PaceSettings { circuit: CIRCUIT, ..PaceSettings::DEFAULT });
        let paces = Paces::new(fixture.store.clone());
        let mut ids = Vec::new();
        for number in 0..6 {
            ids.push(fixture.put(&format!("k{number}")).await);
        }
        while !matches!(paces.read("broker").await.unwrap().pace.circuit, Circuit::Open { .. }) {
            poll_pause().await;
        }
        fixture.until_count(StateName::Failed, 3).await;
        goes_on(&fixture, "m1").await;
        // Held messages were given back with their attempts.
        fixture.until_count(StateName::Sending, 0).await;
        assert_eq!((receiver.count(), fixture.count(StateName::Queued).await), (3, 3));
        fixture.pass(REST + Duration::from_mins(1));
        for id in &ids[3..] {
            fixture.until(*id, StateName::Sent).await;
        }
        // Those that have failed gave way to them.
        pass_at_rest(&fixture, REST).await;
        fixture.until_count(StateName::Sent, 7).await;
        assert_eq!(receiver.count(), 9);
        assert!(matches!(paces.read("broker").await.unwrap().pace.circuit, Circuit::Closed { .. }));
    }

    /// Messages that always fail open no circuit for the good ones among them, however often they are retried.
    // Spec: E2.
    #[test]
    async fn failing_messages_do_not_delay_good_ones(fixture: WorkerFixture) {
        const ATTEMPTS: u32 = 4;
        let receiver = FakeReceiver::default();
        let _worker = paced(&fixture, bad_fail(&receiver), |target| target.pace = PaceSettings { circuit: CIRCUIT, ..PaceSettings::DEFAULT });
        let paces = Paces::new(fixture.store.clone());
        let (mut bad, mut good) = (Vec::new(), Vec::new());
        // Never as many bad ones in a row as open the circuit, while none has failed before.
        for number in 0..10 {
            bad.push(fixture.put_in(NewMessage { max_attempts: many(ATTEMPTS), ..message(&format!("bad{number}")) }).await);
            good.push(fixture.put(&format!("good{number}")).await);
            fixture.until(good[number], StateName::Sent).await;
        }
        for round in 1..ATTEMPTS {
            for id in &bad {
                let row = fixture.until(*id, StateName::Failed).await;
                assert_eq!(row.attempts, round);
            }
            // All ten come due at once, and fail one after the other.
            fixture.pass(BACKOFF);
            let stage = if round + 1 == ATTEMPTS { StateName::Dead } else { StateName::Failed };
            for id in &bad {
                fixture.until_row(*id, |row| row.status == stage && row.attempts == round + 1).await;
            }
            let circuit = paces.read("broker").await.unwrap().pace.circuit;
            assert!(matches!(circuit, Circuit::Closed { .. }), "{circuit:?}");
            good.push(fixture.put(&format!("after{round}")).await);
            fixture.until(*good.last().unwrap(), StateName::Sent).await;
        }
        for id in good {
            assert_eq!(receiver.calls_of(id), 1);
        }
    }

    /// If enough bad ones in a row did open it, the probe after the rest is a good one, though they are older and due.
    // Spec: E2.
    #[test]
    async fn a_message_that_has_not_failed_is_the_probe(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let _worker = paced(&fixture, bad_fail(&receiver), |target| target.pace = PaceSettings { circuit: CIRCUIT, ..PaceSettings::DEFAULT });
        let paces = Paces::new(fixture.store.clone());
        let mut bad = Vec::new();
        for number in 0..3 {
            bad.push(fixture.put_in(NewMessage { max_attempts: many(3), ..message(&format!("bad{number}")) }).await);
        }
        fixture.until_count(StateName::Failed, 3).await;
        assert!(matches!(paces.read("broker").await.unwrap().pace.circuit, Circuit::Open { .. }));
        let good = fixture.put("good").await;
        goes_on(&fixture, "m1").await;
        assert_eq!(receiver.calls_of(good), 0, "it waits for the rest to be over");
        fixture.until_count(StateName::Sending, 0).await;
        fixture.pass(BACKOFF);
        fixture.until_count(StateName::Queued, 4).await;
        fixture.pass(REST);
        fixture.until(good, StateName::Sent).await;
        while !matches!(paces.read("broker").await.unwrap().pace.circuit, Circuit::Closed { .. }) {
            poll_pause().await;
        }
        // They continue on their own schedule, and block nobody.
        while fixture.count(StateName::Dead).await < 3 {
            pass_at_rest(&fixture, REST + BACKOFF).await;
            let more = fixture.put(&format!("more{}", receiver.count())).await;
            fixture.until(more, StateName::Sent).await;
        }
        for id in bad {
            let row = fixture.until(id, StateName::Dead).await;
            assert_eq!((row.attempts, receiver.calls_of(id)), (3, 3));
        }
    }

    /// Inside its slot, each message waits the interval before its first call.
    // Spec: B4.
    #[test]
    async fn a_first_call_waits_the_interval(fixture: WorkerFixture) {
        const INTERVAL: Duration = Duration::from_millis(120);
        let receiver = FakeReceiver::default();
        let _worker = paced(&fixture, receiver.done(), |target| target.interval = INTERVAL);
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Sent).await;
        let steps = fixture.transitions(id).await;
        let at = |stage| steps.iter().find(|step| step.to == stage).unwrap().at;
        // SQLite's clock counts milliseconds.
        let took = at(StateName::Sent).since(at(StateName::Sending));
        assert!(INTERVAL <= took + Duration::from_millis(1), "{steps:?}");
    }
}
