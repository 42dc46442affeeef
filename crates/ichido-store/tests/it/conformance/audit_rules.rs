//! The audit trail before sealing: forged entries do not follow from earlier ones, and missing rows are found.
// SPEC F5.

use ichido_core::audit::verify::Kind;
use ichido_core::lifecycle::Event;
use ichido_core::retry::Safety;
use ichido_core::verdict::Effect;
use ichido_store::message::{NewMessage, Note};
use uuid::Uuid;

use super::audit::{assert_whole, literal, named, seal, sent, verify, write};
use crate::both_databases;
use crate::fixture::{BACKOFF, DAY, StoreFixture, message, new_id, will_retry};

const REQUEUE: Event = Event::Requeued { allowed: true, safety: Safety::None };

/// Copies the last entry of a message as a success, with a fence that is greater by `fences`, dated when that one was claimed.
async fn forge(fixture: &StoreFixture, id: Uuid, fences: i64, attempts: i64) {
    let id = literal(fixture, id);
    let forged = format!(
        "INSERT INTO {{t}}events (message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, deaths, effect) \
         SELECT message_id, fence + {fences}, 0, claimed_at, claimed_at, 'sending', 'sent', 'succeeded', attempts + {attempts}, deaths, 'done' \
         FROM {{t}}events WHERE message_id = {id} AND step = 0 ORDER BY fence DESC LIMIT 1"
    );
    assert_eq!(write(fixture, &forged).await, 1);
}

/// Returns the findings about messages, whether or not they name an entry.
async fn found(fixture: &StoreFixture) -> Vec<(Kind, Uuid)> {
    let report = verify(fixture).await;
    report.findings.iter().filter_map(|finding| Some((finding.kind, finding.message?))).collect()
}

