//! Statements that both databases run: their parameters are bound and their rows are read by the same code.
//!
//! A text that both databases understand is one file in `sql/` ([`shared`]). Where only the text differs, each driver's folder has
//! a file of the same name, with the same parameters and the same columns ([`paired`]).

use ichido_core::time::Timestamp;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::{PgConnection, Postgres, Sqlite};
use uuid::Uuid;

use crate::columns::Row;
use crate::error::StoreError;
use crate::json;
use crate::moment::Moment;

/// The text of a statement on each database.
#[derive(Clone, Copy)]
pub(crate) struct Statement {
    postgres: &'static str,
    sqlite: &'static str,
    planned_anew: bool,
}

/// A statement whose text is the same on both databases: `shared!("node_list")` is `sql/node_list.sql`.
///
/// It is written as PostgreSQL reads it. SQLite takes `$1` too, but has no schemas: its tables are named `ichido_nodes` instead of
/// `ichido.nodes`, so the one is replaced by the other when this is compiled.
macro_rules! shared {
    ($name:literal) => {{
        const TEXT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql/", $name, ".sql"));
        const IN_SQLITE: [u8; TEXT.len()] = $crate::statement::with_sqlite_tables(TEXT);
        const { $crate::statement::Statement::new(TEXT, $crate::statement::text(&IN_SQLITE)) }
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
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/postgres/sql/", $postgres, ".sql")),
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sqlite/sql/", $sqlite, ".sql")),
        )
    };
}
pub(crate) use paired;

/// Binds values to the query of either database; only lists and the time differ.
macro_rules! bind {
    ($query:expr, $values:expr, now: $now:expr, ids: $ids:expr, hashes: $hashes:expr, texts: $texts:expr) => {
        $values.iter().fold($query, |query, value| match *value {
            Value::Text(text) => query.bind(text),
            Value::Bytes(bytes) => query.bind(bytes),
            Value::Id(id) => query.bind(id),
            Value::Moment(moment) => query.bind(moment.map(Moment)),
            Value::Number(number) => query.bind(number),
            Value::Small(number) => query.bind(number),
            Value::Real(number) => query.bind(number),
            Value::Truth(truth) => query.bind(truth),
            Value::Now => query.bind($now),
            Value::Ids(ids) => query.bind($ids(ids)),
            Value::Hashes(hashes) => query.bind($hashes(hashes)),
            Value::Texts(texts) => query.bind($texts(texts)),
        })
    };
}

impl Statement {
    pub(crate) const fn new(postgres: &'static str, sqlite: &'static str) -> Self {
        Self { postgres, sqlite, planned_anew: false }
    }

    /// Has PostgreSQL plan the statement for the values at hand each time, instead of keeping a plan for any values.
    pub(crate) const fn planned_anew(self) -> Self {
        Self { planned_anew: true, ..self }
    }

    fn on_postgres<'v>(self, values: &[Value<'v>], skew: i64) -> Query<'v, Postgres, PgArguments> {
        let query = sqlx::query(self.postgres).persistent(!self.planned_anew);
        let hashes = |hashes: &'v [[u8; 32]]| hashes.iter().map(<[u8; 32]>::as_slice).collect::<Vec<_>>();
        bind!(query, values, now: skew, ids: |ids| ids, hashes: hashes, texts: |texts| texts)
    }

    fn on_sqlite<'v>(self, values: &[Value<'v>], now: Timestamp) -> Query<'v, Sqlite, SqliteArguments> {
        let ids = |ids: &[Uuid]| json::text(ids.iter().copied().map(json::id));
        let hashes = |hashes: &[[u8; 32]]| json::text(hashes.iter().map(|hash| crate::hex(hash)));
        let texts = |texts: &[&str]| json::text(texts.iter().copied());
        bind!(sqlx::query(self.sqlite), values, now: Moment(now), ids: ids, hashes: hashes, texts: texts)
    }
}

