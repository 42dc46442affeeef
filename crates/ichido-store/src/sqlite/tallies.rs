//! Counts of minutes, on SQLite.

use super::{Sqlite, values};
use crate::error::StoreError;
use crate::tally::TallyRow;

const MINUTE_MICROS: i64 = 60_000_000;

impl Sqlite {
    pub(crate) async fn tally_add(&self, rows: &[TallyRow<'_>]) -> Result<(), StoreError> {
        let mut writing = self.write().await?;
        let now = writing.now.as_micros();
        let minute = now - now.rem_euclid(MINUTE_MICROS);
        for part in values::parts(rows) {
            let mut query = sqlx::query(values::repeated(include_str!("sql/tally_add.sql"), part.len()));
            for row in part {
                query = query
                    .bind(minute)
                    .bind(row.about)
                    .bind(row.kind)
                    .bind(row.slot)
                    .bind(row.count)
                    .bind(row.micros);
            }
            query.execute(writing.connection()).await?;
        }
        writing.commit().await
    }
}
