//! Tokens, on PostgreSQL: each change in one transaction with its entry in the trail.

use sqlx::Connection as _;
use uuid::Uuid;

use super::Postgres;
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::micros;
use crate::token::{self, NewToken, Token, limits, made, revoked};

impl Postgres {
    pub(crate) async fn token_add(&self, token: &NewToken, by: &str) -> Result<(), StoreError> {
        self.calls
            .talk(async |connection| {
                let mut transaction = connection.begin().await?;
                sqlx::query(include_str!("sql/token_add.sql"))
                    .bind(token.id)
                    .bind(&token.name)
                    .bind(token.role.as_str())
                    .bind(token.role.identity())
                    .bind(token.role.queues())
                    .bind(&token.hash[..])
                    .bind(token.lives.map(micros))
                    .bind(self.skew())
                    .execute(&mut *transaction)
                    .await?;
                self.record(&mut transaction, &made(token, by)).await?;
                Ok(transaction.commit().await?)
            })
            .await
    }

    pub(crate) async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let query = sqlx::query(include_str!("sql/token_list.sql")).bind(i64::from(limits::TOKENS_MAX));
        self.calls.all(query).await?.iter().map(token::token).collect()
    }

    pub(crate) async fn token_revoke(&self, id: Uuid, by: &str) -> Result<bool, StoreError> {
        self.calls
            .talk(async |connection| {
                let mut transaction = connection.begin().await?;
                let row = sqlx::query(include_str!("sql/token_revoke.sql"))
                    .bind(id)
                    .bind(self.skew())
                    .fetch_optional(&mut *transaction)
                    .await?;
                let Some(row) = row else {
                    transaction.rollback().await?;
                    return Ok(false);
                };
                self.record(&mut transaction, &revoked(id, row.text("name")?, by)).await?;
                transaction.commit().await?;
                Ok(true)
            })
            .await
    }
}
