//! Tokens: who may use the HTTP API.

use uuid::Uuid;

use super::Tokens;
use crate::check;
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::message::limits::MAX_EXCERPT_BYTES;
use crate::micros;
use crate::statement::{SqlValue, paired, shared};
use crate::token::limits::MAX_TOKENS;
use crate::token::{self, NewToken, StoredToken, made, revoked};
use crate::transaction::Transaction;

impl Tokens<'_> {
    /// Stores a new token, and records who created it.
    pub async fn add(self, token: &NewToken, by: &str) -> Result<(), StoreError> {
        token.check()?;
        check::text("the actor", by, MAX_EXCERPT_BYTES)?;
        let queues = token.role.queues();
        let values = [
            token.id.into(),
            (&*token.name).into(),
            token.role.as_str().into(),
            token.role.identity().into(),
            queues.as_deref().into(),
            SqlValue::from(&token.hash[..]),
            token.ttl.map(micros).into(),
            SqlValue::Now,
        ];
        let work = async |transaction: &mut Transaction<'_>| {
            transaction.connection().execute(paired!("token_add"), &values).await?;
            transaction.record(&made(token, by)).await.map(Some)
        };
        self.0.driver.transact(work).await.map(drop)
    }

    /// Lists all tokens, newest first, including expired and revoked ones; at most
    /// [`limits::MAX_TOKENS`](crate::token::limits::MAX_TOKENS).
    pub async fn list(self) -> Result<Vec<StoredToken>, StoreError> {
        let rows = self.0.driver.all(shared!("token_list"), &[i64::from(MAX_TOKENS).into()]).await?;
        rows.iter().map(token::token).collect()
    }

    /// Revokes a token permanently, and records who did. Returns `false` if no such token is live.
    pub async fn revoke(self, id: Uuid, by: &str) -> Result<bool, StoreError> {
        check::text("the actor", by, MAX_EXCERPT_BYTES)?;
        let work = async |transaction: &mut Transaction<'_>| {
            let values = [id.into(), SqlValue::Now];
            let row = transaction.connection().optional(paired!("token_revoke"), &values).await?;
            let Some(row) = row else { return Ok(None) };
            transaction.record(&revoked(id, row.text("name")?, by)).await.map(Some)
        };
        Ok(self.0.driver.transact(work).await?.is_some())
    }
}
