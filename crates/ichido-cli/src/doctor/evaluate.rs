//! Evaluates what was read.
//!
//! Guarantee: nothing here does I/O; the same input gives the same checks.

use std::io;
use std::time::Duration;

use ichido::worker::{ShortKeyRetention, short_key_retention};
use ichido_core::ledger::limits::{MAX_CLIENT_CALL, MAX_CLIENT_HINT};
use ichido_core::retry::{Guarantee, Retry};
use ichido_core::settings::ConfigErrors;
use ichido_core::settings::duration;
use ichido_server::config::Config;
use ichido_store::diagnostics::{ClockReading, DatabaseDiagnostics, Diagnostics, PostgresDiagnostics};

use super::disk::DiskSpace;
use super::report::DoctorCheck;

/// How long a transaction may stay open.
///
/// Until it ends, deleted rows cannot be vacuumed, and a busy queue deletes many.
pub(super) const MAX_OPEN_FOR: Duration = Duration::from_mins(5);
/// How far the clocks may differ.
///
/// Leases use only the database's clock; signatures and token expiry use this machine's.
const MAX_SKEW: Duration = Duration::from_secs(5);
/// `PRAGMA synchronous` that waits for the disk at every commit.
///
/// This is FULL; EXTRA is higher and waits more.
const SYNCHRONOUS_FULL: i64 = 2;
/// With less free space a store is about to refuse writes.
///
/// A busy store writes this much to its log within minutes.
const MIN_FREE_BYTES: u64 = 256 << 20;
/// With less free space somebody should look, however small the store is.
const FREE_BYTES_LOW: u64 = 1 << 30;
/// The free space as a multiple of the store's size.
///
/// A copy (`ichido backup`) is as large as the store, and work continues meanwhile.
const FREE_TIMES_STORE: u64 = 2;
/// The values of `synchronous_commit` with which an acknowledged commit is on disk.
const DURABLE_COMMITS: [&str; 4] = ["on", "local", "remote_write", "remote_apply"];

pub(super) const UNREACHABLE_HELP: &str = "check that the database is running, that this user has access and that the URL is right (--store, ICHIDO_STORE or `[store] url`)";

pub(super) const START_HELP: &str =
    "run `ichido serve` to start a server here, or name an existing store with --store or ICHIDO_STORE";

/// Checks a configuration, or reports its errors.
pub(super) fn configuration(config: Result<Option<&Config>, &ConfigErrors>) -> Vec<DoctorCheck> {
    let config = match config {
        Ok(Some(config)) => config,
        Ok(None) => {
            return vec![DoctorCheck::unknown(
                "configuration",
                "no configuration found; pass one with --config",
            )];
        }
        Err(faults) => {
            let help = "see each problem; `ichido config check` lists them line by line";
            return vec![DoctorCheck::finding("configuration", faults.to_string().replace('\n', ";"), help)];
        }
    };
    // Contradictions were rejected when it was read.
    let mut checks = vec![
        DoctorCheck::passed("configuration", format!("no contradictions; queues: {}", config.queues.len())),
        DoctorCheck::passed("leases", "every lease is longer than the timeout of its destination"),
    ];
    checks.push(retention(config.worker.keep_finished));
    let memories = config.queues.iter().filter_map(|queue| {
        let to = config.destinations.iter().find(|known| known.name == queue.destination)?;
        if to.guarantee() == Some(Guarantee::Idempotent) {
            // The receiver does not need to remember keys.
            return None;
        }
        let Some(destination) = to.known() else {
            let what = format!(
                "queue {}: a worker reads how long {} remembers keys when it starts",
                queue.name, to.name
            );
            return Some(DoctorCheck::unknown("memory", what));
        };
        Some(short_memory_finding(&queue.name, &to.name, &short_key_retention(queue, destination)?))
    });
    let before = checks.len();
    checks.extend(memories);
    if checks.len() == before {
        checks.push(DoctorCheck::passed("memory", "no receiver forgets a key that a retry still needs"));
    }
    checks
}

/// Reports a receiver that forgets keys before a queue's last attempt.
pub(super) fn short_memory_finding(queue: &str, receiver: &str, memory: &ShortKeyRetention) -> DoctorCheck {
    let what = format!(
        "queue {queue}: {receiver} remembers keys for {}, but the last attempt may end after {}; unknown outcomes after that are parked",
        duration::format(memory.keeps_for),
        duration::format(memory.horizon)
    );
    DoctorCheck::finding("memory", what, &memory.help)
}

