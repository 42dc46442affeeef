//! Alerts: each opens and resolves once, whichever node watches.
// Spec: A15, D8, D19, E5, F2.

use std::sync::Arc;
use std::time::Duration;

use ichido::destination::{Handler, JobError, JobSuccess};
use ichido::worker::{AlertFormat, AlertReceiver, AlertSettings, DestinationConfig, Worker, WorkerHandle};
use ichido_core::alert::{AlertRule, AlertRules, AlertSubject, RuleChange, TermsChange};
use ichido_core::audit::AuditKey;
use ichido_core::digest::Digest;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordName, Resolution};
use ichido_core::lifecycle::{Event, Failure, Reconciled, StateName};
use ichido_core::pace::CircuitSettings;
use ichido_core::retry::{Guarantee, Jitter, Retry, Safety, Schedule};
use ichido_core::verdict::Effect;
use ichido_store::alert::Alert;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle};
use ichido_store::message::{
    CancelOutcome, ClaimOptions, MessageFilter, NewMessage, Note, Settlement, StepResult,
};
use ichido_store::testing::while_busy;
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, PgConnection, SqliteConnection};
use uuid::Uuid;

use super::fixture::{
    FakeReceiver, QUEUE, WorkerFixture, both_databases, key, many, message, poll_pause, queue,
};
use crate::handler_gate::HandlerGate;

/// A bit longer than the watch's period.
const A_ROUND: Duration = Duration::from_secs(11);
/// The checks between two steps of time: a round completes, and a window does not end before it was measured.
const LOOKS_A_STEP: u32 = 20;
const HOUR: Duration = Duration::from_hours(1);
const QUARTER: Duration = Duration::from_mins(15);

fn alerts_to(destination: &str) -> AlertSettings {
    let receiver = AlertReceiver {
        name: "ops".to_owned(),
        destination: destination.to_owned(),
        format: AlertFormat::Webhook,
    };
    AlertSettings { rules: AlertRules::default(), receivers: vec![receiver] }
}

/// A worker that watches, and notifies the fake receiver.
fn watching(fixture: &WorkerFixture, handler: Handler, ops: &FakeReceiver) -> Worker {
    let retry = Retry {
        schedule: Schedule::List(vec![Duration::from_secs(1)]),
        jitter: Jitter::None,
        ..Retry::ORDER
    };
    let builder = fixture.builder_with(handler, |queue| queue.retry = retry);
    builder.destination(DestinationConfig::new("ops", ops.done())).alerts(alerts_to("ops"))
}

fn orders() -> AlertSubject {
    AlertSubject::Queue(QUEUE.to_owned())
}

impl WorkerFixture {
    /// Checks until the condition holds, and lets time pass meanwhile, one watch period at a time.
    async fn poll_until<T>(&self, mut find: impl AsyncFnMut() -> Option<T>) -> T {
        for look in 1_u32.. {
            if let Some(found) = find().await {
                return found;
            }
            if look % LOOKS_A_STEP == 0 {
                self.pass_a_round().await;
            }
            poll_pause().await;
        }
        unreachable!("looks do not run out before the case does")
    }

    /// Lets a watch period pass, and waits until a worker has noticed: several of them at once would end its leases.
    async fn pass_a_round(&self) {
        self.pass(A_ROUND);
        let now = self.store.now().await.unwrap();
        while !while_busy(|| self.store.nodes().list()).await.iter().any(|node| now <= node.seen_at) {
            poll_pause().await;
        }
    }

    async fn incidents(&self, rule: AlertRule, about: &AlertSubject) -> Vec<Alert> {
        let all = self.store.alerts().list(None, 1_000).await.unwrap();
        all.into_iter().filter(|alert| alert.rule == rule && alert.about == *about).collect()
    }

    async fn until_firing(&self, rule: AlertRule, about: &AlertSubject) -> Alert {
        let find =
            async || self.incidents(rule, about).await.into_iter().find(|alert| alert.resolved_at.is_none());
        self.poll_until(find).await
    }

