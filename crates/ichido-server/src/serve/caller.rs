//! The caller of a request, and its permissions.

use http::HeaderMap;
use http::header::HeaderName;
use ichido_store::message::limits::MAX_IDENTITY_BYTES;
use ichido_store::message::{IDENTITY_DEFAULT, QueueName};
use ichido_store::token::TokenRole;
use uuid::Uuid;

use super::problem::{Code, Problem};
use crate::accept::is_name;

/// The identity of a message, if no token determines it.
pub(super) const IDENTITY: HeaderName = HeaderName::from_static("ichido-identity");

/// The name of a person without a token, for the audit trail.
const ACTOR: HeaderName = HeaderName::from_static("ichido-actor");

/// An authenticated caller.
#[derive(Clone, Debug)]
pub(super) struct ApiCaller {
    /// Its name in the audit trail.
    pub(super) name: String,
    pub(super) role: TokenRole,
    /// The token it used; `None` for a local user.
    pub(super) token: Option<Uuid>,
}

impl ApiCaller {
    /// Returns a local user, for stores where no token was ever created.
    pub(super) fn local() -> Self {
        Self { name: IDENTITY_DEFAULT.to_owned(), role: TokenRole::Admin, token: None }
    }

    /// Returns a local user under the name that the request gives.
    ///
    /// It is believed: without tokens, every local user may do everything.
    pub(super) fn local_named(headers: &HeaderMap) -> Result<Self, Problem> {
        let Some(line) = headers.get(ACTOR) else { return Ok(Self::local()) };
        let name = std::str::from_utf8(line.as_bytes()).ok().filter(|name| is_name(name));
        let name = name.ok_or_else(|| {
            let detail = format!(
                "the header Ichido-Actor must have 1 to {MAX_IDENTITY_BYTES} bytes of UTF-8 without control characters"
            );
            Problem::new(Code::IdentityInvalid, detail)
        })?;
        Ok(Self { name: name.to_owned(), ..Self::local() })
    }

    /// Returns the identity for a message that this caller enqueues, or why it may not.
    pub(super) fn identity(&self, queue: &QueueName, headers: &HeaderMap) -> Result<String, Problem> {
        let mut lines = headers.get_all(IDENTITY).iter();
        let given = match (lines.next(), lines.next()) {
            (None, _) => None,
            (Some(line), None) => {
                let text = std::str::from_utf8(line.as_bytes());
                Some(text.map_err(|_| {
                    Problem::new(
                        Code::IdentityInvalid,
                        "the header Ichido-Identity is not UTF-8; encode it as UTF-8",
                    )
                })?)
            }
            (Some(_), Some(_)) => {
                let detail = "the header Ichido-Identity is repeated; send it once";
                return Err(Problem::new(Code::IdentityInvalid, detail));
            }
        };
        match &self.role {
            TokenRole::Admin => Ok(given.unwrap_or(IDENTITY_DEFAULT).to_owned()),
            TokenRole::Producer { identity, queues } if queues.contains(queue) => match given {
                Some(given) if given != identity => Err(Problem::new(
                    Code::RoleInsufficient,
                    "the token belongs to another identity than Ichido-Identity names; remove the header",
                )),
                _ => Ok(identity.clone()),
            },
            TokenRole::Producer { .. } => Err(unknown_queue()),
            TokenRole::Viewer | TokenRole::Operator => Err(Problem::new(
                Code::RoleInsufficient,
                "the token's role cannot send messages; use a producer's token",
            )),
        }
    }

    /// Whether it may see a queue.
    pub(super) fn can_see_queue(&self, queue: &str) -> bool {
        match &self.role {
            TokenRole::Viewer | TokenRole::Operator | TokenRole::Admin => true,
            TokenRole::Producer { queues, .. } => queues.iter().any(|own| own.as_str() == queue),
        }
    }

    /// Whether it may see a message.
    pub(super) fn can_see(&self, queue: &str, of: &str) -> bool {
        match &self.role {
            TokenRole::Viewer | TokenRole::Operator | TokenRole::Admin => true,
            TokenRole::Producer { identity, .. } => identity == of && self.can_see_queue(queue),
        }
    }

    /// Requires a role that may see everything.
    pub(super) fn require_viewer(&self) -> Result<(), Problem> {
        match self.role {
            TokenRole::Viewer | TokenRole::Operator | TokenRole::Admin => Ok(()),
            TokenRole::Producer { .. } => Err(Problem::new(
                Code::RoleInsufficient,
                "a producer's token sees only its own messages; use a viewer's, an operator's or an admin's token",
            )),
        }
    }

    /// Requires a role that may change things.
    pub(super) fn require_operator(&self) -> Result<(), Problem> {
        match self.role {
            TokenRole::Operator | TokenRole::Admin => Ok(()),
            TokenRole::Viewer | TokenRole::Producer { .. } => Err(Problem::new(
                Code::RoleInsufficient,
                "the token's role does not allow this; use an operator's or an admin's token",
            )),
        }
    }
}

pub(super) fn unknown_queue() -> Problem {
    let detail = "the queue does not exist here; `ichido queues list` lists the queues that you may see";
    Problem::new(Code::QueueUnknown, detail)
}