/// A parameter of a statement; `None` is NULL.
#[derive(Clone, Copy)]
pub(crate) enum Value<'v> {
    Text(Option<&'v str>),
    Bytes(Option<&'v [u8]>),
    Id(Option<Uuid>),
    Moment(Option<Timestamp>),
    Number(Option<i64>),
    Small(i16),
    Real(Option<f64>),
    Truth(bool),
    /// The present: PostgreSQL adds the store's skew to its own clock, SQLite gets the time itself.
    Now,
    /// Lists are arrays on PostgreSQL and JSON on SQLite, where ids and hashes are hexadecimal.
    Ids(&'v [Uuid]),
    Hashes(&'v [[u8; 32]]),
    Texts(&'v [&'v str]),
}

macro_rules! values {
    ($($type:ty => $variant:ident $(($some:path))?;)+) => {
        $(impl<'v> From<$type> for Value<'v> {
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
    Uuid => Id(Some);
    Timestamp => Moment(Some);
    Option<Timestamp> => Moment;
    i64 => Number(Some);
    Option<i64> => Number;
    i16 => Small;
    f64 => Real(Some);
    Option<f64> => Real;
    bool => Truth;
    &'v [Uuid] => Ids;
}

/// A connection of either database, with what [`Value::Now`] is there: the store's skew, or the time.
pub(crate) enum Connection<'c> {
    Postgres(&'c mut PgConnection, i64),
    Sqlite(&'c mut SqliteConnection, Timestamp),
}

impl Connection<'_> {
    pub(crate) async fn all(
        &mut self,
        statement: Statement,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        Ok(match self {
            Self::Postgres(connection, skew) => {
                let rows = statement.on_postgres(values, *skew).fetch_all(&mut **connection).await?;
                rows.into_iter().map(Row::Postgres).collect()
            }
            Self::Sqlite(connection, now) => {
                let rows = statement.on_sqlite(values, *now).fetch_all(&mut **connection).await?;
                rows.into_iter().map(Row::Sqlite).collect()
            }
        })
    }

    pub(crate) async fn optional(
        &mut self,
        statement: Statement,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, StoreError> {
        Ok(match self {
            Self::Postgres(connection, skew) => {
                let query = statement.on_postgres(values, *skew);
                query.fetch_optional(&mut **connection).await?.map(Row::Postgres)
            }
            Self::Sqlite(connection, now) => {
                let query = statement.on_sqlite(values, *now);
                query.fetch_optional(&mut **connection).await?.map(Row::Sqlite)
            }
        })
    }

    pub(crate) async fn one(
        &mut self,
        statement: Statement,
        values: &[Value<'_>],
    ) -> Result<Row, StoreError> {
        Ok(self.optional(statement, values).await?.ok_or(sqlx::Error::RowNotFound)?)
    }

    /// Returns how many rows it changed.
    pub(crate) async fn execute(
        &mut self,
        statement: Statement,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        Ok(match self {
            Self::Postgres(connection, skew) => {
                statement.on_postgres(values, *skew).execute(&mut **connection).await?.rows_affected()
            }
            Self::Sqlite(connection, now) => {
                statement.on_sqlite(values, *now).execute(&mut **connection).await?.rows_affected()
            }
        })
    }
}

/// Replaces PostgreSQL's names of tables by SQLite's, which are as long.
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

/// The bytes of a statement as text again.
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
    fn sqlite_reads_the_names_of_its_own_tables() {
        let statement = shared!("node_list");
        assert!(statement.postgres.contains("FROM ichido.nodes"), "{}", statement.postgres);
        assert_eq!(statement.sqlite, statement.postgres.replace("ichido.", "ichido_"));
        let overlapping = "iichido.a ichidichido.b ichido_c";
        assert_eq!(text(&with_sqlite_tables::<32>(overlapping)), overlapping.replace("ichido.", "ichido_"));
    }
}
