//! Sessions of the dashboard: which browser signed in with which token.

use std::time::Duration;

use uuid::Uuid;

use super::Tokens;
use crate::columns::Columns as _;
use crate::future::StoreFuture;
use crate::micros;
use crate::statement::{SqlValue, paired, shared};
use crate::token::limits::{MAX_SESSIONS, MAX_SESSIONS_PER_TOKEN};
use crate::transaction::Transaction;

impl<'s> Tokens<'s> {
    /// Starts a session for a token, found by the hash of its cookie until `ttl` has passed.
    ///
    /// At most [`MAX_SESSIONS_PER_TOKEN`] of the token and [`MAX_SESSIONS`] in all are kept; those that end first make room.
    pub fn start_session(self, token: Uuid, hash: [u8; 32], ttl: Duration) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            let work = async |transaction: &mut Transaction<'_>| {
                let mut connection = transaction.connection();
                let values = [SqlValue::from(&hash[..]), token.into(), micros(ttl).into(), SqlValue::Now];
                connection.execute(paired!("session_add"), &values).await?;
                let most = i64::from(MAX_SESSIONS_PER_TOKEN);
                let values = [token.into(), most.into(), i64::from(MAX_SESSIONS).into()];
                connection.execute(shared!("session_prune_token"), &values).await?;
                let most = i64::from(MAX_SESSIONS);
                connection.execute(shared!("session_prune"), &[most.into(), most.into()]).await.map(Some)
            };
            self.0.driver.transact(work).await.map(drop)
        })
    }

    /// Returns the token of a session that has not ended. The token itself may have been revoked since.
    pub fn session(self, hash: [u8; 32]) -> StoreFuture<'s, Option<Uuid>> {
        Box::pin(async move {
            let values = [SqlValue::from(&hash[..]), SqlValue::Now];
            let row = self.0.driver.optional(paired!("session_find"), &values).await?;
            Ok(row.map(|row| row.uuid("token_id")).transpose()?)
        })
    }

    /// Ends a session.
    pub fn end_session(self, hash: [u8; 32]) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            self.0.driver.execute(shared!("session_end"), &[SqlValue::from(&hash[..])]).await.map(drop)
        })
    }
}
