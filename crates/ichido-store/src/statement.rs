//! Statements that both databases run. The same code binds their parameters and reads their rows.
//!
//! If both databases understand the same text, it is one file in `sql/` ([`shared`]). If only the text differs, each driver's
//! folder has a file of the same name, with the same parameters and columns ([`paired`]). A batch of rows is one parameter,
//! made of [`Column`]s.

use ichido_core::digest::hex;
use ichido_core::time::Timestamp;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::{PgConnection, Postgres, Sqlite};
use uuid::Uuid;

use crate::columns::Row;
use crate::db_timestamp::DbTimestamp;
use crate::error::StoreError;
use crate::json;
use crate::page_reads::StatementTimer;

/// The text of a statement on each database.
#[derive(Clone, Copy)]
pub(crate) struct Statement {
    name: &'static str,
    postgres: &'static str,
    sqlite: &'static str,
    with_custom_plan: bool,
}

/// A statement whose text is the same on both databases: `shared!("node_list")` is `sql/node_list.sql`.
///
/// It is written for PostgreSQL. SQLite accepts `$1` too, but has no schemas: its tables are named `ichido_nodes` instead of
/// `ichido.nodes`, so the prefix is replaced at compile time.
macro_rules! shared {
    ($name:literal) => {{
        const TEXT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql/", $name, ".sql"));
        const IN_SQLITE: [u8; TEXT.len()] = $crate::statement::with_sqlite_tables(TEXT);
        const { $crate::statement::Statement::new($name, TEXT, $crate::statement::text(&IN_SQLITE)) }
    }};
}
pub(crate) use shared;

/// A statement whose text differs: `paired!("lease_list")` is `postgres/sql/lease_list.sql` and `sqlite/sql/lease_list.sql`.
macro_rules! paired {
    ($name:literal) => {
        paired!($name, $name)
    };
    ($postgres:literal, $sqlite:literal) => {
        $crate::statement::Statement::new(
            $postgres,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/postgres/sql/", $postgres, ".sql")),
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sqlite/sql/", $sqlite, ".sql")),
        )
    };
}
pub(crate) use paired;

/// A statement that only SQLite runs: `sqlite_only!("lease_unmark")` is `sqlite/sql/lease_unmark.sql`.
macro_rules! sqlite_only {
    ($name:literal) => {
        $crate::statement::Statement::new(
            $name,
            "",
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sqlite/sql/", $name, ".sql")),
        )
    };
}
pub(crate) use sqlite_only;

/// A statement that only PostgreSQL runs: `postgres_only!("seal_lock")` is `postgres/sql/seal_lock.sql`.
macro_rules! postgres_only {
    ($name:literal) => {
        $crate::statement::Statement::new(
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/postgres/sql/", $name, ".sql")),
            "",
        )
    };
}
pub(crate) use postgres_only;

/// Binds values to the query of either database; only lists and the time differ.
macro_rules! bind {
    ($query:expr, $values:expr, now: $now:expr, ids: $ids:expr, hashes: $hashes:expr, texts: $texts:expr,
     numbers: $numbers:expr, rows: $rows:expr) => {
        $values.iter().fold($query, |query, value| match *value {
            SqlValue::Text(text) => query.bind(text),
            SqlValue::Bytes(bytes) => query.bind(bytes),
            SqlValue::Id(id) => query.bind(id),
            SqlValue::Timestamp(moment) => query.bind(moment.map(DbTimestamp)),
            SqlValue::Number(number) => query.bind(number),
            SqlValue::Small(number) => query.bind(number),
            SqlValue::Real(number) => query.bind(number),
            SqlValue::Truth(truth) => query.bind(truth),
            SqlValue::Now => query.bind($now),
            SqlValue::Ids(ids) => query.bind($ids(ids)),
            SqlValue::Hashes(hashes) => query.bind($hashes(hashes)),
            SqlValue::Texts(texts) => query.bind(texts.map($texts)),
            SqlValue::Numbers(numbers) => query.bind($numbers(numbers)),
            SqlValue::Rows(columns) => $rows(query, columns),
        })
    };
}

impl Statement {
    pub(crate) const fn new(name: &'static str, postgres: &'static str, sqlite: &'static str) -> Self {
        Self { name, postgres, sqlite, with_custom_plan: false }
    }

    /// Makes PostgreSQL plan the statement for the actual values each time, instead of caching a generic plan.
    pub(crate) const fn with_custom_plan(self) -> Self {
        Self { with_custom_plan: true, ..self }
    }

