//! The database's machine dies under load, and a standby takes over.

use ichido_store::testing::postgres::Cluster;

use super::database::DatabaseProbe;
use super::load::Producers;
use super::node::{FAULTY, ServeNode};
use super::{in_time, rounds};
use crate::mock_broker::broker::MockBroker;

/// How many messages are enqueued before the failover, and after it.
const MESSAGES: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promoted_standby_has_all_acknowledged_messages() {
    for _ in 0..rounds() {
        in_time(1, the_database_fails_over()).await;
    }
}

async fn the_database_fails_over() {
    let (primary, standby) = tokio::task::block_in_place(|| {
        let primary = Cluster::start(&[Cluster::SYNCHRONOUS]).unwrap();
        let standby = primary.standby().unwrap();
        (primary, standby)
    });
    // The first write waits until the standby follows.
    let (fresh, mock) = (primary.database().await.unwrap(), MockBroker::start(&FAULTY));
    let mut nodes = Vec::new();
    for name in ["a", "b"] {
        nodes.push(ServeNode::start(name, &fresh.url, mock.address).await);
    }
    let load = Producers::start(&nodes);
    load.until_more(MESSAGES).await;
    tokio::task::block_in_place(|| primary.kill().and_then(|()| standby.promote())).unwrap();
    for node in &nodes {
        node.link.redirect_to(standby.port());
    }
    // Nobody informs the nodes.
    load.until_more(MESSAGES).await;
    for node in &nodes {
        node.until_ready().await;
    }
    let acknowledged = load.end().await;
    let database = DatabaseProbe::open(&standby.url(&fresh.name)).await;
    database.until_all_ended().await;
    database.holds_each_once(&acknowledged, &mock).await;
}
