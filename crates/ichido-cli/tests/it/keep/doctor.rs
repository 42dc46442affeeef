//! The report of `ichido doctor` on real databases and configurations.

use std::path::Path;
use std::time::Duration;

use ichido_core::alert::{AlertRule, AlertSubject, Measurement};
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::Failure;
use ichido_core::retry::Guarantee;
use ichido_core::verdict::Effect;
use ichido_store::Store;
use ichido_store::alert::NewAlert;
use ichido_store::message::{NewMessage, QueueName};
use ichido_store::testing::postgres::Cluster;
use serde_json::Value;
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use uuid::Uuid;

use crate::dead::fixture::{KEYED, StoreFixture, both_databases, publish};
use crate::folder;
use crate::serve::program::{ichido, on_both};

const CONFIG: &str = r#"
[queues.orders]
destination = "broker"
[destinations.broker]
kind = "http"
url = "http://127.0.0.1:9/"
guarantee = "keyed"
keeps_keys_for = "24h"
"#;

/// Returns exit code, JSON report and text; the text must agree with the JSON.
fn doctor(folder: &Path, arguments: &[&str]) -> (Option<i32>, Value, String) {
    let run = |more: &[&str]| {
        let output = ichido(folder).arg("doctor").args(arguments).args(more).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, human, _) = run(&[]);
    let (same, out, err) = run(&["--json"]);
    assert_eq!(code, same);
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    let findings = report["checks"].as_array().unwrap().iter().filter(|check| check["state"] == "finding");
    assert_eq!(report["findings"], findings.clone().count());
    assert_eq!(human.matches("FINDING").count(), findings.clone().count(), "{human}");
    for finding in findings {
        assert!(finding["help"].as_str().is_some_and(|help| !help.is_empty()), "{finding}");
    }
    (code, report, err)
}

/// Returns the states of the checks with a name.
fn states<'a>(report: &'a Value, name: &str) -> Vec<&'a str> {
    let checks = report["checks"].as_array().unwrap().iter().filter(|check| check["name"] == name);
    checks.map(|check| check["state"].as_str().unwrap()).collect()
}

