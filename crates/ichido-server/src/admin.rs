//! Administration directly on the store, without a running server: tokens, the audit trail, backups.
//!
//! Guarantee: the secret of a token is only in what [`create_token`] returns, since the store has only its hash. Sealing covers
//! every entry that existed when it began, or returns an error.

pub mod audit_report;
pub mod judgements;

use std::path::Path;
use std::time::Duration;

use ichido_core::audit::AuditKey;
use ichido_core::audit::seal::SealHead;
use ichido_core::audit::verify::AuditReport;
use ichido_core::digest::{Digest, hex};
use ichido_core::settings::ConfigErrors;
use ichido_http::clock;
use ichido_store::Store;
use ichido_store::audit::{AuditSealed, MAX_SEAL_ENTRIES, MAX_SEAL_KEYS};
pub use ichido_store::backup::Backup;
use ichido_store::backup::{self, BackupError};
use ichido_store::error::StoreError;
use ichido_store::message::QueueName;
pub use ichido_store::token::TokenRole;
use ichido_store::token::{NewToken, StoredToken};
use serde::Serialize;
use uuid::Uuid;

use crate::Error;
use crate::serve::token::{SECRET_BYTES, text};

/// How often sealing is retried while another process seals or prunes.
const BUSY_RETRIES: u32 = 50;

/// A new token.
#[derive(Debug, Serialize)]
pub struct MadeToken {
    /// Its id, which is not a secret.
    pub id: Uuid,
    /// Its display name.
    pub name: String,
    /// The role of its bearer.
    pub role: &'static str,
    /// Its text, which includes the secret.
    pub token: String,
}

/// A listed token, without its secret.
#[derive(Debug, Serialize)]
pub struct ListedToken {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// The role of its bearer.
    pub role: &'static str,
    /// `live`, `expired` or `revoked`.
    pub standing: &'static str,
    /// The identity of a producer.
    pub identity: Option<String>,
    /// The queues of a producer.
    pub queues: Vec<String>,
    /// When it was created.
    pub created_at: String,
    /// When it expires.
    pub expires_at: Option<String>,
    /// When it was revoked.
    pub revoked_at: Option<String>,
}

impl ListedToken {
    fn new(token: StoredToken) -> Self {
        let standing = match token.revoked_at {
            Some(_) => "revoked",
            None if token.is_live(clock::now()) => "live",
            None => "expired",
        };
        let role = token.role.as_str();
        let (identity, queues) = match token.role {
            TokenRole::Producer { identity, queues } => (Some(identity), queues),
            TokenRole::Viewer | TokenRole::Operator | TokenRole::Admin => (None, Vec::new()),
        };
        Self {
            id: token.id,
            name: token.name,
            role,
            standing,
            identity,
            queues: queues.iter().map(QueueName::as_str).map(str::to_owned).collect(),
            created_at: token.created_at.to_string(),
            expires_at: token.expires_at.map(|at| at.to_string()),
            revoked_at: token.revoked_at.map(|at| at.to_string()),
        }
    }
}

/// Creates a token that is valid for `lifetime`, or until it is revoked.
///
/// The audit trail records `by` as its creator.
pub async fn create_token(
    store: &Store,
    name: String,
    role: TokenRole,
    lifetime: Option<Duration>,
    by: &str,
) -> Result<MadeToken, Error> {
    let (token, text) = new_token(name, role, lifetime)?;
    store.tokens().add(&token, by).await.map_err(failed("cannot create the token"))?;
    Ok(MadeToken { id: token.id, name: token.name, role: token.role.as_str(), token: text })
}

/// Lists all tokens.
pub async fn list_tokens(store: &Store) -> Result<Vec<ListedToken>, Error> {
    let tokens = store.tokens().list().await.map_err(failed("cannot list the tokens"))?;
    Ok(tokens.into_iter().map(ListedToken::new).collect())
}

/// Revokes the token with this id or name, and returns its id.
pub async fn revoke_token(store: &Store, named: &str, by: &str) -> Result<Uuid, Error> {
    let is_meant = |token: &ListedToken| {
        token.revoked_at.is_none() && (token.name == named || Uuid::try_parse(named) == Ok(token.id))
    };
    let ids: Vec<Uuid> =
        list_tokens(store).await?.iter().filter(|token| is_meant(token)).map(|token| token.id).collect();
    if let [_, _, ..] = ids[..] {
        let count = ids.len();
        let why =
            format!("{count} active tokens are named {named}; pass the id that `ichido token list` shows");
        return Err(Error::Failed(why));
    }
    if let [id] = ids[..]
        && store.tokens().revoke(id, by).await.map_err(failed("cannot revoke the token"))?
    {
        return Ok(id);
    }
    Err(Error::Failed(format!("there is no active token {named}; run `ichido token list`")))
}

