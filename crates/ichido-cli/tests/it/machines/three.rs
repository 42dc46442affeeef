//! Three nodes on one database, which fail one after another.

use ichido_store::testing::postgres::durable_database;

use super::database::DatabaseProbe;
use super::load::Producers;
use super::node::{FAULTY, ServeNode};
use super::{in_time, rounds};
use crate::mock_broker::broker::MockBroker;
use crate::serve::program::POLL_EVERY;

/// How many messages are enqueued between two failures.
const MESSAGES: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_failures_lose_and_duplicate_nothing() {
    let rounds = rounds();
    in_time(rounds, nodes_fall_out(rounds)).await;
}

async fn nodes_fall_out(rounds: usize) {
    let (fresh, mock) = (durable_database().await, MockBroker::start(&FAULTY));
    let database = DatabaseProbe::open(&fresh.url).await;
    let mut nodes = Vec::new();
    for name in ["a", "b", "c"] {
        nodes.push(ServeNode::start(name, &fresh.url, mock.address).await);
    }
    let load = Producers::start(&nodes);
    for round in 0..rounds {
        // CI waits only for the first round.
        let has_time = 0 < round;
        load.until_more(MESSAGES).await;
        let killed = sealing_node(&database, &nodes).await;
        let killed = nodes.swap_remove(killed);
        the_caretaker_is_killed(&database, killed, has_time).await;
        nodes.push(ServeNode::start(&format!("d{round}"), &fresh.url, mock.address).await);
        load.at(&nodes);

        load.until_more(MESSAGES).await;
        one_is_parted_from_the_database(&database, &nodes[0], has_time).await;
        load.until_more(MESSAGES).await;
        one_stands_still(&database, &nodes[1], has_time).await;
    }
    load.until_more(MESSAGES).await;
    let acknowledged = load.end().await;
    database.until_all_ended().await;
    assert!(0 < database.rescued().await, "no node fell out holding messages");
    database.holds_each_once(&acknowledged, &mock).await;
    // Nodes that were killed, partitioned or stalled have broken no rule. Spec: F5.
    let report = database.store.audit().verify(None, None).await.expect("it can be read");
    assert_eq!(report.findings, [], "an audit finds nothing");
}

/// Returns which node seals the audit trail.
async fn sealing_node(database: &DatabaseProbe, nodes: &[ServeNode]) -> usize {
    loop {
        let singleton_tasks = database.singleton_tasks().await;
        for (index, node) in nodes.iter().enumerate() {
            let id = database.id_of(&node.name).await;
            if singleton_tasks.iter().any(|(duty, holder)| duty == "trail" && *holder == id) {
                return index;
            }
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}

/// Other nodes send its messages and take over its singleton tasks.
async fn the_caretaker_is_killed(database: &DatabaseProbe, node: ServeNode, has_time: bool) {
    let id = database.id_of(&node.name).await;
    node.fail_while_holding(database, has_time, ServeNode::stand_still, ServeNode::go_on).await;
    node.kill().await;
    let (had, sealed) = (database.singleton_tasks().await, database.sealed().await);
    database.expire_singleton_tasks(id).await;
    database.until_holding(id, false).await;
    database.until_rescued_is_sent().await;
    for (duty, _) in had.iter().filter(|(_, holder)| *holder == id) {
        let is_with_another = |(found, holder): &(String, _)| found == duty && *holder != id;
        while !database.singleton_tasks().await.iter().any(is_with_another) {
            tokio::time::sleep(POLL_EVERY).await;
        }
    }
    while database.sealed().await <= sealed {
        tokio::time::sleep(POLL_EVERY).await;
    }
}

/// First nothing arrives, for longer than its lease; then its connections close; then the link works again.
async fn one_is_parted_from_the_database(database: &DatabaseProbe, node: &ServeNode, has_time: bool) {
    let id = database.id_of(&node.name).await;
    node.fail_while_holding(database, has_time, |node| node.link.silence(), |node| node.link.restore()).await;
    database.until_holding(id, false).await;
    node.link.cut();
    database.until_rescued_is_sent().await;
    node.link.restore();
    node.until_ready().await;
    database.until_holding(id, true).await;
}

/// It stalls for longer than its lease, and then continues as if nothing had happened.
async fn one_stands_still(database: &DatabaseProbe, node: &ServeNode, has_time: bool) {
    let id = database.id_of(&node.name).await;
    node.fail_while_holding(database, has_time, ServeNode::stand_still, ServeNode::go_on).await;
    database.until_holding(id, false).await;
    database.until_rescued_is_sent().await;
    node.go_on();
    node.until_ready().await;
    database.until_holding(id, true).await;
}