both_databases! {
    #[test]
    async fn a_forged_success_is_found_before_it_is_sealed_and_ever_after(fixture: StoreFixture) {
        sent(&fixture, 3).await;
        let dead = fixture.dead("dead", Effect::NotDone).await;
        seal(&fixture.store, 10).await;
        assert_whole(&fixture).await;
        forge(&fixture, dead, 1_000, 1).await;
        let report = verify(&fixture).await;
        assert_eq!((named(&report), report.found), (vec![(Kind::DoesNotFollow, dead)], 1));
        assert_eq!(report.findings[0].why, "its fence was never issued");

        assert_eq!(seal(&fixture.store, 10).await, 1, "it is sealed as what it is, and holds up nothing");
        let report = verify(&fixture).await;
        assert_eq!((named(&report), report.unsealed), (vec![(Kind::DoesNotFollow, dead)], 0));
        assert!(report.findings[0].seal.is_some(), "{report:?}");
        let id = literal(&fixture, dead);
        write(&fixture, &format!("DELETE FROM {{t}}events WHERE message_id = {id} AND to_state = 'sent'")).await;
        let kinds: Vec<Kind> = found(&fixture).await.into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [Kind::DoesNotFollow, Kind::Removed], "taking it back does not help");
    }

    /// With a fence that was issued to another message.
    #[test]
    async fn a_forged_success_of_a_dead_message_is_found_under_any_fence(fixture: StoreFixture) {
        let dead = fixture.dead("dead", Effect::NotDone).await;
        sent(&fixture, 3).await;
        forge(&fixture, dead, 1, 1).await;
        let report = verify(&fixture).await;
        assert_eq!(named(&report), [(Kind::DoesNotFollow, dead)]);
        assert_eq!(report.findings[0].why, "no lifecycle step leads from the previous entry to this one");
        seal(&fixture.store, 100).await;
        let report = verify(&fixture).await;
        assert_eq!(named(&report), [(Kind::DoesNotFollow, dead)]);
        assert!(report.findings[0].why.starts_with("it was sealed as an entry that does not follow"), "{report:?}");
    }

    #[test]
    async fn entries_of_no_message_and_second_ends_are_found(fixture: StoreFixture) {
        let ids = sent(&fixture, 3).await;
        let dead = fixture.dead("dead", Effect::NotDone).await;
        forge(&fixture, ids[0], 1, 1).await;
        forge(&fixture, ids[1], 1, 0).await;
        assert_eq!(found(&fixture).await, [(Kind::DoesNotFollow, ids[0]), (Kind::DoesNotFollow, ids[1])]);
        let id = literal(&fixture, dead);
        write(&fixture, &format!("DELETE FROM {{t}}messages WHERE id = {id}")).await;
        let found = found(&fixture).await;
        assert!(found.contains(&(Kind::DoesNotFollow, dead)), "{found:?}");
    }

    #[test]
    async fn missing_message_row_is_reported(fixture: StoreFixture) {
        let dead = fixture.dead("dead", Effect::NotDone).await;
        let (parked, _) = fixture.parked("parked").await;
        let failed = { fixture.enqueue("failed").await; fixture.claim_one().await };
        let _ = fixture.settle(&failed, will_retry(&failed)).await;
        let held = { fixture.enqueue("held").await; fixture.claim_one().await };
        let ready = fixture.enqueue("ready").await;
        let scheduled = new_id(fixture.put(NewMessage { delay: DAY, ..message("scheduled") }).await);
        for sealed in [false, true] {
            if sealed {
                seal(&fixture.store, 10).await;
            }
            assert_whole(&fixture).await;
            for (table, id) in [
                ("dead_letters", dead), ("dead_letters", parked), ("scheduled", failed.id), ("scheduled", scheduled), ("ready", ready),
            ] {
                write(&fixture, &format!("CREATE TABLE before AS SELECT * FROM {{t}}{table}")).await;
                let id_literal = literal(&fixture, id);
                write(&fixture, &format!("DELETE FROM {{t}}{table} WHERE message_id = {id_literal}")).await;
                assert_eq!(found(&fixture).await, [(Kind::StateRemoved, id)], "{table}");
                write(&fixture, &format!("INSERT INTO {{t}}{table} SELECT * FROM before WHERE message_id = {id_literal}")).await;
                write(&fixture, "DROP TABLE before").await;
            }
        }
        write(&fixture, "DELETE FROM {t}leases").await;
        assert_eq!(found(&fixture).await, [(Kind::StateRemoved, held.id)]);
    }

    /// An inserted row would send it twice; a changed row would allow a requeue.
    #[test]
    async fn row_that_differs_from_the_entries_is_reported(fixture: StoreFixture) {
        let ids = sent(&fixture, 2).await;
        let unknown = fixture.dead("unknown", Effect::Unknown).await;
        assert_whole(&fixture).await;
        let id = literal(&fixture, unknown);
        write(&fixture, &format!("UPDATE {{t}}dead_letters SET effect = 'not_done' WHERE message_id = {id}")).await;
        assert_eq!(found(&fixture).await, [(Kind::StateChanged, unknown)]);
        write(&fixture, &format!("UPDATE {{t}}dead_letters SET effect = 'unknown' WHERE message_id = {id}")).await;
        assert_whole(&fixture).await;
        let id = literal(&fixture, ids[1]);
        let again = format!("INSERT INTO {{t}}ready (queue, priority, message_id) SELECT queue, priority, id FROM {{t}}messages WHERE id = {id}");
        write(&fixture, &again).await;
        assert_eq!(found(&fixture).await, [(Kind::StateChanged, ids[1])]);
        write(&fixture, &format!("DELETE FROM {{t}}messages WHERE id = {id}")).await;
        assert!(found(&fixture).await.contains(&(Kind::DoesNotFollow, ids[1])), "its entries are of no message");
        write(&fixture, &format!("DELETE FROM {{t}}events WHERE message_id = {id}")).await;
        let expected = if fixture.store.is_sqlite() { Kind::Removed } else { Kind::StateChanged };
        assert_eq!(found(&fixture).await, [(expected, ids[1])], "a row of no message");
    }

    #[test]
    async fn changed_hops_are_found(fixture: StoreFixture) {
        let ids = sent(&fixture, 3).await;
        seal(&fixture.store, 10).await;
        assert_eq!(assert_whole(&fixture).await.hops_unsealed, 0);
        let id = literal(&fixture, ids[1]);
        write(&fixture, &format!("UPDATE {{t}}messages SET hops = 'bff' WHERE id = {id}")).await;
        assert_eq!(named(&verify(&fixture).await), [(Kind::RequestChanged, ids[1])]);
    }

    #[test]
    async fn database_clock_set_back_is_a_separate_note(fixture: StoreFixture) {
        let behind = fixture.another_node().await;
        fixture.pass(DAY);
        let dead = fixture.dead("dead", Effect::NotDone).await;
        seal(&fixture.store, 10).await;
        let note = Note { actor: Some("olivia".to_owned()), ..Note::default() };
        let _ = behind.messages().step(dead, |_| REQUEUE, &note).await.unwrap();
        seal(&behind, 10).await;
        let report = assert_whole(&fixture).await;
        let set_back = report.set_back.unwrap();
        assert_eq!((set_back.entries, set_back.seals), (1, 1));
        assert!(BACKOFF < set_back.max && set_back.max <= DAY, "{set_back:?}");
        assert_eq!(report.late, []);
    }

    /// The documented limit: it cannot be distinguished from the truth.
    #[test]
    async fn allowed_history_has_no_findings_before_sealing(fixture: StoreFixture) {
        let dead = fixture.dead("dead", Effect::NotDone).await;
        for key in ["one", "other"] {
            fixture.dead(key, Effect::NotDone).await;
        }
        let id = literal(&fixture, dead);
        let requeued = format!(
            "INSERT INTO {{t}}events (message_id, fence, step, at, from_state, to_state, kind, attempts, deaths, effect, actor) \
             SELECT message_id, fence + 1, 0, at, 'dead', 'queued', 'requeued', 0, 0, 'not_done', 'olivia' FROM {{t}}events WHERE message_id = {id}"
        );
        write(&fixture, &requeued).await;
        let cancelled = format!(
            "INSERT INTO {{t}}events (message_id, fence, step, at, from_state, to_state, kind, attempts, deaths, effect, actor) \
             SELECT message_id, fence + 1, 0, at, 'queued', 'cancelled', 'cancelled', 0, 0, 'not_done', 'olivia' FROM {{t}}events \
             WHERE message_id = {id} AND kind = 'requeued'"
        );
        write(&fixture, &cancelled).await;
        assert_eq!(found(&fixture).await, [(Kind::StateChanged, dead)], "its row of dead letters shows it");
        write(&fixture, &format!("DELETE FROM {{t}}dead_letters WHERE message_id = {id}")).await;
        assert_whole(&fixture).await;
    }
}
