//! Maintenance, and an unreachable store.
// Spec: A5, D3.

use std::sync::Arc;
use std::time::Duration;

use ichido::destination::{JobError, JobSuccess};
use ichido_core::audit::AuditKey;
use ichido_core::digest::Digest;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordName, Settled};
use ichido_core::lifecycle::StateName;
use ichido_store::Store;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, StoredResponse};
use ichido_store::node::SingletonTask;
use ichido_store::testing::while_busy;
use sqlx::{PgPool, SqlitePool};

use uuid::Uuid;

use super::fixture::{FakeReceiver, WorkerFixture, both_databases, many, message, poll_pause};
use crate::handler_gate::HandlerGate;

both_databases! {
    #[test]
    async fn old_sent_messages_are_deleted(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let worker = fixture.builder_with(receiver.done(), |_| ()).keep_finished(Duration::from_hours(1)).name("web-1");
        let worker = worker.start().unwrap();
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Sent).await;
        fixture.pass(Duration::from_hours(2));
        while fixture.store.messages().get(id).await.unwrap().is_some() {
            poll_pause().await;
        }
        let nodes = fixture.store.nodes().list().await.unwrap();
        assert!(nodes.iter().any(|node| node.id == worker.id() && node.name == "web-1"), "{nodes:?}");
    }

    /// The trail is sealed automatically.
    // Spec: F5.
    #[test]
    async fn trail_is_sealed_and_pruned_with_workers_key(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let builder = fixture.builder_with(receiver.done(), |_| ()).keep_finished(Duration::from_hours(1));
        let _worker = builder.audit_key(audit_key()).start().unwrap();
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Sent).await;
        until_sealed(&fixture).await;
        fixture.pass(Duration::from_hours(2));
        while fixture.store.messages().get(id).await.unwrap().is_some() {
            poll_pause().await;
        }
        let report = fixture.store.audit().verify(Some(&audit_key()), None).await.unwrap();
        assert!(report.is_whole(), "{report:?}");
    }

    // Spec: C5, F5.
    #[test]
    async fn worker_seals_settled_key_records(fixture: WorkerFixture) {
        let key = IdempotencyKey::parse("k1").unwrap();
        let name = RecordName { operation: "orders.create".to_owned(), identity: "ann".to_owned(), key };
        let claim = KeyClaim {
            name: name.clone(),
            fingerprint: Fingerprint::from_bytes([7; 32]),
            request_digest: Digest::of_bytes(b"x"),
            policy: Arc::new(Policy::build(PolicyDraft::new(Class::ExternalEffect)).unwrap()),
            hops: None,
            trace: None,
        };
        let KeyClaimed::Run { fence, .. } = fixture.store.keys().claim(claim).await.unwrap() else { panic!("it is new") };
        let outcome = KeyOutcome::Keep {
            settled: Settled::Applied,
            response: StoredResponse { status: 201, headers: Vec::new(), body: Some(b"ok".to_vec()) },
            result_digest: None,
            message_id: None,
            ttl: Duration::from_hours(1),
        };
        let _ = fixture.store.keys().settle(KeySettle { name, fence, outcome }).await.unwrap();
        let receiver = FakeReceiver::default();
        let _worker = fixture.builder_with(receiver.done(), |_| ()).audit_key(audit_key()).start().unwrap();
        let report = loop {
            let report = fixture.store.audit().verify(Some(&audit_key()), None).await.unwrap();
            if report.key_records == 1 && report.unsealed == 0 {
                break report;
            }
            poll_pause().await;
        };
        assert!(report.is_whole() && 0 < report.sealed, "{report:?}");
    }

    /// Anything deleted without the key would count as missing.
    #[test]
    async fn worker_without_key_leaves_keyed_trail_to_others(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let builder = || fixture.builder_with(receiver.done(), |_| ()).keep_finished(Duration::from_hours(1));
        let with_key = builder().audit_key(audit_key()).start().unwrap();
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Sent).await;
        until_sealed(&fixture).await;
        with_key.stop();
        with_key.ended().await;
        let next = Uuid::from_u128(1);
        assert!(fixture.store.nodes().claim_task(SingletonTask::Trail, next, Duration::ZERO).await.unwrap(), "it left its duties");
        let without = builder().start().unwrap();
        fixture.pass(Duration::from_hours(2));
        // It has completed its rounds when it has the task before the trail's, and gave up the trail's when another gets
        // it.
        let gets = async |duty: SingletonTask<'static>| {
            while_busy(|| fixture.store.nodes().claim_task(duty, Uuid::nil(), Duration::ZERO)).await
        };
        while gets(SingletonTask::Outbox).await {}
        for _ in 0..3 {
            fixture.pass(Duration::from_mins(1));
            while !gets(SingletonTask::Trail).await {
                fixture.pass(Duration::from_mins(1));
            }
        }
        assert!(fixture.store.messages().get(id).await.unwrap().is_some());
        let _with_key = builder().audit_key(audit_key()).start().unwrap();
        while fixture.store.messages().get(id).await.unwrap().is_some() {
            fixture.pass(Duration::from_mins(1));
            poll_pause().await;
        }
        let report = fixture.store.audit().verify(Some(&audit_key()), None).await.unwrap();
        assert!(report.is_whole(), "{report:?}");
        drop(without);
    }

    #[test]
    async fn delayed_message_is_sent_when_due(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let _worker = fixture.work(receiver.done());
        let mut later = message("later");
        later.delay = Duration::from_hours(1);
        let later = fixture.put_in(later).await;
        let now = fixture.put("now").await;
        fixture.until(now, StateName::Sent).await;
        assert_eq!(fixture.row(later).await.status, StateName::Queued);
        fixture.pass(Duration::from_hours(1));
        fixture.until(later, StateName::Sent).await;
    }

    /// A slot is free only when its settlement is durable.
    #[test]
    async fn a_slot_stays_taken_until_its_settle_is_durable(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let handler = receiver.done_after(&gate);
        let ids = [fixture.put("k1").await, fixture.put("k2").await];
        let _worker = fixture.work_as(handler.idempotent(), |queue| queue.parallelism = many(1));
        gate.reached(1).await;
        fixture.until_count(StateName::Sending, 2).await;
        let held = WriteBlock::take(&fixture).await;
        gate.open(2);
        // Nobody can record that the first one was sent, so the second one is not started.
        for _ in 0..100 {
            assert_eq!(fixture.row(ids[0]).await.status, StateName::Sending);
            assert_eq!(gate.arrived(), 1);
        }
        held.release().await;
        for id in ids {
            fixture.until(id, StateName::Sent).await;
        }
        assert_eq!(receiver.count(), 2);
    }

    /// The failure is written when the database can be written again; then it has its time, and the retry succeeds.
    // Spec: D5, E1.
    #[test]
    async fn retryable_failure_during_a_lock_is_not_stranded(fixture: WorkerFixture) {
        let (receiver, gate) = (FakeReceiver::default(), HandlerGate::shut());
        let inside = gate.clone();
        let handler = receiver.handler(move |attempt, _| {
            let gate = inside.clone();
            async move {
                gate.pass().await;
                if attempt == 1 { Err(JobError::retry("down")) } else { Ok(JobSuccess::default()) }
            }
        });
        let id = fixture.put("k1").await;
        let _worker = fixture.work(handler.idempotent());
        gate.reached(1).await;
        let held = WriteBlock::take(&fixture).await;
        gate.open(2);
        for _ in 0..100 {
            assert_eq!(fixture.row(id).await.status, StateName::Sending, "the failure cannot be stored");
        }
        held.release().await;
        let due = fixture.until(id, StateName::Failed).await.next_attempt.unwrap();
        fixture.pass(due.since(fixture.store.now().await.unwrap()));
        let row = fixture.until(id, StateName::Sent).await;
        assert_eq!((row.attempts, receiver.count()), (2, 2));
    }
}

