//! Bulk operations: preflight, canary, stop, halt, audit.
// Spec: D17, E4.

use std::cell::Cell;
use std::time::Duration;

use ichido::dead_letters::{
    BulkAction, BulkEnd, BulkError, BulkOperation, BulkProgress, BulkReport, Canary, LiveBulks, Preflight,
    RequeuePolicies, RequeuePolicy, RequeueRefusal, StopRequest, limits, request_stop,
};
use ichido::destination::{JobError, JobSuccess};
use ichido_core::lifecycle::{Event, Failure, StateName};
use ichido_core::retry::{Guarantee, Jitter, Retry, Safety, Schedule};
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::Store;
use ichido_store::action::AuditAction;
use ichido_store::dead_letter::{DeadLetterFilter, DeadLetterStep, Disposition};
use ichido_store::message::{
    ClaimOptions, ClaimedMessage as Claimed, NewMessage, Note, QueueName, Settlement,
};
use ichido_store::testing::while_busy;
use uuid::Uuid;

use super::fixture::{DAY, FakeReceiver, QUEUE, WorkerFixture, both_databases, key, many, queue};

const REQUEUE: BulkAction = BulkAction::Requeue { canary: None };
/// No test waits this long.
const WATCH_FOR: Duration = Duration::from_hours(1);
const CAREFUL: BulkAction =
    BulkAction::Requeue { canary: Some(Canary { watch_for: WATCH_FOR, ..Canary::DEFAULT }) };

fn policies(requeue: bool, guarantee: Guarantee) -> RequeuePolicies {
    RequeuePolicies::default().with(queue(QUEUE), RequeuePolicy { requeue, guarantee })
}

fn allowed() -> RequeuePolicies {
    policies(true, Guarantee::None)
}

fn bulk(store: &Store, policies: &RequeuePolicies, work: BulkAction) -> BulkOperation {
    let (store, policies) = (store.clone(), policies.clone());
    let (filter, reason) = (DeadLetterFilter::default(), Some("fixed".to_owned()));
    BulkOperation { store, policies, action: work, filter, actor: "olivia".to_owned(), reason }
}

/// Counts, and runs.
async fn run(bulk: &BulkOperation) -> (Preflight, BulkReport) {
    let found = bulk.preflight().await.unwrap();
    let report = bulk.run(&found, || false, |_| ()).await.unwrap();
    (found, report)
}

/// Starts a canary, and drops it like a killed process.
async fn killed(bulk: &BulkOperation) -> Uuid {
    let found = bulk.preflight().await.unwrap();
    let (sender, mut operations) = tokio::sync::mpsc::unbounded_channel();
    tokio::select! {
        ended = bulk.run(&found, || false, |progress| _ = sender.send(progress.operation)) => panic!("{ended:?}"),
        operation = operations.recv() => operation.unwrap(),
    }
}

/// Returns the operation that blocks another one, if any.
async fn taken_by(bulk: &BulkOperation) -> Option<Uuid> {
    let found = bulk.preflight().await.unwrap();
    match bulk.run(&found, || false, |_| ()).await {
        Ok(_) => None,
        Err(BulkError::Conflict { by }) => Some(by),
        Err(error) => panic!("{error}"),
    }
}

impl WorkerFixture {
    /// Lets `count` messages of a queue die.
    async fn dead_in(&self, queue: &QueueName, count: u32, effect: Effect) -> Vec<Uuid> {
        let new =
            |_| NewMessage::new(queue.clone(), "alice", key(&Uuid::now_v7().to_string()), b"{}".to_vec());
        for put in self.store.messages().enqueue_all((0..count).map(new).collect()).await {
            put.unwrap();
        }
        let terms = ClaimOptions {
            node: Uuid::nil(),
            lease: Duration::from_hours(1),
            start_marks: false,
            guarantee: Guarantee::Idempotent,
            max_time_in_flight: Duration::ZERO,
        };
        let works = self.store.claims().claim(queue, many(count), terms).await.unwrap();
        let note = Note { code: Some(ErrorCode::BadRequest), ..Note::default() };
        let died = |work: &Claimed| {
            let event = Event::Failed {
                fence: work.fence,
                failure: Failure::Permanent,
                effect,
                safety: Safety::None,
                in_flight_until: work.claimed_at,
            };
            Settlement::new(work, event, note.clone())
        };
        for settled in self.store.claims().settle_all(works.iter().map(died).collect()).await {
            let _ = settled.unwrap();
        }
        works.into_iter().map(|work| work.id).collect()
    }

