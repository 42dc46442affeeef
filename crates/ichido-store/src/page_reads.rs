//! Reads for a page: bounded, and counted.
//!
//! Guarantee: inside [`for_page`], reads use at most [`MAX_CONNECTIONS`] connections of their own, so pages cannot take those of
//! messages, and the database stops each statement after [`STATEMENT_TIMEOUT`]. [`cost`] says which statements ran so far. Elsewhere
//! nothing is counted, and a statement only finds out that it is not inside.
//!
//! Statements in other tasks do not count: batched writes, and look-ups that share a read with others.

use std::cell::RefCell;
use std::time::Duration;

use tokio::task_local;
use tokio::time::Instant;

/// When the database stops a statement of a page.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(3);
/// How many connections all pages share.
pub const MAX_CONNECTIONS: u32 = 2;
/// How many statements of one page are listed; all are counted.
pub const MAX_LISTED: usize = 50;

task_local! {
    static COST: RefCell<PageCost>;
}

/// What a page has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageCost {
    /// The number of statements.
    pub statements: u32,
    /// The rows that they returned.
    pub rows: u64,
    /// The time that passed during them.
    pub took: Duration,
    /// The first of them, in order; at most [`MAX_LISTED`].
    pub listed: Vec<RunStatement>,
}

/// A statement that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunStatement {
    /// Its name: that of its file.
    pub name: &'static str,
    /// Its text, without values.
    pub sql: &'static str,
    /// The rows that it returned or changed.
    pub rows: u64,
    /// The time that passed.
    pub took: Duration,
}

impl PageCost {
    fn add(&mut self, run: RunStatement) {
        self.statements = self.statements.saturating_add(1);
        self.rows = self.rows.saturating_add(run.rows);
        self.took = self.took.saturating_add(run.took);
        if self.listed.len() < MAX_LISTED {
            self.listed.push(run);
        }
    }
}

/// Runs the work for one page: its reads are bounded and counted.
pub async fn for_page<T>(work: impl Future<Output = T>) -> T {
    COST.scope(RefCell::default(), work).await
}

/// Returns what this page has read so far; `None` outside of [`for_page`].
pub fn cost() -> Option<PageCost> {
    COST.try_with(|cost| cost.borrow().clone()).ok()
}

/// Whether the current task reads for a page.
pub(crate) fn is_inside() -> bool {
    COST.try_with(|_| ()).is_ok()
}

/// Measures a statement of a page until dropped, so one that fails counts too. Outside of a page it does nothing.
pub(crate) struct StatementTimer {
    name: &'static str,
    sql: &'static str,
    rows: u64,
    started: Option<Instant>,
}

impl StatementTimer {
    pub(crate) fn start(name: &'static str, sql: &'static str) -> Self {
        Self { name, sql, rows: 0, started: is_inside().then(Instant::now) }
    }

    /// Notes how many rows the statement returned or changed.
    pub(crate) fn rows(&mut self, rows: u64) {
        self.rows = rows;
    }
}

impl Drop for StatementTimer {
    fn drop(&mut self) {
        let Some(started) = self.started else { return };
        let run = RunStatement { name: self.name, sql: self.sql, rows: self.rows, took: started.elapsed() };
        // It is not borrowed: nothing here awaits or calls back. A page that was cancelled has no cost any more.
        let _ = COST.try_with(|cost| cost.borrow_mut().add(run));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &'static str, rows: u64) {
        StatementTimer::start(name, "SELECT 1").rows(rows);
    }

    #[tokio::test(start_paused = true)]
    async fn statements_count_only_inside_a_page() {
        run("before", 1);
        assert_eq!(cost(), None);
        let inside = for_page(async {
            run("first", 2);
            tokio::spawn(async { run("elsewhere", 7) }).await.unwrap();
            run("second", 0);
            cost().unwrap()
        });
        let (one, other) = tokio::join!(inside, for_page(async { cost().unwrap() }));
        assert_eq!((one.statements, one.rows), (2, 2));
        assert_eq!(one.listed.iter().map(|run| run.name).collect::<Vec<_>>(), ["first", "second"]);
        assert_eq!(other, PageCost::default(), "another page has its own count");
    }

    #[tokio::test(start_paused = true)]
    async fn the_list_of_statements_is_bounded() {
        let cost = for_page(async {
            for _ in 0..=MAX_LISTED {
                run("same", 1);
            }
            cost().unwrap()
        });
        let cost = cost.await;
        assert_eq!((cost.statements as usize, cost.listed.len()), (MAX_LISTED + 1, MAX_LISTED));
    }
}
