//! Alerts: counters over all nodes, and incidents with the messages about them.
// SPEC A15.

use std::time::Duration;

use ichido_core::alert::{AlertRule, AlertSubject, Measurement};
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::StateName;
use ichido_core::verdict::Effect;
use ichido_store::alert::NewAlert;
use ichido_store::counters::Arrival;
use ichido_store::error::StoreError;
use ichido_store::message::{MessageFilter, NewMessage};
use ichido_store::testing::while_busy;
use sqlx::{Connection as _, Executor as _, PgConnection, SqliteConnection};
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{StoreFixture, message, queue, queue_named};

const QUARTER: Duration = Duration::from_mins(15);
const HOUR: Duration = Duration::from_hours(1);

async fn alert(fixture: &StoreFixture) -> NewAlert {
    NewAlert {
        id: Uuid::now_v7(),
        rule: AlertRule::DeadLetters,
        about: AlertSubject::Queue("orders".to_owned()),
        opened_at: fixture.store.now().await.unwrap(),
        reading: Measurement::of_count(11),
        terms: AlertRule::DeadLetters.terms(),
    }
}

fn notices(alert: &NewAlert, what: &str) -> Vec<NewMessage> {
    let key = IdempotencyKey::derived("alert", &[alert.id.as_bytes(), what.as_bytes()]);
    vec![NewMessage::new(queue_named("ichido-alerts.ops"), "ichido", key, what.as_bytes().to_vec())]
}

/// Counts the messages that wait in the alerts' queue.
async fn waiting(fixture: &StoreFixture) -> usize {
    let filter = MessageFilter { queue: Some(queue_named("ichido-alerts.ops")), ..MessageFilter::default() };
    let all = fixture.store.messages().list(&filter, 100).await.unwrap();
    assert!(all.iter().all(|row| row.status == StateName::Queued), "{all:?}");
    all.len()
}

/// Runs a statement beside the store.
pub(super) async fn execute(fixture: &StoreFixture, postgres: &'static str, sqlite: &'static str) {
    if fixture.store.is_sqlite() {
        let path = fixture.url().trim_start_matches("sqlite:");
        SqliteConnection::connect(path).await.unwrap().execute(sqlite).await.unwrap();
    } else {
        PgConnection::connect(fixture.url()).await.unwrap().execute(postgres).await.unwrap();
    }
}

/// Makes enqueuing fail, until it is called again.
async fn refuse_messages(fixture: &StoreFixture, refuses: bool) {
    let (postgres, sqlite) = if refuses {
        (
            "ALTER TABLE ichido.messages ADD CONSTRAINT refuse CHECK (false) NOT VALID",
            "CREATE TRIGGER refuse BEFORE INSERT ON ichido_messages BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
        )
    } else {
        ("ALTER TABLE ichido.messages DROP CONSTRAINT refuse", "DROP TRIGGER refuse")
    };
    execute(fixture, postgres, sqlite).await;
}

