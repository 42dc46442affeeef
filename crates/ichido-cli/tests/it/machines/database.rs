//! Reads the database for the tests, over a connection that never fails.

use ichido_core::lifecycle::StateName;
use ichido_store::Store;
use sqlx::PgPool;
use uuid::Uuid;

use super::load::Acknowledged;
use crate::mock_broker::broker::MockBroker;
use crate::serve::program::POLL_EVERY;

pub(crate) struct DatabaseProbe {
    pub(crate) store: Store,
    pool: PgPool,
}

impl DatabaseProbe {
    pub(crate) async fn open(url: &str) -> Self {
        let store = Store::open(url, 4).await.expect("the store opens");
        Self { store, pool: PgPool::connect(url).await.unwrap() }
    }

    /// Returns the id of the latest node with a name.
    pub(crate) async fn id_of(&self, name: &str) -> Uuid {
        loop {
            let nodes = self.store.nodes().list().await.expect("an answer");
            let named = nodes.into_iter().filter(|node| node.name == name);
            if let Some(node) = named.max_by_key(|node| node.started_at) {
                return node.id;
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    pub(crate) async fn is_holding(&self, node: Uuid) -> bool {
        let held = "SELECT EXISTS (SELECT 1 FROM ichido.leases WHERE node = $1)";
        sqlx::query_scalar(held).bind(node).fetch_one(&self.pool).await.unwrap()
    }

    /// Returns whether one of these connections has left a transaction open, after its statement has ended.
    pub(crate) async fn is_left_open(&self, ports: &[i32]) -> bool {
        let states = "SELECT state FROM pg_stat_activity WHERE client_port = ANY ($1) AND state <> 'idle'";
        loop {
            let states: Vec<String> =
                sqlx::query_scalar(states).bind(ports).fetch_all(&self.pool).await.unwrap();
            if states.iter().all(|state| state != "active") {
                return !states.is_empty();
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// Waits until a node holds messages, or none.
    pub(crate) async fn until_holding(&self, node: Uuid, is_holding: bool) {
        while self.is_holding(node).await != is_holding {
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// Returns how many messages were rescued from dead nodes.
    pub(crate) async fn rescued(&self) -> i64 {
        let rescued = "SELECT count(*) FROM ichido.events WHERE kind = 'worker_died'";
        sqlx::query_scalar(rescued).fetch_one(&self.pool).await.unwrap()
    }

    /// Waits until rescued messages are sent: a second rescue would give them up.
    pub(crate) async fn until_rescued_is_sent(&self) {
        let open = "SELECT count(*) FROM ichido.message m WHERE m.status <> 'sent' \
            AND EXISTS (SELECT 1 FROM ichido.events e WHERE e.message_id = m.id AND e.kind = 'worker_died')";
        while sqlx::query_scalar::<_, i64>(open).fetch_one(&self.pool).await.unwrap() != 0 {
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// Returns the holder of each singleton task.
    pub(crate) async fn singleton_tasks(&self) -> Vec<(String, Uuid)> {
        let held = "SELECT task, node FROM ichido.singleton_tasks WHERE clock_timestamp() < lease_until";
        sqlx::query_as(held).fetch_all(&self.pool).await.unwrap()
    }

    /// Lets a node's singleton tasks expire.
    pub(crate) async fn expire_singleton_tasks(&self, node: Uuid) {
        let lapse = "UPDATE ichido.singleton_tasks SET lease_until = clock_timestamp() WHERE node = $1";
        sqlx::query(lapse).bind(node).execute(&self.pool).await.unwrap();
    }

    /// Returns how many entries of the audit trail are sealed.
    pub(crate) async fn sealed(&self) -> u64 {
        self.store.audit().head().await.expect("an answer").map_or(0, |head| head.total)
    }

    /// Waits until no message is open.
    pub(crate) async fn until_all_ended(&self) {
        let open = [StateName::Queued, StateName::Failed, StateName::Sending];
        let is_open =
            |count: &ichido_store::message::StateCount| open.contains(&count.state) && count.count != 0;
        while self.store.queues().counts().await.expect("an answer").iter().any(is_open) {
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// Checks that exactly the acknowledged messages exist, all are sent, and each took effect once.
    pub(crate) async fn holds_each_once(&self, acknowledged: &[Acknowledged], mock: &MockBroker) {
        let effects = mock.effects().await;
        let effects = effects["keys"].as_object().expect("the keys");
        for Acknowledged { key, id } in acknowledged {
            let row = self.store.messages().get(*id).await.expect("an answer");
            let row = row.unwrap_or_else(|| panic!("{key} was acknowledged and is lost"));
            let is_once =
                row.key.as_str() == key && row.status == StateName::Sent && effects[key]["effects"] == 1;
            if !is_once {
                let steps = self.store.messages().transitions(*id).await.expect("an answer");
                panic!("not sent once: {row:?}, with {}, after {steps:?}", effects[key]);
            }
        }
        let all: i64 =
            sqlx::query_scalar("SELECT count(*) FROM ichido.messages").fetch_one(&self.pool).await.unwrap();
        assert_eq!((usize::try_from(all).unwrap(), effects.len()), (acknowledged.len(), acknowledged.len()));
        let retried: i64 = sqlx::query_scalar("SELECT count(*) FROM ichido.message WHERE 1 < attempts")
            .fetch_one(&self.pool)
            .await
            .unwrap();
        assert!(0 < retried, "nothing was tried again");
    }
}
