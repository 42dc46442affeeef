//! Nodes that die, and what becomes of their claims.
// SPEC D12.

use std::time::Duration;

use ichido_core::clock::HEARTBEAT_DEADLINE;
use ichido_store::Store;
use ichido_store::message::{ClaimOptions, ClaimedMessage, StepResult};
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{AFTER_LEASE, DAY, KEYED, LEASE, StoreFixture, many, only, queue, succeeded, terms};

const NODE: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);
const RESCUER: Uuid = Uuid::from_u128(3);
const NOBODY: [Uuid; 0] = [];
const SECOND: Duration = Duration::from_secs(1);

async fn beat(store: &Store, node: Uuid) {
    store.nodes().heartbeat(node, &format!("node-{}", node.as_u128())).await.unwrap();
}

/// Claims a message for [`NODE`], for so long that no lease ends here.
async fn claim(store: &Store) -> ClaimedMessage {
    let terms = ClaimOptions { node: NODE, lease: DAY, ..terms() };
    only(store.claims().claim(&queue(), many(10), terms).await.unwrap())
}

async fn declared_dead(store: &Store) -> Vec<Uuid> {
    store.nodes().declare_dead(RESCUER).await.unwrap().into_iter().map(|node| node.id).collect()
}

async fn alive(store: &Store) -> Vec<Uuid> {
    let (nodes, now) = (store.nodes().list().await.unwrap(), store.now().await.unwrap());
    nodes.into_iter().filter(|node| node.is_alive(now)).map(|node| node.id).collect()
}

both_databases! {
    #[test]
    async fn messages_of_a_silent_node_are_rescued_before_their_lease_ends(fixture: StoreFixture) {
        let store = &fixture.store;
        beat(store, NODE).await;
        let id = fixture.enqueue("k1").await;
        let work = claim(store).await;
        fixture.pass(SECOND * 10);
        beat(store, OTHER).await;
        assert_eq!(declared_dead(store).await, NOBODY);
        assert_eq!((fixture.rescue(KEYED).await, alive(store).await.len()), (None, 2));
        fixture.pass(SECOND * 2);
        assert_eq!(store.nodes().declare_dead(NODE).await.unwrap(), [], "a node that can ask lives");
        assert_eq!(declared_dead(store).await, [NODE]);
        assert_eq!(declared_dead(store).await, NOBODY, "one declares it dead, once");
        assert_eq!(alive(store).await, [OTHER]);
        assert_eq!((fixture.rescue(KEYED).await, fixture.status(id).await), (Some(1), "failed"));
        let late = fixture.settle(&work, succeeded(&work)).await;
        assert!(matches!(late, StepResult::Now(_)), "its success is proof: {late:?}");
    }

    #[test]
    async fn node_declared_dead_learns_of_it_by_its_next_heartbeat(fixture: StoreFixture) {
        let nodes = fixture.store.nodes();
        let first = nodes.heartbeat(NODE, "a").await.unwrap();
        fixture.pass(SECOND);
        let second = nodes.heartbeat(NODE, "a").await.unwrap();
        assert!(first.life == second.life && first.at < second.at);
        fixture.pass(HEARTBEAT_DEADLINE);
        assert_eq!(nodes.heartbeat(NODE, "a").await.unwrap().life, first.life, "late, but nobody noticed");
        fixture.pass(HEARTBEAT_DEADLINE);
        assert_eq!(declared_dead(&fixture.store).await, [NODE]);
        let again = nodes.heartbeat(NODE, "a").await.unwrap();
        assert_ne!(again.life, first.life);
        assert_eq!(nodes.heartbeat(NODE, "a").await.unwrap().life, again.life);
        assert_eq!((alive(&fixture.store).await, declared_dead(&fixture.store).await), (vec![NODE], vec![]));
    }

    #[test]
    async fn claims_without_heartbeats_end_with_their_lease(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        fixture.claim_one().await;
        fixture.pass(HEARTBEAT_DEADLINE * 2);
        assert_eq!((declared_dead(&fixture.store).await, fixture.rescue(KEYED).await), (vec![], None));
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
    }

    #[test]
    async fn node_that_stopped_is_neither_alive_nor_declared_dead(fixture: StoreFixture) {
        beat(&fixture.store, NODE).await;
        fixture.store.nodes().leave(NODE, None).await.unwrap();
        assert_eq!(alive(&fixture.store).await, NOBODY);
        fixture.pass(HEARTBEAT_DEADLINE);
        assert_eq!(declared_dead(&fixture.store).await, NOBODY);
    }

    #[test]
    async fn holder_of_a_message_in_flight_is_known(fixture: StoreFixture) {
        let store = &fixture.store;
        let id = fixture.enqueue("k1").await;
        assert_eq!(store.messages().holder(id).await.unwrap(), None);
        let work = fixture.claim_one().await;
        let holder = store.messages().holder(id).await.unwrap().unwrap();
        assert_eq!((holder.node, holder.name, holder.alive_until), (NODE, None, None));
        assert_eq!(holder.lease_until, work.claimed_at.plus(LEASE));
        let heartbeat = store.nodes().heartbeat(NODE, "web-1").await.unwrap();
        let holder = store.messages().holder(id).await.unwrap().unwrap();
        assert_eq!(holder.name.as_deref(), Some("web-1"));
        assert_eq!(holder.alive_until, Some(heartbeat.at.plus(HEARTBEAT_DEADLINE)));
        fixture.send(&work).await;
        assert_eq!(store.messages().holder(id).await.unwrap(), None);
    }
}