/// Checks that finished messages are kept longer than clients retry.
///
/// A key is free again once its message is deleted, so a client that still retries would act twice.
fn retention(keep_finished: Duration) -> DoctorCheck {
    let horizon = Retry::CLIENT.horizon(MAX_CLIENT_CALL, MAX_CLIENT_HINT);
    if horizon <= keep_finished {
        let what = format!(
            "finished messages are kept for {}, longer than clients retry",
            duration::format(keep_finished)
        );
        return DoctorCheck::passed("retention", what);
    }
    let what = format!(
        "finished messages are kept for {}, but a client may retry for {}: its retry would create a new message",
        duration::format(keep_finished),
        duration::format(horizon)
    );
    DoctorCheck::finding(
        "retention",
        what,
        format!("set keep_finished under [worker] to {} or more", duration::format(horizon)),
    )
}

/// Checks the database, given the maximum number of connections per process.
pub(super) fn diagnostics(vitals: &Diagnostics, max_connections: u32) -> Vec<DoctorCheck> {
    let mut checks = vec![schema(vitals.schema_found, vitals.schema_known)];
    match &vitals.database {
        DatabaseDiagnostics::Sqlite { journal_mode, synchronous } => {
            checks.push(file(journal_mode, *synchronous));
        }
        DatabaseDiagnostics::Postgres(server) => {
            checks.extend(durability(server));
            checks.push(clock(server.clock));
            checks.push(connections(server, max_connections));
            checks.extend(transactions(server));
        }
    }
    checks
}

fn schema(found: Option<i64>, known: i64) -> DoctorCheck {
    const NAME: &str = "schema";
    match found {
        Some(found) if found == known => {
            DoctorCheck::passed(NAME, format!("version {found}, the version of this program"))
        }
        Some(found) if found < known => DoctorCheck::finding(
            NAME,
            format!("version {found}, but this program has {known}"),
            "start a server or worker of this program to migrate the schema; programs of the previous version keep working",
        ),
        Some(found) => DoctorCheck::finding(
            NAME,
            format!("version {found}, but this program supports versions up to {known}"),
            "upgrade this program",
        ),
        None => DoctorCheck::finding(
            NAME,
            "this database has no store yet",
            "start a server or worker to create it; or fix the URL if a store should exist",
        ),
    }
}

fn file(journal_mode: &str, synchronous: i64) -> DoctorCheck {
    const NAME: &str = "durability";
    if synchronous < SYNCHRONOUS_FULL {
        let what = format!(
            "PRAGMA synchronous is {synchronous} on our own connections: a power failure may lose commits"
        );
        return DoctorCheck::finding(NAME, what, "report this as a bug: the program sets FULL");
    }
    if journal_mode == "wal" {
        return DoctorCheck::passed(NAME, "the journal mode is WAL, and commits wait for the disk");
    }
    DoctorCheck::finding(
        NAME,
        format!("the journal mode is {journal_mode}: readers and the writer block each other"),
        "start a server or worker to set it to WAL; if it changes back, the file is on a network share: move it to a local disk",
    )
}

/// Checks the free disk space.
pub(super) fn disk(seen: io::Result<DiskSpace>) -> DoctorCheck {
    const NAME: &str = "disk";
    let DiskSpace { free, taken } = match seen {
        Ok(space) => space,
        Err(error) => {
            return DoctorCheck::unknown(NAME, format!("cannot read the free disk space: {error}"));
        }
    };
    let what = format!("{} are free, and the store uses {}", format_bytes(free), format_bytes(taken));
    let low = FREE_BYTES_LOW.max(taken.saturating_mul(FREE_TIMES_STORE));
    if free < MIN_FREE_BYTES {
        let help = "free space or move the store to a larger disk; a full disk refuses new messages and keeps acknowledged ones";
        return DoctorCheck::finding(
            NAME,
            format!("{what}; below {} the store may soon refuse messages", format_bytes(MIN_FREE_BYTES)),
            help,
        );
    }
    if free < low {
        let help = "add space: a copy with `ichido backup` is as large as the store; a shorter keep_finished under [worker] shrinks it over time";
        return DoctorCheck::warning(
            NAME,
            format!("{what}; at least {} should be free", format_bytes(low)),
            help,
        );
    }
    DoctorCheck::passed(NAME, what)
}

