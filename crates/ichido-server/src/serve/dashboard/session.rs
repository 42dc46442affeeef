//! Sessions: which browser signed in with which token.
//!
//! Guarantee: a session is stored, so it lasts across restarts and on all servers of a store. The cookie's value is random, and only its
//! hash is stored. A session names a token, so every request asks anew whether the token is still valid and what it may do. It ends after
//! [`MAX_AGE`] or with sign-out; other servers notice that within [`FRESH`].

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ichido_core::digest::Digest;
use ichido_core::sync::lock;
use ichido_store::Store;
use ichido_store::token::limits::MAX_SESSIONS;
use tokio::time::Instant;
use uuid::Uuid;

use super::super::problem::{Code, Problem};

/// A session ends after this time.
const MAX_AGE: Duration = Duration::from_hours(7 * 24);
/// A session that was read is not read again for this long, so viewers cost the store little.
const FRESH: Duration = Duration::from_secs(30);
/// The random bytes of a session's id, too many to guess.
const ID_BYTES: usize = 32;

/// The sessions that were read lately, by their hash, with their token and the time of the read.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<[u8; 32], (Uuid, Instant)>>);

impl Sessions {
    /// Starts a session for a token, and returns the value of its cookie.
    pub(super) async fn start(&self, store: &Store, token: Uuid) -> Result<String, Problem> {
        let mut id = [0; ID_BYTES];
        getrandom::fill(&mut id).map_err(|_| {
            Problem::new(Code::StoreRefused, "the system has no random bytes for a session; try again")
        })?;
        let id = URL_SAFE_NO_PAD.encode(id);
        store.tokens().start_session(token, hash(&id), MAX_AGE).await?;
        Ok(id)
    }

    /// Returns the token of a session that has not ended.
    pub(super) async fn token(&self, store: &Store, id: &str) -> Result<Option<Uuid>, Problem> {
        let hash = hash(id);
        let known = lock(&self.0).get(&hash).filter(|(_, at)| at.elapsed() < FRESH).map(|(token, _)| *token);
        if known.is_some() {
            return Ok(known);
        }
        let at = Instant::now();
        let token = store.tokens().session(hash).await?;
        let mut sessions = lock(&self.0);
        sessions.retain(|_, (_, at)| at.elapsed() < FRESH);
        if let Some(token) = token.filter(|_| sessions.len() < MAX_SESSIONS as usize) {
            sessions.insert(hash, (token, at));
        }
        Ok(token)
    }

    /// Ends a session.
    pub(super) async fn end(&self, store: &Store, id: &str) -> Result<(), Problem> {
        let hash = hash(id);
        store.tokens().end_session(hash).await?;
        lock(&self.0).remove(&hash);
        Ok(())
    }
}

fn hash(id: &str) -> [u8; 32] {
    *Digest::of_bytes(id.as_bytes()).as_bytes()
}