fn audit_key() -> AuditKey {
    AuditKey::parse(b"from a file that the database's owner cannot read").unwrap()
}

async fn until_sealed(fixture: &WorkerFixture) {
    while fixture.store.audit().head().await.unwrap().is_none() {
        fixture.pass(Duration::from_secs(5));
        poll_pause().await;
    }
}

/// Blocks everybody from recording that a message was sent.
enum WriteBlock {
    Postgres(sqlx::Transaction<'static, sqlx::Postgres>),
    Sqlite(sqlx::Transaction<'static, sqlx::Sqlite>),
}

impl WriteBlock {
    async fn take(fixture: &WorkerFixture) -> Self {
        if fixture.store.is_sqlite() {
            let pool = SqlitePool::connect(&fixture.url).await.unwrap();
            return Self::Sqlite(Store::begin_immediate(&pool).await.unwrap());
        }
        let pool = PgPool::connect(&fixture.url).await.unwrap();
        let mut transaction = pool.begin().await.unwrap();
        sqlx::query("LOCK TABLE ichido.events IN EXCLUSIVE MODE").execute(&mut *transaction).await.unwrap();
        Self::Postgres(transaction)
    }

    async fn release(self) {
        match self {
            Self::Postgres(transaction) => transaction.rollback().await.unwrap(),
            Self::Sqlite(transaction) => transaction.rollback().await.unwrap(),
        }
    }
}
