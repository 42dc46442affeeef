//! Evaluates what was read.
//!
//! Guarantee: nothing here does I/O; the same input gives the same checks.

use std::io;
use std::time::Duration;

use ichido::worker::{ShortMemory, short_memory};
use ichido_core::ledger::limits::{CLIENT_CALL_MAX, CLIENT_HINT_MAX};
use ichido_core::retry::{Guarantee, Retry};
use ichido_core::settings::ConfigErrors;
use ichido_core::settings::duration::shown;
use ichido_server::config::Config;
use ichido_store::vitals::{ClockReading, Database, Server, Vitals};

use super::disk::DiskSpace;
use super::report::DoctorCheck;

/// How long a transaction may stay open.
///
/// Until it ends, deleted rows cannot be vacuumed, and a busy queue deletes many.
pub(super) const OPEN_FOR_MAX: Duration = Duration::from_mins(5);
/// How far the clocks may differ.
///
/// Leases use only the database's clock; signatures and token expiry use this machine's.
const SKEW_MAX: Duration = Duration::from_secs(5);
/// `PRAGMA synchronous` that waits for the disk at every commit.
///
/// This is FULL; EXTRA is higher and waits more.
const SYNCHRONOUS_FULL: i64 = 2;
/// With less free space a store is about to refuse writes.
///
/// A busy store writes this much to its log within minutes.
const FREE_BYTES_MIN: u64 = 256 << 20;
/// With less free space somebody should look, however small the store is.
const FREE_BYTES_LOW: u64 = 1 << 30;
/// The free space as a multiple of the store's size.
///
/// A copy (`ichido backup`) is as large as the store, and work continues meanwhile.
const FREE_TIMES_STORE: u64 = 2;
/// The values of `synchronous_commit` with which an acknowledged commit is on disk.
const DURABLE_COMMITS: [&str; 4] = ["on", "local", "remote_write", "remote_apply"];

pub(super) const UNREACHABLE_HELP: &str = "look whether the database runs and lets this user in, and whether the address is right (--store, ICHIDO_STORE, or url under [store])";

/// Checks a configuration, or reports its errors.
pub(super) fn configuration(config: Result<Option<&Config>, &ConfigErrors>) -> Vec<DoctorCheck> {
    let config = match config {
        Ok(Some(config)) => config,
        Ok(None) => {
            return vec![DoctorCheck::unknown("configuration", "there is none here; name one by --config")];
        }
        Err(faults) => {
            let help = "each problem says how; `ichido config check` shows them line by line";
            return vec![DoctorCheck::finding("configuration", faults.to_string().replace('\n', ";"), help)];
        }
    };
    // Contradictions were rejected when it was read.
    let mut checks = vec![
        DoctorCheck::passed(
            "configuration",
            format!("{} queues, and nothing contradicts itself", config.queues.len()),
        ),
        DoctorCheck::passed("leases", "every lease is longer than the timeout of its destination"),
    ];
    checks.push(retention(config.worker.keep_finished));
    let memories = config.queues.iter().filter_map(|queue| {
        let to = config.destinations.iter().find(|known| known.name == queue.destination)?;
        if to.guarantee() == Some(Guarantee::Repeatable) {
            // The receiver does not need to remember keys.
            return None;
        }
        let Some(destination) = to.known() else {
            let what = format!(
                "queue {}: {} is asked how long it remembers keys when a worker starts",
                queue.name, to.name
            );
            return Some(DoctorCheck::unknown("memory", what));
        };
        Some(short_memory_finding(&queue.name, &to.name, &short_memory(queue, destination)?))
    });
    let before = checks.len();
    checks.extend(memories);
    if checks.len() == before {
        checks
            .push(DoctorCheck::passed("memory", "no receiver forgets a key before the last try of a queue"));
    }
    checks
}

