//! The audit trail: sealed entries cannot be changed, removed or added without being found and named.
// SPEC F5, D13.

use ichido_core::audit::AuditKey;
use ichido_core::audit::entry::EntryId;
use ichido_core::audit::leaf::{self, Leaf, Previous};
use ichido_core::audit::seal::SealHead;
use ichido_core::audit::verify::{AuditReport, Kind};
use ichido_core::lifecycle::{Event, State};
use ichido_core::retry::Safety;
use ichido_core::verdict::Effect;
use ichido_store::Store;
use ichido_store::audit::{AuditSealed, MAX_SEAL_ENTRIES};
use ichido_store::error::StoreError;
use ichido_store::message::{Note, Settlement, StepResult};
use ichido_store::testing::while_busy;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _, SqliteConnection};
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{
    AFTER_LEASE, BACKOFF, DAY, KEYED, StoreFixture, many, queue, succeeded, terms, will_retry,
};

const REQUEUE: Event = Event::Requeued { allowed: true, safety: Safety::None };

pub(crate) fn key() -> AuditKey {
    AuditKey::parse(&[7; 32]).unwrap()
}

fn wrong_key() -> AuditKey {
    AuditKey::parse(&[8; 32]).unwrap()
}

/// Seals what can be sealed now, with at most `limit` entries per seal. Returns how many entries were sealed.
async fn seal_now(store: &Store, limit: u32) -> u64 {
    let (key, mut sealed) = (key(), 0);
    loop {
        match while_busy(|| store.audit().seal(Some(&key), limit)).await {
            AuditSealed::Sealed { entries, .. } => sealed += u64::from(entries),
            AuditSealed::Nothing => return sealed,
            AuditSealed::KeyNeeded => panic!("the trail is under another key"),
        }
    }
}

/// Seals everything. PostgreSQL's oldest transaction may belong to another test on the same server: wait for it.
pub(crate) async fn seal(store: &Store, limit: u32) -> u64 {
    until_sealable(store).await;
    let mut sealed = seal_now(store, limit).await;
    while 0 < store.audit().verify(Some(&key()), None).await.unwrap().unsealed {
        tokio::task::yield_now().await;
        sealed += seal_now(store, limit).await;
    }
    sealed
}

