//! What a part costs, read from outside of the contestant: commits, log, processor time, memory.

use std::fs;
use std::path::Path;

use sqlx::{PgPool, Row as _};

/// Linux counts processor time in hundredths of a second, on every architecture.
const TICK_US: u64 = 10_000;

/// The counters at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counters {
    /// The next transaction number. Only transactions that write take one, and nobody else writes to this server.
    transactions: i64,
    /// The position in the log.
    log_bytes: i64,
    database_us: u64,
    process_us: u64,
}

/// What happened between two moments.
#[derive(Clone, Copy, Debug)]
pub(super) struct CounterDelta {
    pub(super) commits: u64,
    pub(super) wal_bytes: u64,
    pub(super) database_us: u64,
    pub(super) process_us: u64,
}

/// Where the counters of the database are; SQLite has none, because it runs inside the contestant.
#[derive(Clone)]
pub(super) struct DatabaseProbe {
    pub(super) pool: PgPool,
    /// The server's first process, the parent of all others.
    pub(super) postmaster: u32,
}

impl DatabaseProbe {
    /// Reads the number of the server's first process from its data folder.
    pub(super) fn new(pool: PgPool, folder: &Path) -> Self {
        let text = fs::read_to_string(folder.join("data/postmaster.pid")).expect("a running server");
        let postmaster = text.lines().next().and_then(|line| line.trim().parse().ok()).expect("a process");
        Self { pool, postmaster }
    }
}

impl Counters {
    /// Reads all counters.
    pub(super) async fn read(probe: Option<&DatabaseProbe>, process: u32) -> Self {
        let process_us = process_time(process).map_or(0, |time| time.own);
        let Some(probe) = probe else {
            return Self { transactions: 0, log_bytes: 0, database_us: 0, process_us };
        };
        let database_us = server_time(probe.postmaster);
        let sql = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS xid, \
                   (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS log";
        let row = sqlx::query(sql).fetch_one(&probe.pool).await.expect("counters");
        Self { transactions: row.get("xid"), log_bytes: row.get("log"), database_us, process_us }
    }

    /// Returns what happened since `before`.
    pub(super) fn since(self, before: Self) -> CounterDelta {
        let positive = |number: i64| u64::try_from(number).unwrap_or_default();
        CounterDelta {
            commits: positive(self.transactions - before.transactions),
            wal_bytes: positive(self.log_bytes - before.log_bytes),
            database_us: self.database_us.saturating_sub(before.database_us),
            process_us: self.process_us.saturating_sub(before.process_us),
        }
    }
}

/// Processor time in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessTime {
    parent: u32,
    own: u64,
    /// Of children that ended.
    ended: u64,
}

/// Returns the time of all processes of a server, with those that have ended.
fn server_time(postmaster: u32) -> u64 {
    let numbers = fs::read_dir("/proc").expect("Linux").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter_map(|process| Some((process, process_time(process)?)))
        .map(|(process, time)| {
            if process == postmaster {
                time.own + time.ended
            } else if time.parent == postmaster {
                time.own
            } else {
                0
            }
        })
        .sum()
}

fn process_time(process: u32) -> Option<ProcessTime> {
    parse_stat(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Parses `/proc/PID/stat`. The name in parentheses may contain anything, so fields are counted after it.
fn parse_stat(text: &str) -> Option<ProcessTime> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok().map(|ticks| ticks * TICK_US);
    Some(ProcessTime {
        parent: fields.get(1)?.parse().ok()?,
        own: ticks(11)? + ticks(12)?,
        ended: ticks(13)? + ticks(14)?,
    })
}

/// Returns the peak resident memory of a process, in KiB.
pub(super) fn peak_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_parsed_after_the_name() {
        let text = "42 (post) gres: a b) S 7 42 42 0 -1 4194304 1 2 3 4 100 20 5 6 20 0 1 0 1";
        assert_eq!(parse_stat(text), Some(ProcessTime { parent: 7, own: 1_200_000, ended: 110_000 }));
        assert_eq!(parse_stat("42 (a"), None);
    }

    #[test]
    fn this_process_has_used_memory() {
        assert!(0 < peak_kib(std::process::id()));
        assert!(process_time(std::process::id()).is_some());
    }
}
