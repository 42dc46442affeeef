//! Timestamps in both databases, as whole microseconds, so nothing is rounded.
//!
//! PostgreSQL has `timestamptz`. SQLite has no timestamp type, so they are numbers, counted from 1970 as in the core.

use ichido_core::time::Timestamp;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueFormat, PgValueRef};
use sqlx::sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef};
use sqlx::{Decode, Encode, Postgres, Sqlite, Type};

/// 2000-01-01, PostgreSQL's epoch, in microseconds since 1970.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;

/// The beginning of 4713 BC, PostgreSQL's first timestamp, in microseconds from its epoch. Its last one is beyond ours.
const POSTGRES_FIRST_MICROS: i64 = -211_813_488_000_000_000;

/// `timestamptz` and its array. The numbers are the same on every server. By name, each connection would look both up, and that
/// takes longer than any statement of ours.
const TIMESTAMPTZ: PgTypeInfo = PgTypeInfo::with_oid(Oid(1184));
const TIMESTAMPTZ_ARRAY: PgTypeInfo = PgTypeInfo::with_oid(Oid(1185));

/// A [`Timestamp`] in a column or a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DbTimestamp(pub(crate) Timestamp);

impl Type<Postgres> for DbTimestamp {
    fn type_info() -> PgTypeInfo {
        TIMESTAMPTZ
    }
}

impl PgHasArrayType for DbTimestamp {
    fn array_type_info() -> PgTypeInfo {
        TIMESTAMPTZ_ARRAY
    }
}

impl Encode<'_, Postgres> for DbTimestamp {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        // A time before PostgreSQL's first timestamp is before everything stored.
        let micros = self.0.as_micros().saturating_sub(POSTGRES_EPOCH_MICROS).max(POSTGRES_FIRST_MICROS);
        buffer.extend_from_slice(&micros.to_be_bytes());
        Ok(IsNull::No)
    }

    fn size_hint(&self) -> usize {
        size_of::<i64>()
    }
}

impl Decode<'_, Postgres> for DbTimestamp {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        if value.format() != PgValueFormat::Binary {
            return Err("a timestamp must be in binary format".into());
        }
        let bytes: [u8; 8] = value.as_bytes()?.try_into()?;
        let micros = i64::from_be_bytes(bytes).saturating_add(POSTGRES_EPOCH_MICROS);
        Ok(Self(Timestamp::from_micros(micros)))
    }
}

impl Type<Sqlite> for DbTimestamp {
    fn type_info() -> SqliteTypeInfo {
        <i64 as Type<Sqlite>>::type_info()
    }

    fn compatible(found: &SqliteTypeInfo) -> bool {
        <i64 as Type<Sqlite>>::compatible(found)
    }
}

impl Encode<'_, Sqlite> for DbTimestamp {
    fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Sqlite>::encode(self.0.as_micros(), buffer)
    }
}

impl Decode<'_, Sqlite> for DbTimestamp {
    fn decode(value: SqliteValueRef<'_>) -> Result<Self, BoxDynError> {
        Ok(Self(Timestamp::from_micros(Decode::<Sqlite>::decode(value)?)))
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection as _, PgConnection, Row as _};

    use super::*;
    use crate::testing::postgres::fresh_database;

    #[tokio::test]
    async fn types_are_known_without_asking_the_server() {
        let database = fresh_database().await;
        let mut connection = PgConnection::connect(&database.url).await.unwrap();
        let asked = "SELECT 'timestamptz'::regtype::oid, 'timestamptz[]'::regtype::oid";
        let row = sqlx::query(asked).fetch_one(&mut connection).await.unwrap();
        assert_eq!(<DbTimestamp as Type<Postgres>>::type_info().oid(), Some(row.get(0)));
        assert_eq!(DbTimestamp::array_type_info().oid(), Some(row.get(1)));
    }
}
