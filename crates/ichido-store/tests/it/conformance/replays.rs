//! How often keys and messages were replayed, over all nodes.

use std::time::Duration;

use ichido_core::series::HOURS_KEPT;
use ichido_store::counters::Replays;
use ichido_store::{Replayed, Store};

use super::alerts::execute;
use super::ledger::name;
use crate::both_databases;
use crate::fixture::{StoreFixture, message};

async fn count(store: &Store, of: &Replayed) -> u64 {
    let found = store.series().replays(std::slice::from_ref(of)).await.unwrap();
    found[0].map_or(0, |replays| replays.count)
}

both_databases! {
    #[test]
    async fn replays_are_counted_by_key_and_by_message(fixture: StoreFixture) {
        let store = &fixture.store;
        let messages = [fixture.enqueue("k1").await, fixture.enqueue("k2").await].map(Replayed::Message);
        let of = [messages.to_vec(), vec![Replayed::Key(name("k1"))]].concat();
        store.series().flush().await.unwrap();
        assert_eq!(store.series().replays(&of).await.unwrap(), [None; 3], "a first request is no replay");
        let first_at = store.now().await.unwrap();
        for _ in 0..2 {
            fixture.put(message("k1")).await;
        }
        store.counters().request_replayed(&name("k1"));
        store.series().flush().await.unwrap();
        fixture.pass(Duration::from_mins(1));
        let last_at = store.now().await.unwrap();
        fixture.put(message("k1")).await;
        store.series().flush().await.unwrap();
        let found = store.series().replays(&of).await.unwrap();
        let [Some(message), None, Some(key)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((message.count, key.count), (3, 1));
        let Replays { first_at: first, last_at: last, .. } = *message;
        assert!(first_at <= first && first < last_at && last_at <= last, "{message:?}");
        assert_eq!(key.first_at, key.last_at);
    }

    #[test]
    async fn replays_of_a_failed_flush_are_in_the_next(fixture: StoreFixture) {
        let (store, key) = (&fixture.store, name("k1"));
        store.counters().request_replayed(&key);
        let (postgres, sqlite) = ("ALTER TABLE ichido.replays RENAME TO away", "ALTER TABLE ichido_replays RENAME TO away");
        execute(&fixture, postgres, sqlite).await;
        store.series().flush().await.unwrap_err();
        let (postgres, sqlite) = ("ALTER TABLE ichido.away RENAME TO replays", "ALTER TABLE away RENAME TO ichido_replays");
        execute(&fixture, postgres, sqlite).await;
        store.counters().request_replayed(&key);
        store.series().flush().await.unwrap();
        assert_eq!(count(store, &Replayed::Key(key)).await, 2);
    }

    /// Many different keys cost one bounded statement.
    #[test]
    async fn a_flush_stores_the_replays_of_few_keys(fixture: StoreFixture) {
        const MAX: usize = 1_000;
        let store = &fixture.store;
        for number in 0..=MAX {
            store.counters().request_replayed(&name(&format!("k{number}")));
        }
        store.counters().request_replayed(&name("k0"));
        store.series().flush().await.unwrap();
        let counted = [0, MAX - 1, MAX].map(|number| Replayed::Key(name(&format!("k{number}"))));
        assert_eq!(count(store, &counted[0]).await, 2, "a key that is counted already still counts");
        assert_eq!((count(store, &counted[1]).await, count(store, &counted[2]).await), (1, 0));
    }

    #[test]
    async fn replays_are_kept_for_90_days(fixture: StoreFixture) {
        let (store, key) = (&fixture.store, name("k1"));
        store.counters().request_replayed(&key);
        store.series().flush().await.unwrap();
        let of = Replayed::Key(key);
        fixture.pass(HOURS_KEPT.saturating_sub(Duration::from_mins(1)));
        assert_eq!((store.series().sweep().await.unwrap(), count(store, &of).await), (0, 1));
        fixture.pass(Duration::from_mins(2));
        assert_eq!((store.series().sweep().await.unwrap(), count(store, &of).await), (1, 0));
    }
}
