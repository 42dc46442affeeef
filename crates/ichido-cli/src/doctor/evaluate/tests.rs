//! Conditions that a test cannot produce, evaluated as if they had been read.

use ichido_core::time::Timestamp;
use ichido_store::diagnostics::OpenTransaction;

use super::*;

fn server() -> PostgresDiagnostics {
    let now = Timestamp::from_secs(1_000_000);
    PostgresDiagnostics {
        fsync: true,
        full_page_writes: true,
        synchronous_commit: "on".to_owned(),
        follows: false,
        max_connections: 100,
        connections_reserved: 3,
        nodes: 0,
        clock: ClockReading { before: now, database: now, after: now },
        sees_everybody: true,
        open_transactions: Vec::new(),
    }
}

fn findings(server: PostgresDiagnostics, max_connections: u32) -> Vec<(&'static str, String)> {
    let database = DatabaseDiagnostics::Postgres(Box::new(server));
    let seen =
        Diagnostics { schema_found: Some(2), schema_known: 2, queues: Vec::new(), backlog: None, database };
    let found = diagnostics(&seen, max_connections);
    found.into_iter().filter(DoctorCheck::is_finding).map(|check| (check.name, check.what)).collect()
}

fn names(server: PostgresDiagnostics) -> Vec<&'static str> {
    findings(server, 16).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn doctor_finds_unsafe_durability_settings() {
    assert_eq!(names(server()), [""; 0]);
    assert_eq!(names(PostgresDiagnostics { fsync: false, ..server() }), ["durability"]);
    assert_eq!(
        names(PostgresDiagnostics { full_page_writes: false, fsync: false, ..server() }),
        ["durability"; 2]
    );
    assert_eq!(
        names(PostgresDiagnostics { synchronous_commit: "off".to_owned(), ..server() }),
        ["durability"]
    );
    assert_eq!(
        names(PostgresDiagnostics { synchronous_commit: "remote_apply".to_owned(), ..server() }),
        [""; 0]
    );
    assert_eq!(names(PostgresDiagnostics { follows: true, ..server() }), ["durability"]);
}

#[test]
fn clock_skew_is_found_but_not_a_slow_response() {
    let clock_findings = |before, database, after| {
        let at = Timestamp::from_secs;
        let clock = ClockReading { before: at(before), database: at(database), after: at(after) };
        findings(PostgresDiagnostics { clock, ..server() }, 16)
            .into_iter()
            .map(|(_, what)| what)
            .collect::<Vec<_>>()
    };
    assert_eq!(clock_findings(100, 130, 160), [""; 0], "somewhere in a minute that the answer took");
    assert_eq!(clock_findings(100, 105, 100), [""; 0]);
    assert_eq!(clock_findings(100, 106, 100), ["the database's clock is 6.0 s ahead of this machine's"]);
    assert_eq!(clock_findings(100, 94, 101), ["the database's clock is 6.0 s behind this machine's"]);
}

#[test]
fn connections_are_counted_for_all_live_processes() {
    assert_eq!(findings(PostgresDiagnostics { nodes: 5, ..server() }, 16), []);
    let found = findings(PostgresDiagnostics { nodes: 6, ..server() }, 16);
    let what = "6 processes with 17 connections each may need 102, but the server has 97 for all";
    assert_eq!(found, [("connections", what.to_owned())]);
    assert_eq!(findings(server(), 96), [], "one that does not beat yet");
    assert_eq!(findings(server(), 97).len(), 1);
}

#[test]
fn long_open_transaction_is_found_with_help() {
    let since = Timestamp::from_secs(1_000_000 - 600);
    let open = OpenTransaction { process: 42, user: "bi".to_owned(), application: "psql".to_owned(), since };
    let seen = PostgresDiagnostics { open_transactions: vec![open], ..server() };
    let found = transactions(&seen);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].what.starts_with("process 42 of user bi (psql) has had a transaction open for 10 minutes")
    );
    assert!(found[0].is_finding(), "{found:?}");
    assert!(
        found[0].help.as_ref().is_some_and(|help| help.contains("pg_terminate_backend(42)")),
        "{found:?}"
    );
    // Missing permissions are neither a success nor a finding.
    let blind = transactions(&PostgresDiagnostics { sees_everybody: false, ..server() });
    assert_eq!(
        blind.iter().map(|check| check.state).collect::<Vec<_>>(),
        [super::super::report::State::Unknown]
    );
}

#[test]
fn changed_sqlite_pragmas_are_found() {
    assert!(!file("wal", 2).is_finding() && !file("wal", 3).is_finding());
    assert!(file("delete", 2).is_finding() && file("wal", 1).is_finding());
    assert!(
        schema(Some(1), 2).is_finding() && schema(Some(3), 2).is_finding() && schema(None, 2).is_finding()
    );
}

#[test]
fn disk_warning_depends_on_store_size_and_finding_on_fixed_minimum() {
    use super::super::report::State;
    const GIB: u64 = 1 << 30;
    let judged = |free, taken| disk(Ok(DiskSpace { free, taken }));
    assert_eq!(judged(GIB, 1_000).state, State::Passed);
    assert_eq!(judged(GIB - 1, 1_000).state, State::Warning, "however small the store is");
    assert_eq!(judged(9 * GIB, 5 * GIB).state, State::Warning, "a copy would fill it");
    assert_eq!(judged(10 * GIB, 5 * GIB).state, State::Passed);
    assert_eq!(judged(256 << 20, 1_000).state, State::Warning);
    let full = judged((256 << 20) - 1, 1_000);
    assert!(full.is_finding());
    assert_eq!(
        full.what,
        "255.9 MiB are free, and the store uses 1000 bytes; below 256.0 MiB the store may soon refuse messages"
    );
    assert!(!judged(GIB - 1, 1_000).is_finding(), "a warning does not end with 1");
    assert_eq!(disk(Err(io::Error::other("no"))).state, State::Unknown);
}
