//! Messages whose handlers never wait share a task. Whatever else a message may do, it does alone.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use ichido::destination::{Handler, Job, JobError};
use ichido::worker::{StopHandle, WorkerHandle};
use ichido_core::lifecycle::StateName;
use ichido_core::verdict::Effect;
use ichido_store::message::Enqueued;
use uuid::Uuid;

use super::fixture::{AFTER_LEASE, WorkerFixture, both_databases, many, message};
use crate::handler_gate::HandlerGate;

/// How many messages are enqueued at once, so one claim has them all.
const BATCH: usize = 40;
/// The timeout of a handler that never ends. Others wait inside theirs until the rest of their batch is sent, and a slow
/// machine takes seconds for that.
const TIMEOUT: Duration = Duration::from_secs(8);

/// The tasks in which a handler ran, one for each run.
#[derive(Clone, Default)]
struct RunTasks(Arc<Mutex<Vec<tokio::task::Id>>>);

impl RunTasks {
    fn record(&self) {
        self.0.lock().unwrap().push(tokio::task::id());
    }

    /// Returns whether a task had two runs.
    fn are_shared(&self) -> bool {
        let all = self.0.lock().unwrap();
        all.iter().collect::<HashSet<_>>().len() < all.len()
    }
}

/// Starts a worker and lets it send messages until its handler shares tasks.
async fn prompt_worker<A>(
    fixture: &WorkerFixture,
    handle: impl Fn(Job<Bytes>) -> A + Send + Sync + 'static,
) -> WorkerHandle
where
    A: Future<Output = Result<(), JobError>> + Send + 'static,
{
    let tasks = RunTasks::default();
    let recording = tasks.clone();
    let handler = Handler::bytes(move |job: Job<Bytes>| {
        let tasks = recording.clone();
        let handled = handle(job);
        async move {
            tasks.record();
            handled.await
        }
    });
    let worker = fixture.work_as(handler.idempotent().timeout(TIMEOUT), |queue| {
        queue.parallelism = many(100);
        queue.batch_size = many(100);
    });
    let mut sent = 0;
    while !tasks.are_shared() {
        put_batch(fixture, &format!("warm{sent}"), &[]).await;
        sent += i64::try_from(BATCH).unwrap();
        fixture.until_count(StateName::Sent, sent).await;
    }
    worker
}

/// Enqueues messages at once, so they are claimed together: those of these keys among others.
async fn put_batch(fixture: &WorkerFixture, others: &str, keys: &[&str]) -> Vec<Uuid> {
    let before = (keys.len()..BATCH / 2).map(|number| message(&format!("{others}-{number}")));
    let after = (BATCH / 2..BATCH).map(|number| message(&format!("{others}-{number}")));
    let all = before.chain(keys.iter().map(|key| message(key))).chain(after).collect();
    let enqueued = fixture.store.messages().enqueue_all(all).await;
    let id = |enqueued| match enqueued {
        Ok(Enqueued::New { id }) => id,
        other => panic!("not new: {other:?}"),
    };
    enqueued.into_iter().map(id).collect()
}

fn is(job: &Job<Bytes>, key: &str) -> bool {
    job.payload == format!("{{\"n\":\"{key}\"}}").as_bytes()
}