    fn on_postgres<'v>(self, values: &[SqlValue<'v>], skew: i64) -> Query<'v, Postgres, PgArguments> {
        let query = sqlx::query(self.postgres).persistent(!self.with_custom_plan);
        let hashes = |hashes: &'v [[u8; 32]]| hashes.iter().map(<[u8; 32]>::as_slice).collect::<Vec<_>>();
        let rows = |query, columns: &'v [Column<'v>]| {
            columns.iter().fold(query, |query, column| column.bind_to(query))
        };
        bind!(query, values, now: skew, ids: |ids| ids, hashes: hashes, texts: |texts| texts,
              numbers: |numbers| numbers, rows: rows)
    }

    fn on_sqlite<'v>(self, values: &[SqlValue<'v>], now: Timestamp) -> Query<'v, Sqlite, SqliteArguments> {
        let ids = |ids: &[Uuid]| json::text(ids.iter().copied().map(json::id));
        let hashes = |hashes: &[[u8; 32]]| json::text(hashes.iter().map(|hash| hex(hash)));
        let texts = |texts: &[&str]| json::text(texts.iter().copied());
        let numbers = |numbers: &[i64]| json::text(numbers.iter().copied());
        let rows = |query: Query<'v, Sqlite, SqliteArguments>, columns| query.bind(rows_as_json(columns));
        bind!(sqlx::query(self.sqlite), values, now: DbTimestamp(now), ids: ids, hashes: hashes, texts: texts,
              numbers: numbers, rows: rows)
    }
}

/// A parameter of a statement; `None` is NULL.
#[derive(Clone, Copy)]
pub(crate) enum SqlValue<'v> {
    Text(Option<&'v str>),
    Bytes(Option<&'v [u8]>),
    Id(Option<Uuid>),
    Timestamp(Option<Timestamp>),
    Number(Option<i64>),
    Small(Option<i16>),
    Real(Option<f64>),
    Truth(bool),
    /// The current time. PostgreSQL adds the store's skew to its own clock, SQLite gets the time itself.
    Now,
    /// Lists are arrays on PostgreSQL and JSON on SQLite, where ids and hashes are hexadecimal.
    Ids(&'v [Uuid]),
    Hashes(&'v [[u8; 32]]),
    Texts(Option<&'v [&'v str]>),
    Numbers(&'v [i64]),
    /// The rows of a batch: a parameter for each column on PostgreSQL, one parameter with JSON on SQLite.
    Rows(&'v [Column<'v>]),
}

macro_rules! values {
    ($($type:ty => $variant:ident $(($some:path))?;)+) => {
        $(impl<'v> From<$type> for SqlValue<'v> {
            fn from(value: $type) -> Self {
                Self::$variant($($some)?(value))
            }
        })+
    };
}

values! {
    &'v str => Text(Some);
    Option<&'v str> => Text;
    &'v [u8] => Bytes(Some);
    Option<&'v [u8]> => Bytes;
    Uuid => Id(Some);
    Timestamp => Timestamp(Some);
    Option<Timestamp> => Timestamp;
    i64 => Number(Some);
    Option<i64> => Number;
    i16 => Small(Some);
    Option<i16> => Small;
    f64 => Real(Some);
    Option<f64> => Real;
    bool => Truth;
    &'v [Uuid] => Ids;
}

/// Declares the types of columns, and how each value is encoded in JSON for SQLite.
macro_rules! columns {
    ($($variant:ident($type:ty) => $in_json:expr;)+) => {
        /// A column of a batch of rows, in the order of the rows. `None` is NULL.
        pub(crate) enum Column<'v> {
            $($variant(Vec<Option<$type>>),)+
        }

        $(
            impl<'v> FromIterator<$type> for Column<'v> {
                fn from_iter<I: IntoIterator<Item = $type>>(values: I) -> Self {
                    Self::$variant(values.into_iter().map(Some).collect())
                }
            }

            impl<'v> FromIterator<Option<$type>> for Column<'v> {
                fn from_iter<I: IntoIterator<Item = Option<$type>>>(values: I) -> Self {
                    Self::$variant(values.into_iter().collect())
                }
            }
        )+

        impl<'v> Column<'v> {
            pub(crate) fn len(&self) -> usize {
                match self { $(Self::$variant(values) => values.len(),)+ }
            }

            fn bind_to(&'v self, query: Query<'v, Postgres, PgArguments>) -> Query<'v, Postgres, PgArguments> {
                match self { $(Self::$variant(values) => query.bind(values),)+ }
            }

            fn in_json(&self, row: usize) -> serde_json::Value {
                match self { $(
                    Self::$variant(values) => values.get(row).copied().flatten().map($in_json).into(),
                )+ }
            }
        }
    };
}

