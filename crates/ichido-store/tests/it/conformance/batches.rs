//! Batches: each row keeps its own values, whether it shares them with the others or not.
//!
//! PostgreSQL gets a column once if all rows share its value, and not at all if no row has one.
// SPEC D1, D3.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use ichido_core::digest::Digest;
use ichido_core::lifecycle::State;
use ichido_core::retry::Guarantee;
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use ichido_store::message::{
    ClaimOptions, ClaimedMessage, NewMessage, Note, ReceiverResponse, Settlement, StepResult,
};
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{
    BACKOFF, DAY, StoreFixture, body, many, message, new_id, queue, queue_named, succeeded, terms, will_retry,
};

/// A message that differs from every other one in all columns.
fn different(text: &str, number: u8) -> NewMessage {
    NewMessage {
        queue: queue_named(&format!("queue-{number}")),
        identity: format!("identity-{number}"),
        request: body(&format!("text/x-{number}"), text.as_bytes()),
        trace: Some(format!("00-0000000000000000000000000000000{number}-000000000000000{number}-01")),
        priority: number,
        max_attempts: NonZeroU32::new(u32::from(number)).unwrap(),
        replacement_of: Some(Uuid::from_u128(u128::from(number))),
        hops: Some(format!("hop-{number}")),
        trace_id: Some(format!("trace-{number}")),
        item: Some(format!("item {number}")),
        ..message(text)
    }
}

/// Asserts that a message is stored as it was enqueued.
async fn assert_stored(fixture: &StoreFixture, id: Uuid, new: &NewMessage) {
    let row = fixture.row(id).await;
    assert_eq!((&*row.queue, &*row.identity, &row.key), (new.queue.as_str(), &*new.identity, &new.key));
    assert_eq!(
        (&*row.content_type, row.request.as_slice()),
        (new.request.content_type(), new.request.bytes())
    );
    assert_eq!((row.request_digest, row.replacement_of), (*new.request.digest(), new.replacement_of));
    assert_eq!((row.priority, row.max_attempts), (new.priority, new.max_attempts.get()));
    assert_eq!((&row.trace, &row.trace_id), (&new.trace, &new.trace_id));
    assert_eq!((&row.hops, &row.item), (&new.hops, &new.item));
    assert_eq!(row.status.as_str(), "queued");
}

fn claimed_by(node: u128) -> ClaimOptions {
    ClaimOptions { node: Uuid::from_u128(node), ..terms() }
}

async fn claim(fixture: &StoreFixture, node: u128, count: u32) -> Vec<ClaimedMessage> {
    fixture.store.claims().claim(&queue(), many(count), claimed_by(node)).await.unwrap()
}

