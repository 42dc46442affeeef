//! Tokens: who may come in over HTTP.

use uuid::Uuid;

use super::Store;
use crate::check;
use crate::driver::{on, read};
use crate::error::StoreError;
use crate::message::limits::EXCERPT_BYTES_MAX;
use crate::token::{NewToken, Token};

impl Store {
    /// Keeps a new token, and records who made it.
    pub async fn token_add(&self, token: &NewToken, by: &str) -> Result<(), StoreError> {
        token.check()?;
        check::text("the name of who makes a token", by, EXCERPT_BYTES_MAX)?;
        on!(&*self.driver, driver => driver.token_add(token, by).await)
    }

    /// All tokens, the newest first, those included that let nobody in any more; at most
    /// [`limits::TOKENS_MAX`](crate::token::limits::TOKENS_MAX).
    pub async fn token_list(&self) -> Result<Vec<Token>, StoreError> {
        read(|| async { on!(&*self.driver, driver => driver.tokens().await) }).await
    }

    /// Revokes a token for good, and records who did; `false` when there is none that still lives.
    pub async fn token_revoke(&self, id: Uuid, by: &str) -> Result<bool, StoreError> {
        check::text("the name of who revokes a token", by, EXCERPT_BYTES_MAX)?;
        on!(&*self.driver, driver => driver.token_revoke(id, by).await)
    }
}
