//! Verified JWTs: signature, times and audience.

use std::borrow::Cow;

use ichido_boundary::ClaimPath;
use ichido_core::json::{CanonicalForm, Document, JsonValue, Kind};
use jsonwebtoken::{DecodingKey, TokenData, Validation, decode};
use serde_json::value::RawValue;

use super::signature;

/// How far clocks may differ.
const LEEWAY_SECS: u64 = 30;
/// The longest token that is checked.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The shortest secret for HS256 (RFC 7518, 3.2): as long as its hash.
const MIN_SECRET_BYTES: usize = 32;
/// The shortest RSA key (RFC 7518, 3.3).
const MIN_RSA_BITS: usize = 2_048;

/// The supported algorithms. The configured one is required, whatever a token claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Hs256,
    Rs256,
    Es256,
}

/// Why tokens cannot be verified with this configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JwtError {
    #[error("\"{0}\" is not supported; use HS256, RS256 or ES256")]
    UnknownAlgorithm(String),
    #[error("the secret has {len} bytes; HS256 needs at least {MIN_SECRET_BYTES}")]
    SecretTooShort { len: usize },
    #[error("the RSA key has fewer than {MIN_RSA_BITS} bits; use a longer one")]
    RsaKeyTooShort,
    #[error("the file is not a public key for {0} in PEM (-----BEGIN PUBLIC KEY-----)")]
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

/// Verifies tokens.
pub(crate) struct Jwt {
    key: DecodingKey,
    validation: Validation,
    claims: Vec<ClaimPath>,
}

/// The claims of a valid token.
pub(crate) struct Claims(Box<RawValue>);

impl Jwt {
    /// Creates a verifier with the key of a file.
    ///
    /// The line break that an editor adds to a secret is removed.
    pub(crate) fn new(
        algorithm: Algorithm,
        key: &[u8],
        audience: &str,
        claims: Vec<ClaimPath>,
    ) -> Result<Self, JwtError> {
        let (algorithm, key) = match algorithm {
            Algorithm::Hs256 => {
                let secret = key.trim_ascii_end();
                if secret.len() < MIN_SECRET_BYTES {
                    return Err(JwtError::SecretTooShort { len: secret.len() });
                }
                (jsonwebtoken::Algorithm::HS256, DecodingKey::from_secret(secret))
            }
            Algorithm::Rs256 => {
                let key = DecodingKey::from_rsa_pem(key).map_err(|_| JwtError::NoPublicKey("RS256"))?;
                // They are the modulus and a few bytes more.
                if key.try_get_as_bytes().is_ok_and(|bytes| bytes.len() < MIN_RSA_BITS / 8) {
                    return Err(JwtError::RsaKeyTooShort);
                }
                (jsonwebtoken::Algorithm::RS256, key)
            }
            Algorithm::Es256 => {
                let key = DecodingKey::from_ec_pem(key).map_err(|_| JwtError::NoPublicKey("ES256"))?;
                (jsonwebtoken::Algorithm::ES256, key)
            }
        };
        signature::install();
        let mut validation = Validation::new(algorithm);
        validation.leeway = LEEWAY_SECS;
        validation.validate_nbf = true;
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["exp", "aud"]);
        Ok(Self { key, validation, claims })
    }

    /// Returns the claims of a valid token.
    ///
    /// `None` gives no reason that would help to forge one.
    pub(crate) fn verify(&self, token: &str) -> Option<Claims> {
        if MAX_TOKEN_BYTES < token.len() {
            return None;
        }
        let verified: Result<TokenData<Box<RawValue>>, _> = decode(token, &self.key, &self.validation);
        Some(Claims(verified.ok()?.claims))
    }

    /// Returns the claims that name the caller.
    pub(crate) fn identity_claims(&self) -> &[ClaimPath] {
        &self.claims
    }
}

impl Claims {
    /// Parses the claims.
    ///
    /// Returns `None` if a claim occurs twice, because readers could disagree about which one counts.
    pub(crate) fn document(&self) -> Option<Document<'_>> {
        Document::parse(self.0.get().as_bytes(), MAX_TOKEN_BYTES).ok()
    }
}