fn new_token(name: String, role: TokenRole, lifetime: Option<Duration>) -> Result<(NewToken, String), Error> {
    let mut random = [0; SECRET_BYTES];
    getrandom::fill(&mut random)
        .map_err(|error| Error::Failed(format!("cannot get random bytes from the system: {error}")))?;
    let secret = hex(&random);
    let (id, hash) = (Uuid::now_v7(), *Digest::of_bytes(secret.as_bytes()).as_bytes());
    Ok((NewToken { id, name, role, hash, ttl: lifetime }, text(id, &secret)))
}

/// What was sealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    /// How many seals were made.
    pub seals: u64,
    /// How many entries they cover.
    pub entries: u64,
    /// How many of these entries violate the rules.
    pub misfits: u64,
    /// How many settled key records were sealed. Each list of them is an entry.
    pub key_records: u64,
}

/// Seals every settled key record and every entry of the audit trail that is not sealed yet.
pub async fn seal(store: &Store, key: Option<&AuditKey>) -> Result<Sealed, Error> {
    let (mut all, mut busy) = (Sealed::default(), 0);
    let mut after = None;
    loop {
        let keys = store.audit().seal_keys(after, MAX_SEAL_KEYS).await;
        let keys = keys.map_err(failed("cannot seal all key records"))?;
        all.key_records += keys.records;
        after = keys.after;
        if after.is_none() {
            break;
        }
    }
    loop {
        match store.audit().seal(key, MAX_SEAL_ENTRIES).await {
            Ok(AuditSealed::Sealed { entries, misfits, .. }) => {
                all.seals += 1;
                all.entries += u64::from(entries);
                all.misfits += u64::from(misfits);
            }
            Ok(AuditSealed::Nothing) => return Ok(all),
            Ok(AuditSealed::KeyNeeded) => {
                let why = "the existing seals were made with a key; pass the same one with --key-file";
                return Err(Error::Failed(why.to_owned()));
            }
            Err(StoreError::Busy) if busy < BUSY_RETRIES => busy += 1,
            Err(error) => return Err(failed("cannot seal all entries")(error)),
        }
    }
}

/// Returns the last seal, if there is one.
pub async fn head(store: &Store) -> Result<Option<SealHead>, Error> {
    store.audit().head().await.map_err(failed("cannot read the last seal"))
}

/// Finds entries of the audit trail that were changed, removed, inserted or forged.
pub async fn verify(
    store: &Store,
    key: Option<&AuditKey>,
    head: Option<SealHead>,
) -> Result<AuditReport, Error> {
    store.audit().verify(key, head).await.map_err(failed("cannot read the audit trail"))
}

/// Copies an SQLite store into a new file.
pub async fn back_up(url: &str, file: &Path) -> Result<Backup, Error> {
    backup::take(url, file).await.map_err(|error| {
        let place = match error {
            BackupError::Postgres | BackupError::Store(StoreError::Address(_)) => "--store",
            BackupError::Name(_) => "FILE",
            BackupError::Store(StoreError::Unavailable(_)) => return Error::Unreachable(error.to_string()),
            BackupError::Exists(_)
            | BackupError::UnderWay(_)
            | BackupError::NoStore
            | BackupError::File { .. }
            | BackupError::Store(_) => return Error::Failed(error.to_string()),
        };
        Error::Misconfigured(ConfigErrors::one(place, error.to_string()))
    })
}

fn failed(what: &str) -> impl Fn(StoreError) -> Error {
    move |error| Error::Failed(format!("{what}: {}", error.with_causes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::token::parse;

    #[test]
    fn a_token_is_read_back_and_kept_as_a_hash() {
        let made = || new_token("till 3".to_owned(), TokenRole::Viewer, None).unwrap();
        let (token, text) = made();
        let (id, secret) = parse(&text).unwrap();
        assert_eq!((id, *Digest::of_bytes(secret.as_bytes()).as_bytes()), (token.id, token.hash));
        assert_ne!(parse(&made().1).unwrap().1, secret, "each has a secret of its own");
        for wrong in ["", "ichido_", &text[..text.len() - 1], &text.replace("ichido_", "ICHIDO_")] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