both_databases! {
    #[test]
    async fn messages_of_a_batch_keep_their_own_values(fixture: StoreFixture) {
        let plain = |text: &str| message(text);
        let later = |text: &str| NewMessage { delay: DAY, ..message(text) };
        let at = |text: &str| NewMessage { run_at: Some(Timestamp::from_micros(1)), ..message(text) };
        let batches = [
            vec![plain("a1")],
            vec![different("b1", 3)],
            vec![later("c1")],
            vec![plain("d1"), plain("d2"), plain("d3")],
            vec![different("e1", 1), different("e2", 2), different("e3", 3)],
            vec![plain("f1"), different("f2", 4), plain("f3")],
            vec![different("g1", 5), plain("g2")],
            vec![plain("h1"), later("h2"), at("h3"), different("h4", 6)],
        ];
        let mut queued = BTreeMap::<String, i64>::new();
        for batch in batches {
            for new in &batch {
                *queued.entry(new.queue.as_str().to_owned()).or_default() += 1;
            }
            let results = fixture.store.messages().enqueue_all(batch.clone()).await;
            for (new, result) in batch.iter().zip(results) {
                assert_stored(&fixture, new_id(result.unwrap()), new).await;
            }
        }
        let counts = fixture.store.queues().counts().await.unwrap().into_iter();
        let counts: BTreeMap<String, i64> = counts.map(|count| (count.queue, count.count)).collect();
        assert_eq!(counts, queued);
        let claimable = fixture.claim(100).await.into_iter().map(|work| work.request);
        let claimable: Vec<Vec<u8>> = claimable.collect();
        let expected = ["a1", "d1", "d2", "d3", "f1", "f3", "g2", "h1", "h3"];
        assert_eq!(claimable.len(), expected.len(), "{claimable:?}");
        assert!(expected.iter().all(|text| claimable.contains(&text.as_bytes().to_vec())), "{claimable:?}");
    }

    #[test]
    async fn successes_of_several_claims_keep_their_own_values(fixture: StoreFixture) {
        let ids = fixture.enqueue_many(6).await;
        // The first was tried before, so attempts differ too.
        let tried = claim(&fixture, 1, 1).await.remove(0);
        let _ = fixture.settle(&tried, will_retry(&tried)).await;
        fixture.pass(BACKOFF);
        fixture.promote().await;
        let mut work = claim(&fixture, 1, 3).await;
        work.extend(claim(&fixture, 2, 2).await);
        work.extend(claim(&fixture, 3, 1).await);
        work.reverse();
        let noted = Note {
            code: Some(ErrorCode::Broker5xx),
            status: Some(208),
            result_digest: Some(Digest::of_bytes(b"result")),
            receipt: Some("receipt".to_owned()),
            excerpt: Some("excerpt".to_owned()),
            response: Some(ReceiverResponse {
                content_type: "text/plain".to_owned(),
                bytes: 2,
                is_whole: true,
                body: Some(b"ok".to_vec()),
            }),
            actor: None,
        };
        let details = |work: &ClaimedMessage| if work.id == ids[2] { noted.clone() } else { Note::default() };
        let reports: Vec<Settlement> =
            work.iter().map(|work| Settlement::new(work, succeeded(work), details(work))).collect();
        let results = fixture.store.claims().settle_all(reports).await;
        assert!(results.iter().all(|result| matches!(result, Ok(StepResult::Now(_)))), "{results:?}");
        for work in &work {
            let last = fixture.store.messages().transitions(work.id).await.unwrap().pop().unwrap();
            let node = if ids[..3].contains(&work.id) { 1 } else if ids[5] == work.id { 3 } else { 2 };
            assert_eq!(last.to.as_str(), "sent");
            assert_eq!((last.node, last.fence), (Some(Uuid::from_u128(node)), Some(work.fence.get())));
            assert_eq!(last.attempts, if work.id == ids[0] { 2 } else { 1 });
            let expected = details(work);
            assert_eq!((last.status, last.result_digest), (expected.status, expected.result_digest));
            assert_eq!((last.receipt, last.excerpt), (expected.receipt, expected.excerpt));
            assert_eq!((last.code.as_deref(), last.response), (expected.code.map(ErrorCode::as_str), expected.response));
        }
        fixture.assert_counts(&[("sent", 6)]).await;
        fixture.pass(DAY);
        assert_eq!(fixture.rescue(Guarantee::None).await, None, "no claim is left");
    }

    /// One report is repeated, as after a lost answer: the new ones beside it are stored, and the claim ends with them.
    #[test]
    async fn success_that_is_repeated_in_a_batch_is_stored_once(fixture: StoreFixture) {
        let ids = fixture.enqueue_many(3).await;
        let work = claim(&fixture, 1, 3).await;
        fixture.send(&work[0]).await;
        let reports = work.iter().chain(&work[1..2]);
        let reports = reports.map(|work| Settlement::new(work, succeeded(work), Note::default())).collect();
        let results = fixture.store.claims().settle_all(reports).await;
        assert!(results.iter().all(|result| matches!(result, Ok(StepResult::Now(State::Sent)))), "{results:?}");
        for id in ids {
            assert_eq!(fixture.steps(id).await, ["queued>sending", "sending>sent"]);
        }
        fixture.assert_counts(&[("sent", 3)]).await;
        fixture.pass(DAY);
        assert_eq!(fixture.rescue(Guarantee::None).await, None, "no claim is left");
    }

    /// One claim was lost: its report is judged alone, and those of the other claim are stored.
    #[test]
    async fn success_under_a_lost_claim_does_not_affect_others(fixture: StoreFixture) {
        let ids = fixture.enqueue_many(2).await;
        let lost = claim(&fixture, 1, 1).await;
        fixture.pass(DAY);
        assert_eq!(fixture.rescue(Guarantee::Idempotent).await, Some(1));
        let held = fixture.store.claims().claim_unsuspected(&queue(), many(2), claimed_by(2)).await.unwrap();
        assert_eq!(held.iter().map(|work| work.id).collect::<Vec<_>>(), [ids[1]]);
        let reports: Vec<Settlement> = lost
            .iter()
            .chain(&held)
            .map(|work| Settlement::new(work, succeeded(work), Note::default()))
            .collect();
        let results = fixture.store.claims().settle_all(reports).await;
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        for id in ids {
            assert_eq!(fixture.status(id).await, "sent");
        }
        fixture.assert_counts(&[("sent", 2)]).await;
    }
}