on_both! {
    #[test]
    async fn healthy_store_passes_every_doctor_check(fixture) {
        let fixture = fixture.durable().await;
        publish(&Store::open(&fixture.url, 2).await.unwrap(), Uuid::from_u128(1), KEYED).await;
        fixture.folder.write("ichido.toml", CONFIG);
        let (code, report, err) = doctor(fixture.folder.path(), &["--store", &fixture.url]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{report}");
        let mut names = vec!["configuration", "leases", "retention", "memory", "schema", "durability"];
        if fixture.url.starts_with("postgres") {
            names.extend(["clock", "connections", "transactions", "queues", "messages", "alerts"]);
        } else {
            names.extend(["queues", "messages", "alerts", "disk"]);
        }
        let all: Vec<&str> =
            report["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
        assert_eq!(all, names);
        for name in names {
            // The disk of this machine may be full or not.
            let expected = if name == "disk" { states(&report, name) } else { vec!["ok"] };
            assert_eq!(states(&report, name), expected, "{report}");
        }
        if !fixture.url.starts_with("postgres") {
            assert!(matches!(states(&report, "disk")[..], ["ok" | "warning"]), "{report}");
            assert!(report.to_string().contains("iB are free, and the store uses "), "{report}");
        }
    }

    #[test]
    async fn doctor_finds_nodes_that_disagree_about_a_queue(fixture) {
        let fixture = fixture.durable().await;
        let store = Store::open(&fixture.url, 2).await.unwrap();
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        publish(&store, one, KEYED).await;
        let (_, report, _) = doctor(fixture.folder.path(), &["--store", &fixture.url]);
        assert_eq!(states(&report, "queues"), ["ok"], "{report}");
        publish(&store, other, Guarantee::None).await;
        let (code, report, _) = doctor(fixture.folder.path(), &["--store", &fixture.url]);
        assert_eq!((code, states(&report, "queues")), (Some(1), vec!["finding", "finding"]), "{report}");
        let found = report.to_string();
        for printed in [
            format!("node worker ({one}): keys kept for 1d, requeue = true"),
            format!("node worker ({other}): no guarantee, requeue = true"),
            "in effect is: no guarantee, requeue = true".to_owned(),
            "give all workers of queue orders the same settings and restart those that differ".to_owned(),
        ] {
            assert!(found.contains(&printed), "{printed:?} is not in {found}");
        }
        assert!(!found.contains("queue mail"), "{found}");
    }

    /// Without a configuration, the published queues tell.
    #[test]
    async fn doctor_finds_short_key_memory_without_config(fixture) {
        let fixture = fixture.durable().await;
        let store = Store::open(&fixture.url, 2).await.unwrap();
        let (_, report, _) = doctor(fixture.folder.path(), &["--store", &fixture.url]);
        assert_eq!(states(&report, "queues"), ["unknown"], "{report}");
        let keeps_for = Duration::from_mins(1);
        publish(&store, Uuid::from_u128(1), Guarantee::Keyed { keeps_for }).await;
        let (code, report, _) = doctor(fixture.folder.path(), &["--store", &fixture.url]);
        assert_eq!((code, states(&report, "memory")), (Some(1), vec!["finding", "finding"]), "{report}");
        assert!(report.to_string().contains("queue orders: its receiver remembers keys for 1m"), "{report}");
    }

    #[test]
    async fn doctor_finds_wrong_or_missing_schema(fixture) {
        let fixture = fixture.durable().await;
        if fixture.url.starts_with("postgres") {
            let (code, report, _) = doctor(fixture.folder.path(), &["--store", &fixture.url]);
            assert_eq!((code, states(&report, "schema")), (Some(1), vec!["finding"]), "{report}");
        }
        drop(Store::open(&fixture.url, 2).await.unwrap());
        let later = "(version, description, success, checksum, execution_time) VALUES (999, 'later', true, '', 0)";
        if fixture.url.starts_with("postgres") {
            let mut connection = PgConnection::connect(&fixture.url).await.unwrap();
            let sql = format!("INSERT INTO ichido.migrations {later}");
            sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        } else {
            let mut connection = SqliteConnection::connect(&fixture.url).await.unwrap();
            let sql = format!("INSERT INTO ichido_migrations {later}");
            sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        }
        let (code, report, _) = doctor(fixture.folder.path(), &["--store", &fixture.url]);
        assert_eq!((code, states(&report, "schema")), (Some(1), vec!["finding"]), "{report}");
        assert!(report.to_string().contains("version 999"), "{report}");
    }
}

both_databases! {
    #[test]
    async fn doctor_reports_parked_messages_and_firing_alerts(fixture: StoreFixture) {
        let report = |fixture: &StoreFixture| doctor(fixture.folder(), &["--store", &fixture.url]).1;
        let healthy = report(&fixture);
        assert_eq!((states(&healthy, "messages"), states(&healthy, "alerts")), (vec!["ok"], vec!["ok"]));
        fixture.letters("mail", 13, Failure::InDoubt, Effect::Unknown).await;
        fixture.dead("orders", 2).await;
        let (rule, about) = (AlertRule::DeadLetters, AlertSubject::Queue("orders".to_owned()));
        let (opened_at, id) = (fixture.store.now().await.unwrap(), Uuid::now_v7());
        let (reading, terms) = (Measurement::of_count(2), rule.terms());
        let alert = NewAlert { id, rule, about, opened_at, reading, terms };
        assert!(fixture.store.alerts().open(&alert, Vec::new()).await.unwrap());
        let (code, report, _) = doctor(fixture.folder(), &["--store", &fixture.url]);
        assert_eq!((code, states(&report, "messages")), (Some(1), vec!["finding", "warning"]), "{report}");
        assert_eq!(states(&report, "alerts"), ["finding"], "{report}");
        let text = report.to_string();
        for part in ["13 of queue mail", "dead: 2 of queue orders", "1 firing: ", AlertRule::DeadLetters.as_str()] {
            assert!(text.contains(part), "no {part} in {text}");
        }
    }
}

both_databases! {
    #[test]
    async fn doctor_reports_missing_and_outdated_workers(fixture: StoreFixture) {
        let queue = QueueName::parse("orders").unwrap();
        let key = IdempotencyKey::parse("k-1").unwrap();
        fixture.store.messages().enqueue(NewMessage::new(queue, "alice", key, b"{}".to_vec())).await.unwrap();
        publish(&fixture.store, Uuid::from_u128(7), Guarantee::None).await;
        let text = doctor(fixture.folder(), &["--store", &fixture.url]).1.to_string();
        assert!(text.contains("queue orders: the configuration has another guarantee (keys kept for 1d)"), "{text}");
        assert!(!text.contains("no worker is running"), "{text}");
        for node in fixture.store.nodes().list().await.unwrap() {
            fixture.store.nodes().leave(node.id, None).await.unwrap();
        }
        let text = doctor(fixture.folder(), &["--store", &fixture.url]).1.to_string();
        assert!(text.contains("no worker is running; unfinished messages that wait for one: 1"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_finds_unsafe_postgres_settings() {
    let cluster = Cluster::start(&[("max_connections", "17")]).unwrap();
    let database = cluster.database().await.unwrap();
    drop(Store::open(&database.url, 2).await.unwrap());
    let folder = folder::fresh();
    let mut connection = PgConnection::connect(&cluster.url("postgres")).await.unwrap();
    // Applies on a reload, not only at a start.
    sqlx::query("ALTER SYSTEM SET full_page_writes = off").execute(&mut connection).await.unwrap();
    sqlx::query("SELECT pg_reload_conf()").execute(&mut connection).await.unwrap();
    loop {
        let report = PgConnection::connect(&cluster.url("postgres")).await.unwrap();
        let mut report = report;
        let now =
            sqlx::query_scalar::<_, String>("SHOW full_page_writes").fetch_one(&mut report).await.unwrap();
        if now == "off" {
            break;
        }
    }
    let (code, report, _) = doctor(folder.path(), &["--store", &database.url]);
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(states(&report, "durability"), ["finding"], "{report}");
    assert_eq!(states(&report, "connections"), ["finding"], "{report}");
    assert!(report.to_string().contains("full_page_writes = on"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreachable_database_is_code_3_without_password() {
    let folder = folder::fresh();
    folder.write("ichido.toml", CONFIG);
    let (code, report, err) =
        doctor(folder.path(), &["--store", "postgres://ichido:s3cret@127.0.0.1:1/ichido"]);
    assert_eq!((code, states(&report, "store")), (Some(3), vec!["finding"]), "{report}");
    assert_eq!(states(&report, "configuration"), ["ok"], "readable parts are reported");
    assert!(!report.to_string().contains("s3cret") && !err.contains("s3cret"), "{report} {err}");
    let (code, _, err) = doctor(folder.path(), &["--store", "sqlite:missing.db"]);
    assert_eq!(code, Some(3));
    assert!(err.contains("no store at"), "{err}");
    assert!(!folder.path().join("missing.db").exists());
    let refused = ichido(folder.path()).args(["doctor", "--store", "mysql://root@localhost/shop"]).output();
    assert_eq!(refused.unwrap().status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_finds_short_retention_and_invalid_settings() {
    let folder = folder::fresh();
    let url = format!("sqlite:{}", folder.path().join("ichido.db").display());
    drop(Store::open(&url, 2).await.unwrap());
    let forgetful = CONFIG.replace("24h", "1m");
    folder.write("ichido.toml", &format!("[worker]\nkeep_finished = \"1m\"\n{forgetful}"));
    let (code, report, _) = doctor(folder.path(), &["--store", &url]);
    assert_eq!(code, Some(1), "{report}");
    assert_eq!((states(&report, "memory"), states(&report, "retention")), (vec!["finding"], vec!["finding"]));
    assert!(report.to_string().contains("set keep_finished under [worker] to "), "{report}");

    let short = CONFIG.replace("destination = \"broker\"", "destination = \"broker\"\nlease = \"5s\"");
    folder.write("ichido.toml", &short);
    let (code, report, _) = doctor(folder.path(), &["--store", &url]);
    assert_eq!((code, states(&report, "configuration")), (Some(1), vec!["finding"]), "{report}");
    assert_eq!(states(&report, "schema"), ["ok"], "the database is looked at all the same");
    // Only the configuration names the store.
    let (code, report, _) = doctor(folder.path(), &[]);
    assert_eq!((code, states(&report, "store")), (Some(1), vec!["unknown"]), "{report}");
}