columns! {
    Texts(&'v str) => serde_json::Value::from;
    Bytes(&'v [u8]) => hex;
    Ids(Uuid) => json::id;
    Timestamps(DbTimestamp) => |moment| moment.0.as_micros();
    Numbers(i64) => serde_json::Value::from;
    Counts(i32) => serde_json::Value::from;
    Smalls(i16) => serde_json::Value::from;
    Truths(bool) => i32::from;
}

/// Builds a column from a value of each row.
pub(crate) fn column<'v, R, T>(rows: &'v [R], of: impl Fn(&'v R) -> T) -> Column<'v>
where
    Column<'v>: FromIterator<T>,
{
    rows.iter().map(of).collect()
}

/// Encodes rows for SQLite's statements: a list of lists.
fn rows_as_json(columns: &[Column<'_>]) -> String {
    let rows = 0..columns.first().map_or(0, Column::len);
    json::text(rows.map(|row| columns.iter().map(|column| column.in_json(row)).collect::<Vec<_>>()))
}

/// A connection of either database, with its value for [`SqlValue::Now`]: the store's skew, or the time.
pub(crate) enum DbConnection<'c> {
    Postgres(&'c mut PgConnection, i64),
    Sqlite(&'c mut SqliteConnection, Timestamp),
}

impl DbConnection<'_> {
    pub(crate) async fn all(
        &mut self,
        statement: Statement,
        values: &[SqlValue<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let mut timer = StatementTimer::start(statement.name, self.text_of(statement));
        let found: Vec<Row> = match self {
            Self::Postgres(connection, skew) => {
                let rows = statement.on_postgres(values, *skew).fetch_all(&mut **connection).await?;
                rows.into_iter().map(Row::Postgres).collect()
            }
            Self::Sqlite(connection, now) => {
                let rows = statement.on_sqlite(values, *now).fetch_all(&mut **connection).await?;
                rows.into_iter().map(Row::Sqlite).collect()
            }
        };
        timer.rows(found.len() as u64);
        Ok(found)
    }

    pub(crate) async fn optional(
        &mut self,
        statement: Statement,
        values: &[SqlValue<'_>],
    ) -> Result<Option<Row>, StoreError> {
        let mut timer = StatementTimer::start(statement.name, self.text_of(statement));
        let found = match self {
            Self::Postgres(connection, skew) => {
                let query = statement.on_postgres(values, *skew);
                query.fetch_optional(&mut **connection).await?.map(Row::Postgres)
            }
            Self::Sqlite(connection, now) => {
                let query = statement.on_sqlite(values, *now);
                query.fetch_optional(&mut **connection).await?.map(Row::Sqlite)
            }
        };
        timer.rows(u64::from(found.is_some()));
        Ok(found)
    }

    pub(crate) async fn one(
        &mut self,
        statement: Statement,
        values: &[SqlValue<'_>],
    ) -> Result<Row, StoreError> {
        Ok(self.optional(statement, values).await?.ok_or(sqlx::Error::RowNotFound)?)
    }

    /// Executes a statement. Returns how many rows it changed.
    pub(crate) async fn execute(
        &mut self,
        statement: Statement,
        values: &[SqlValue<'_>],
    ) -> Result<u64, StoreError> {
        let mut timer = StatementTimer::start(statement.name, self.text_of(statement));
        let changed = match self {
            Self::Postgres(connection, skew) => {
                statement.on_postgres(values, *skew).execute(&mut **connection).await?.rows_affected()
            }
            Self::Sqlite(connection, now) => {
                statement.on_sqlite(values, *now).execute(&mut **connection).await?.rows_affected()
            }
        };
        timer.rows(changed);
        Ok(changed)
    }

    /// Returns the text that this database runs.
    fn text_of(&self, statement: Statement) -> &'static str {
        match self {
            Self::Postgres(..) => statement.postgres,
            Self::Sqlite(..) => statement.sqlite,
        }
    }
}

/// Replaces PostgreSQL's table names with SQLite's, which have the same length.
pub(crate) const fn with_sqlite_tables<const LENGTH: usize>(text: &str) -> [u8; LENGTH] {
    let (mut bytes, mut index) = ([0; LENGTH], 0);
    while index < LENGTH {
        let (so_far, _) = text.as_bytes().split_at(index + 1);
        let is_after_schema = matches!(so_far.last_chunk(), Some(b"ichido."));
        bytes[index] = if is_after_schema { b'_' } else { text.as_bytes()[index] };
        index += 1;
    }
    bytes
}

/// Converts the bytes of a statement back to text.
pub(crate) const fn text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("a statement is not UTF-8"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_reads_a_batch_as_rows_of_json() {
        let id = Uuid::from_u128(0x0a);
        let columns = [
            [id, id].into_iter().collect(),
            [Some("a\"b"), None].into_iter().collect(),
            [&b"\x01\xff"[..], b""].into_iter().collect(),
            [true, false].into_iter().collect(),
            [DbTimestamp(Timestamp::from_micros(7)), DbTimestamp(Timestamp::EPOCH)]
                .into_iter()
                .collect::<Column<'_>>(),
        ];
        let id = "0000000000000000000000000000000a";
        let expected = format!(r#"[["{id}","a\"b","01ff",1,7],["{id}",null,"",0,0]]"#);
        assert_eq!(rows_as_json(&columns), expected);
        assert_eq!(rows_as_json(&[]), "[]");
    }

    #[test]
    fn sqlite_reads_the_names_of_its_own_tables() {
        let statement = shared!("node_list");
        assert!(statement.postgres.contains("FROM ichido.nodes"), "{}", statement.postgres);
        assert_eq!(statement.sqlite, statement.postgres.replace("ichido.", "ichido_"));
        let overlapping = "iichido.a ichidichido.b ichido_c";
        assert_eq!(text(&with_sqlite_tables::<32>(overlapping)), overlapping.replace("ichido.", "ichido_"));
    }
}