/// Waits until no transaction on the server is older than our entries: it would split them into two seals.
async fn until_sealable(store: &Store) {
    const LATER: &str = "SELECT count(*) FROM ichido.events, ichido.position_base \
         WHERE position >= base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint";
    while let Some(pool) = store.postgres_pool()
        && 0 < sqlx::query_scalar::<_, i64>(LATER).fetch_one(pool).await.unwrap()
    {
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn verify(fixture: &StoreFixture) -> AuditReport {
    fixture.store.audit().verify(Some(&key()), None).await.unwrap()
}

pub(crate) async fn assert_whole(fixture: &StoreFixture) -> AuditReport {
    let report = verify(fixture).await;
    assert!(report.is_whole(), "{:?}", report.findings);
    report
}

/// Returns the findings that name an entry.
pub(crate) fn named(report: &AuditReport) -> Vec<(Kind, Uuid)> {
    report.findings.iter().filter_map(|finding| Some((finding.kind, finding.entry?.message))).collect()
}

fn kinds(report: &AuditReport) -> Vec<Kind> {
    report.findings.iter().map(|finding| finding.kind).collect()
}

/// Writes to the database as an attacker would. `{t}` is the prefix of its tables; `{id}` is `x'…'` in SQLite.
pub(crate) async fn write(fixture: &StoreFixture, sql: &str) -> u64 {
    if fixture.store.is_sqlite() {
        let mut connection = SqliteConnection::connect(fixture.url()).await.unwrap();
        let sql = sql.replace("{t}", "ichido_");
        connection.execute(AssertSqlSafe(sql)).await.unwrap().rows_affected()
    } else {
        let mut connection = PgConnection::connect(fixture.url()).await.unwrap();
        let sql = sql.replace("{t}", "ichido.");
        connection.execute(AssertSqlSafe(sql)).await.unwrap().rows_affected()
    }
}

/// Formats an id as an SQL literal.
pub(crate) fn literal(fixture: &StoreFixture, id: Uuid) -> String {
    if fixture.store.is_sqlite() { format!("x'{}'", id.simple()) } else { format!("'{id}'::uuid") }
}

/// Reads the lists of all seals.
async fn lists(fixture: &StoreFixture) -> Vec<(i64, Vec<u8>)> {
    let sql = "SELECT number, leaves FROM {t}seals WHERE leaves IS NOT NULL ORDER BY number";
    if fixture.store.is_sqlite() {
        let mut connection = SqliteConnection::connect(fixture.url()).await.unwrap();
        let rows = connection.fetch_all(AssertSqlSafe(sql.replace("{t}", "ichido_"))).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    } else {
        let mut connection = PgConnection::connect(fixture.url()).await.unwrap();
        let rows = connection.fetch_all(AssertSqlSafe(sql.replace("{t}", "ichido."))).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }
}

async fn put_list(fixture: &StoreFixture, number: i64, leaves: &[Leaf]) {
    let hex = leaf::write(leaves).iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    let bytes = if fixture.store.is_sqlite() { format!("x'{hex}'") } else { format!("'\\x{hex}'::bytea") };
    let changed =
        write(fixture, &format!("UPDATE {{t}}seals SET leaves = {bytes} WHERE number = {number}")).await;
    assert_eq!(changed, 1);
}

pub(crate) async fn sent(fixture: &StoreFixture, count: usize) -> Vec<Uuid> {
    let ids = fixture.enqueue_many(count).await;
    for work in fixture.claim(u32::try_from(count).unwrap()).await {
        fixture.send(&work).await;
    }
    ids
}

both_databases! {
    #[test]
    async fn everything_that_happens_to_messages_is_sealed(fixture: StoreFixture) {
        assert_eq!(fixture.store.audit().head().await.unwrap(), None);
        assert_eq!(seal(&fixture.store, 10).await, 0, "nothing happened yet");
        let retried = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let _ = fixture.settle(&work, will_retry(&work)).await;
        fixture.pass(BACKOFF);
        fixture.promote().await;
        let dead = {
            let work = fixture.claim_one().await;
            fixture.send(&work).await;
            fixture.dead("k2", Effect::NotDone).await
        };
        let _ = fixture.step(dead, REQUEUE).await;
        let lost = fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        assert_eq!(lost.id, dead);
        let events = 3 + 3;
        assert_eq!(verify(&fixture).await.unsealed, events);
        assert_eq!(seal(&fixture.store, 10).await, events);
        let report = assert_whole(&fixture).await;
        assert_eq!((report.sealed, report.unsealed, report.seals_keyed), (events, 0, report.seals));
        assert_eq!(fixture.store.audit().head().await.unwrap(), report.head);
        assert_eq!(seal(&fixture.store, 10).await, 0, "each is sealed once");
        assert_ne!(retried, dead);
    }

    #[test]
    async fn a_changed_entry_is_found_and_named(fixture: StoreFixture) {
        let ids = sent(&fixture, 20).await;
        seal(&fixture.store, 6).await;
        let whole = assert_whole(&fixture).await;
        assert!(3 <= whole.seals, "{whole:?}");
        let id = literal(&fixture, ids[7]);
        for (change, back) in [
            ("status = 418", "status = NULL"),
            ("at = claimed_at", ""),
            ("receipt = 'forged'", "receipt = NULL"),
            ("actor = 'nobody'", "actor = NULL"),
        ] {
            assert_eq!(write(&fixture, &format!("UPDATE {{t}}events SET {change} WHERE message_id = {id}")).await, 1);
            let report = verify(&fixture).await;
            assert_eq!(named(&report), [(Kind::Changed, ids[7])], "{change}");
            assert_eq!(report.found, 1);
            let finding = report.findings[0];
            assert!(finding.seal.is_some() && finding.at.is_some());
            if back.is_empty() {
                break;
            }
            write(&fixture, &format!("UPDATE {{t}}events SET {back} WHERE message_id = {id}")).await;
            assert_whole(&fixture).await;
        }
    }

    #[test]
    async fn a_changed_key_of_a_message_changes_its_entries(fixture: StoreFixture) {
        let ids = sent(&fixture, 3).await;
        seal(&fixture.store, 10).await;
        let id = literal(&fixture, ids[1]);
        write(&fixture, &format!("UPDATE {{t}}messages SET key = 'another' WHERE id = {id}")).await;
        assert_eq!(named(&verify(&fixture).await), [(Kind::Changed, ids[1])]);
    }

    /// The request is sealed with the first entry, and found whichever seal that is in.
    // SPEC F5.
    #[test]
    async fn a_changed_request_is_found_and_its_message_named(fixture: StoreFixture) {
        let ids = sent(&fixture, 40).await;
        let work = { fixture.enqueue("twice").await; fixture.claim_one().await };
        let _ = fixture.settle(&work, will_retry(&work)).await;
        seal(&fixture.store, 30).await;
        fixture.pass(BACKOFF);
        fixture.promote().await;
        let again = fixture.claim_one().await;
        fixture.send(&again).await;
        seal(&fixture.store, 30).await;
        let whole = assert_whole(&fixture).await;
        assert!(3 <= whole.seals, "{whole:?}");
        let forged = if fixture.store.is_sqlite() { "x'00'" } else { "'\\x00'::bytea" };
        for id in [ids[0], ids[33], work.id] {
            for (change, back) in [
                (format!("request = {forged}"), "request = before.request"),
                ("content_type = 'text/html'".to_owned(), "content_type = before.content_type"),
                ("priority = 0".to_owned(), "priority = before.priority"),
                ("max_attempts = 100".to_owned(), "max_attempts = before.max_attempts"),
                ("due = created_at".to_owned(), "due = NULL"),
            ] {
                write(&fixture, "CREATE TABLE before AS SELECT * FROM {t}messages").await;
                let id_literal = literal(&fixture, id);
                let changed = format!("UPDATE {{t}}messages SET {change} WHERE id = {id_literal}");
                assert_eq!(write(&fixture, &changed).await, 1);
                let report = verify(&fixture).await;
                assert_eq!((named(&report), report.found), (vec![(Kind::RequestChanged, id)], 1), "{change}");
                let finding = report.findings[0];
                assert!(finding.seal.is_some() && finding.at.is_some(), "{finding:?}");
                assert!(finding.why.contains("request"), "{finding:?}");
                let restored = format!(
                    "UPDATE {{t}}messages SET {back} FROM before WHERE {{t}}messages.id = before.id AND before.id = {id_literal}"
                );
                write(&fixture, &restored).await;
                write(&fixture, "DROP TABLE before").await;
                assert_whole(&fixture).await;
            }
        }
    }

    /// What retention deleted with the entries is not missed, and what it left is still checked.
    // SPEC F5.
    #[test]
    async fn changed_request_is_found_next_to_deleted_ones(fixture: StoreFixture) {
        sent(&fixture, 5).await;
        let kept = fixture.dead("dead", Effect::NotDone).await;
        seal(&fixture.store, 3).await;
        fixture.pass(DAY);
        let moment = fixture.store.now().await.unwrap();
        assert_eq!(fixture.store.messages().delete_sealed(&key(), moment, 10).await.unwrap(), 5);
        fixture.store.audit().prune(Some(&key()), 0, 10).await.unwrap();
        assert_eq!(assert_whole(&fixture).await.forgotten, 5);
        let id = literal(&fixture, kept);
        write(&fixture, &format!("UPDATE {{t}}messages SET content_type = 'text/html' WHERE id = {id}")).await;
        assert_eq!(named(&verify(&fixture).await), [(Kind::RequestChanged, kept)]);
    }

    #[test]
    async fn a_removed_entry_is_found_and_named(fixture: StoreFixture) {
        let ids = sent(&fixture, 20).await;
        seal(&fixture.store, 6).await;
        let id = literal(&fixture, ids[11]);
        assert_eq!(write(&fixture, &format!("DELETE FROM {{t}}events WHERE message_id = {id}")).await, 1);
        let report = verify(&fixture).await;
        assert_eq!(named(&report), [(Kind::Removed, ids[11])]);
        assert_eq!(report.found, 1);
        assert!(report.findings[0].at.is_some(), "that much is known of it still");
    }

    /// Only its position distinguishes it from a new entry: it is in a span that was sealed without it.
    #[test]
    async fn an_inserted_entry_is_found_and_named(fixture: StoreFixture) {
        let ids = sent(&fixture, 20).await;
        seal(&fixture.store, 6).await;
        let id = literal(&fixture, ids[3]);
        let columns = "claimed_at, at, from_state, to_state, kind, attempts, deaths, effect";
        let inserted = if fixture.store.is_sqlite() {
            write(&fixture, &format!(
                "INSERT INTO ichido_events (message_id, fence, step, {columns}) SELECT message_id, fence, 1, {columns} FROM ichido_events WHERE message_id = {id};
                 DELETE FROM ichido_unsealed"
            )).await
        } else {
            write(&fixture, &format!(
                "INSERT INTO ichido.events (message_id, fence, step, {columns}, position) SELECT message_id, fence, 1, {columns}, position FROM ichido.events WHERE message_id = {id}"
            )).await
        };
        assert!(0 < inserted);
        let report = verify(&fixture).await;
        assert_eq!(named(&report), [(Kind::Inserted, ids[3])]);
        assert_eq!(report.findings[0].entry.unwrap().step, 1);
        assert_eq!(report.found, 1);
    }

    #[test]
    async fn entries_that_changed_places_are_found_and_named(fixture: StoreFixture) {
        let ids = sent(&fixture, 4).await;
        let work = { fixture.enqueue("last").await; fixture.claim_one().await };
        let _ = fixture.settle(&work, will_retry(&work)).await;
        seal(&fixture.store, 10).await;
        // Each entry has the other's content.
        let (one, other) = (literal(&fixture, ids[0]), literal(&fixture, work.id));
        let swap = format!(
            "UPDATE {{t}}events SET kind = CASE kind WHEN 'failed' THEN 'succeeded' ELSE 'failed' END, \
             to_state = CASE to_state WHEN 'failed' THEN 'sent' ELSE 'failed' END WHERE message_id IN ({one}, {other})"
        );
        assert_eq!(write(&fixture, &swap).await, 2);
        let mut found = named(&verify(&fixture).await);
        found.sort_by_key(|(_, id)| *id);
        assert_eq!(found, [(Kind::Changed, ids[0]), (Kind::Changed, work.id)]);
    }

    /// An attacker with write access who knows this code but not the key changes an entry and repairs what they can.
    #[test]
    async fn stored_seals_cannot_be_forged_without_the_key(fixture: StoreFixture) {
        let ids = sent(&fixture, 6).await;
        seal(&fixture.store, 10).await;
        let id = literal(&fixture, ids[2]);
        write(&fixture, &format!("UPDATE {{t}}events SET actor = 'nobody' WHERE message_id = {id}")).await;
        let changed = verify(&fixture).await;

        // The list alone.
        let lists = lists(&fixture).await.into_iter().map(|(number, list)| (number, leaf::read(&list).unwrap()));
        let position_of = |leaves: &[Leaf]| leaves.iter().position(|leaf| leaf.id.message == ids[2]);
        // Another open transaction may have split the entries into two seals.
        let mut found = lists.filter_map(|(number, leaves)| Some((number, position_of(&leaves)?, leaves)));
        let (number, position, mut leaves) = found.next().unwrap();
        leaves[position].content = ichido_core::audit::Code::from_bytes([1; 32]);
        put_list(&fixture, number, &leaves).await;
        let report = verify(&fixture).await;
        assert_eq!(kinds(&report), [Kind::SealChanged, Kind::Changed]);
        assert_eq!(named(&report), named(&changed), "the entry is still named");

        // Everything, from the first seal on: with another key, and with none.
        for forged in [Some(wrong_key()), None] {
            write(&fixture, "DELETE FROM {t}seals").await;
            if fixture.store.is_sqlite() {
                write(&fixture, "INSERT OR IGNORE INTO ichido_unsealed SELECT message_id, fence, step FROM ichido_events").await;
            }
            while fixture.store.audit().verify(forged.as_ref(), None).await.unwrap().sealed < 6 {
                fixture.store.audit().seal(forged.as_ref(), 10).await.unwrap();
            }
            assert!(fixture.store.audit().verify(forged.as_ref(), None).await.unwrap().is_whole(), "by its own measure");
            let report = verify(&fixture).await;
            let kind = if forged.is_some() { Kind::SealChanged } else { Kind::SealUnkeyed };
            assert!(kinds(&report).contains(&kind), "{report:?}");
        }
    }

    #[test]
    async fn a_chain_under_a_key_is_not_continued_without_it(fixture: StoreFixture) {
        sent(&fixture, 1).await;
        while fixture.store.audit().seal(None, 10).await.unwrap() == AuditSealed::Nothing {}
        let report = fixture.store.audit().verify(None, None).await.unwrap();
        assert!(report.is_whole() && report.seals_keyed == 0 && !report.key_given);
        fixture.enqueue("more").await;
        let work = fixture.claim_one().await;
        fixture.send(&work).await;
        assert_eq!(seal(&fixture.store, 10).await, 1);
        assert_eq!(fixture.store.audit().seal(None, 10).await.unwrap(), AuditSealed::KeyNeeded);
        assert_eq!(fixture.store.audit().seal(Some(&wrong_key()), 10).await.unwrap(), AuditSealed::KeyNeeded);
        assert_whole(&fixture).await;
        let report = fixture.store.audit().verify(None, None).await.unwrap();
        assert!(report.is_whole(), "less is shown, and nothing wrong found: {report:?}");
        let report = fixture.store.audit().verify(Some(&wrong_key()), None).await.unwrap();
        assert_eq!(kinds(&report), [Kind::SealChanged], "it is not the key");
    }

    #[test]
    async fn saved_head_reveals_removed_seals(fixture: StoreFixture) {
        sent(&fixture, 9).await;
        seal(&fixture.store, 3).await;
        let head = fixture.store.audit().head().await.unwrap().unwrap();
        assert_eq!(SealHead::parse(&head.to_string()), Some(head));
        write(&fixture, &format!("DELETE FROM {{t}}seals WHERE number = {}", head.number)).await;
        let report = fixture.store.audit().verify(Some(&key()), Some(head)).await.unwrap();
        assert!(kinds(&report).contains(&Kind::SealRemoved), "{report:?}");
        write(&fixture, "DELETE FROM {t}seals WHERE number = 1").await;
        assert_eq!(verify(&fixture).await.findings[0].kind, Kind::SealRemoved);
    }

    #[test]
    async fn retention_leaves_the_chain_whole(fixture: StoreFixture) {
        let old = sent(&fixture, 5).await;
        seal(&fixture.store, 3).await;
        let kept = fixture.dead("dead", Effect::NotDone).await;
        seal(&fixture.store, 3).await;
        fixture.pass(DAY);
        let moment = fixture.store.now().await.unwrap();
        assert_eq!(fixture.store.messages().delete_sealed(&key(), moment, 3).await.unwrap(), 3);
        let report = assert_whole(&fixture).await;
        assert_eq!((report.sealed, report.forgotten), (6, 3));
        // Without the key it is not trusted.
        assert_eq!(fixture.store.messages().delete_finished(moment, 10).await.unwrap(), 2);
        let report = verify(&fixture).await;
        let mut found = named(&report);
        found.sort_by_key(|(_, id)| *id);
        assert_eq!(found, [(Kind::Removed, old[3]), (Kind::Removed, old[4])]);
        assert!(fixture.store.audit().verify(None, None).await.unwrap().is_whole(), "without the key it is not visible");
        assert_eq!(fixture.status(kept).await, "dead");
    }

    #[test]
    async fn fully_deleted_span_keeps_root_and_count(fixture: StoreFixture) {
        sent(&fixture, 4).await;
        seal(&fixture.store, 10).await;
        let dead = fixture.dead("dead", Effect::NotDone).await;
        seal(&fixture.store, 10).await;
        let nothing = fixture.store.audit().prune(Some(&key()), 0, 10).await.unwrap();
        assert_eq!((nothing.seals, nothing.after), (0, Some(2)));
        fixture.pass(DAY);
        let moment = fixture.store.now().await.unwrap();
        assert_eq!(fixture.store.messages().delete_sealed(&key(), moment, 10).await.unwrap(), 4);
        assert_eq!(fixture.store.audit().prune(Some(&wrong_key()), 0, 10).await.unwrap().seals, 0);
        assert_eq!(fixture.store.audit().prune(Some(&key()), 0, 10).await.unwrap().seals, 1);
        assert_eq!(fixture.store.audit().prune(Some(&key()), 2, 10).await.unwrap().after, None);
        let report = assert_whole(&fixture).await;
        assert_eq!((report.sealed, report.forgotten, report.seals), (5, 4, 2));
        assert_eq!(lists(&fixture).await.len(), 1, "the one with the dead letter");
        assert_eq!(write(&fixture, "DELETE FROM {t}forgotten").await, 0, "the notes went with the list");
        assert_eq!(fixture.status(dead).await, "dead");
    }

    #[test]
    async fn unsealed_deleted_entries_leave_no_trace(fixture: StoreFixture) {
        sent(&fixture, 3).await;
        fixture.pass(DAY);
        let moment = fixture.store.now().await.unwrap();
        assert_eq!(fixture.store.messages().delete_finished(moment, 10).await.unwrap(), 3);
        assert_eq!(seal(&fixture.store, 10).await, 0);
        let report = assert_whole(&fixture).await;
        assert_eq!((report.sealed, report.unsealed), (0, 0));
    }

    /// One node's clock is a day ahead: seals follow the order of writing.
    #[test]
    async fn clocks_that_differ_do_not_matter(fixture: StoreFixture) {
        let ahead = fixture.another_node().await;
        ahead.advance_clock(DAY);
        for round in 0..4 {
            fixture.enqueue(&format!("k{round}")).await;
            let store = if round % 2 == 0 { &ahead } else { &fixture.store };
            let work = store.claims().claim(&queue(), many(1), terms()).await.unwrap().remove(0);
            let settlement = Settlement::new(&work, succeeded(&work), Note::default());
            let _ = store.claims().settle(settlement).await.unwrap();
            assert_eq!(seal(store, 10).await, 1);
        }
        let report = assert_whole(&fixture).await;
        assert_eq!(report.sealed, 4);
        assert_eq!(report.set_back.map(|set_back| set_back.seals), Some(2), "that the clock went back is noted");
        assert_eq!(report.late, [], "and explains the dates");
    }

    #[test]
    async fn an_entry_names_the_one_before_it_of_its_message(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let _ = fixture.settle(&work, will_retry(&work)).await;
        seal(&fixture.store, 10).await;
        fixture.pass(BACKOFF);
        fixture.promote().await;
        let work = fixture.claim_one().await;
        fixture.send(&work).await;
        seal(&fixture.store, 10).await;
        let leaves: Vec<Leaf> =
            lists(&fixture).await.iter().flat_map(|(_, list)| leaf::read(list).unwrap()).collect();
        assert_eq!(leaves.len(), 3);
        assert!(leaves.iter().all(|leaf| leaf.id.message == id));
        assert!(matches!(leaves[0].previous, Previous::Request(_)), "{:?}", leaves[0]);
        assert_eq!(leaves[1].previous, Previous::Entry(leaves[0].content));
        assert_eq!(leaves[2].previous, Previous::Entry(leaves[1].content));
    }

    /// Workers settle, two nodes seal and a third deletes, all at once: each entry is sealed once, and nothing is missed.
    #[test]
    async fn sealing_beside_writers_other_sealers_and_retention_misses_nothing(fixture: StoreFixture) {
        const COUNT: usize = 300;
        fixture.enqueue_many(COUNT).await;
        let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let mut tasks = tokio::task::JoinSet::new();
        for limit in [7, 50] {
            let (node, done) = (fixture.another_node().await, std::sync::Arc::clone(&done));
            tasks.spawn(async move {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    seal_now(&node, limit).await;
                    tokio::task::yield_now().await;
                }
            });
        }
        let (forgetful, over) = (fixture.another_node().await, std::sync::Arc::clone(&done));
        tasks.spawn(async move {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                let moment = forgetful.now().await.unwrap();
                match forgetful.messages().delete_sealed(&key(), moment, 5).await {
                    Ok(_) | Err(StoreError::Busy) => (),
                    Err(error) => panic!("{error:?}"),
                }
                tokio::task::yield_now().await;
            }
        });
        let (queue, mut settled) = (queue(), 0);
        while settled < COUNT {
            let work = while_busy(|| fixture.store.claims().claim(&queue, many(20), terms())).await;
            settled += work.len();
            for work in &work {
                let settlement = Settlement::new(work, succeeded(work), Note::default());
                let sent = while_busy(|| fixture.store.claims().settle(settlement.clone())).await;
                assert_eq!(sent, StepResult::Now(State::Sent));
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
        seal(&fixture.store, MAX_SEAL_ENTRIES).await;
        let report = assert_whole(&fixture).await;
        assert!(report.sealed <= COUNT as u64 && report.unsealed == 0, "{report:?}");
        let row = fixture.store.queues().counts().await.unwrap();
        let left: i64 = row.iter().map(|count| count.count).sum();
        assert_eq!(report.sealed - report.forgotten, left.unsigned_abs(), "what is there is sealed");
    }
}

/// An entry whose transaction commits after later ones were written is waited for, and so are those after it.
#[tokio::test]
async fn a_late_commit_is_waited_for() {
    let fixture = StoreFixture::postgres().await;
    sent(&fixture, 2).await;
    assert_eq!(seal(&fixture.store, 10).await, 2);
    let mut connection = PgConnection::connect(fixture.url()).await.unwrap();
    let mut late = connection.begin().await.unwrap();
    let entry = "INSERT INTO ichido.events (message_id, fence, step, at, from_state, to_state, kind, attempts, deaths, effect, about) \
                 VALUES (gen_random_uuid(), nextval('ichido.fence'), 0, now(), 'running', 'paused', 'paused', 0, 0, 'none', 'queue q')";
    late.execute(entry).await.unwrap();
    fixture.enqueue("after").await;
    let work = fixture.claim_one().await;
    fixture.send(&work).await;
    assert_eq!(seal_now(&fixture.store, 10).await, 0, "what comes after the open one waits with it");
    let report = assert_whole(&fixture).await;
    assert_eq!(report.unsealed, 1);
    late.commit().await.unwrap();
    assert_eq!(seal(&fixture.store, 10).await, 2);
    assert_eq!(assert_whole(&fixture).await.sealed, 4);
}

/// A position is not part of an entry, but it must not be moved to where no seal looks.
#[tokio::test]
async fn an_entry_moved_out_of_its_span_is_found() {
    let fixture = StoreFixture::postgres().await;
    let ids = sent(&fixture, 6).await;
    seal(&fixture.store, 2).await;
    for position in ["9000000000000000000", "-5", "0"] {
        let was = "SELECT position FROM ichido.events WHERE message_id = $1";
        let mut connection = PgConnection::connect(fixture.url()).await.unwrap();
        let before: i64 = sqlx::query(was).bind(ids[4]).fetch_one(&mut connection).await.unwrap().get(0);
        let id = literal(&fixture, ids[4]);
        write(&fixture, &format!("UPDATE ichido.events SET position = {position} WHERE message_id = {id}"))
            .await;
        let mut found = named(&verify(&fixture).await);
        found.sort_by_key(|(kind, _)| kind.as_str());
        assert_eq!(found, [(Kind::Inserted, ids[4]), (Kind::Removed, ids[4])], "{position}");
        write(&fixture, &format!("UPDATE ichido.events SET position = {before} WHERE message_id = {id}"))
            .await;
        assert_whole(&fixture).await;
    }
}

/// A server that imported a dump counts its transactions from lower numbers.
#[tokio::test]
async fn a_dump_in_another_server_goes_on() {
    let fixture = StoreFixture::postgres().await;
    let ahead = "UPDATE ichido.position_base SET base = 5000000000";
    write(&fixture, ahead).await;
    let default = "ALTER TABLE ichido.events ALTER COLUMN position SET DEFAULT";
    write(&fixture, &format!("{default} 5000000000 + pg_current_xact_id()::text::bigint")).await;
    sent(&fixture, 3).await;
    assert_eq!(seal(&fixture.store, 2).await, 3);
    // As if the numbers had never been this high here.
    write(&fixture, "UPDATE ichido.position_base SET base = 0").await;
    write(&fixture, &format!("{default} pg_current_xact_id()::text::bigint")).await;
    let store = fixture.another_node().await;
    fixture.another_node().await;
    fixture.enqueue("after").await;
    let work = fixture.claim_one().await;
    fixture.send(&work).await;
    assert_eq!(seal(&store, 10).await, 1);
    assert_eq!(assert_whole(&fixture).await.sealed, 4);
}

/// SQLite notes entries that wait for a seal, so a missing one is found even there.
#[tokio::test]
async fn an_entry_removed_before_its_seal_is_missed_on_sqlite() {
    let fixture = StoreFixture::sqlite().await;
    let ids = sent(&fixture, 2).await;
    let id = literal(&fixture, ids[0]);
    write(&fixture, &format!("DELETE FROM ichido_events WHERE message_id = {id}")).await;
    let report = verify(&fixture).await;
    assert_eq!(named(&report), [(Kind::Removed, ids[0])]);
    assert_eq!(seal(&fixture.store, 10).await, 1, "the others are sealed all the same");
    let entry: EntryId = verify(&fixture).await.findings[0].entry.unwrap();
    assert_eq!(entry.message, ids[0]);
}