/// Reports a receiver that forgets keys before a queue's last attempt.
pub(super) fn short_memory_finding(queue: &str, receiver: &str, memory: &ShortMemory) -> DoctorCheck {
    let what = format!(
        "queue {queue}: {receiver} remembers keys for {}, and the last try may end after {}; what is unknown then is parked",
        shown(memory.keeps_for),
        shown(memory.horizon)
    );
    DoctorCheck::finding("memory", what, &memory.mend)
}

/// Checks that finished messages are kept longer than clients retry.
///
/// A key is free again once its message is deleted, so a client that still retries would act twice.
fn retention(keep_finished: Duration) -> DoctorCheck {
    let horizon = Retry::CLIENT.horizon(CLIENT_CALL_MAX, CLIENT_HINT_MAX);
    if horizon <= keep_finished {
        let what = format!(
            "messages are kept for {} after their end, longer than clients try",
            shown(keep_finished)
        );
        return DoctorCheck::passed("retention", what);
    }
    let what = format!(
        "messages are kept for {} after their end, and a client may still try after {}: its message would be taken for a new one",
        shown(keep_finished),
        shown(horizon)
    );
    DoctorCheck::finding(
        "retention",
        what,
        format!("set keep_finished under [worker] to {} or more", shown(horizon)),
    )
}

/// Checks the database, given the maximum number of connections per process.
pub(super) fn vitals(vitals: &Vitals, connections_max: u32) -> Vec<DoctorCheck> {
    let mut checks = vec![schema(vitals.schema_found, vitals.schema_known)];
    match &vitals.database {
        Database::Sqlite { journal_mode, synchronous } => checks.push(file(journal_mode, *synchronous)),
        Database::Postgres(server) => {
            checks.extend(durability(server));
            checks.push(clock(server.clock));
            checks.push(connections(server, connections_max));
            checks.extend(transactions(server));
        }
    }
    checks
}

fn schema(found: Option<i64>, known: i64) -> DoctorCheck {
    const NAME: &str = "schema";
    match found {
        Some(found) if found == known => {
            DoctorCheck::passed(NAME, format!("version {found}, as this program has it"))
        }
        Some(found) if found < known => DoctorCheck::finding(
            NAME,
            format!("version {found}, and this program has {known}"),
            "start this program's server or worker: it brings the schema up to date; programs of the version before go on",
        ),
        Some(found) => DoctorCheck::finding(
            NAME,
            format!("version {found}, and this program knows versions up to {known}"),
            "use a newer program",
        ),
        None => DoctorCheck::finding(
            NAME,
            "there is no store in this database yet",
            "start a server or a worker, which makes it; or mend the address, if there should be one",
        ),
    }
}

fn file(journal_mode: &str, synchronous: i64) -> DoctorCheck {
    const NAME: &str = "durability";
    if synchronous < SYNCHRONOUS_FULL {
        let what = format!(
            "PRAGMA synchronous is {synchronous} on our own connections, so that a commit may be lost with the power"
        );
        return DoctorCheck::finding(NAME, what, "tell the makers of this program: it asks for FULL");
    }
    if journal_mode == "wal" {
        return DoctorCheck::passed(NAME, "the journal is a WAL, and commits wait for the disk");
    }
    DoctorCheck::finding(
        NAME,
        format!("the journal mode is {journal_mode}, where readers and the writer wait for each other"),
        "start a server or a worker, which sets it to WAL; should it not stay so, the file is on a network share: move it to a disk of this machine",
    )
}

