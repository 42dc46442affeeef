//! The responses of receivers that are kept with an outcome.
// SPEC D18.

use ichido_core::digest::Digest;
use ichido_core::lifecycle::State;
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::message::{Note, ReceiverResponse, StepResult, limits};

use crate::both_databases;
use crate::fixture::{AFTER_LEASE, BACKOFF, KEYED, StoreFixture, now, succeeded, terms, will_retry};

both_databases! {
    #[test]
    async fn success_keeps_the_receivers_response(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let note = Note {
            code: Some(ErrorCode::ConflictProcessed),
            status: Some(409),
            result_digest: Some(Digest::of_bytes(b"order 7")),
            receipt: Some("order-7".to_owned()),
            ..Note::default()
        };
        assert_eq!(fixture.settle_with_note(&work, succeeded(&work), note).await, StepResult::Now(State::Sent));
        let last = fixture.store.messages().transitions(id).await.unwrap().pop().unwrap();
        assert_eq!((last.to.as_str(), last.effect, last.attempts), ("sent", Effect::Done, 1));
        assert_eq!((last.code.as_deref(), last.status), (Some("CONFLICT_PROCESSED"), Some(409)));
        assert_eq!(
            (last.receipt.as_deref(), last.result_digest),
            (Some("order-7"), Some(Digest::of_bytes(b"order 7")))
        );
        assert_eq!((last.node, last.fence), (Some(terms().node), Some(work.fence.get())));
    }

    // SPEC D18.
    #[test]
    async fn a_response_is_kept_whole_or_not_at_all(fixture: StoreFixture) {
        let body = |bytes: usize| b"{\0}".iter().copied().cycle().take(bytes).collect::<Vec<u8>>();
        for (text, bytes, is_kept) in
            [("k1", 0, true), ("k2", 70_000, true), ("k3", limits::MAX_RESPONSE_BYTES + 1, false)]
        {
            let id = fixture.enqueue(text).await;
            let work = fixture.claim_one().await;
            let content_type = "application/json".to_owned();
            let response = ReceiverResponse { content_type, bytes, is_whole: true, body: Some(body(bytes)) };
            let note = Note { response: Some(response.clone()), ..Note::default() };
            let _ = fixture.settle_with_note(&work, succeeded(&work), note).await;
            let last = fixture.store.messages().transitions(id).await.unwrap().pop().unwrap();
            let expected = ReceiverResponse { body: is_kept.then(|| body(bytes)), ..response };
            assert_eq!((last.response, last.excerpt), (Some(expected), None), "{bytes}");
            assert_eq!(fixture.row(id).await.last_error_text, None);
        }
    }

    // SPEC D18.
    #[test]
    async fn a_response_that_was_not_read_to_its_end_has_more_bytes(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let response =
            ReceiverResponse { content_type: String::new(), bytes: 70_000, is_whole: false, body: None };
        let note = Note { response: Some(response.clone()), ..Note::default() };
        let _ = fixture.settle_with_note(&work, succeeded(&work), note).await;
        let last = fixture.store.messages().transitions(id).await.unwrap().pop().unwrap();
        assert_eq!(last.response, Some(response));
    }

    // SPEC D18.
    #[test]
    async fn a_late_success_keeps_its_response(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let late = fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        fixture.pass(BACKOFF * 2);
        fixture.promote().await;
        // Somebody else is sending it again: the success is stored as a proof.
        fixture.claim_one().await;
        let (content_type, body) = (String::new(), Some(b"ok".to_vec()));
        let response = ReceiverResponse { content_type, bytes: 2, is_whole: true, body };
        let note = Note { response: Some(response.clone()), ..Note::default() };
        let _ = fixture.settle_with_note(&late, succeeded(&late), note).await;
        let steps = fixture.store.messages().transitions(id).await.unwrap();
        assert!(steps.iter().any(|step| step.response.as_ref() == Some(&response)), "{steps:?}");
    }

    #[test]
    async fn failure_keeps_the_receivers_response(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let note = Note {
            code: Some(ErrorCode::Broker5xx),
            status: Some(503),
            receipt: Some("ticket 3".to_owned()),
            excerpt: Some("x".repeat(5_000)),
            ..Note::default()
        };
        let _ = fixture.settle_with_note(&work, will_retry(&work), note).await;
        let last = fixture.store.messages().transitions(id).await.unwrap().pop().unwrap();
        assert_eq!(
            (last.from.as_str(), last.to.as_str(), last.kind.as_str()),
            ("sending", "failed", "failed")
        );
        assert_eq!((last.code.as_deref(), last.status), (Some("BROKER_5XX"), Some(503)));
        assert_eq!(last.receipt.as_deref(), Some("ticket 3"));
        assert_eq!(last.excerpt.map(|text| text.len()), Some(limits::MAX_EXCERPT_BYTES));
        assert_eq!((last.node, last.fence), (Some(terms().node), Some(work.fence.get())));
    }

    #[test]
    async fn message_settles_with_any_response(fixture: StoreFixture) {
        let sent = fixture.enqueue("k1").await;
        let failed = fixture.enqueue("k2").await;
        let work = fixture.claim(2).await;
        let odd = Note {
            receipt: Some("a\0b".repeat(2_000)),
            excerpt: Some(format!("\0{}", "é".repeat(2_000))),
            actor: Some("o\0".to_owned()),
            status: Some(u16::MAX),
            ..Note::default()
        };
        assert_eq!(
            fixture.settle_with_note(&work[0], succeeded(&work[0]), odd.clone()).await,
            StepResult::Now(State::Sent)
        );
        assert_eq!(now(fixture.settle_with_note(&work[1], will_retry(&work[1]), odd).await).name(), "failed");
        assert_eq!(
            (fixture.status(sent).await, fixture.status(failed).await),
            ("sent", "failed")
        );
        for id in [sent, failed] {
            let last = fixture.store.messages().transitions(id).await.unwrap().pop().unwrap();
            assert!(last.receipt.unwrap().len() <= limits::MAX_EXCERPT_BYTES);
        }
    }
}
