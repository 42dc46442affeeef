//! Statements that write many rows. In its file such a statement has one row, on its own line; here that line is repeated.
//!
//! Bound values need no encoding. As JSON they would be parsed again for each column, which took a third of the writer's time.

use sqlx::AssertSqlSafe;

/// The maximum number of rows in one statement. A larger batch is several statements in one transaction.
const MAX_ROWS: usize = 64;

/// Splits a batch into parts whose lengths are powers of two: few lengths, so each statement stays prepared.
pub(super) fn parts<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let length = MAX_ROWS.min(1 << rest.len().checked_ilog2()?);
        let (part, after) = rest.split_at(length);
        rest = after;
        Some(part)
    })
}

/// Returns the statement for this many rows.
pub(super) fn repeated(sql: &'static str, rows: usize) -> AssertSqlSafe<String> {
    let (head, row, tail) = around_row(sql);
    let rows = vec![row; rows].join(",\n");
    AssertSqlSafe([head, &rows, tail].concat())
}

/// Splits a statement into what precedes the row, the row, and what follows it.
fn around_row(sql: &str) -> (&str, &str, &str) {
    let begin = sql.find("\n(?").map_or(0, |newline| newline + 1);
    let (head, from_row) = sql.split_at(begin);
    let (row, tail) = from_row.split_at(from_row.find('\n').unwrap_or(from_row.len()));
    (head, row, tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_falls_into_powers_of_two() {
        let lengths = |rows: usize| parts(&vec![0; rows]).map(<[_]>::len).collect::<Vec<_>>();
        assert!(lengths(0).is_empty());
        assert_eq!(lengths(1), [1]);
        assert_eq!(lengths(45), [32, 8, 4, 1]);
        assert_eq!(lengths(64), [64]);
        assert_eq!(lengths(200), [64, 64, 64, 8]);
    }

    #[test]
    fn each_statement_has_one_row_to_repeat() {
        for sql in [
            include_str!("sql/enqueue.sql"),
            include_str!("sql/key_claim.sql"),
            include_str!("sql/key_settle.sql"),
        ] {
            let (head, row, tail) = around_row(sql);
            assert!(head.ends_with("VALUES\n"), "{head}");
            assert!(row.starts_with("(?") && row.ends_with(')'), "{row}");
            assert!(!tail.contains('?'), "{tail}");
            assert_eq!(repeated(sql, 1).0, sql);
            let three = repeated(sql, 3).0;
            assert_eq!(three.matches('?').count(), 3 * row.matches('?').count());
            assert_eq!(three.matches("),\n(").count(), 2);
        }
    }
}
