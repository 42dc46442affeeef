//! API tokens, stored as hashes.
//!
//! Guarantee: a token itself is never stored, so somebody who reads the database cannot authenticate with it. Creating or
//! revoking a token is an entry of the audit trail with its actor, written in the same transaction. A revoked token stays
//! listed, because the trail names it.
//!
//! ```
//! use ichido_core::digest::Digest;
//! use ichido_store::Store;
//! use ichido_store::token::{NewToken, TokenRole};
//! use uuid::Uuid;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let store = Store::open(&file.url, 4).await?;
//! let secret = b"drawn by the caller, and long enough that nobody guesses it";
//! let hash = *Digest::of_bytes(secret).as_bytes();
//! let token = NewToken { id: Uuid::now_v7(), name: "night watch".into(), role: TokenRole::Operator, hash, ttl: None };
//! store.tokens().add(&token, "olivia").await?;
//! assert!(store.tokens().list().await?[0].is_live(store.now().await?));
//! assert!(store.tokens().revoke(token.id, "olivia").await?);
//! assert!(!store.tokens().list().await?[0].is_live(store.now().await?));
//! # Ok(())
//! # }
//! ```
// SPEC F5.

use std::time::Duration;

use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::action::AuditAction;
use crate::check;
use crate::columns::Columns;
use crate::error::StoreError;
use crate::message::QueueName;
use crate::message::limits::MAX_IDENTITY_BYTES;
use crate::subject::subject;

/// Limits of tokens.
pub mod limits {
    /// The maximum length of a token's name, in bytes.
    pub const MAX_NAME_BYTES: usize = 128;
    /// The maximum number of queues that a producer may enqueue into.
    pub const MAX_QUEUES: usize = 256;
    /// The maximum number of sessions of the dashboard.
    pub const MAX_SESSIONS: u32 = 1_000;
    /// Maximum sessions of one token, so nobody ends the sessions of others by signing in often.
    pub const MAX_SESSIONS_PER_TOKEN: u32 = 50;
    /// The maximum number of tokens that are listed: the newest.
    pub const MAX_TOKENS: u32 = 10_000;
}

/// What the bearer of a token may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenRole {
    /// Read everything.
    Viewer,
    /// Read everything, and act on messages and queues: requeue, cancel, decide, pause.
    Operator,
    /// Do everything.
    Admin,
    /// Enqueue messages for one identity, and read those.
    Producer {
        /// The identity.
        identity: String,
        /// The queues; at least one.
        queues: Vec<QueueName>,
    },
}

impl TokenRole {
    /// Returns its name.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Producer { .. } => "producer",
        }
    }

    fn parse(name: &str, identity: Option<String>, queues: Option<&str>) -> Option<Self> {
        match (name, identity, queues) {
            ("viewer", None, None) => Some(Self::Viewer),
            ("operator", None, None) => Some(Self::Operator),
            ("admin", None, None) => Some(Self::Admin),
            ("producer", Some(identity), Some(queues)) => {
                let queues: Option<Vec<QueueName>> = queues.split(BETWEEN).map(QueueName::parse).collect();
                Some(Self::Producer { identity, queues: queues? })
            }
            _ => None,
        }
    }

    pub(crate) fn identity(&self) -> Option<&str> {
        match self {
            Self::Producer { identity, .. } => Some(identity),
            Self::Viewer | Self::Operator | Self::Admin => None,
        }
    }

    /// Returns the queues as one text: no queue's name contains a space.
    pub(crate) fn queues(&self) -> Option<String> {
        match self {
            Self::Producer { queues, .. } => {
                let names: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
                Some(names.join(&BETWEEN.to_string()))
            }
            Self::Viewer | Self::Operator | Self::Admin => None,
        }
    }
}

const BETWEEN: char = ' ';

/// A token to create.
#[derive(Clone)]
pub struct NewToken {
    /// Its id, which is not secret.
    pub id: Uuid,
    /// Its name, for people.
    pub name: String,
    /// What its bearer may do.
    pub role: TokenRole,
    /// SHA-256 of its secret.
    pub hash: [u8; 32],
    /// How long it is valid; `None` until it is revoked.
    pub ttl: Option<Duration>,
}

ichido_core::debug_only! {
    /// Keeps even the hash out of logs.
    NewToken as new_token { id, role }
}

impl NewToken {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        check::name("the token's name", &self.name, limits::MAX_NAME_BYTES)?;
        if let TokenRole::Producer { identity, queues } = &self.role {
            check::name("the producer's identity", identity, MAX_IDENTITY_BYTES)?;
            if queues.is_empty() {
                return Err(StoreError::Empty { what: "the producer's list of queues" });
            }
            check::bytes("the producer's list of queues", queues.len(), limits::MAX_QUEUES)?;
        }
        Ok(())
    }
}

/// A stored token.
#[derive(Clone)]
pub struct StoredToken {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// What its bearer may do.
    pub role: TokenRole,
    /// SHA-256 of its secret; compare it in constant time.
    pub hash: [u8; 32],
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

ichido_core::debug_only! {
    /// Keeps even the hash out of logs.
    StoredToken as token { id, role }
}

impl StoredToken {
    /// Returns whether it is valid at a time.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires_at| now < expires_at)
    }
}

pub(crate) fn token(row: &impl Columns) -> Result<StoredToken, StoreError> {
    let queues = row.text_or_none("queues")?;
    let role = TokenRole::parse(row.text("role")?, row.text_or_none("identity")?, queues.as_deref());
    let corrupt = || StoreError::Corrupt { table: "tokens", detail: "invalid role".to_owned() };
    Ok(StoredToken {
        id: row.uuid("id")?,
        name: row.text("name")?.to_owned(),
        role: role.ok_or_else(corrupt)?,
        hash: row.hash("hash")?,
        created_at: row.timestamp("created_at")?,
        expires_at: row.timestamp_or_none("expires_at")?,
        revoked_at: row.timestamp_or_none("revoked_at")?,
    })
}

/// The action of creating a token.
pub(crate) fn made(token: &NewToken, by: &str) -> AuditAction {
    let detail = match (token.role.identity(), token.role.queues()) {
        (Some(identity), Some(queues)) => format!("producer for {identity} into {queues}"),
        _ => token.role.as_str().to_owned(),
    };
    action(token.id, &token.name, ("created", "none", "live"), by, Some(detail))
}

/// The action of revoking a token.
pub(crate) fn revoked(id: Uuid, name: &str, by: &str) -> AuditAction {
    action(id, name, ("revoked", "live", "revoked"), by, None)
}

fn action(
    id: Uuid,
    name: &str,
    (kind, from, to): (&str, &str, &str),
    by: &str,
    detail: Option<String>,
) -> AuditAction {
    AuditAction {
        subject: subject("token", id.as_bytes()),
        about: format!("token {name}"),
        kind: kind.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        actor: Some(by.to_owned()),
        detail,
    }
}