/// Checks the free disk space.
pub(super) fn disk(seen: io::Result<DiskSpace>) -> DoctorCheck {
    const NAME: &str = "disk";
    let DiskSpace { free, taken } = match seen {
        Ok(space) => space,
        Err(error) => {
            return DoctorCheck::unknown(
                NAME,
                format!("the file system cannot be asked for its room: {error}"),
            );
        }
    };
    let what = format!("{} are free, and the store takes {}", format_bytes(free), format_bytes(taken));
    let low = FREE_BYTES_LOW.max(taken.saturating_mul(FREE_TIMES_STORE));
    if free < FREE_BYTES_MIN {
        let help = "free some, or move the store to a larger disk: once it is full nothing is accepted, and what was acknowledged stays";
        return DoctorCheck::finding(
            NAME,
            format!("{what}; below {} it is about to refuse what comes", format_bytes(FREE_BYTES_MIN)),
            help,
        );
    }
    if free < low {
        let help = "plan for more: a copy by `ichido backup` takes as much as the store; a shorter keep_finished under [worker] makes it smaller with time";
        return DoctorCheck::warning(NAME, format!("{what}; {} should be", format_bytes(low)), help);
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

fn durability(server: &Server) -> Vec<DoctorCheck> {
    const NAME: &str = "durability";
    let commits = server.synchronous_commit.as_str();
    let lost = format!(
        "synchronous_commit is {commits} on our own connections, so that a commit may be lost with the power"
    );
    let faults = [
        (
            !server.fsync,
            "fsync is off: when the power goes, what was acknowledged is lost, or the whole database",
            "set fsync = on in postgresql.conf and reload; then make a backup and check it",
        ),
        (
            !server.full_page_writes,
            "full_page_writes is off: a page that was half written when the power went stays so",
            "set full_page_writes = on in postgresql.conf and reload, unless the file system writes whole pages",
        ),
        (
            !DURABLE_COMMITS.contains(&commits),
            lost.as_str(),
            "a pooler in between drops what we ask for when we connect: have it pass the options on, or set synchronous_commit = on for this user",
        ),
        (
            server.follows,
            "this server follows another one and lets nobody write",
            "mend the address, so that it leads to the leader",
        ),
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
    if apart <= SKEW_MAX {
        return DoctorCheck::passed(
            NAME,
            format!("this machine and the database are within {} of each other", shown(SKEW_MAX)),
        );
    }
    let which = if behind < ahead { "ahead of" } else { "behind" };
    DoctorCheck::finding(
        NAME,
        format!("the database's clock is {:.1} s {which} this machine's", apart.as_secs_f64()),
        "have both machines keep their time by NTP; until then signatures may be refused, and times of logs and records do not agree",
    )
}

/// Checks the connection limit. Each process may use its maximum, plus one connection for notifications.
fn connections(server: &Server, connections_max: u32) -> DoctorCheck {
    const NAME: &str = "connections";
    let each = connections_max.saturating_add(1);
    let processes = server.nodes.max(1);
    let wanted = each.saturating_mul(processes);
    let free = server.connections_max.saturating_sub(server.connections_reserved);
    let what = format!(
        "{processes} processes of {each} connections want {wanted} at most, and the server has {free} for all"
    );
    if wanted <= free {
        return DoctorCheck::passed(NAME, what);
    }
    let help = "raise max_connections in postgresql.conf and restart it, or lower connections_max under [store] on all nodes";
    DoctorCheck::finding(NAME, what, help)
}

fn transactions(server: &Server) -> Vec<DoctorCheck> {
    const NAME: &str = "transactions";
    let mut checks: Vec<DoctorCheck> = server
        .open_transactions
        .iter()
        .map(|open| {
            let minutes = server.clock.database.since(open.since).as_secs() / 60;
            let (process, user, application) = (open.process, &open.user, &open.application);
            let what = format!(
                "process {process} of user {user} ({application}) has had a transaction open for {minutes} minutes; what was deleted since cannot be cleaned up, and queues get slower"
            );
            let help = format!("end it where it was begun; where nobody can, SELECT pg_terminate_backend({process})");
            DoctorCheck::finding(NAME, what, help)
        })
        .collect();
    if checks.is_empty() && server.sees_everybody {
        checks.push(DoctorCheck::passed(
            NAME,
            format!("none has been open for longer than {}", shown(OPEN_FOR_MAX)),
        ));
    }
    if !server.sees_everybody {
        let what = "those of other users cannot be seen: GRANT pg_read_all_stats to this user shows them";
        checks.push(DoctorCheck::unknown(NAME, what));
    }
    checks
}

#[cfg(test)]
mod tests;