both_databases! {
    #[test]
    async fn handlers_that_never_wait_share_a_task(fixture: WorkerFixture) {
        let worker = prompt_worker(&fixture, |_| async { Ok(()) }).await;
        let before = fixture.count(StateName::Sent).await;
        for id in put_batch(&fixture, "more", &[]).await {
            let row = fixture.until(id, StateName::Sent).await;
            assert_eq!((row.attempts, row.effect), (1, Effect::Done));
        }
        fixture.until_count(StateName::Sent, before + 40).await;
        assert_eq!(worker.in_flight(), 0);
    }

    #[test]
    async fn panic_among_others_is_only_its_own_failure(fixture: WorkerFixture) {
        let _worker = prompt_worker(&fixture, |job| async move {
            assert!(!is(&job, "bad"), "it was bad");
            Ok(())
        })
        .await;
        let ids = put_batch(&fixture, "good", &["bad"]).await;
        for id in ids {
            let row = fixture.until_row(id, |row| matches!(row.status, StateName::Sent | StateName::Failed)).await;
            if row.status == StateName::Failed {
                assert_eq!((row.key.as_str(), row.effect), ("bad", Effect::Unknown));
                assert_eq!(row.last_error_text.as_deref(), Some("the handler panicked: it was bad"));
            } else {
                assert_ne!(row.key.as_str(), "bad");
            }
        }
    }

    #[test]
    async fn error_among_others_is_only_its_own(fixture: WorkerFixture) {
        let _worker = prompt_worker(&fixture, |job| async move {
            if is(&job, "dead") { Err(JobError::dead("no such order")) } else { Ok(()) }
        })
        .await;
        for id in put_batch(&fixture, "good", &["dead"]).await {
            let row = fixture.until_row(id, |row| matches!(row.status, StateName::Sent | StateName::Dead)).await;
            assert_eq!(row.status == StateName::Dead, row.key.as_str() == "dead");
        }
    }

    /// One that waits delays none, and its timeout holds.
    #[test]
    async fn handler_that_waits_leaves_the_shared_task(fixture: WorkerFixture) {
        let gate = HandlerGate::shut();
        let inside = gate.clone();
        let _worker = prompt_worker(&fixture, move |job| {
            let gate = inside.clone();
            async move {
                if is(&job, "slow") || is(&job, "endless") {
                    gate.pass().await;
                }
                if is(&job, "endless") {
                    std::future::pending::<()>().await;
                }
                Ok(())
            }
        })
        .await;
        let before = fixture.count(StateName::Sent).await;
        let ids = put_batch(&fixture, "good", &["slow", "endless"]).await;
        gate.reached(2).await;
        fixture.until_count(StateName::Sent, before + 38).await;
        gate.open(2);
        for id in ids {
            let row = fixture.until_row(id, |row| matches!(row.status, StateName::Sent | StateName::Failed)).await;
            let expected = if row.key.as_str() == "endless" { Some("NETWORK_TIMEOUT") } else { None };
            assert_eq!(row.last_error.as_deref(), expected);
        }
    }

    /// The messages behind it run elsewhere, and those before it are settled.
    #[test]
    async fn handler_that_blocks_the_shared_task_delays_no_other(fixture: WorkerFixture) {
        let (release, blocked): (Sender<()>, Receiver<()>) = channel();
        let blocked = Mutex::new(Some(blocked));
        let _worker = prompt_worker(&fixture, move |job| {
            let blocked = is(&job, "blocking").then(|| blocked.lock().unwrap().take()).flatten();
            async move {
                if let Some(blocked) = blocked {
                    blocked.recv().ok();
                }
                Ok(())
            }
        })
        .await;
        let before = fixture.count(StateName::Sent).await;
        put_batch(&fixture, "others", &["blocking"]).await;
        fixture.until_count(StateName::Sent, before + 39).await;
        drop(release);
        fixture.until_count(StateName::Sent, before + 40).await;
    }

    /// What was not started is given back, and does not count.
    #[test]
    async fn stop_gives_back_what_waits_in_a_shared_task(fixture: WorkerFixture) {
        let stopper: Arc<Mutex<Option<StopHandle>>> = Arc::default();
        let inside = Arc::clone(&stopper);
        let worker = prompt_worker(&fixture, move |job| {
            if is(&job, "last") {
                inside.lock().unwrap().as_ref().unwrap().stop();
            }
            async { Ok(()) }
        })
        .await;
        *stopper.lock().unwrap() = Some(worker.stopper());
        let ids = put_batch(&fixture, "others", &["last"]).await;
        worker.ended().await;
        let mut queued = 0;
        for id in ids {
            let row = fixture.row(id).await;
            match row.status {
                StateName::Sent => assert_eq!(row.attempts, 1),
                StateName::Queued => {
                    assert_eq!((row.attempts, row.effect), (0, Effect::NotDone));
                    queued += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(0 < queued, "some were behind it");
    }

    /// The clock is read before every call, also within one task.
    // Spec: D12.
    #[test]
    async fn shared_task_makes_no_call_after_its_lease_has_ended(fixture: WorkerFixture) {
        let (store, calls, gate) = (fixture.store.clone(), RunTasks::default(), HandlerGate::shut());
        let (recording, arrived) = (calls.clone(), gate.clone());
        let slept = Arc::new(Mutex::new(None));
        let inside = Arc::clone(&slept);
        let _worker = prompt_worker(&fixture, move |job| {
            recording.record();
            let arrived = is(&job, "sleeper").then(|| {
                // As if the process had been suspended.
                store.advance_clock(AFTER_LEASE);
                inside.lock().unwrap().get_or_insert((tokio::task::id(), recording.0.lock().unwrap().len()));
                arrived.open(1);
                arrived.clone()
            });
            async move {
                if let Some(arrived) = arrived {
                    arrived.pass().await;
                }
                Ok(())
            }
        })
        .await;
        put_batch(&fixture, "others", &["sleeper"]).await;
        gate.reached(1).await;
        fixture.until_count(StateName::Sending, 0).await;
        let (task, before) = slept.lock().unwrap().unwrap();
        let after = calls.0.lock().unwrap().iter().skip(before).filter(|id| **id == task).count();
        assert_eq!(after, 0, "calls after the lease has ended");
    }
}
