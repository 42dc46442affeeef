//! Values that are refused or capped before they reach a database, the same on both.

use std::num::NonZeroU32;

use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::ledger::OperationGuarantee;
use ichido_core::lifecycle::{Event, State};
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::dead_letter::DeadLetterFilter;
use ichido_store::error::StoreError;
use ichido_store::ledger::{KeyClaimed, KeySettle, KeySettled, StoredResponse, limits as ledger};
use ichido_store::message::{
    ClaimOptions, Enqueued, MessageFilter, NewMessage, Note, SameContent, Settlement, StepResult, limits,
};
use ichido_store::node::SingletonTask;
use uuid::Uuid;

use super::ledger::{keep, name, request};
use crate::both_databases;
use crate::fixture::{BACKOFF, DAY, StoreFixture, many, message, new_id, queue, terms, will_retry};

/// The maximum duration.
const HUNDRED_YEARS: Duration = Duration::from_hours(100 * 366 * 24);

fn has_nul<T: std::fmt::Debug>(answer: &Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::NulInText { .. })), "{answer:?}");
}

both_databases! {
    #[test]
    async fn a_response_that_is_too_large_is_refused_and_the_largest_headers_are_kept(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::None).await;
        // A field takes 8 bytes beside its name and value.
        let headers = |bytes: usize| vec![("x".to_owned(), vec![b'7'; bytes - 9])];
        let answer = |headers, body| StoredResponse { status: 200, headers, body: Some(body) };
        let settle = async |response| {
            let settle = KeySettle { name: name("k1"), fence, outcome: keep(response) };
            fixture.store.keys().settle(settle).await
        };
        let over = settle(answer(headers(ledger::MAX_HEADERS_BYTES + 1), Vec::new())).await;
        assert!(matches!(over, Err(StoreError::TooLarge { most: ledger::MAX_HEADERS_BYTES, .. })), "{over:?}");
        let over = settle(answer(Vec::new(), vec![7; ledger::MAX_BODY_BYTES + 1])).await;
        assert!(matches!(over, Err(StoreError::TooLarge { most: ledger::MAX_BODY_BYTES, .. })), "{over:?}");
        let largest = answer(headers(ledger::MAX_HEADERS_BYTES), b"ok".to_vec());
        assert_eq!(settle(largest.clone()).await.unwrap(), KeySettled::Settled);
        let replay = fixture.arrive(request("k1", OperationGuarantee::None)).await;
        assert!(replay == KeyClaimed::Replay(largest), "{replay:?}");
    }

    #[test]
    async fn too_many_attempts_are_refused(fixture: StoreFixture) {
        let attempts = |count: u32| NewMessage {
            max_attempts: NonZeroU32::new(count).unwrap(),
            ..message(&format!("t{count}"))
        };
        for over in [limits::MAX_ATTEMPTS + 1, u32::MAX] {
            let refused = fixture.store.messages().enqueue(attempts(over)).await;
            assert!(matches!(refused, Err(StoreError::OutOfRange { most: limits::MAX_ATTEMPTS, .. })), "{refused:?}");
        }
        let id = new_id(fixture.put(attempts(limits::MAX_ATTEMPTS)).await);
        fixture.enqueue("neighbour").await;
        assert_eq!(fixture.claim(10).await.len(), 2);
        assert_eq!(fixture.row(id).await.max_attempts, limits::MAX_ATTEMPTS);
    }

    #[test]
    async fn overflowing_attempt_count_blocks_nobody(fixture: StoreFixture) {
        // The holder's report is made up.
        fixture.touch();
        let id = fixture.enqueue("k1").await;
        let mut work = fixture.claim_one().await;
        (work.history.attempts, work.history.deaths) = (u32::MAX, u32::MAX);
        work.history.max_attempts = NonZeroU32::MAX;
        let back = Event::GivenBack { fence: work.fence, due: work.claimed_at };
        assert!(matches!(fixture.settle(&work, back).await, StepResult::Now(State::Queued { .. })));
        assert_eq!(fixture.claim(10).await.len(), 1);
        assert_eq!(fixture.store.messages().list(&MessageFilter::default(), 10).await.unwrap().len(), 1);
        assert_eq!(fixture.status(id).await, "sending");
        assert!(!fixture.store.messages().transitions(id).await.unwrap().is_empty());
    }

    #[test]
    async fn invalid_response_status_is_refused(fixture: StoreFixture) {
        let fence = fixture.run("k1", OperationGuarantee::Transactional).await;
        let with = |status| {
            let outcome = keep(StoredResponse { status, headers: Vec::new(), body: None });
            KeySettle { name: name("k1"), fence, outcome }
        };
        for status in [0, *ledger::STATUS.start() - 1, *ledger::STATUS.end() + 1, 40_000, u16::MAX] {
            let refused = fixture.store.keys().settle(with(status)).await;
            assert!(matches!(refused, Err(StoreError::OutOfRange { what: "the status", .. })), "{refused:?}");
        }
        assert_eq!(fixture.store.keys().settle(with(999)).await.unwrap(), KeySettled::Settled);
        let found = fixture.store.keys().get(&name("k1")).await.unwrap().unwrap();
        assert_eq!(found.response.unwrap().status, 999);
    }

    #[test]
    async fn receiver_status_is_stored_exactly_or_dropped(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        for status in [Some(14), Some(40_000)] {
            let work = fixture.claim_one().await;
            let note = Note { status, ..Note::default() };
            let _ = fixture.store.claims().settle(Settlement::new(&work, will_retry(&work), note)).await.unwrap();
            fixture.pass(BACKOFF);
            fixture.promote().await;
        }
        let transitions_seen = fixture.store.messages().transitions(id).await.unwrap();
        let transitions_seen: Vec<_> = transitions_seen.iter().filter(|step| step.kind == "failed").map(|step| step.status).collect();
        assert_eq!(transitions_seen, [Some(14), None]);
    }

    #[test]
    async fn unbounded_durations_last_a_hundred_years(fixture: StoreFixture) {
        let store = &fixture.store;
        let id = new_id(fixture.put(NewMessage { delay: Duration::MAX, ..message("delayed") }).await);
        let row = fixture.row(id).await;
        assert_eq!(row.next_attempt, Some(row.created_at.plus(HUNDRED_YEARS)), "the same on both");
        let same = SameContent { content: Digest::of_bytes(b"c"), window: Duration::MAX };
        let content = |key: &str| NewMessage { same_content: Some(same), ..message(key) };
        let first = new_id(fixture.put(content("content")).await);
        let endless = ClaimOptions { lease: Duration::MAX, ..terms() };
        let work = store.claims().claim(&queue(), many(10), endless).await.unwrap();
        assert_eq!(store.claims().renew(&[work[0].fence], Duration::MAX).await.unwrap(), [true]);
        let fence = fixture.run("kept", OperationGuarantee::Transactional).await;
        let renewed = store.keys().renew(&[(name("kept"), fence, Duration::MAX)]).await.unwrap();
        assert_eq!(renewed, [true]);
        let mut outcome = keep(StoredResponse { status: 200, headers: Vec::new(), body: None });
        if let ichido_store::ledger::KeyOutcome::Keep { ttl, .. } = &mut outcome {
            *ttl = Duration::MAX;
        }
        assert_eq!(fixture.report("kept", fence, outcome).await, KeySettled::Settled);
        // Leases are limited: a task's to an hour.
        assert!(store.nodes().claim_task(SingletonTask::Ledger, Uuid::nil(), Duration::MAX).await.unwrap());
        assert!(!store.nodes().claim_task(SingletonTask::Ledger, Uuid::max(), DAY).await.unwrap());
        fixture.pass(HUNDRED_YEARS.saturating_sub(DAY));
        assert_eq!(fixture.put(content("again")).await, Enqueued::SameContent { id: first });
        assert_eq!(store.keys().sweep(10).await.unwrap(), 0);
        fixture.pass(DAY * 2);
        assert_eq!(store.keys().sweep(10).await.unwrap(), 1);
        assert!(store.nodes().claim_task(SingletonTask::Ledger, Uuid::max(), DAY).await.unwrap());
        assert_eq!(fixture.promote().await, 1);
    }

    #[test]
    async fn earliest_and_latest_timestamps_can_be_queried(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        fixture.send(&fixture.claim_one().await).await;
        let (first, last) = (Timestamp::from_micros(i64::MIN), Timestamp::MAX);
        for (created_from, created_before, found) in
            [(Some(first), Some(last), 1), (Some(last), None, 0), (None, Some(Timestamp::from_micros(i64::MIN + 1)), 0)]
        {
            let filter = MessageFilter { created_from, created_before, ..MessageFilter::default() };
            assert_eq!(fixture.store.messages().list(&filter, 10).await.unwrap().len(), found);
        }
        assert_eq!(fixture.store.messages().delete_finished(first, 10).await.unwrap(), 0);
        assert_eq!(fixture.store.messages().delete_finished(last, 10).await.unwrap(), 1);
    }

    #[test]
    async fn a_claim_names_an_operation_and_an_identity_within_bounds(fixture: StoreFixture) {
        type Change = fn(&mut ichido_core::ledger::RecordName, String);
        let changes: [(Change, usize); 2] = [
            (|name, text| name.operation = text, ledger::MAX_OPERATION_BYTES),
            (|name, text| name.identity = text, ledger::MAX_IDENTITY_BYTES),
        ];
        for (change, most) in changes {
            let claim = async |text: String| {
                let mut claim = request("k1", OperationGuarantee::None);
                change(&mut claim.name, text);
                fixture.store.keys().claim(claim).await
            };
            let long = claim("x".repeat(most + 1)).await;
            assert!(matches!(long, Err(StoreError::TooLarge { .. })), "{long:?}");
            let empty = claim(String::new()).await;
            assert!(matches!(empty, Err(StoreError::Empty { .. })), "{empty:?}");
            has_nul(&claim("a\0b".to_owned()).await);
            let _ = claim("x".repeat(most)).await.unwrap();
        }
    }

    #[test]
    async fn nul_is_refused_in_every_text(fixture: StoreFixture) {
        let (store, text) = (&fixture.store, "a\0b");
        has_nul(&store.nodes().heartbeat(Uuid::nil(), text).await);
        has_nul(&store.queues().pause(&queue(), true, Some(text)).await);
        has_nul(&store.paces().read(text).await);
        has_nul(&store.paces().write(text, 0, b"9/s").await);
        let filter = MessageFilter { identity: Some(text.to_owned()), ..MessageFilter::default() };
        has_nul(&store.messages().list(&filter, 10).await);
        let filter = DeadLetterFilter { text: Some(text.to_owned()), ..DeadLetterFilter::default() };
        has_nul(&store.dead_letters().page(&filter, None, 10).await);
        let filter = DeadLetterFilter { identity: Some(text.to_owned()), ..DeadLetterFilter::default() };
        has_nul(&store.dead_letters().page(&filter, None, 10).await);
        assert!(store.nodes().list().await.unwrap().is_empty());
    }

    #[test]
    async fn zero_connections_means_one(fixture: StoreFixture) {
        let store = Store::open(fixture.url(), 0).await.unwrap();
        assert!(matches!(store.messages().enqueue(message("k1")).await, Ok(Enqueued::New { .. })));
        assert_eq!(store.claims().claim(&queue(), many(1), terms()).await.unwrap().len(), 1);
    }
}
