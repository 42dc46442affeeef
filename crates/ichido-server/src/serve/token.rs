//! The text of a token: a prefix that secret scanners can find, its id, and its secret.
//!
//! Guarantee: what [`text`] writes, [`parse`] reads.

use uuid::Uuid;

/// How a token begins, so that people and scanners know it when they see one.
const PREFIX: &str = "ichido_";
/// The random bytes of a secret: nobody guesses as many.
pub const SECRET_BYTES: usize = 32;

/// The text of a token, with its secret in hexadecimal digits.
pub fn text(id: Uuid, secret: &str) -> String {
    format!("{PREFIX}{}_{secret}", id.simple())
}

/// The id and the secret of a token's text.
pub fn parse(text: &str) -> Option<(Uuid, &str)> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let is_secret = secret.len() == 2 * SECRET_BYTES && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some((Uuid::try_parse(id).ok()?, secret)).filter(|_| is_secret)
}
