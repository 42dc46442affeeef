//! Signatures as defined by [Standard Webhooks](https://www.standardwebhooks.com).
//!
//! Guarantee: a receiver that knows one of the live secrets can verify that the message is ours, complete and recent. With
//! two secrets each call carries both signatures, so a receiver can switch at any time.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use ichido_core::time::Timestamp;
use sha2::Sha256;

/// The prefix of a secret.
const PREFIX: &str = "whsec_";
/// The shortest secret in bytes, as defined by the standard.
const MIN_SECRET_BYTES: usize = 24;
/// The longest secret in bytes, as defined by the standard.
const MAX_SECRET_BYTES: usize = 64;

/// A secret shared with the receiver.
#[derive(Clone)]
pub struct Secret(Vec<u8>); // Invariant: MIN_SECRET_BYTES..=MAX_SECRET_BYTES bytes.

/// Why a text is not a [`Secret`]. No variant holds a character of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// It lacks its prefix.
    #[error("a signing secret must start with `{PREFIX}`")]
    NoPrefix,
    /// What follows the prefix is not base64.
    #[error("a signing secret must be base64 after `{PREFIX}`, including any `=` padding")]
    NotBase64,
    /// It is too short or too long.
    #[error(
        "a signing secret must have {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes, not {0}; generate a new one \
            from random bytes"
    )]
    Length(usize),
}

impl Secret {
    /// Parses a secret, `whsec_` and base64.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretError::NoPrefix)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretError::NotBase64)?;
        match bytes.len() {
            MIN_SECRET_BYTES..=MAX_SECRET_BYTES => Ok(Self(bytes)),
            len => Err(SecretError::Length(len)),
        }
    }

    /// Returns `v1,` and the signature of one message.
    fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let signature = Hmac::<Sha256>::new_from_slice(&self.0).map(|mac| {
            let parts = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body];
            parts.iter().fold(mac, Hmac::chain_update).finalize().into_bytes()
        });
        // HMAC accepts a key of any length, so there is always a signature.
        signature.map(|bytes| format!("v1,{}", STANDARD.encode(bytes))).unwrap_or_default()
    }
}

/// Does not show the secret.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Returns the three header fields of a signed message, in the standard's order.
///
/// Nothing without secrets.
pub fn fields(secrets: &[Secret], id: &str, now: Timestamp, body: &[u8]) -> Vec<(&'static str, String)> {
    if secrets.is_empty() {
        return Vec::new();
    }
    let timestamp = now.as_millis().div_euclid(1_000).to_string();
    let signatures: Vec<String> = secrets.iter().map(|secret| secret.sign(id, &timestamp, body)).collect();
    vec![
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", signatures.join(" ")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published examples of the standard's own libraries and of its original documentation.
    #[test]
    fn signature_matches_published_examples() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("24 bytes");
        let signed = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");

        // Its secret is shorter than the standard allows today; its signature is still valid.
        let secret = Secret(STANDARD.decode("plJ3nmyCDGBKInavdOK15jsl").expect("base64"));
        let body = br#"{"event_type":"ping","data":{"success":true}}"#;
        let signed = secret.sign("msg_loFOjxBNrRLzqYUf", "1731705121", body);
        assert_eq!(signed, "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=");
    }

    #[test]
    fn two_secrets_make_two_signatures_side_by_side() {
        let secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"]
            .map(|text| Secret::parse(text).expect("24 bytes"));
        let now = Timestamp::from_millis(1_614_265_330_999);
        let body = br#"{"test": 2432232314}"#;
        let both = fields(&secrets, "msg_p5jXN8AQM9LWM0D4loKWxJek", now, body);
        let alone = fields(&secrets[1..], "msg_p5jXN8AQM9LWM0D4loKWxJek", now, body);
        assert_eq!(both[1], ("webhook-timestamp", "1614265330".to_owned()));
        let first = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(both[2].1, format!("{first} {}", alone[2].1));
        assert_ne!(alone[2].1, first);
        assert!(fields(&[], "id", now, body).is_empty(), "no secrets");
    }

    #[test]
    fn invalid_secret_is_refused() {
        let refused = |text: &str| Secret::parse(text).err();
        assert_eq!(refused("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), Some(SecretError::NoPrefix));
        assert_eq!(refused("whsec_not base64"), Some(SecretError::NotBase64));
        assert_eq!(refused("whsec_plJ3nmyCDGBKInavdOK15jsl"), Some(SecretError::Length(18)));
        let long = format!("whsec_{}", STANDARD.encode([7; MAX_SECRET_BYTES + 1]));
        assert_eq!(refused(&long), Some(SecretError::Length(65)));
    }
}