/// Returns the caller's name in these claims.
///
/// Returns `None` if a claim is missing, empty, or neither text nor a whole number. One claim is used as it is.
/// Several claims become a JSON array, so two different lists never form the same name.
pub(crate) fn identity_name(claims: &Document<'_>, paths: &[ClaimPath]) -> Option<String> {
    let found = paths.iter().map(|path| path.find(claims.root()).filter(|claim| is_name(*claim)));
    let found: Vec<JsonValue<'_, '_>> = found.collect::<Option<_>>()?;
    match &found[..] {
        [one] => one.as_str().map(Cow::into_owned).or_else(|| one.as_number_text().map(str::to_owned)),
        several => {
            let parts = several.iter().map(|claim| claim.canonical(&CanonicalForm::default()).ok());
            let parts: Vec<Vec<u8>> = parts.collect::<Option<_>>()?;
            String::from_utf8(parts.join(&b","[..])).ok().map(|parts| format!("[{parts}]"))
        }
    }
}

/// Whether a claim is text or a whole number; some issuers number their users.
fn is_name(claim: JsonValue<'_, '_>) -> bool {
    match claim.kind() {
        Kind::String => claim.as_str().is_some_and(|text| !text.is_empty()),
        Kind::Number => {
            claim.as_number_text().is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        }
        Kind::Null | Kind::Bool | Kind::Array | Kind::Object => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(claims: &str, paths: &[&str]) -> Option<String> {
        let document = Document::parse(claims.as_bytes(), MAX_TOKEN_BYTES).expect("it is JSON");
        let paths: Vec<_> = paths.iter().map(|path| ClaimPath::parse(path).expect("a path")).collect();
        identity_name(&document, &paths)
    }

    #[test]
    fn single_claim_is_the_identity() {
        let claims = r#"{"sub": "alice", "id": 7, "actor": {"actor_id": "a-7"}, "big": 123456789012345678901234567890}"#;
        for (path, expected) in [
            ("sub", "alice"),
            ("id", "7"),
            ("actor.actor_id", "a-7"),
            ("big", "123456789012345678901234567890"),
        ] {
            assert_eq!(name(claims, &[path]).as_deref(), Some(expected), "{path}");
        }
        let claims = r#"{"sub": "", "id": -7, "at": 1.5, "is": true, "none": null, "list": ["a"], "actor": {"id": "a"}}"#;
        for path in ["sub", "id", "at", "is", "none", "list", "actor", "actor.name", "list.0", "missing"] {
            assert_eq!(name(claims, &[path]), None, "{path}");
        }
    }

    /// `a` and `b,c` must not be the same caller as `a,b` and `c`.
    #[test]
    fn several_claims_never_form_another_identity() {
        let both = |tenant: &str, sub: &str| {
            name(&serde_json::json!({"tenant": tenant, "sub": sub}).to_string(), &["tenant", "sub"])
        };
        assert_eq!(both("t1", "alice").as_deref(), Some(r#"["t1","alice"]"#));
        let names = [
            both("a", "b,c"),
            both("a,b", "c"),
            both("a\",\"b", "c"),
            both("a", "b\",\"c"),
            name(r#"{"tenant": 7, "sub": "c"}"#, &["tenant", "sub"]),
            both("7", "c"),
        ];
        for (index, one) in names.iter().enumerate() {
            assert!(one.is_some() && !names[index + 1..].contains(one), "{one:?}");
        }
        assert_eq!(name(r#"{"sub": "alice"}"#, &["tenant", "sub"]), None, "one is missing");
        assert_eq!(both("", "alice"), None, "one is empty");
    }

    /// It would refuse every token later.
    #[test]
    fn short_rsa_key_is_refused_at_the_start() {
        let short = b"-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCV7qi/VRE7cYwiSmS7seI2htEx
fdTQmAWpF2PtIBXYTLtejIJ3sUb3TnRCgwyXddSN/ddRO/VvrQN8tPrcTDE6j5YQ
YJvf8aq5pTtpo69VZjfstJBQLWdPp90wnAVSKO4ZoMRmIgSKSsVTa0cjI4CDcTZH
L+K24ty20kMBKBDghQIDAQAB
-----END PUBLIC KEY-----
";
        let refused = Jwt::new(Algorithm::Rs256, short, "orders", Vec::new()).err();
        assert_eq!(refused, Some(JwtError::RsaKeyTooShort));
    }
}
