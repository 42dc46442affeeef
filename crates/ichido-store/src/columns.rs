//! Columns by name, alike on both databases: what a row means is said once, in [`crate::record`] and [`crate::rows`].

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::time::Timestamp;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use crate::error::StoreError;
use crate::postgres::moment::Moment;

/// A row whose columns are asked for by name and type. Each pair is the column that must be there, and the one that may be NULL.
pub(crate) trait Columns {
    fn text(&self, column: &str) -> Result<&str, sqlx::Error>;
    fn text_or_none(&self, column: &str) -> Result<Option<String>, sqlx::Error>;
    fn bytes(&self, column: &str) -> Result<&[u8], sqlx::Error>;
    fn bytes_or_none(&self, column: &str) -> Result<Option<&[u8]>, sqlx::Error>;
    fn uuid(&self, column: &str) -> Result<Uuid, sqlx::Error>;
    fn uuid_or_none(&self, column: &str) -> Result<Option<Uuid>, sqlx::Error>;
    fn moment(&self, column: &str) -> Result<Timestamp, sqlx::Error>;
    fn moment_or_none(&self, column: &str) -> Result<Option<Timestamp>, sqlx::Error>;
    fn truth(&self, column: &str) -> Result<bool, sqlx::Error>;
    fn real(&self, column: &str) -> Result<f64, sqlx::Error>;
    fn small(&self, column: &str) -> Result<i16, sqlx::Error>;
    fn small_or_none(&self, column: &str) -> Result<Option<i16>, sqlx::Error>;
    fn count(&self, column: &str) -> Result<i32, sqlx::Error>;
    fn number(&self, column: &str) -> Result<i64, sqlx::Error>;
    fn number_or_none(&self, column: &str) -> Result<Option<i64>, sqlx::Error>;

    fn fence(&self) -> Result<Fence, sqlx::Error> {
        fence_from(self.number("fence")?)
    }

    /// A count that cannot be negative.
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

/// A status as a column holds it.
pub(crate) fn small(status: u16) -> i16 {
    // One that does not fit was refused or left out before.
    i16::try_from(status).unwrap_or(i16::MAX)
}

/// A fence as a column holds it.
pub(crate) fn number(fence: Fence) -> i64 {
    // Invariant of `Fence`: it fits.
    i64::try_from(fence.get()).unwrap_or(i64::MAX)
}

/// The fence that a column's number stands for.
pub(crate) fn fence_from(number: i64) -> Result<Fence, sqlx::Error> {
    u64::try_from(number)
        .ok()
        .and_then(Fence::new)
        .ok_or_else(|| sqlx::Error::Decode("a fence is negative".into()))
}

macro_rules! columns {
    ($row:ty, $moment:ty, $timestamp:expr) => {
        impl Columns for $row {
            fn text(&self, column: &str) -> Result<&str, sqlx::Error> {
                self.try_get(column)
            }
            fn text_or_none(&self, column: &str) -> Result<Option<String>, sqlx::Error> {
                self.try_get(column)
            }
            fn bytes(&self, column: &str) -> Result<&[u8], sqlx::Error> {
                self.try_get(column)
            }
            fn bytes_or_none(&self, column: &str) -> Result<Option<&[u8]>, sqlx::Error> {
                self.try_get(column)
            }
            fn uuid(&self, column: &str) -> Result<Uuid, sqlx::Error> {
                self.try_get(column)
            }
            fn uuid_or_none(&self, column: &str) -> Result<Option<Uuid>, sqlx::Error> {
                self.try_get(column)
            }
            fn moment(&self, column: &str) -> Result<Timestamp, sqlx::Error> {
                self.try_get::<$moment, _>(column).map($timestamp)
            }
            fn moment_or_none(&self, column: &str) -> Result<Option<Timestamp>, sqlx::Error> {
                Ok(self.try_get::<Option<$moment>, _>(column)?.map($timestamp))
            }
            fn real(&self, column: &str) -> Result<f64, sqlx::Error> {
                self.try_get(column)
            }
            fn truth(&self, column: &str) -> Result<bool, sqlx::Error> {
                self.try_get(column)
            }
            fn small(&self, column: &str) -> Result<i16, sqlx::Error> {
                self.try_get(column)
            }
            fn small_or_none(&self, column: &str) -> Result<Option<i16>, sqlx::Error> {
                self.try_get(column)
            }
            fn count(&self, column: &str) -> Result<i32, sqlx::Error> {
                self.try_get(column)
            }
            fn number(&self, column: &str) -> Result<i64, sqlx::Error> {
                self.try_get(column)
            }
            fn number_or_none(&self, column: &str) -> Result<Option<i64>, sqlx::Error> {
                self.try_get(column)
            }
        }
    };
}

columns!(PgRow, Moment, |moment| moment.0);
// SQLite has no type for moments: whole microseconds since 1970, as the core has them.
columns!(SqliteRow, i64, Timestamp::from_micros);