/// Formats a size in the most readable unit.
fn format_bytes(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| *unit <= bytes) {
        Some((unit, name)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} bytes"),
    }
}

fn durability(server: &PostgresDiagnostics) -> Vec<DoctorCheck> {
    const NAME: &str = "durability";
    let commits = server.synchronous_commit.as_str();
    let lost =
        format!("synchronous_commit is {commits} on our own connections: a power failure may lose commits");
    let faults = [
        (
            !server.fsync,
            "fsync is off: a power failure may lose acknowledged commits or corrupt the database",
            "set fsync = on in postgresql.conf and reload; then make and verify a backup",
        ),
        (
            !server.full_page_writes,
            "full_page_writes is off: a power failure may leave half-written pages",
            "set full_page_writes = on in postgresql.conf and reload, unless the file system writes whole pages",
        ),
        (
            !DURABLE_COMMITS.contains(&commits),
            lost.as_str(),
            "a connection pooler drops our startup options: let it pass them on, or set synchronous_commit = on for this user",
        ),
        (server.follows, "this server is a read-only replica", "change the URL to the primary"),
    ];
    let faults = faults.into_iter().filter(|(is_so, ..)| *is_so);
    let mut checks: Vec<DoctorCheck> =
        faults.map(|(_, what, help)| DoctorCheck::finding(NAME, what, help)).collect();
    if checks.is_empty() {
        checks.push(DoctorCheck::passed(
            NAME,
            format!("fsync and full_page_writes are on, synchronous_commit is {commits}"),
        ));
    }
    checks
}

fn clock(reading: ClockReading) -> DoctorCheck {
    const NAME: &str = "clock";
    let (ahead, behind) = (reading.database.since(reading.after), reading.before.since(reading.database));
    let apart = ahead.max(behind);
    if apart <= MAX_SKEW {
        return DoctorCheck::passed(
            NAME,
            format!(
                "the clocks of this machine and the database differ by at most {}",
                duration::format(MAX_SKEW)
            ),
        );
    }
    let which = if behind < ahead { "ahead of" } else { "behind" };
    DoctorCheck::finding(
        NAME,
        format!("the database's clock is {:.1} s {which} this machine's", apart.as_secs_f64()),
        "synchronise both clocks with NTP; until then signatures may be refused, and logs and records show different times",
    )
}

/// Checks the connection limit. Each process may use its maximum, plus one connection for notifications.
fn connections(server: &PostgresDiagnostics, max_connections: u32) -> DoctorCheck {
    const NAME: &str = "connections";
    let each = max_connections.saturating_add(1);
    let processes = server.nodes.max(1);
    let wanted = each.saturating_mul(processes);
    let free = server.max_connections.saturating_sub(server.connections_reserved);
    let what = format!(
        "{processes} processes with {each} connections each may need {wanted}, but the server has {free} for all"
    );
    if wanted <= free {
        return DoctorCheck::passed(NAME, what);
    }
    let help = "raise max_connections in postgresql.conf and restart PostgreSQL, or lower max_connections under [store] on all nodes";
    DoctorCheck::finding(NAME, what, help)
}

fn transactions(server: &PostgresDiagnostics) -> Vec<DoctorCheck> {
    const NAME: &str = "transactions";
    let mut checks: Vec<DoctorCheck> = server
        .open_transactions
        .iter()
        .map(|open| {
            let minutes = server.clock.database.since(open.since).as_secs() / 60;
            let (process, user, application) = (open.process, &open.user, &open.application);
            let what = format!(
                "process {process} of user {user} ({application}) has had a transaction open for {minutes} minutes; deleted rows cannot be vacuumed meanwhile, and queues get slower"
            );
            let help = format!("end it in its client; if that is impossible, run SELECT pg_terminate_backend({process})");
            DoctorCheck::finding(NAME, what, help)
        })
        .collect();
    if checks.is_empty() && server.sees_everybody {
        checks.push(DoctorCheck::passed(
            NAME,
            format!("no transaction has been open for longer than {}", duration::format(MAX_OPEN_FOR)),
        ));
    }
    if !server.sees_everybody {
        let what =
            "transactions of other users are not visible; GRANT pg_read_all_stats to this user to see them";
        checks.push(DoctorCheck::unknown(NAME, what));
    }
    checks
}

#[cfg(test)]
mod tests;
