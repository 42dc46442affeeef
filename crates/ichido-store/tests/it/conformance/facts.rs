//! Facts that workers publish about their queues: the weaker ones apply, and the last ones stay.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::facts::{ALIVE_WITHIN, PublishedQueue, QueueFacts};
use ichido_store::message::QueueName;
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{DAY, KEYED, StoreFixture};

const A: Uuid = Uuid::from_u128(1);
const B: Uuid = Uuid::from_u128(2);
/// Longer than a node may be silent and count as alive.
const GONE: Duration = Duration::from_mins(1);
const KEPT: QueueFacts = QueueFacts {
    guarantee: KEYED,
    requeue: true,
    max_attempts: NonZeroU32::new(9).unwrap(),
    retry_horizon: Duration::from_mins(20),
};

fn name(queue: &str) -> QueueName {
    QueueName::parse(queue).unwrap()
}

/// Publishes like a worker that starts.
async fn publish(store: &Store, node: Uuid, queue: &str, facts: QueueFacts) {
    store.queues().key_kind(&name(queue), "derived").await.unwrap();
    store.nodes().heartbeat(node, &format!("node-{}", node.as_u128())).await.unwrap();
    store.facts().publish(node, &[(name(queue), facts)]).await.unwrap();
}

async fn published(store: &Store, queue: &str) -> PublishedQueue {
    let queues = store.facts().list().await.unwrap();
    queues.into_iter().find(|known| known.queue == name(queue)).unwrap()
}

fn nodes(queue: &PublishedQueue) -> Vec<Uuid> {
    queue.nodes.iter().map(|(node, _)| node.id).collect()
}