    async fn until_over(&self, id: Uuid) {
        self.poll_until(async || {
            let all = self.store.alerts().list(None, 1_000).await.unwrap();
            all.into_iter().find(|alert| alert.id == id && alert.resolved_at.is_some())
        })
        .await;
    }

    /// Parks a message in its own queue, by hand.
    async fn park(&self, name: &str) -> Uuid {
        let id = self.put_in(NewMessage::new(queue(name), "alice", key("k"), Vec::new())).await;
        let terms = ClaimOptions {
            node: Uuid::nil(),
            lease: HOUR,
            start_marks: false,
            guarantee: Guarantee::None,
            max_time_in_flight: Duration::ZERO,
        };
        let work = self.store.claims().claim(&queue(name), many(1), terms).await.unwrap().remove(0);
        let event = Event::Failed {
            fence: work.fence,
            failure: Failure::InDoubt,
            effect: Effect::Unknown,
            safety: Safety::None,
            in_flight_until: work.claimed_at,
        };
        let stepped =
            self.store.claims().settle(Settlement::new(&work, event, Note::default())).await.unwrap();
        assert!(matches!(stepped, StepResult::Now(_)), "{stepped:?}");
        id
    }

    /// Returns when the watch has judged everything before: the message parked now is judged last in a round.
    async fn watched(&self, probe: &str) {
        while_busy(|| self.store.series().flush()).await;
        self.park(probe).await;
        self.until_firing(AlertRule::Parked, &AlertSubject::Queue(probe.to_owned())).await;
    }

    /// Enqueues `count` messages, and waits until they are dead.
    async fn die(&self, name: &str, count: usize) {
        for number in 0..count {
            let id = self.put(&format!("{name}-{number}")).await;
            self.until(id, StateName::Dead).await;
        }
    }

    async fn until_notified(&self, ops: &FakeReceiver, kind: &str, id: Uuid) -> Vec<Value> {
        self.poll_until(async || {
            let notified = notifications(ops, kind, id);
            (!notified.is_empty()).then_some(notified)
        })
        .await
    }

    async fn execute(&self, postgres: &'static str, sqlite: &'static str) {
        self.is_touched.store(true, std::sync::atomic::Ordering::Relaxed);
        if self.store.is_sqlite() {
            let path = self.url.trim_start_matches("sqlite:");
            SqliteConnection::connect(path).await.unwrap().execute(sqlite).await.unwrap();
        } else {
            PgConnection::connect(&self.url).await.unwrap().execute(postgres).await.unwrap();
        }
    }
}

/// The notifications of an incident.
fn notifications(ops: &FakeReceiver, kind: &str, id: Uuid) -> Vec<Value> {
    let events = ops.calls().into_iter().map(|seen| serde_json::from_slice::<Value>(&seen.body).unwrap());
    events.filter(|event| event["type"] == kind && event["data"]["id"] == id.to_string()).collect()
}

fn dies(receiver: &FakeReceiver) -> Handler {
    receiver.handler(|_, _| async { Err(JobError::dead("it is bad")) })
}

#[tokio::test]
async fn a_receiver_must_have_a_destination_and_a_name_of_its_own() {
    let fixture = WorkerFixture::sqlite().await;
    let receiver = FakeReceiver::default();
    let refused =
        fixture.builder_with(receiver.done(), |_| ()).alerts(alerts_to("nowhere")).start().unwrap_err();
    assert!(refused.to_string().contains("nowhere"), "{refused}");
    let mut twice = alerts_to(QUEUE);
    twice.receivers.extend(alerts_to(QUEUE).receivers);
    let refused = fixture.builder_with(receiver.done(), |_| ()).alerts(twice).start().unwrap_err();
    assert!(refused.to_string().contains("ichido-alerts.ops"), "{refused}");
}

