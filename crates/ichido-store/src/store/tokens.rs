//! Tokens: who may use the HTTP API.

use uuid::Uuid;

use super::Tokens;
use crate::check;
use crate::columns::Columns as _;
use crate::future::StoreFuture;
use crate::message::limits::MAX_EXCERPT_BYTES;
use crate::micros;
use crate::statement::{SqlValue, paired, shared};
use crate::token::limits::MAX_TOKENS;
use crate::token::{self, NewToken, StoredToken, made, revoked};
use crate::transaction::Transaction;

impl<'s> Tokens<'s> {
    /// Stores a new token, and records who created it.
    pub fn add(self, token: &'s NewToken, by: &'s str) -> StoreFuture<'s, ()> {
        Box::pin(async move {
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
        })
    }

    /// Lists all tokens, newest first, including expired and revoked ones; at most
    /// [`limits::MAX_TOKENS`](crate::token::limits::MAX_TOKENS).
    pub fn list(self) -> StoreFuture<'s, Vec<StoredToken>> {
        Box::pin(async move {
            let rows = self.0.driver.all(shared!("token_list"), &[i64::from(MAX_TOKENS).into()]).await?;
            rows.iter().map(token::token).collect()
        })
    }

    /// Revokes a token permanently, and records who did. Returns `false` if no such token is live.
    pub fn revoke(self, id: Uuid, by: &'s str) -> StoreFuture<'s, bool> {
        Box::pin(async move {
            check::text("the actor", by, MAX_EXCERPT_BYTES)?;
            let work = async |transaction: &mut Transaction<'_>| {
                let values = [id.into(), SqlValue::Now];
                let row = transaction.connection().optional(paired!("token_revoke"), &values).await?;
                let Some(row) = row else { return Ok(None) };
                transaction.record(&revoked(id, row.text("name")?, by)).await.map(Some)
            };
            Ok(self.0.driver.transact(work).await?.is_some())
        })
    }
}