    async fn dead(&self, count: u32) -> Vec<Uuid> {
        self.dead_in(&queue(QUEUE), count, Effect::NotDone).await
    }

    /// The audit entries of an operation.
    async fn entries(&self, operation: Uuid) -> Vec<AuditAction> {
        self.store.actions().of(operation).await.unwrap().into_iter().map(|row| row.action).collect()
    }
}

both_databases! {
    #[test]
    async fn bulk_preflight_reports_and_changes_nothing(fixture: WorkerFixture) {
        fixture.dead(3).await;
        fixture.dead_in(&queue(QUEUE), 2, Effect::Unknown).await;
        fixture.dead_in(&queue("mail"), 4, Effect::NotDone).await;
        let policies = allowed();
        let found = bulk(&fixture.store, &policies, REQUEUE).preflight().await.unwrap();
        assert_eq!((found.matched, found.eligible), (9, 3));
        assert_eq!(found.queues.into_iter().collect::<Vec<_>>(), [(QUEUE.to_owned(), 3)]);
        assert_eq!(found.errors.into_iter().collect::<Vec<_>>(), [("BAD_REQUEST".to_owned(), 3)]);
        let refused: Vec<_> = found.refused.into_iter().collect();
        assert_eq!(
            refused,
            [
                (("mail".to_owned(), RequeueRefusal::QueueNotKnown), 4),
                ((QUEUE.to_owned(), RequeueRefusal::EffectUnknown), 2),
            ]
        );
        assert_eq!(fixture.count(StateName::Dead).await, 9);
    }

    /// As if counting had ended after the first letter. What was counted bounds nothing.
    #[test]
    async fn bulk_moves_all_letters_however_few_were_counted(fixture: WorkerFixture) {
        let all = limits::MAX_BATCH + 3;
        fixture.dead(all).await;
        let bulk = bulk(&fixture.store, &allowed(), REQUEUE);
        let counted = Preflight { matched: 1, eligible: 1, has_more: true, ..bulk.preflight().await.unwrap() };
        let mut seen = Vec::new();
        let report = bulk.run(&counted, || false, |progress| seen.push(progress)).await.unwrap();
        assert_eq!((report.moved, report.ended), (u64::from(all), BulkEnd::Done));
        assert!(seen.iter().all(|progress| progress.has_more && progress.total == 1), "{seen:?}");
        let start = &fixture.entries(report.operation).await[0];
        assert!(start.detail.as_ref().unwrap().ends_with("; at least 1 of more than 1; fixed"), "{start:?}");
    }

    /// One letter was counted, and it would be all of them. But there are more, so the canary watches it first.
    #[test]
    async fn canary_watches_the_first_of_more_than_were_counted(fixture: WorkerFixture) {
        fixture.dead(20).await;
        let bulk = bulk(&fixture.store, &allowed(), CAREFUL);
        let counted = Preflight { matched: 1, eligible: 1, has_more: true, ..bulk.preflight().await.unwrap() };
        let is_watched = Cell::new(false);
        // No worker runs, so it would be watched for an hour.
        let progress = |progress: BulkProgress| is_watched.set(progress.canary.is_some());
        let report = bulk.run(&counted, || is_watched.get(), progress).await.unwrap();
        assert_eq!((report.moved, report.ended), (1, BulkEnd::Stopped { by: None }));
    }

    #[test]
    async fn allowed_letters_are_requeued_and_others_stay_with_reason(fixture: WorkerFixture) {
        let ids = fixture.dead(5).await;
        fixture.dead_in(&queue(QUEUE), 2, Effect::Unknown).await;
        let policies = allowed();
        let (_, report) = run(&bulk(&fixture.store, &policies, REQUEUE)).await;
        assert_eq!((report.moved, report.gone, report.ended), (5, 0, BulkEnd::Done));
        assert_eq!(report.refused.into_iter().collect::<Vec<_>>(), [(RequeueRefusal::EffectUnknown, 2)]);
        let receiver = FakeReceiver::default();
        let worker = fixture.work_as(receiver.done(), |queue| queue.requeue = Some(true));
        fixture.until_count(StateName::Sent, 5).await;
        worker.stop();
        let row = fixture.row(ids[0]).await;
        assert_eq!(row.attempts, 1, "the count restarts at 0");
        assert_eq!(fixture.kinds(ids[0]).await, ["claimed", "failed", "requeued", "claimed", "succeeded"]);
        let requeued = &fixture.transitions(ids[0]).await[2];
        assert_eq!((requeued.actor.as_deref(), requeued.excerpt.as_deref()), (Some("olivia"), Some("fixed")));
    }

    #[test]
    async fn queue_without_requeue_refuses_with_reason(fixture: WorkerFixture) {
        fixture.dead(3).await;
        let policies = policies(false, Guarantee::Idempotent);
        let (found, report) = run(&bulk(&fixture.store, &policies, REQUEUE)).await;
        assert_eq!((found.eligible, found.refused_for(RequeueRefusal::NotAllowed)), (0, 3));
        assert_eq!(report.refused.into_iter().collect::<Vec<_>>(), [(RequeueRefusal::NotAllowed, 3)]);
        assert!(RequeueRefusal::NotAllowed.to_string().contains("requeue = true"));
        assert_eq!(fixture.count(StateName::Dead).await, 3);
    }

    #[test]
    async fn bulk_uses_facts_published_after_planning(fixture: WorkerFixture) {
        fixture.dead(3).await;
        let bulk = bulk(&fixture.store, &allowed(), REQUEUE);
        let found = bulk.preflight().await.unwrap();
        assert_eq!(found.eligible, 3);
        let worker = fixture.work_as(FakeReceiver::default().done(), |queue| queue.requeue = Some(false));
        worker.started().await;
        let report = bulk.run(&found, || false, |_| ()).await.unwrap();
        assert_eq!((report.moved, report.refused.into_iter().collect::<Vec<_>>()), (0, vec![(RequeueRefusal::NotAllowed, 3)]));
        worker.stop();
    }

    #[test]
    async fn unknown_effect_is_requeued_only_while_key_is_remembered(fixture: WorkerFixture) {
        fixture.dead_in(&queue(QUEUE), 2, Effect::Unknown).await;
        let policies = policies(true, Guarantee::Keyed { keeps_for: DAY });
        let early = bulk(&fixture.store, &policies, REQUEUE).preflight().await.unwrap();
        assert_eq!(early.eligible, 2);
        fixture.pass(DAY);
        let late = bulk(&fixture.store, &policies, REQUEUE).preflight().await.unwrap();
        assert_eq!((late.eligible, late.refused_for(RequeueRefusal::KeyExpired)), (0, 2));
        // Counted early, run late: each is judged when it is moved.
        let report = bulk(&fixture.store, &policies, REQUEUE).run(&early, || false, |_| ()).await.unwrap();
        assert_eq!((report.moved, report.refused.values().sum::<u64>()), (0, 2));
    }

    #[test]
    async fn stopped_bulk_continues_when_run_again(fixture: WorkerFixture) {
        let all = limits::MAX_BATCH * 3;
        fixture.dead(all).await;
        let policies = allowed();
        let bulk = bulk(&fixture.store, &policies, REQUEUE);
        let found = bulk.preflight().await.unwrap();
        let seen = Cell::new(0);
        let report = bulk.run(&found, || 0 < seen.get(), |progress| seen.set(progress.moved)).await.unwrap();
        let one_batch = u64::from(limits::MAX_BATCH);
        assert_eq!((report.moved, &report.ended), (one_batch, &BulkEnd::Stopped { by: None }));
        assert_eq!(fixture.count(StateName::Queued).await, i64::from(limits::MAX_BATCH));
        let entries = fixture.entries(report.operation).await;
        assert_eq!(entries[1].to, "stopped");
        let (found, again) = run(&bulk).await;
        assert_eq!((found.matched, again.moved, again.ended), (2 * one_batch, 2 * one_batch, BulkEnd::Done));
    }

    #[test]
    async fn a_bulk_is_stopped_from_another_process(fixture: WorkerFixture) {
        fixture.dead(limits::MAX_BATCH * 2).await;
        let policies = allowed();
        let bulk = bulk(&fixture.store, &policies, CAREFUL);
        let found = bulk.preflight().await.unwrap();
        let elsewhere = fixture.another_node().await;
        let (sender, mut operations) = tokio::sync::mpsc::unbounded_channel();
        let stopping = async {
            let operation = operations.recv().await.unwrap();
            assert_eq!(request_stop(&elsewhere.store, operation, "pete").await.unwrap(), StopRequest::Accepted);
        };
        // No worker runs, so the canary would be watched for an hour.
        let running = bulk.run(&found, || false, |progress| sender.send(progress.operation).unwrap());
        let (report, ()) = tokio::join!(running, stopping);
        let report = report.unwrap();
        assert_eq!(report.ended, BulkEnd::Stopped { by: Some("pete".to_owned()) });
        let states: Vec<String> = fixture.entries(report.operation).await.into_iter().map(|action| action.to).collect();
        assert_eq!(states, ["started", "stopping", "stopped"]);
        assert_eq!(request_stop(&fixture.store, report.operation, "pete").await.unwrap(), StopRequest::Ended);
        assert_eq!(request_stop(&fixture.store, Uuid::nil(), "pete").await.unwrap(), StopRequest::Unknown);
    }

    #[test]
    async fn killed_bulk_is_abandoned_after_lease_and_next_continues(fixture: WorkerFixture) {
        fixture.dead(200).await;
        let policies = allowed();
        let operation = killed(&bulk(&fixture.store, &policies, CAREFUL)).await;
        let started_at = fixture.store.actions().of(operation).await.unwrap()[0].at;
        let is_abandoned = async || LiveBulks::query(&fixture.store).await.unwrap().is_abandoned(operation, started_at);
        assert!(!is_abandoned().await, "it may only be slow");
        assert_eq!(taken_by(&bulk(&fixture.store, &policies, REQUEUE)).await, Some(operation));
        assert_eq!(request_stop(&fixture.store, operation, "pete").await.unwrap(), StopRequest::Accepted);
        fixture.store.advance_clock(limits::LEASE);
        assert!(is_abandoned().await);
        assert_eq!(request_stop(&fixture.store, operation, "pete").await.unwrap(), StopRequest::Ended);
        let (found, report) = run(&bulk(&fixture.store, &policies, REQUEUE)).await;
        assert_eq!((found.matched, report.moved, report.ended), (198, 198, BulkEnd::Done), "the two of the canary have gone");
        assert_eq!(fixture.store.nodes().bulk_leases().await.unwrap(), [], "an ended operation releases its claim");
    }

    #[test]
    async fn running_bulk_renews_its_lease(fixture: WorkerFixture) {
        fixture.dead(20).await;
        let policies = allowed();
        let bulk = bulk(&fixture.store, &policies, CAREFUL);
        let found = bulk.preflight().await.unwrap();
        let (sender, mut operations) = tokio::sync::mpsc::unbounded_channel();
        let looking = async {
            let operation = operations.recv().await.unwrap();
            let started_at = fixture.store.actions().of(operation).await.unwrap()[0].at;
            // As if it had been silent for that long.
            fixture.store.advance_clock(limits::LEASE);
            assert!(LiveBulks::query(&fixture.store).await.unwrap().is_abandoned(operation, started_at));
            while LiveBulks::query(&fixture.store).await.unwrap().is_abandoned(operation, started_at) {
                tokio::time::sleep(limits::WATCH_EVERY).await;
            }
            request_stop(&fixture.store, operation, "pete").await.unwrap()
        };
        let running = bulk.run(&found, || false, |progress| _ = sender.send(progress.operation));
        let (report, asked) = tokio::join!(running, looking);
        assert_eq!((report.unwrap().ended, asked), (BulkEnd::Stopped { by: Some("pete".to_owned()) }, StopRequest::Accepted));
    }

    /// As after a laptop slept: another operation took its letters over, and it reports what it did.
    #[test]
    async fn silent_bulk_loses_its_letters_to_the_next(fixture: WorkerFixture) {
        fixture.dead(20).await;
        let policies = allowed();
        let sleepy = bulk(&fixture.store, &policies, CAREFUL);
        let found = sleepy.preflight().await.unwrap();
        let (sender, mut operations) = tokio::sync::mpsc::unbounded_channel();
        let taking = async {
            operations.recv().await.unwrap();
            fixture.store.advance_clock(limits::LEASE);
            killed(&bulk(&fixture.store, &policies, CAREFUL)).await
        };
        let running = sleepy.run(&found, || false, |progress| _ = sender.send(progress.operation));
        let (report, taker) = tokio::join!(running, taking);
        let report = report.unwrap();
        assert_eq!((report.moved, report.ended), (1, BulkEnd::Abandoned));
        assert_eq!(fixture.entries(report.operation).await.last().unwrap().to, "abandoned");
        let kept: Vec<Uuid> = fixture.store.nodes().bulk_leases().await.unwrap().into_iter().map(|kept| kept.by).collect();
        assert_eq!(kept, [taker], "and takes nothing from who has them");
    }

    #[test]
    async fn two_bulks_never_work_on_letters_of_one_queue(fixture: WorkerFixture) {
        fixture.dead(20).await;
        fixture.dead_in(&queue("mail"), 20, Effect::NotDone).await;
        let policies = allowed().with(queue("mail"), RequeuePolicy { requeue: true, guarantee: Guarantee::None });
        let of = |name: Option<&str>, work| {
            let filter = DeadLetterFilter { queue: name.map(queue), ..DeadLetterFilter::default() };
            BulkOperation { filter, ..bulk(&fixture.store, &policies, work) }
        };
        let operation = killed(&of(Some(QUEUE), CAREFUL)).await;
        assert_eq!(taken_by(&of(Some(QUEUE), REQUEUE)).await, Some(operation));
        assert_eq!(taken_by(&of(None, REQUEUE)).await, Some(operation), "all queues are that one too");
        assert_eq!(taken_by(&of(Some("mail"), REQUEUE)).await, None, "it went");
        fixture.store.advance_clock(limits::LEASE);
        fixture.dead_in(&queue("mail"), 20, Effect::NotDone).await;
        let of_all = killed(&of(None, CAREFUL)).await;
        assert_eq!(taken_by(&of(Some("mail"), REQUEUE)).await, Some(of_all));
        assert!(fixture.entries(operation).await.len() == 1, "a refused operation leaves no entry");
    }

    #[test]
    async fn a_canary_widens_until_all_are_sent(fixture: WorkerFixture) {
        fixture.dead(200).await;
        let receiver = FakeReceiver::default();
        let worker = fixture.work_as(receiver.done(), |queue| queue.requeue = Some(true));
        let policies = allowed();
        let bulk = bulk(&fixture.store, &policies, CAREFUL);
        let found = bulk.preflight().await.unwrap();
        let mut steps = Vec::new();
        let report = bulk.run(&found, || false, |progress| {
            if progress.canary.is_some() && steps.last() != Some(&progress.moved) {
                steps.push(progress.moved);
            }
        }).await.unwrap();
        assert_eq!((report.moved, report.ended), (200, BulkEnd::Done));
        assert_eq!(steps, [2, 10, 50], "each step was watched before the next");
        fixture.until_count(StateName::Sent, 200).await;
        worker.stop();
    }

    #[test]
    async fn a_canary_halts_when_the_receiver_still_fails(fixture: WorkerFixture) {
        fixture.dead(200).await;
        let receiver = FakeReceiver::default();
        let worker = fixture.work_as(receiver.handler(|_, _| async { Err::<JobSuccess, _>(JobError::dead("still down")) }), |queue| queue.requeue = Some(true));
        let policies = allowed();
        let (_, report) = run(&bulk(&fixture.store, &policies, CAREFUL)).await;
        let BulkEnd::Halted { watched, failed_ids } = &report.ended else { panic!("{report:?}") };
        assert!(report.moved == 2 && 1 <= watched.failed, "{report:?}");
        fixture.until_count(StateName::Dead, 200).await;
        assert_eq!(receiver.count(), 2, "the others were not sent");
        worker.stop();
        let entries = fixture.entries(report.operation).await;
        assert_eq!((entries[0].kind.as_str(), entries[1].to.as_str()), ("requeue_canary", "halted"));
        let detail = entries[1].detail.as_deref().unwrap();
        assert_eq!(BulkReport::parse(report.operation, "halted", detail, None).as_ref(), Some(&report), "{detail}");
        assert_eq!(u64::try_from(failed_ids.len()).unwrap(), watched.failed, "it names those that failed");
    }

    /// A failure that the next attempt repairs between two looks still counts.
    #[test]
    async fn canary_halts_even_if_later_attempts_succeed(fixture: WorkerFixture) {
        fixture.dead(200).await;
        let receiver = FakeReceiver::default();
        let handler = receiver.handler(|_, job| async move {
            if job.attempt == 1 { Err(JobError::retry("still shaky")) } else { Ok(JobSuccess::default()) }
        });
        let soon = Retry { schedule: Schedule::List(vec![Duration::from_millis(1)]), jitter: Jitter::None, ..Retry::ORDER };
        let worker = fixture.work_as(handler, |queue| {
            queue.retry = soon;
            queue.requeue = Some(true);
        });
        let policies = allowed();
        let (_, report) = run(&bulk(&fixture.store, &policies, CAREFUL)).await;
        let BulkEnd::Halted { watched, .. } = report.ended else { panic!("{report:?}") };
        assert!(report.moved == 2 && 1 <= watched.failed, "{report:?}");
        fixture.until_count(StateName::Sent, 2).await;
        worker.stop();
    }

    #[test]
    async fn two_operators_at_once_requeue_each_letter_once(fixture: WorkerFixture) {
        let all = limits::MAX_BATCH * 3;
        fixture.dead(all).await;
        let other = fixture.another_node().await;
        let policies = allowed();
        let go = async |store: &Store| {
            let bulk = bulk(store, &policies, REQUEUE);
            let found = bulk.preflight().await.unwrap();
            match bulk.run(&found, || false, |_| ()).await {
                Ok(report) => report.moved,
                Err(BulkError::Conflict { .. }) => 0,
                Err(error) => panic!("{error}"),
            }
        };
        let (here, there) = tokio::join!(go(&fixture.store), go(&other.store));
        assert_eq!(here + there, u64::from(all), "{here} {there}");
        assert_eq!(fixture.count(StateName::Queued).await, i64::from(all));
    }

    /// Letters named by id need no claim.
    #[test]
    async fn bulk_and_single_requeues_requeue_each_letter_once(fixture: WorkerFixture) {
        let all = limits::MAX_BATCH * 3;
        let ids = fixture.dead(all).await;
        let other = fixture.another_node().await;
        let policies = allowed();
        let by_id = async {
            let (note, mut moved) = (Note::default(), 0);
            for part in ids.rchunks(100) {
                let stepped = while_busy(|| other.store.dead_letters().requeue(part, |letter| policies.of(letter), &note)).await;
                moved += stepped.iter().filter(|stepped| matches!(stepped, DeadLetterStep::Now(_))).count();
            }
            u64::try_from(moved).unwrap()
        };
        let bulk = bulk(&fixture.store, &policies, REQUEUE);
        let ((_, report), by_id) = tokio::join!(run(&bulk), by_id);
        assert_eq!(report.moved + by_id, u64::from(all), "{report:?} {by_id}");
        assert_eq!(fixture.count(StateName::Queued).await, i64::from(all));
    }

    #[test]
    async fn letters_dead_again_meanwhile_are_not_requeued_again(fixture: WorkerFixture) {
        fixture.dead(40).await;
        let receiver = FakeReceiver::default();
        let worker = fixture.work_as(receiver.handler(|_, _| async { Err::<JobSuccess, _>(JobError::dead("no")) }), |queue| queue.requeue = Some(true));
        let policies = allowed();
        let (_, report) = run(&bulk(&fixture.store, &policies, REQUEUE)).await;
        assert_eq!(report.moved, 40);
        fixture.until_count(StateName::Dead, 40).await;
        worker.stop();
        assert_eq!(receiver.count(), 40);
    }

    #[test]
    async fn a_bulk_is_itself_recorded(fixture: WorkerFixture) {
        fixture.dead(3).await;
        let policies = allowed();
        let (found, report) = run(&bulk(&fixture.store, &policies, REQUEUE)).await;
        let entries = fixture.entries(report.operation).await;
        let states: Vec<_> = entries.iter().map(|action| (action.from.as_str(), action.to.as_str())).collect();
        assert_eq!(states, [("none", "started"), ("started", "ended")]);
        assert!(entries.iter().all(|action| action.actor.as_deref() == Some("olivia")));
        assert_eq!(entries[0].detail, Some(format!("state=dead before={}; 3 of 3; fixed", found.as_of)));
        assert_eq!(entries[1].detail.as_deref(), Some("moved=3 refused=0 gone=0"));
    }

    #[test]
    async fn bulk_discard_ignores_queue_policy(fixture: WorkerFixture) {
        fixture.dead(3).await;
        let nothing = RequeuePolicies::default();
        let (found, report) = run(&bulk(&fixture.store, &nothing, BulkAction::Discard)).await;
        assert_eq!((found.eligible, report.moved), (3, 3));
        assert_eq!(fixture.count(StateName::Dead).await, 0);
        let discarded = DeadLetterFilter { disposition: Disposition::Discarded, ..DeadLetterFilter::default() };
        assert_eq!(fixture.store.dead_letters().page(&discarded, None, 10).await.unwrap().len(), 3);
    }
}
