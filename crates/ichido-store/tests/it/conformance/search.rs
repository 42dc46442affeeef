//! Searching messages: what an index finds at once, and where a search without one stops.
// SPEC D13, E3.

use ichido_core::lifecycle::StateName;
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::message::{IdPrefix, MessageFilter, MessagePage, NewMessage, limits};
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{DAY, StoreFixture, key, message, new_id, queue, queue_named, will_retry};

impl StoreFixture {
    async fn search(&self, filter: MessageFilter) -> MessagePage {
        self.store.messages().search(&filter, 50).await.expect("an answer")
    }
}

fn ids(page: &MessagePage) -> Vec<Uuid> {
    page.messages.iter().map(|row| row.id).collect()
}

both_databases! {
    #[test]
    async fn a_search_is_bounded_and_continues_where_it_stopped(fixture: StoreFixture) {
        let everything = MessageFilter::default;
        let dead = fixture.dead("dead", Effect::NotDone).await;
        let failed = fixture.enqueue("failed").await;
        let work = fixture.claim_one().await;
        let _ = fixture.settle(&work, will_retry(&work)).await;
        let mail = new_id(fixture.put(NewMessage { queue: queue_named("mail"), ..message("mail") }).await);
        let bob = new_id(fixture.put(NewMessage { identity: "bob".to_owned(), ..message("rare") }).await);
        fixture.pass(DAY * 2);
        fixture.enqueue_many(limits::MAX_SEARCHED as usize + 50).await;
        // Found by an index among all the others.
        for (filter, found) in [
            (MessageFilter { code: Some(ErrorCode::BadRequest), ..everything() }, dead),
            (MessageFilter { status: Some(StateName::Dead), ..everything() }, dead),
            (MessageFilter { status: Some(StateName::Failed), queue: Some(queue()), ..everything() }, failed),
            (MessageFilter { status: Some(StateName::Queued), queue: Some(queue_named("mail")), ..everything() }, mail),
            (MessageFilter { key: Some(key("rare")), ..everything() }, bob),
            (MessageFilter { key: Some(key("rare")), identity: Some("bob".to_owned()), ..everything() }, bob),
            (MessageFilter { identity: Some("bob".to_owned()), ..everything() }, bob),
            (MessageFilter { identity: Some("bob".to_owned()), queue: Some(queue()), ..everything() }, bob),
            (MessageFilter { id: IdPrefix::parse(&bob.to_string()), ..everything() }, bob),
        ] {
            let page = fixture.search(filter.clone()).await;
            assert_eq!((ids(&page), page.next), (vec![found], None), "{filter:?}");
            assert!(page.examined <= 5, "{} examined for {filter:?}", page.examined);
        }
        // Not found by an index.
        let created_before = Some(fixture.row(bob).await.created_at.plus(DAY));
        let old = MessageFilter { created_before, ..everything() };
        for filter in [
            MessageFilter { queue: Some(queue()), ..old.clone() },
            MessageFilter { identity: Some("alice".to_owned()), queue: Some(queue()), status: Some(StateName::Queued), ..old },
        ] {
            let page = fixture.search(filter.clone()).await;
            assert_eq!((ids(&page), page.examined), (vec![], limits::MAX_SEARCHED), "{filter:?}");
            let rest = fixture.search(MessageFilter { after: page.next, ..filter.clone() }).await;
            assert_eq!((rest.messages.is_empty(), rest.next), (filter.status.is_some(), None), "{filter:?}");
            let listed = fixture.store.messages().list(&filter, 50).await.unwrap();
            assert_eq!(listed, rest.messages, "a list goes on");
        }
        let full = fixture.search(MessageFilter { queue: Some(queue()), ..everything() }).await;
        assert_eq!((full.messages.len(), full.examined, full.next), (50, 50, ids(&full).last().copied()));
    }

    #[test]
    async fn messages_are_found_by_the_first_digits_of_their_ids(fixture: StoreFixture) {
        let mut all = fixture.enqueue_many(20).await;
        all.reverse();
        let with = |prefix: &str| MessageFilter { id: IdPrefix::parse(prefix), ..MessageFilter::default() };
        for id in &all {
            let text = id.to_string();
            for prefix in [&text[..], &text[..text.len() - 1], &id.simple().to_string(), &text.to_uppercase()] {
                let digits = prefix.to_lowercase().replace('-', "");
                let expected = all.iter().copied().filter(|id| id.simple().to_string().starts_with(&digits));
                assert_eq!(ids(&fixture.search(with(prefix)).await), expected.collect::<Vec<_>>(), "{prefix}");
            }
        }
        let shared = &all[0].to_string()[..4];
        let page = fixture.store.messages().search(&with(shared), 7).await.unwrap();
        assert_eq!((ids(&page), page.next), (all[..7].to_vec(), Some(all[6])), "newest first");
        let rest = fixture.search(MessageFilter { after: page.next, ..with(shared) }).await;
        assert_eq!((ids(&rest), rest.next), (all[7..].to_vec(), None));
        let none = fixture.search(with("ffff")).await;
        assert_eq!((ids(&none), none.next, none.examined), (vec![], None, 0));
        assert!(ids(&fixture.search(with("0000")).await).is_empty());
    }
}