both_databases! {
    /// A repeated notification is harmless and a missing one is not: a lost response is not a reason to park it.
    #[test]
    async fn receiver_that_lost_response_is_notified_again(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        let loses = ops.handler(|_, job| async move {
            if job.attempt == 1 { Err(JobError::unknown("the answer was lost")) } else { Ok(JobSuccess::from(())) }
        });
        let builder = fixture.builder_with(dies(&receiver), |_| ());
        let builder = builder.destination(DestinationConfig::new("ops", loses)).alerts(alerts_to("ops"));
        let _worker = builder.start().unwrap();
        fixture.die("first", 1).await;
        let first = fixture.until_firing(AlertRule::DeadLetter, &orders()).await;
        let notified = fixture.poll_until(async || {
            let notified = notifications(&ops, "alert.opened", first.id);
            (1 < notified.len()).then_some(notified)
        }).await;
        assert_eq!(notified[0], notified[1]);
    }

    /// More than 10 an hour; the first one notifies as well.
    // Spec: A15, E5.
    #[test]
    async fn dead_letters_alert_above_ten_per_hour_and_first_notifies(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        let _worker = watching(&fixture, dies(&receiver), &ops).start().unwrap();
        fixture.die("first", 1).await;
        let first = fixture.until_firing(AlertRule::DeadLetter, &orders()).await;
        let notified = fixture.until_notified(&ops, "alert.opened", first.id).await;
        assert_eq!(notified.len(), 1);
        // The item is the key here: the message has no other. Spec: E3.
        let letter = &notified[0]["data"]["dead_letters"][0];
        assert_eq!((&letter["item"], &letter["error"]), (&json!("first-0"), &json!("it is bad")), "{letter}");
        fixture.die("more", 9).await;
        fixture.watched("probe-1").await;
        assert!(fixture.incidents(AlertRule::DeadLetters, &orders()).await.is_empty(), "ten are not more than ten");
        fixture.die("last", 1).await;
        let many = fixture.until_firing(AlertRule::DeadLetters, &orders()).await;
        assert!((many.reading.value - 11.0).abs() < 0.1, "{many:?}");
        let text = fixture.until_notified(&ops, "alert.opened", many.id).await[0]["data"]["text"].clone();
        let newest = "Newest: last-0: it is bad; more-8: it is bad; more-7: it is bad";
        assert_eq!(text, format!("queue orders: 11 dead-lettered within 1h (limit: 10). {newest}"));
        fixture.pass(HOUR);
        fixture.until_over(many.id).await;
        fixture.until_over(first.id).await;
        assert_eq!(fixture.until_notified(&ops, "alert.resolved", many.id).await.len(), 1);
        assert_eq!(notifications(&ops, "alert.opened", many.id).len(), 1, "once, however often it is measured");
    }

    // Spec: D19.
    #[test]
    async fn surge_of_dead_letters_alerts_against_usual_rate(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        let _worker = watching(&fixture, dies(&receiver), &ops).start().unwrap();
        fixture.die("usual", 9).await;
        fixture.watched("probe-1").await;
        assert!(fixture.incidents(AlertRule::DeadSurge, &orders()).await.is_empty(), "below the least sample");
        fixture.die("surge", 3).await;
        let surge = fixture.until_firing(AlertRule::DeadSurge, &orders()).await;
        assert!((10..=12).contains(&surge.reading.samples), "{surge:?}");
        fixture.pass(Duration::from_mins(5));
        fixture.until_over(surge.id).await;
        // They are out of the window; the next few are not a surge.
        fixture.die("few", 5).await;
        fixture.watched("probe-2").await;
        assert_eq!(fixture.incidents(AlertRule::DeadSurge, &orders()).await.len(), 1);
    }

    /// More than 5 % of retries fail, of at least twenty.
    // Spec: A15.
    #[test]
    async fn failed_retries_alert_above_their_share(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        let handler = receiver.handler(|_, job| async move {
            let fails_again = job.payload.starts_with(b"{\"n\":\"bad");
            if job.attempt == 1 || fails_again && job.attempt == 2 { Err(JobError::retry("busy")) } else { Ok(JobSuccess::default()) }
        });
        let _worker = watching(&fixture, handler, &ops).start().unwrap();
        let mut sent = Vec::new();
        // The bad ones are retried twice: 2 of 19 retries fail.
        for name in ["bad-1", "bad-2"].into_iter().map(str::to_owned).chain((0..15).map(|number| format!("good-{number}"))) {
            sent.push(fixture.put(&name).await);
        }
        for id in &sent {
            fixture.until(*id, StateName::Sent).await;
        }
        fixture.watched("probe-1").await;
        assert!(fixture.incidents(AlertRule::FailedRetries, &orders()).await.is_empty(), "nineteen are too few");
        let id = fixture.put("good-more").await;
        fixture.until(id, StateName::Sent).await;
        let failing = fixture.until_firing(AlertRule::FailedRetries, &orders()).await;
        assert_eq!(failing.reading.samples, 20);
        assert!((failing.reading.value - 0.1).abs() < 1e-9, "{failing:?}");
        fixture.pass(QUARTER);
        fixture.until_over(failing.id).await;
        fixture.until_notified(&ops, "alert.resolved", failing.id).await;
    }

    /// More than 50 % duplicates, of at least a hundred.
    // Spec: A15.
    #[test]
    async fn duplicates_alert_above_half(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        let _worker = watching(&fixture, receiver.done(), &ops).start().unwrap();
        for _ in 0..99 {
            fixture.store.messages().enqueue(message("again")).await.unwrap();
        }
        fixture.watched("probe-1").await;
        assert!(fixture.incidents(AlertRule::Duplicates, &orders()).await.is_empty(), "99 are too few");
        fixture.store.messages().enqueue(message("again")).await.unwrap();
        let many = fixture.until_firing(AlertRule::Duplicates, &orders()).await;
        assert_eq!((many.reading.samples, receiver.count()), (100, 1));
        fixture.pass(QUARTER);
        fixture.until_over(many.id).await;
        fixture.until_notified(&ops, "alert.resolved", many.id).await;
    }

    /// The mean delay of messages exceeds five minutes; the p95 of the lag exceeds its limit.
    // Spec: A15, D19.
    #[test]
    async fn slow_messages_alert_by_their_mean_and_their_p95(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        // The delay of a delayed message is not lag.
        let later = |number: usize| NewMessage { delay: QUARTER, ..message(&format!("delayed-{number}")) };
        for number in 0..10 {
            fixture.put_in(later(number)).await;
        }
        fixture.pass(QUARTER);
        for number in 0..10 {
            fixture.put(&format!("slow-{number}")).await;
        }
        fixture.pass(Duration::from_mins(6));
        let _worker = watching(&fixture, receiver.done(), &ops).start().unwrap();
        // A message that is still being sent when time passes may be taken from its worker, and does not count then.
        while fixture.count(StateName::Sent).await < 20 {
            poll_pause().await;
        }
        let delay = fixture.until_firing(AlertRule::ProcessingDelay, &orders()).await;
        assert!(360.0 <= delay.reading.value && delay.reading.value < 600.0, "{delay:?}");
        let lag = fixture.until_firing(AlertRule::LagP95, &orders()).await;
        assert_eq!(lag.reading.samples, 20);
        fixture.pass(Duration::from_mins(5));
        for id in [delay.id, lag.id] {
            fixture.until_over(id).await;
            fixture.until_notified(&ops, "alert.resolved", id).await;
        }
        assert!(fixture.incidents(AlertRule::Duplicates, &orders()).await.is_empty());
    }

    #[test]
    async fn few_slow_messages_do_not_alert(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        for number in 0..4 {
            fixture.put(&format!("slow-{number}")).await;
        }
        fixture.pass(Duration::from_mins(6));
        let _worker = watching(&fixture, receiver.done(), &ops).start().unwrap();
        fixture.until_count(StateName::Sent, 4).await;
        fixture.watched("probe-1").await;
        for rule in [AlertRule::ProcessingDelay, AlertRule::LagP95] {
            assert!(fixture.incidents(rule, &orders()).await.is_empty(), "{rule:?}");
        }
    }

    /// Nobody serves the queue, so nothing leaves it and no lag is visible.
    #[test]
    async fn old_waiting_message_alerts(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        let _worker = watching(&fixture, receiver.done(), &ops).start().unwrap();
        let (about, slow) = (AlertSubject::Queue("unserved".to_owned()), queue("unserved"));
        let id = fixture.put_in(NewMessage::new(slow, "alice", key("k"), Vec::new())).await;
        fixture.watched("probe-1").await;
        assert!(fixture.incidents(AlertRule::OldestWaiting, &about).await.is_empty());
        fixture.pass(Duration::from_mins(10));
        let waits = fixture.until_firing(AlertRule::OldestWaiting, &about).await;
        let cancelled = fixture.store.messages().cancel(id, &Note::default()).await.unwrap();
        assert_eq!(cancelled, CancelOutcome::Cancelled);
        fixture.until_over(waits.id).await;
    }

    // Spec: F2.
    #[test]
    async fn key_of_unknown_outcome_alerts_until_decided(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        let _worker = watching(&fixture, receiver.done(), &ops).start().unwrap();
        let policy = Arc::new(Policy::build(PolicyDraft::new(Class::ExternalEffect)).unwrap());
        let name = RecordName { operation: "charge".to_owned(), identity: "alice".to_owned(), key: key("k1") };
        let claim = KeyClaim {
            name: name.clone(),
            fingerprint: Fingerprint::from_bytes([7; 32]),
            request_digest: Digest::of_bytes(b"10 EUR"),
            policy: Arc::clone(&policy),
            hops: None,
            trace: None,
        };
        let claimed = fixture.store.keys().claim(claim).await.unwrap();
        let KeyClaimed::Run { fence, .. } = claimed else { panic!("{claimed:?}") };
        let held = KeySettle { name: name.clone(), fence, outcome: KeyOutcome::Hold };
        let _ = fixture.store.keys().settle(held).await.unwrap();
        let about = AlertSubject::Operation("charge".to_owned());
        let open = fixture.until_firing(AlertRule::UnknownOutcome, &about).await;
        assert_eq!(open.reading.samples, 1);
        fixture.until_notified(&ops, "alert.opened", open.id).await;
        let _ = fixture.store.keys().resolve(&name, Resolution::Applied, None, &policy).await.unwrap();
        fixture.until_over(open.id).await;
        fixture.until_notified(&ops, "alert.resolved", open.id).await;
    }

    /// Parked with an alert.
    // Spec: D8.
    #[test]
    async fn unknown_effect_alerts_until_decided(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        let handler = receiver.handler(|_, _| async { Err(JobError::unknown("the answer had another key")) });
        let _worker = watching(&fixture, handler, &ops).start().unwrap();
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Parked).await;
        let parked = fixture.until_firing(AlertRule::Parked, &orders()).await;
        fixture.until_notified(&ops, "alert.opened", parked.id).await;
        let _ = fixture.store.messages().reconcile(id, Reconciled::Done, &Note::default()).await.unwrap();
        fixture.until_over(parked.id).await;
        fixture.until_notified(&ops, "alert.resolved", parked.id).await;
    }

    #[test]
    async fn a_destination_that_is_down_alerts_until_it_is_up(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        let handler = receiver.handler(|_, job| async move {
            if job.payload.starts_with(b"{\"n\":\"bad") { Err(JobError::unreachable("it broke")) } else { Ok(JobSuccess::default()) }
        });
        let mut target = DestinationConfig::new("broker", handler);
        let circuit = CircuitSettings { failures: many(3), rest: HOUR, max_rest: HOUR, probes: many(1) };
        target.pace.circuit = circuit;
        let orders = ichido::worker::QueueConfig::new(QUEUE, "broker");
        let builder = fixture.builder().destination(target).queue(orders);
        let _worker = builder.destination(DestinationConfig::new("ops", ops.done())).alerts(alerts_to("ops")).start().unwrap();
        for name in ["bad-1", "bad-2", "bad-3"] {
            let id = fixture.put(name).await;
            fixture.until(id, StateName::Failed).await;
        }
        let down = fixture.until_firing(AlertRule::CircuitOpen, &AlertSubject::Destination("broker".to_owned())).await;
        fixture.until_notified(&ops, "alert.opened", down.id).await;
        // After the rest a good one is let through, and closes the circuit.
        fixture.put("good").await;
        fixture.pass(HOUR);
        fixture.until_over(down.id).await;
        fixture.until_notified(&ops, "alert.resolved", down.id).await;
    }

    // Spec: F5.
    #[test]
    async fn changed_trail_alerts_until_restored(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        let audit_key = AuditKey::parse(b"from a file that the database's owner cannot read").unwrap();
        let _worker = watching(&fixture, receiver.done(), &ops).audit_key(audit_key).start().unwrap();
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Sent).await;
        fixture.poll_until(async || fixture.store.audit().head().await.unwrap()).await;
        fixture
            .execute(
                "UPDATE ichido.events SET attempts = 7 WHERE kind = 'succeeded'",
                "UPDATE ichido_events SET attempts = 7 WHERE kind = 'succeeded'",
            )
            .await;
        fixture.pass(HOUR);
        let broken = fixture.until_firing(AlertRule::AuditBroken, &AlertSubject::Trail).await;
        fixture.until_notified(&ops, "alert.opened", broken.id).await;
        fixture
            .execute(
                "UPDATE ichido.events SET attempts = 1 WHERE attempts = 7",
                "UPDATE ichido_events SET attempts = 1 WHERE attempts = 7",
            )
            .await;
        // Two rounds: it is clear, and it has been clear for long enough.
        fixture.pass(HOUR + A_ROUND);
        let is_clear = async || fixture.incidents(AlertRule::AuditBroken, &AlertSubject::Trail).await[0].clear_since;
        fixture.poll_until(is_clear).await;
        fixture.pass(HOUR + A_ROUND);
        fixture.until_over(broken.id).await;
    }

    /// The watch continues on another node after the first one died, and repeats no notification.
    #[test]
    async fn incident_is_notified_once_with_two_nodes(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        let first: WorkerHandle = watching(&fixture, dies(&receiver), &ops).start().unwrap();
        let _second = watching(&fixture, dies(&receiver), &ops).start().unwrap();
        fixture.die("k", 1).await;
        let dead = fixture.until_firing(AlertRule::DeadLetter, &orders()).await;
        fixture.until_notified(&ops, "alert.opened", dead.id).await;
        drop(first);
        fixture.pass(Duration::from_secs(31));
        fixture.watched("probe-1").await;
        fixture.pass(QUARTER);
        fixture.until_over(dead.id).await;
        fixture.until_notified(&ops, "alert.resolved", dead.id).await;
        for kind in ["alert.opened", "alert.resolved"] {
            assert_eq!(notifications(&ops, kind, dead.id).len(), 1, "{kind}");
        }
        assert_eq!(fixture.incidents(AlertRule::DeadLetter, &orders()).await.len(), 1);
    }

    /// The worker that recorded it dies before anybody was notified: the notification is still sent, under the same key.
    #[test]
    async fn crash_between_recording_and_notifying_loses_nothing(fixture: WorkerFixture) {
        let (receiver, gate, ops) = (FakeReceiver::default(), HandlerGate::shut(), FakeReceiver::default());
        let inside = gate.clone();
        let stuck = ops.handler(move |_, _| {
            let gate = inside.clone();
            async move {
                gate.pass().await;
                Ok(JobSuccess::default())
            }
        });
        let builder = fixture.builder_with(dies(&receiver), |_| ());
        let dying = builder.destination(DestinationConfig::new("ops", stuck.idempotent())).alerts(alerts_to("ops")).start().unwrap();
        fixture.die("k", 1).await;
        let dead = fixture.until_firing(AlertRule::DeadLetter, &orders()).await;
        fixture.poll_until(async || (0 < gate.arrived()).then_some(())).await;
        drop(dying);
        let (notified_before, after) = (ops.calls(), FakeReceiver::default());
        let builder = fixture.builder_with(dies(&receiver), |_| ());
        let ops = DestinationConfig::new("ops", after.done().idempotent());
        let _next = builder.destination(ops).alerts(alerts_to("ops")).start().unwrap();
        // The claim of the dead worker lapses.
        fixture.pass(Duration::from_mins(11));
        fixture.until_notified(&after, "alert.opened", dead.id).await;
        let again = after.calls().into_iter().find(|seen| seen.message == notified_before[0].message).unwrap();
        assert_eq!((again.key, again.body), (notified_before[0].key.clone(), notified_before[0].body.clone()));
    }

    #[test]
    async fn notifications_raise_no_alerts(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        let builder = fixture.builder_with(dies(&receiver), |_| ());
        let deaf = DestinationConfig::new("ops", dies(&ops));
        let _worker = builder.destination(deaf).alerts(alerts_to("ops")).start().unwrap();
        fixture.die("k", 1).await;
        fixture.until_firing(AlertRule::DeadLetter, &orders()).await;
        let own = MessageFilter { queue: Some(queue("ichido-alerts.ops")), status: Some(StateName::Dead), ..MessageFilter::default() };
        fixture.poll_until(async || fixture.store.messages().list(&own, 1).await.unwrap().pop()).await;
        fixture.watched("probe-1").await;
        let all = fixture.store.alerts().list(None, 1_000).await.unwrap();
        assert!(all.iter().all(|alert| !alert.about.to_string().contains("ichido-alerts")), "{all:?}");
    }

    #[test]
    async fn queue_can_have_its_own_alert_terms(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        let mut alerts = alerts_to("ops");
        let change = RuleChange::On(TermsChange { above: Some(1.0), ..TermsChange::default() });
        alerts.rules.change_for(AlertRule::DeadLetters, QUEUE, change);
        let builder = fixture.builder_with(dies(&receiver), |_| ()).handler("mail", dies(&receiver));
        let _worker = builder.destination(DestinationConfig::new("ops", ops.done())).alerts(alerts).start().unwrap();
        for name in ["a", "b"] {
            let id = fixture.put_in(NewMessage::new(queue("mail"), "alice", key(name), Vec::new())).await;
            fixture.until(id, StateName::Dead).await;
        }
        fixture.die("k", 2).await;
        fixture.until_firing(AlertRule::DeadLetters, &orders()).await;
        fixture.watched("probe-1").await;
        assert!(fixture.incidents(AlertRule::DeadLetters, &AlertSubject::Queue("mail".to_owned())).await.is_empty());
    }

    /// An incident that is open when its rule is switched off is closed and notified with the reason: it is unknown whether
    /// it is over.
    #[test]
    async fn a_rule_that_is_switched_off_opens_nothing_and_closes_what_is_open(fixture: WorkerFixture) {
        let (receiver, ops) = (FakeReceiver::default(), FakeReceiver::default());
        let before = watching(&fixture, dies(&receiver), &ops).start().unwrap();
        fixture.die("k", 1).await;
        let open = fixture.until_firing(AlertRule::DeadLetter, &orders()).await;
        before.stop();
        before.ended().await;

        let mut alerts = alerts_to("ops");
        alerts.rules.change_for(AlertRule::DeadLetter, QUEUE, RuleChange::Off);
        alerts.rules.change(AlertRule::DeadSurge, RuleChange::Off);
        let _worker = watching(&fixture, dies(&receiver), &ops).alerts(alerts).start().unwrap();
        fixture.until_over(open.id).await;
        let notified = fixture.until_notified(&ops, "alert.resolved", open.id).await;
        let text = notified[0]["data"]["text"].as_str().unwrap();
        assert!(text.ends_with("dead_letter is switched off here and no longer watched"), "{text}");
        fixture.die("more", 11).await;
        fixture.until_firing(AlertRule::DeadLetters, &orders()).await;
        fixture.watched("probe-1").await;
        assert_eq!(fixture.incidents(AlertRule::DeadLetter, &orders()).await.len(), 1, "the one of before");
        assert!(fixture.incidents(AlertRule::DeadSurge, &orders()).await.is_empty(), "off for every queue");
    }
}
