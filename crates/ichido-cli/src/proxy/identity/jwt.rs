//! Tokens: a claim of a JWT whose signature, times and audience hold.

use jsonwebtoken::{DecodingKey, TokenData, Validation, decode};
use serde_json::Value;

/// How far clocks may differ.
const LEEWAY_SECS: u64 = 30;
/// The longest token that is looked at.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// The shortest secret for HS256 (RFC 7518, 3.2): as long as its hash.
const SECRET_BYTES_MIN: usize = 32;

/// The algorithms that are taken; which one is pinned, whatever a token says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Hs256,
    Rs256,
    Es256,
}

/// Why there is nothing to verify tokens with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JwtError {
    #[error("\"{0}\" is none of HS256, RS256 and ES256")]
    UnknownAlgorithm(String),
    #[error("the secret has {len} bytes; HS256 needs at least {SECRET_BYTES_MIN}")]
    SecretTooShort { len: usize },
    #[error("the file is no public key for {0} in PEM (-----BEGIN PUBLIC KEY-----)")]
    NoPublicKey(&'static str),
}

impl Algorithm {
    pub(crate) fn parse(text: &str) -> Result<Self, JwtError> {
        match text {
            "HS256" => Ok(Self::Hs256),
            "RS256" => Ok(Self::Rs256),
            "ES256" => Ok(Self::Es256),
            _ => Err(JwtError::UnknownAlgorithm(text.to_owned())),
        }
    }
}

/// What verifies tokens.
pub(crate) struct Jwt {
    key: DecodingKey,
    validation: Validation,
    claim: String,
}

impl Jwt {
    /// Takes the key as its file has it. The line end that an editor adds to a secret is no part of it.
    pub(crate) fn new(
        algorithm: Algorithm,
        key: &[u8],
        audience: &str,
        claim: &str,
    ) -> Result<Self, JwtError> {
        let (algorithm, key) = match algorithm {
            Algorithm::Hs256 => {
                let secret = key.trim_ascii_end();
                if secret.len() < SECRET_BYTES_MIN {
                    return Err(JwtError::SecretTooShort { len: secret.len() });
                }
                (jsonwebtoken::Algorithm::HS256, DecodingKey::from_secret(secret))
            }
            Algorithm::Rs256 => {
                let key = DecodingKey::from_rsa_pem(key).map_err(|_| JwtError::NoPublicKey("RS256"))?;
                (jsonwebtoken::Algorithm::RS256, key)
            }
            Algorithm::Es256 => {
                let key = DecodingKey::from_ec_pem(key).map_err(|_| JwtError::NoPublicKey("ES256"))?;
                (jsonwebtoken::Algorithm::ES256, key)
            }
        };
        let mut validation = Validation::new(algorithm);
        validation.leeway = LEEWAY_SECS;
        validation.validate_nbf = true;
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["exp", "aud"]);
        Ok(Self { key, validation, claim: claim.to_owned() })
    }

    /// The claim of a token that holds; `None` for any other, without a reason that would help to forge one.
    pub(crate) fn identity(&self, token: &str) -> Option<String> {
        if TOKEN_BYTES_MAX < token.len() {
            return None;
        }
        let verified: Result<TokenData<Value>, _> = decode(token, &self.key, &self.validation);
        match verified.ok()?.claims.get(&self.claim)? {
            Value::String(name) if !name.is_empty() => Some(name.clone()),
            // Some issuers number their users.
            Value::Number(number) if number.is_u64() => Some(number.to_string()),
            _ => None,
        }
    }
}