both_databases! {
    #[test]
    async fn published_facts_are_listed_by_queue_with_their_node(fixture: StoreFixture) {
        let store = &fixture.store;
        assert_eq!(store.facts().list().await.unwrap(), []);
        let mail = QueueFacts { guarantee: Guarantee::None, requeue: false, ..KEPT };
        let ping = QueueFacts { guarantee: Guarantee::Idempotent, retry_horizon: Duration::ZERO, ..KEPT };
        for (queue, kind) in [("orders", "derived"), ("mail", "own"), ("ping", "derived")] {
            store.queues().key_kind(&name(queue), kind).await.unwrap();
        }
        store.nodes().heartbeat(A, "web-1").await.unwrap();
        let all = [(name("orders"), KEPT), (name("mail"), mail), (name("ping"), ping)];
        store.facts().publish(A, &all).await.unwrap();
        let queues = fixture.another_node().await.facts().list().await.unwrap();
        let listed: Vec<_> = queues.iter().map(|queue| (queue.queue.as_str(), queue.key_kind.as_str(), queue.facts)).collect();
        assert_eq!(listed, [("mail", "own", mail), ("orders", "derived", KEPT), ("ping", "derived", ping)]);
        for queue in &queues {
            assert_eq!((nodes(queue), queue.nodes[0].0.name.as_str()), (vec![A], "web-1"));
            assert!(!queue.nodes_disagree());
        }
    }

    #[test]
    async fn republishing_replaces_a_nodes_facts(fixture: StoreFixture) {
        let changed = QueueFacts { guarantee: Guarantee::None, requeue: false, max_attempts: NonZeroU32::MIN, retry_horizon: DAY };
        publish(&fixture.store, A, "orders", KEPT).await;
        publish(&fixture.store, A, "orders", changed).await;
        let queue = published(&fixture.store, "orders").await;
        assert_eq!((queue.facts, nodes(&queue)), (changed, vec![A]));
    }

    #[test]
    async fn stopped_node_counts_only_without_live_nodes(fixture: StoreFixture) {
        let store = &fixture.store;
        let forbidden = QueueFacts { requeue: false, ..KEPT };
        publish(store, A, "orders", forbidden).await;
        store.facts().end(A).await.unwrap();
        assert_eq!(published(store, "orders").await.facts, forbidden, "the last word");
        publish(store, B, "orders", KEPT).await;
        let queue = published(store, "orders").await;
        assert_eq!((queue.facts, nodes(&queue)), (KEPT, vec![B]), "a restart with other settings counts at once");
        store.facts().end(B).await.unwrap();
        assert_eq!(published(store, "orders").await.facts, forbidden, "none lives, so both count");
        publish(store, A, "orders", KEPT).await;
        let queue = published(store, "orders").await;
        assert_eq!((queue.facts, nodes(&queue)), (KEPT, vec![A]), "it lives again");
    }

    #[test]
    async fn a_node_that_was_not_seen_since_another_stopped_does_not_replace_it(fixture: StoreFixture) {
        let store = &fixture.store;
        let forbidden = QueueFacts { requeue: false, ..KEPT };
        publish(store, A, "orders", KEPT).await;
        publish(store, B, "orders", forbidden).await;
        store.facts().end(B).await.unwrap();
        assert_eq!(published(store, "orders").await.facts, forbidden, "A may have been killed before");
        publish(store, A, "orders", KEPT).await;
        assert_eq!(published(store, "orders").await.facts, KEPT, "A lives, and B has stopped");
    }

    #[test]
    async fn weaker_facts_win_if_nodes_disagree(fixture: StoreFixture) {
        let other = QueueFacts {
            guarantee: Guarantee::Keyed { keeps_for: Duration::from_hours(1) },
            requeue: false,
            max_attempts: NonZeroU32::MIN,
            retry_horizon: DAY,
        };
        publish(&fixture.store, A, "orders", KEPT).await;
        publish(&fixture.store, B, "orders", other).await;
        let queue = published(&fixture.store, "orders").await;
        assert_eq!((queue.facts, queue.nodes_disagree()), (other, true));
        let mut said: Vec<_> = queue.nodes.iter().map(|(node, facts)| (node.id, *facts)).collect();
        said.sort_by_key(|(node, _)| *node);
        assert_eq!(said, [(A, KEPT), (B, other)]);

        // Neither the order nor the kind of guarantee matters.
        publish(&fixture.store, A, "orders", QueueFacts { guarantee: Guarantee::None, ..KEPT }).await;
        let facts = published(&fixture.store, "orders").await.facts;
        assert_eq!(facts, QueueFacts { guarantee: Guarantee::None, ..other });
        publish(&fixture.store, A, "orders", other).await;
        assert!(!published(&fixture.store, "orders").await.nodes_disagree());
    }

    #[test]
    async fn lost_node_does_not_count_next_to_a_live_one(fixture: StoreFixture) {
        let weak = QueueFacts { guarantee: Guarantee::None, requeue: false, ..KEPT };
        publish(&fixture.store, A, "orders", weak).await;
        fixture.pass(ALIVE_WITHIN / 2);
        publish(&fixture.store, B, "orders", KEPT).await;
        assert_eq!(published(&fixture.store, "orders").await.facts, weak, "it may still live");
        fixture.pass(GONE);
        fixture.store.nodes().heartbeat(B, "node-2").await.unwrap();
        let queue = published(&fixture.store, "orders").await;
        assert_eq!((queue.facts, nodes(&queue)), (KEPT, vec![B]));
        fixture.store.nodes().heartbeat(A, "node-1").await.unwrap();
        assert_eq!(published(&fixture.store, "orders").await.facts, weak, "it was only silent");
    }

    #[test]
    async fn the_last_facts_stay_when_all_nodes_are_gone(fixture: StoreFixture) {
        let weak = QueueFacts { guarantee: Guarantee::None, ..KEPT };
        publish(&fixture.store, A, "orders", QueueFacts { requeue: false, ..weak }).await;
        fixture.pass(GONE);
        publish(&fixture.store, A, "mail", weak).await;
        publish(&fixture.store, A, "orders", KEPT).await;
        publish(&fixture.store, B, "orders", weak).await;
        fixture.pass(DAY);
        let queue = published(&fixture.store, "orders").await;
        assert_eq!((queue.facts, queue.nodes.len()), (weak, 2), "those of all that lived last");
        // A node that serves another queue changes nothing.
        publish(&fixture.store, Uuid::from_u128(3), "mail", KEPT).await;
        assert_eq!(published(&fixture.store, "orders").await, queue);
        assert_eq!(published(&fixture.store, "mail").await.facts, KEPT);
    }

    #[test]
    async fn facts_of_a_long_lost_node_are_deleted(fixture: StoreFixture) {
        publish(&fixture.store, A, "orders", KEPT).await;
        fixture.pass(DAY);
        publish(&fixture.store, B, "orders", KEPT).await;
        fixture.store.nodes().heartbeat(A, "node-1").await.unwrap();
        assert_eq!(nodes(&published(&fixture.store, "orders").await), [B]);
        publish(&fixture.store, A, "orders", KEPT).await;
        assert_eq!(published(&fixture.store, "orders").await.nodes.len(), 2);
    }

    #[test]
    async fn a_node_that_beat_while_the_clock_was_ahead_does_not_hide_the_others(fixture: StoreFixture) {
        let ahead = fixture.another_node().await;
        ahead.advance_clock(DAY);
        publish(&ahead, A, "orders", QueueFacts { guarantee: Guarantee::Idempotent, ..KEPT }).await;
        assert_eq!(nodes(&published(&fixture.store, "orders").await), [A], "better than nothing");
        publish(&fixture.store, B, "orders", KEPT).await;
        let queue = published(&fixture.store, "orders").await;
        assert_eq!((queue.facts, nodes(&queue)), (KEPT, vec![B]));
    }
}
