//! Tokens and sessions: the credentials that people sign in with.
//!
//! Guarantee: the secret is 256 bits from the system's random generator. It is shown once, when it is created. Only its
//! hash is stored, and it is compared in constant time.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use crate::database::hash;

const SECRET_BYTES: usize = 32;
/// The prefix of every credential, so people and scanners recognize it.
const PREFIX: &str = "bm_";

/// A credential: an id, and the secret that proves it.
#[derive(Clone)]
pub struct Credential {
    id: Uuid,
    secret: [u8; SECRET_BYTES],
}

impl Credential {
    /// Creates a credential with a new secret.
    pub(crate) fn draw(id: Uuid) -> Result<Self, getrandom::Error> {
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret)?;
        Ok(Self { id, secret })
    }

    /// Parses a credential, or returns `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('.')?;
        let id = URL_SAFE_NO_PAD.decode(id).ok()?;
        let secret = URL_SAFE_NO_PAD.decode(secret).ok()?;
        Some(Self { id: Uuid::from_slice(&id).ok()?, secret: secret.try_into().ok()? })
    }

    /// Returns the id it claims.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }

    /// Returns the hash that is stored.
    pub(crate) fn hash(&self) -> [u8; 32] {
        hash(&self.secret)
    }

    /// Returns whether it matches a stored hash.
    pub(crate) fn fits(&self, stored_hash: &[u8]) -> bool {
        self.hash().ct_eq(stored_hash).into()
    }

    /// Returns the text that is shown once and sent by the caller.
    pub fn to_text(&self) -> String {
        let (id, secret) = (URL_SAFE_NO_PAD.encode(self.id.as_bytes()), URL_SAFE_NO_PAD.encode(self.secret));
        format!("{PREFIX}{id}.{secret}")
    }
}

ichido_core::debug_only! {
    /// The secret stays out of logs.
    Credential as credential { id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_shown_credential_matches_the_stored_hash() {
        let made = Credential::draw(Uuid::now_v7()).unwrap();
        let other = Credential::draw(made.id()).unwrap();
        let read = Credential::parse(&made.to_text()).unwrap();
        assert!(read.fits(&made.hash()) && read.id() == made.id());
        assert!(!other.fits(&made.hash()), "another secret of the same id");
        assert!(!format!("{made:?}").contains(&URL_SAFE_NO_PAD.encode(made.secret)));
    }

    #[test]
    fn malformed_credentials_are_refused() {
        let whole = Credential::draw(Uuid::now_v7()).unwrap().to_text();
        for wrong in ["", "bm_", "bm_.", &whole[3..], &whole[..whole.len() - 2], &whole.replace('.', "")] {
            assert!(Credential::parse(wrong).is_none(), "{wrong}");
        }
    }
}