both_databases! {
    #[test]
    async fn an_incident_comes_back_as_it_was_opened(fixture: StoreFixture) {
        let all = [
            (AlertRule::Duplicates, AlertSubject::Operation("POST /orders".to_owned())),
            (AlertRule::CircuitOpen, AlertSubject::Destination("broker".to_owned())),
            (AlertRule::AuditBroken, AlertSubject::Trail),
            (AlertRule::LagP95, AlertSubject::Queue("mail".to_owned())),
        ];
        for (rule, about) in all {
            let reading = Measurement { value: 0.625, samples: 200 };
            let new = NewAlert { rule, about, reading, terms: rule.terms(), ..alert(&fixture).await };
            assert!(fixture.store.alerts().open(&new, Vec::new()).await.unwrap());
            let kept = fixture.store.alerts().list(None, 1).await.unwrap().remove(0);
            assert_eq!((kept.id, kept.rule, &kept.about), (new.id, new.rule, &new.about));
            assert_eq!((kept.opened_at, kept.reading), (new.opened_at, new.reading));
            assert_eq!((kept.terms.window, kept.terms.above), (new.terms.window, new.terms.above));
            assert_eq!((kept.clear_since, kept.resolved_at), (None, None));
            fixture.pass(Duration::from_secs(1));
        }
        let listed = fixture.store.alerts().list(None, 100).await.unwrap();
        assert!(listed.is_sorted_by(|a, b| b.opened_at <= a.opened_at), "{listed:?}");
        let after = (listed[1].opened_at, listed[1].id);
        assert_eq!(fixture.store.alerts().list(Some(after), 100).await.unwrap(), listed[2..]);
        assert_eq!(fixture.store.alerts().firing().await.unwrap().len(), 4);
    }

    /// Two nodes hold the task for a moment: one opens the incident, and one message is enqueued.
    #[test]
    async fn only_one_of_two_nodes_opens_or_resolves_an_incident(fixture: StoreFixture) {
        let node = fixture.another_node().await;
        let (first, second) = (alert(&fixture).await, alert(&fixture).await);
        let (opened, opened_too) = tokio::join!(
            while_busy(|| fixture.store.alerts().open(&first, notices(&first, "opened"))),
            while_busy(|| node.alerts().open(&second, notices(&second, "opened"))),
        );
        assert_ne!(opened, opened_too, "one of the two");
        assert_eq!(waiting(&fixture).await, 1);
        let open = fixture.store.alerts().firing().await.unwrap().remove(0);
        let at = open.opened_at;
        fixture.store.alerts().clear(open.id, Some(at)).await.unwrap();
        let over = || notices(&first, "resolved");
        let (over, over_too) = tokio::join!(
            while_busy(|| fixture.store.alerts().resolve(open.id, at, at.plus(HOUR), over())),
            while_busy(|| node.alerts().resolve(open.id, at, at.plus(HOUR), over())),
        );
        assert_ne!(over, over_too, "one of the two");
        assert_eq!(waiting(&fixture).await, 2);
        assert!(fixture.store.alerts().firing().await.unwrap().is_empty());
        assert!(fixture.store.alerts().open(&alert(&fixture).await, Vec::new()).await.unwrap(), "the next one is another");
    }

    #[test]
    async fn returned_incident_is_not_resolved_by_a_stale_node(fixture: StoreFixture) {
        let new = alert(&fixture).await;
        fixture.store.alerts().open(&new, Vec::new()).await.unwrap();
        fixture.store.alerts().clear(new.id, Some(new.opened_at)).await.unwrap();
        fixture.store.alerts().clear(new.id, None).await.unwrap();
        assert!(!fixture.store.alerts().resolve(new.id, new.opened_at, new.opened_at.plus(HOUR), notices(&new, "resolved")).await.unwrap());
        assert_eq!(waiting(&fixture).await, 0);
        assert_eq!(fixture.store.alerts().firing().await.unwrap()[0].resolved_at, None);
    }

    /// Record and message are one transaction: if one cannot be written, neither exists.
    #[test]
    async fn incident_and_its_notification_commit_together(fixture: StoreFixture) {
        let new = alert(&fixture).await;
        refuse_messages(&fixture, true).await;
        fixture.store.alerts().open(&new, notices(&new, "opened")).await.unwrap_err();
        assert!(fixture.store.alerts().firing().await.unwrap().is_empty());
        refuse_messages(&fixture, false).await;
        assert!(fixture.store.alerts().open(&new, notices(&new, "opened")).await.unwrap());
        assert_eq!(waiting(&fixture).await, 1);
        fixture.store.alerts().clear(new.id, Some(new.opened_at)).await.unwrap();
        refuse_messages(&fixture, true).await;
        fixture.store.alerts().resolve(new.id, new.opened_at, new.opened_at.plus(HOUR), notices(&new, "resolved")).await.unwrap_err();
        assert_eq!(fixture.store.alerts().firing().await.unwrap().len(), 1);
        refuse_messages(&fixture, false).await;
        assert!(fixture.store.alerts().resolve(new.id, new.opened_at, new.opened_at.plus(HOUR), notices(&new, "resolved")).await.unwrap());
        assert_eq!(waiting(&fixture).await, 2);
    }

    #[test]
    async fn resolved_incidents_expire_and_open_ones_do_not(fixture: StoreFixture) {
        let new = alert(&fixture).await;
        let open = NewAlert { id: Uuid::now_v7(), rule: AlertRule::Parked, ..new.clone() };
        for new in [&new, &open] {
            fixture.store.alerts().open(new, Vec::new()).await.unwrap();
        }
        fixture.store.alerts().clear(new.id, Some(new.opened_at)).await.unwrap();
        fixture.store.alerts().resolve(new.id, new.opened_at, new.opened_at, Vec::new()).await.unwrap();
        assert_eq!(fixture.store.alerts().delete_resolved(new.opened_at, 100).await.unwrap(), 0);
        assert_eq!(fixture.store.alerts().delete_resolved(new.opened_at.plus(HOUR), 100).await.unwrap(), 1);
        let left = fixture.store.alerts().list(None, 100).await.unwrap();
        assert_eq!(left.iter().map(|alert| alert.id).collect::<Vec<_>>(), [open.id]);
    }

    /// A node of the next release may have more rules: this one continues with those it knows.
    #[test]
    async fn rules_of_later_releases_are_skipped(fixture: StoreFixture) {
        let new = alert(&fixture).await;
        fixture.store.alerts().open(&new, Vec::new()).await.unwrap();
        fixture.enqueue("k1").await;
        fixture.store.series().flush().await.unwrap();
        for (postgres, sqlite) in [
            (
                "INSERT INTO ichido.alerts (id, rule, about, opened_at, value, samples, above) SELECT gen_random_uuid(), 'new_rule', about, opened_at, 1, 1, 0 FROM ichido.alerts",
                "INSERT INTO ichido_alerts (id, rule, about, opened_at, value, samples, above) SELECT randomblob(16), 'new_rule', about, opened_at, 1, 1, 0 FROM ichido_alerts",
            ),
            (
                "INSERT INTO ichido.counters SELECT minute, 'node 1', kind, slot, count, micros FROM ichido.counters WHERE about = 'queues'",
                "INSERT INTO ichido_counters SELECT minute, 'node 1', kind, slot, count, micros FROM ichido_counters WHERE about = 'queues'",
            ),
            (
                "INSERT INTO ichido.counters SELECT minute, about, 'seen', slot, count, micros FROM ichido.counters",
                "INSERT INTO ichido_counters SELECT minute, about, 'seen', slot, count, micros FROM ichido_counters",
            ),
        ] {
            execute(&fixture, postgres, sqlite).await;
        }
        for listed in [fixture.store.alerts().firing().await.unwrap(), fixture.store.alerts().list(None, 10).await.unwrap()] {
            assert_eq!(listed.iter().map(|alert| alert.id).collect::<Vec<_>>(), [new.id]);
        }
        let sums = fixture.store.series().sums(QUARTER).await.unwrap();
        assert_eq!((sums.len(), sums[&AlertSubject::Queue("orders".to_owned())].arrived), (1, 1));
    }

    #[test]
    async fn alert_subject_is_bounded(fixture: StoreFixture) {
        let about = AlertSubject::Operation("x".repeat(600));
        let refused = fixture.store.alerts().open(&NewAlert { about, ..alert(&fixture).await }, Vec::new()).await;
        assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
    }

    /// Repetitions are counted, however the message was enqueued.
    // SPEC A14.
    #[test]
    async fn arrivals_and_repetitions_are_counted_over_all_nodes(fixture: StoreFixture) {
        let node = fixture.another_node().await;
        for store in [&fixture.store, &node] {
            store.messages().enqueue(message("k1")).await.unwrap();
        }
        let enqueued = fixture.store.messages().enqueue_all(vec![message("k1"), message("k2"), message("k2")]).await;
        assert!(enqueued.iter().all(Result::is_ok), "{enqueued:?}");
        node.counters().request_arrived("orders.create", Arrival::Repeated, false);
        node.counters().retried("orders", true);
        node.counters().retried("orders", false);
        for (store, took) in [(&fixture.store, 1), (&node, 3)] {
            store.counters().sent("orders", &[Duration::from_secs(took)]);
            store.series().flush().await.unwrap();
        }
        let sums = fixture.store.series().sums(QUARTER).await.unwrap();
        let orders = &sums[&AlertSubject::Queue("orders".to_owned())];
        assert_eq!((orders.arrived, orders.repeated), (5, 3));
        assert_eq!((orders.retried, orders.retry_failed), (2, 1));
        assert_eq!(orders.left.mean(), Measurement { value: 2.0, samples: 2 });
        let create = &sums[&AlertSubject::Operation("orders.create".to_owned())];
        assert_eq!((create.arrived, create.repeated), (1, 1));
        // Counts are not added twice.
        fixture.store.series().flush().await.unwrap();
        assert_eq!(fixture.store.series().sums(QUARTER).await.unwrap(), sums);
    }

    #[test]
    async fn a_window_sees_what_was_counted_within_it(fixture: StoreFixture) {
        let arrived = async |window| {
            let sums = fixture.store.series().sums(window).await.unwrap();
            sums.values().map(|counted| counted.arrived).sum::<u64>()
        };
        fixture.enqueue("k1").await;
        fixture.store.series().flush().await.unwrap();
        fixture.pass(Duration::from_mins(10));
        fixture.enqueue("k2").await;
        fixture.store.series().flush().await.unwrap();
        assert_eq!((arrived(Duration::from_mins(5)).await, arrived(QUARTER).await), (1, 2));
        fixture.pass(HOUR);
        assert_eq!(arrived(QUARTER).await, 0);
        assert_eq!(fixture.store.series().sweep().await.unwrap(), 0, "a longer window still sees it");
    }

    #[test]
    async fn failed_counts_are_stored_later(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        rename_counters(&fixture, false).await;
        fixture.store.series().flush().await.unwrap_err();
        rename_counters(&fixture, true).await;
        fixture.store.series().flush().await.unwrap();
        let sums = fixture.store.series().sums(QUARTER).await.unwrap();
        assert_eq!(sums.values().map(|counted| counted.arrived).sum::<u64>(), 1);
    }

    #[test]
    async fn deaths_are_counted_by_queue_and_span(fixture: StoreFixture) {
        let (since, queues) = (fixture.store.now().await.unwrap(), [queue(), queue_named("mail")]);
        let first = fixture.dead("k1", Effect::NotDone).await;
        fixture.dead("k2", Effect::Unknown).await;
        fixture.pass(HOUR);
        let middle = fixture.store.now().await.unwrap();
        fixture.dead("k3", Effect::NotDone).await;
        fixture.parked("k4").await;
        fixture.pass(Duration::from_secs(1));
        let until = fixture.store.now().await.unwrap();
        let counts = async |since, until| {
            let counts = fixture.store.dead_letters().counts(&queues, since, until).await.unwrap();
            (counts["orders"], counts["mail"])
        };
        assert_eq!(counts(since, until).await, (3, 0));
        assert_eq!(counts(since, middle).await, (2, 0));
        assert_eq!(counts(middle, until).await, (1, 0));
        // Closing a letter does not undo its death.
        let _ = fixture.step(first, ichido_core::lifecycle::Event::Discarded).await;
        assert_eq!(counts(since, until).await, (3, 0));
    }

    #[test]
    async fn the_paces_of_all_destinations_are_listed(fixture: StoreFixture) {
        assert!(fixture.store.paces().list().await.unwrap().is_empty());
        for name in ["mail", "broker"] {
            assert!(fixture.store.paces().write(name, 0, name.as_bytes()).await.unwrap());
        }
        let listed = fixture.store.paces().list().await.unwrap();
        let listed: Vec<_> = listed.iter().map(|(name, pace)| (name.as_str(), pace.bytes.as_slice())).collect();
        assert_eq!(listed, [("broker", b"broker".as_slice()), ("mail", b"mail")]);
    }
}

/// Renames the table of counts away, or back.
pub(super) async fn rename_counters(fixture: &StoreFixture, comes_back: bool) {
    let (postgres, sqlite) = if comes_back {
        ("ALTER TABLE ichido.away RENAME TO counters", "ALTER TABLE away RENAME TO ichido_counters")
    } else {
        ("ALTER TABLE ichido.counters RENAME TO away", "ALTER TABLE ichido_counters RENAME TO away")
    };
    execute(fixture, postgres, sqlite).await;
}
