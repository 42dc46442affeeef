//! What is refused or cut to its bound before a database sees it, alike on both.

use std::num::NonZeroU32;

use ichido_core::ledger::EffectMode;
use ichido_core::lifecycle::{Event, State};
use ichido_store::error::StoreError;
use ichido_store::ledger::{KeySettle, KeySettled, Response, limits as ledger};
use ichido_store::message::{MessageFilter, NewMessage, Note, Settlement, Stepped, limits};

use crate::both_databases;
use crate::fixture::{BACKOFF, Fixture, again, message, new_id};
use crate::ledger::{keep, name};

both_databases! {
    #[test]
    async fn more_tries_than_can_be_counted_are_refused(fixture: Fixture) {
        let tries = |count: u32| NewMessage {
            tries_allowed: NonZeroU32::new(count).unwrap(),
            ..message(&format!("t{count}"))
        };
        for over in [limits::TRIES_MAX + 1, u32::MAX] {
            let refused = fixture.store.message_enqueue(tries(over)).await;
            assert!(matches!(refused, Err(StoreError::OutOfRange { most: limits::TRIES_MAX, .. })), "{refused:?}");
        }
        let id = new_id(fixture.put(tries(limits::TRIES_MAX)).await);
        fixture.enqueue("neighbour").await;
        assert_eq!(fixture.claim(10).await.len(), 2);
        assert_eq!(fixture.row(id).await.tries_allowed, limits::TRIES_MAX);
    }

    #[test]
    async fn a_history_that_cannot_be_counted_blocks_nobody(fixture: Fixture) {
        let id = fixture.enqueue("k1").await;
        let mut work = fixture.claim_one().await;
        (work.history.tries, work.history.deaths) = (u32::MAX, u32::MAX);
        work.history.tries_allowed = NonZeroU32::MAX;
        let back = Event::GivenBack { fence: work.fence, due: work.claimed_at };
        assert!(matches!(fixture.settle(&work, back).await, Stepped::Now(State::Queued { .. })));
        assert_eq!(fixture.claim(10).await.len(), 1);
        assert_eq!(fixture.store.message_list(&MessageFilter::default(), 10).await.unwrap().len(), 1);
        assert_eq!(fixture.row(id).await.status, "sending");
        assert!(!fixture.store.message_transitions(id).await.unwrap().is_empty());
    }

    #[test]
    async fn a_response_whose_status_is_none_is_refused(fixture: Fixture) {
        let fence = fixture.run("k1", EffectMode::Transactional).await;
        let with = |status| {
            let outcome = keep(Response { status, headers: Vec::new(), body: None });
            KeySettle { name: name("k1"), fence, outcome }
        };
        for status in [0, *ledger::STATUS.start() - 1, *ledger::STATUS.end() + 1, 40_000, u16::MAX] {
            let refused = fixture.store.key_settle(with(status)).await;
            assert!(matches!(refused, Err(StoreError::OutOfRange { what: "the status", .. })), "{refused:?}");
        }
        assert_eq!(fixture.store.key_settle(with(999)).await.unwrap(), KeySettled::Stands);
        let found = fixture.store.key_look_up(&name("k1")).await.unwrap().unwrap();
        assert_eq!(found.response.unwrap().status, 999);
    }

    #[test]
    async fn what_a_receiver_calls_a_status_is_told_as_it_is_or_not_at_all(fixture: Fixture) {
        let id = fixture.enqueue("k1").await;
        for status in [Some(14), Some(40_000)] {
            let work = fixture.claim_one().await;
            let note = Note { status, ..Note::default() };
            fixture.store.work_settle(Settlement::of(&work, again(&work), note)).await.unwrap();
            fixture.pass(BACKOFF);
            fixture.promote().await;
        }
        let told = fixture.store.message_transitions(id).await.unwrap();
        let told: Vec<_> = told.iter().filter(|step| step.kind == "failed").map(|step| step.status).collect();
        assert_eq!(told, [Some(14), None]);
    }
}