/// A node's lock shows that its process lives, or that it is gone, whatever the clock says.
#[tokio::test]
async fn lock_of_a_sqlite_node_decides_at_once() {
    let fixture = StoreFixture::sqlite().await;
    let (store, id) = (&fixture.store, fixture.enqueue("k1").await);
    beat(store, NODE).await;
    let lock = store.nodes().lock(NODE).await.unwrap().expect("a lock");
    claim(store).await;
    // Longer than the deadline, as after a clock was set or the process was stopped.
    fixture.pass(HEARTBEAT_DEADLINE * 2);
    assert_eq!((declared_dead(store).await, fixture.rescue(KEYED).await), (vec![], None));
    beat(store, NODE).await;
    // As when the process is killed.
    drop(lock);
    assert_eq!(declared_dead(&fixture.another_node().await).await, [NODE]);
    let next = fixture.another_node().await;
    assert_eq!(crate::fixture::rescue(&next, KEYED).await, Some(1));
    assert_eq!((fixture.status(id).await, lock_files(&fixture)), ("failed", 0));
}

/// Neither a stop nor a process that was killed before its lock was noted leaves a file behind.
#[tokio::test]
async fn lock_files_of_sqlite_nodes_are_removed() {
    let fixture = StoreFixture::sqlite().await;
    let (store, nodes) = (&fixture.store, fixture.store.nodes());
    beat(store, NODE).await;
    let lock = nodes.lock(NODE).await.unwrap();
    assert_eq!(lock_files(&fixture), 1);
    nodes.leave(NODE, lock).await.unwrap();
    assert_eq!(lock_files(&fixture), 0);
    beat(store, OTHER).await;
    let path = fixture.url().strip_prefix("sqlite:").unwrap();
    let left = std::path::PathBuf::from(format!("{path}-node-{}", OTHER.simple()));
    let file = std::fs::File::create(&left).unwrap();
    // Like one that a process left behind: with its own inode number.
    let inode = std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap());
    std::fs::write(left, inode.to_string()).unwrap();
    assert_eq!(declared_dead(store).await, NOBODY, "it has not said that it has a lock");
    fixture.pass(HEARTBEAT_DEADLINE);
    assert_eq!((declared_dead(store).await, lock_files(&fixture)), (vec![OTHER], 0));
}

fn lock_files(fixture: &StoreFixture) -> usize {
    let path = std::path::Path::new(fixture.url().strip_prefix("sqlite:").unwrap());
    let files = std::fs::read_dir(path.parent().unwrap()).unwrap();
    files.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().contains("-node-")).count()
}
