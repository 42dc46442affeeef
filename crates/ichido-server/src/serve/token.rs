//! Tokens as text: a prefix for secret scanners, the id, and the secret.
//!
//! Guarantee: [`parse`] reads what [`text`] writes.

use uuid::Uuid;

/// The prefix of a token, so people and scanners recognize one.
const PREFIX: &str = "ichido_";
/// The random bytes of a secret, too many to guess.
pub const SECRET_BYTES: usize = 32;

/// Formats a token, with its secret in hexadecimal digits.
pub fn text(id: Uuid, secret: &str) -> String {
    format!("{PREFIX}{}_{secret}", id.simple())
}

/// Returns the id and the secret of a token.
pub fn parse(text: &str) -> Option<(Uuid, &str)> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let is_secret = secret.len() == 2 * SECRET_BYTES && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some((Uuid::try_parse(id).ok()?, secret)).filter(|_| is_secret)
}
