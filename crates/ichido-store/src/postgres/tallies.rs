//! Counts of minutes, on PostgreSQL.

use super::Postgres;
use crate::error::StoreError;
use crate::tally::TallyRow;

impl Postgres {
    pub(crate) async fn tally_add(&self, rows: &[TallyRow<'_>]) -> Result<(), StoreError> {
        let query = sqlx::query(include_str!("sql/tally_add.sql"))
            .bind(rows.iter().map(|row| row.about).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.kind).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.slot).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.count).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.micros).collect::<Vec<_>>())
            .bind(self.skew());
        self.calls.execute(query).await?;
        Ok(())
    }
}
