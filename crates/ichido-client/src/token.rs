//! The bearer token, which is never displayed.

use std::fmt;

use http::HeaderValue;

/// The caller's bearer token (RFC 6750).
#[derive(Clone)]
pub struct Token(HeaderValue); // Invariant: `Bearer ` and 1..=MAX_LEN visible ASCII characters, marked as sensitive.

/// Why a text is not a token. No variant contains a character of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is empty.
    #[error("the token is empty; use it as it was issued")]
    Empty,
    /// It has more than [`Token::MAX_LEN`] characters.
    #[error("the token has {len} characters; the limit is {max}", max = Token::MAX_LEN)]
    TooLong {
        /// The number of characters.
        len: usize,
    },
    /// It contains a blank, a line break or a character outside ASCII.
    #[error(
        "the token contains a character that is not visible ASCII; check for a space or a line break at its end"
    )]
    NotVisible,
}

impl Token {
    /// The longest token. Servers refuse much longer header lines.
    pub const MAX_LEN: usize = 4096;

    /// Parses a token as issued, without `Bearer`.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        match text.len() {
            0 => return Err(TokenError::Empty),
            len if Self::MAX_LEN < len => return Err(TokenError::TooLong { len }),
            _ => {}
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::NotVisible);
        }
        let mut value =
            HeaderValue::from_str(&format!("Bearer {text}")).map_err(|_| TokenError::NotVisible)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    pub(crate) fn field(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_never_displayed() {
        let token = Token::parse("ichido_1_s3cret").unwrap();
        assert_eq!(format!("{token:?}"), "Token(…)");
        assert_eq!(token.field(), "Bearer ichido_1_s3cret");
        assert!(!format!("{:?}", token.field()).contains("s3cret"));
    }

    #[test]
    fn invalid_tokens_are_rejected() {
        assert_eq!(Token::parse("").err(), Some(TokenError::Empty));
        for text in ["a b", "a\n", "ä"] {
            assert_eq!(Token::parse(text).err(), Some(TokenError::NotVisible), "{text:?}");
        }
        let long = "a".repeat(Token::MAX_LEN + 1);
        assert_eq!(Token::parse(&long).err(), Some(TokenError::TooLong { len: long.len() }));
        assert!(TokenError::TooLong { len: 5000 }.to_string().contains("the limit is 4096"));
    }
}
