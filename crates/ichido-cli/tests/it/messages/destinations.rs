//! How fast destinations are called, and the end of a pause.

use super::ways::Ways;
use crate::dead::place::{Place, both_databases};
use crate::serve::destinations::paused;

both_databases! {
    /// SPEC D6: what is paused is seen, and can be called again.
    #[test]
    async fn destinations_are_listed_and_a_pause_is_ended(place: Place) {
        let ways = Ways::on(place);
        let line = |table: &str| table.lines().find(|line| line.starts_with("broker ")).unwrap().to_owned();
        let table = ways.said(&["destinations", "list"]);
        assert!(table.starts_with("DESTINATION  KIND"), "{table}");
        assert!(line(&table).contains("no limit") && line(&table).ends_with("closed"), "{table}");
        for command in [Ways::at_server, Ways::at_store] {
            paused(&ways.place).await;
            let table = ways.said(&["destinations", "list"]);
            assert!(line(&table).contains(" 20"), "until when: {table}");
            let left = command(&ways, &["destinations", "resume", "broker"]);
            assert!(left.code == Some(0) && left.out.starts_with("broker is not paused"), "{left:?}");
            let listed = ways.json(&["destinations", "list"]);
            let broker = listed.iter().find(|one| one["name"] == "broker").unwrap();
            assert!(broker["paused_until"].is_null(), "{broker}");
        }
        let unknown = ways.both(&["destinations", "resume", "no broker"]);
        assert!(unknown.code == Some(1) && unknown.err.contains("there is no destination"), "{unknown:?}");
    }
}
