//! Tokens, on SQLite: each change in one transaction with its entry in the trail.

use uuid::Uuid;

use super::Sqlite;
use super::actions::record;
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::micros;
use crate::token::{self, NewToken, Token, limits, made, revoked};

impl Sqlite {
    pub(crate) async fn token_add(&self, token: &NewToken, by: &str) -> Result<(), StoreError> {
        let mut writing = self.write().await?;
        let now = writing.now.as_micros();
        sqlx::query(include_str!("sql/token_add.sql"))
            .bind(token.id)
            .bind(&token.name)
            .bind(token.role.as_str())
            .bind(token.role.identity())
            .bind(token.role.queues())
            .bind(&token.hash[..])
            .bind(now)
            .bind(token.lives.map(|lives| now.saturating_add(micros(lives))))
            .execute(writing.connection())
            .await?;
        record(&mut writing, &made(token, by)).await?;
        writing.commit().await
    }

    pub(crate) async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let query = sqlx::query(include_str!("sql/token_list.sql")).bind(i64::from(limits::TOKENS_MAX));
        query.fetch_all(self.pool()).await?.iter().map(token::token).collect()
    }

    pub(crate) async fn token_revoke(&self, id: Uuid, by: &str) -> Result<bool, StoreError> {
        let mut writing = self.write().await?;
        let now = writing.now.as_micros();
        let row = sqlx::query(include_str!("sql/token_revoke.sql"))
            .bind(id)
            .bind(now)
            .fetch_optional(writing.connection())
            .await?;
        let Some(row) = row else {
            writing.rollback().await?;
            return Ok(false);
        };
        record(&mut writing, &revoked(id, row.text("name")?, by)).await?;
        writing.commit().await?;
        Ok(true)
    }
}
