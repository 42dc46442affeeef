//! What a page cost the store: the line at its foot.
//!
//! Guarantee: the line counts the statements of this page until it was rendered, and no others. What all viewers share, the page that
//! read it has paid for.

use std::time::Duration;

use ichido_store::page_reads::{self, PageCost, RunStatement};

use super::frame_texts::Texts;
use super::moments::{duration, grouped};
use super::texts::fill;

/// Before the name of the parameter that shows the SQL, if it is the last of the query.
pub(super) const EXPLAIN: &str = "explain";

/// What the foot of a page says.
pub(super) struct ShownCost {
    pub(super) line: String,
    pub(super) limit: String,
    /// The statements, if they are asked for.
    pub(super) statements: Vec<ShownStatement>,
}

/// A statement with its text.
pub(super) struct ShownStatement {
    pub(super) name: &'static str,
    pub(super) cost: String,
    pub(super) sql: &'static str,
}

impl ShownCost {
    /// Returns what a page has cost until now.
    pub(super) fn new(t: &Texts, cost: &PageCost, total: Duration, is_explained: bool) -> Self {
        let statements = if is_explained { &*cost.listed } else { &[] };
        Self {
            line: line(t, cost, total),
            limit: fill(t.cost_limit, &[("limit", &duration(page_reads::STATEMENT_TIMEOUT))]),
            statements: statements.iter().map(|run| statement(t, run)).collect(),
        }
    }
}

fn line(t: &Texts, cost: &PageCost, total: Duration) -> String {
    let total = duration(total);
    if cost.statements == 0 {
        return fill(t.cost_none, &[("total", &total)]);
    }
    let values = [
        ("statements", &*cost.statements.to_string()),
        ("rows", &*grouped(i64::try_from(cost.rows).unwrap_or(i64::MAX))),
        ("total", &*total),
        ("sql", &*duration(cost.took)),
    ];
    fill(t.cost, &values)
}

fn statement(t: &Texts, run: &RunStatement) -> ShownStatement {
    let rows = grouped(i64::try_from(run.rows).unwrap_or(i64::MAX));
    let cost = fill(t.statement_cost, &[("rows", &rows), ("took", &duration(run.took))]);
    ShownStatement { name: run.name, cost, sql: run.sql.trim() }
}

/// Returns a page's path and query without the parameter [`EXPLAIN`], and whether it was there.
pub(super) fn without_explain(target: &str) -> (String, bool) {
    let Some((path, query)) = target.split_once('?') else { return (target.to_owned(), false) };
    let (explain, others): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|pair| pair.split('=').next() == Some(EXPLAIN));
    let target = if others.is_empty() { path.to_owned() } else { format!("{path}?{}", others.join("&")) };
    (target, !explain.is_empty())
}

/// Returns a page's path and query with the parameter.
pub(super) fn with_explain(target: &str) -> String {
    let mark = if target.contains('?') { '&' } else { '?' };
    format!("{target}{mark}{EXPLAIN}")
}

#[cfg(test)]
mod tests {
    use super::super::language::Language;
    use super::*;

    fn cost() -> PageCost {
        let run = RunStatement {
            name: "queue_list",
            sql: "SELECT 1\n",
            rows: 1_200,
            took: Duration::from_millis(3),
        };
        PageCost { statements: 1, rows: 1_200, took: run.took, listed: vec![run] }
    }

    #[test]
    fn the_line_says_what_was_read() {
        let t = Texts::of(Language::English);
        let shown = ShownCost::new(t, &cost(), Duration::from_millis(7), false);
        assert_eq!(shown.line, "Statements: 1 · rows: 1,200 · 7 ms, of which 3 ms in the database");
        assert!(shown.statements.is_empty(), "nobody asked for the SQL");
        let shown = ShownCost::new(t, &cost(), Duration::from_millis(7), true);
        assert_eq!((shown.statements[0].name, shown.statements[0].sql), ("queue_list", "SELECT 1"));
        let shared = ShownCost::new(t, &PageCost::default(), Duration::from_millis(1), true);
        assert!(shared.line.starts_with("No statement"), "{}", shared.line);
    }

    #[test]
    fn the_parameter_is_taken_out_and_put_back() {
        for (target, without, is_there) in [
            ("/", "/", false),
            ("/?explain", "/", true),
            ("/messages?q=queue:a&explain", "/messages?q=queue:a", true),
            ("/messages?explain=1&q=a", "/messages?q=a", true),
            ("/messages?q=explain", "/messages?q=explain", false),
        ] {
            assert_eq!(without_explain(target), (without.to_owned(), is_there), "{target}");
            assert_eq!(without_explain(&with_explain(without)), (without.to_owned(), true), "{without}");
        }
    }
}
