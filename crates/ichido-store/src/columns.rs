//! Columns by name, the same on both databases. [`crate::record`] and [`crate::rows`] define the meaning of rows, once.

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::time::Timestamp;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Postgres, Row as _, Sqlite, Type};
use uuid::Uuid;

use crate::db_timestamp::DbTimestamp;
use crate::error::StoreError;

/// A type that can be read from a column of either database.
pub(crate) trait Readable<'r>:
    Type<Postgres> + Decode<'r, Postgres> + Type<Sqlite> + Decode<'r, Sqlite>
{
}

impl<'r, T> Readable<'r> for T where
    T: Type<Postgres> + Decode<'r, Postgres> + Type<Sqlite> + Decode<'r, Sqlite>
{
}

/// Declares the methods that read a column of one type.
macro_rules! readers {
    ($($name:ident: $type:ty,)+) => {
        $(fn $name(&self, column: &str) -> Result<$type, sqlx::Error> {
            self.column(column)
        })+
    };
}

/// A row whose columns are read by name and type. In each pair, the second method accepts NULL.
pub(crate) trait Columns {
    fn column<'r, T: Readable<'r>>(&'r self, column: &str) -> Result<T, sqlx::Error>;

    /// Reads a column by its position, which is faster.
    fn at<'r, T: Readable<'r>>(&'r self, position: usize) -> Result<T, sqlx::Error>;

    readers! {
        text: &str,
        text_or_none: Option<String>,
        bytes: &[u8],
        bytes_or_none: Option<&[u8]>,
        uuid: Uuid,
        uuid_or_none: Option<Uuid>,
        truth: bool,
        real: f64,
        small: i16,
        small_or_none: Option<i16>,
        count: i32,
        number: i64,
        number_or_none: Option<i64>,
    }

    fn timestamp(&self, column: &str) -> Result<Timestamp, sqlx::Error> {
        Ok(self.column::<DbTimestamp>(column)?.0)
    }

    fn timestamp_or_none(&self, column: &str) -> Result<Option<Timestamp>, sqlx::Error> {
        Ok(self.column::<Option<DbTimestamp>>(column)?.map(|moment| moment.0))
    }

    fn fence(&self) -> Result<Fence, sqlx::Error> {
        fence_from(self.number("fence")?)
    }

    /// Reads a count that must not be negative.
    fn positive(&self, column: &str) -> Result<u32, StoreError> {
        u32::try_from(self.count(column)?).map_err(|_| corrupt("a count is negative"))
    }

    fn hash(&self, column: &str) -> Result<[u8; 32], StoreError> {
        self.bytes(column)?.try_into().map_err(|_| corrupt("a hash is not 32 bytes long"))
    }

    fn digest(&self, column: &str) -> Result<Digest, StoreError> {
        Ok(Digest::from_bytes(self.hash(column)?))
    }

    fn digest_or_none(&self, column: &str) -> Result<Option<Digest>, StoreError> {
        self.bytes_or_none(column)?.map(|_| self.digest(column)).transpose()
    }
}

fn corrupt(detail: &str) -> StoreError {
    StoreError::Corrupt { table: "ledger, messages or events", detail: detail.to_owned() }
}

/// Converts a status to its column type.
pub(crate) fn small(status: u16) -> i16 {
    // A status that does not fit was refused or dropped earlier.
    i16::try_from(status).unwrap_or(i16::MAX)
}

/// Converts a number of attempts or deaths to its column type.
pub(crate) fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Converts a fence to its column type.
pub(crate) fn number(fence: Fence) -> i64 {
    // `Fence` guarantees that it fits.
    i64::try_from(fence.get()).unwrap_or(i64::MAX)
}

/// Converts a column's number to a fence.
pub(crate) fn fence_from(number: i64) -> Result<Fence, sqlx::Error> {
    u64::try_from(number)
        .ok()
        .and_then(Fence::new)
        .ok_or_else(|| sqlx::Error::Decode("a fence is negative".into()))
}

impl Columns for PgRow {
    fn column<'r, T: Readable<'r>>(&'r self, column: &str) -> Result<T, sqlx::Error> {
        self.try_get(column)
    }

    fn at<'r, T: Readable<'r>>(&'r self, position: usize) -> Result<T, sqlx::Error> {
        self.try_get(position)
    }
}

impl Columns for SqliteRow {
    fn column<'r, T: Readable<'r>>(&'r self, column: &str) -> Result<T, sqlx::Error> {
        self.try_get(column)
    }

    fn at<'r, T: Readable<'r>>(&'r self, position: usize) -> Result<T, sqlx::Error> {
        self.try_get(position)
    }
}

/// A row of either database.
pub(crate) enum Row {
    Postgres(PgRow),
    Sqlite(SqliteRow),
}

impl Columns for Row {
    fn column<'r, T: Readable<'r>>(&'r self, column: &str) -> Result<T, sqlx::Error> {
        match self {
            Self::Postgres(row) => row.try_get(column),
            Self::Sqlite(row) => row.try_get(column),
        }
    }

    fn at<'r, T: Readable<'r>>(&'r self, position: usize) -> Result<T, sqlx::Error> {
        match self {
            Self::Postgres(row) => row.try_get(position),
            Self::Sqlite(row) => row.try_get(position),
        }
    }
}
