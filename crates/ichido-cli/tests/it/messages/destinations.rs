//! Shows how fast destinations are called, and ends a pause.

use super::fixture::ServerAndStore;
use crate::dead::fixture::{StoreFixture, both_databases};
use crate::serve::destinations::paused;

both_databases! {
    /// A pause is visible, and can be ended.
    // Spec: D6.
    #[test]
    async fn destinations_are_listed_and_resumed(fixture: StoreFixture) {
        let targets = ServerAndStore::on(fixture);
        let line = |table: &str| table.lines().find(|line| line.starts_with("broker ")).unwrap().to_owned();
        let table = targets.success_output(&["destinations", "list"]);
        assert!(table.starts_with("DESTINATION  KIND"), "{table}");
        assert!(line(&table).contains("no limit") && line(&table).ends_with("closed"), "{table}");
        for command in [ServerAndStore::at_server, ServerAndStore::at_store] {
            paused(&targets.fixture).await;
            let table = targets.success_output(&["destinations", "list"]);
            assert!(line(&table).contains(" in "), "until when: {table}");
            let left = command(&targets, &["destinations", "resume", "broker"]);
            assert!(left.code == Some(0) && left.out.starts_with("resumed broker; "), "{left:?}");
            let listed = targets.json(&["destinations", "list"]);
            let broker = listed.iter().find(|one| one["name"] == "broker").unwrap();
            assert!(broker["paused_until"].is_null(), "{broker}");
        }
        let again = targets.success_output(&["destinations", "resume", "broker"]);
        assert_eq!(again, "broker was not paused; nothing was changed\n");
        let unknown = targets.both(&["destinations", "resume", "no broker"]);
        assert!(unknown.code == Some(1) && unknown.err.contains("the destination does not exist"), "{unknown:?}");
    }
}
