//! The digest: a hash of a body's meaning.
//!
//! Guarantee: two JSON bodies have the same digest exactly when they mean the same without the fields that are left
//! out, and bodies of any other type exactly when their bytes are equal. The digest covers only the body;
//! [`crate::fingerprint`] covers the caller and the target. The two are different types, so they are never compared
//! with each other. The caller's bytes are stored and sent; the canonical form exists only while hashing.
// SPEC C9, D1, D10.

use sha2::{Digest as _, Sha256};

use crate::json::{CanonicalForm, Document, JsonError};

/// Declares a SHA-256 with its own type and a text form that can be parsed.
macro_rules! hash {
    ($(#[$meta:meta])+ $name:ident = $prefix:literal) => {
        $(#[$meta])+
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 32]);

        impl $name {
            /// The prefix of its text, before the hex digits.
            ///
            /// It names the scheme, so another scheme can follow.
            pub const PREFIX: &'static str = $prefix;

            /// Parses what [`Display`](std::fmt::Display) wrote; `None` for any other text.
            pub fn parse(text: &str) -> Option<Self> {
                $crate::digest::unhex(text.strip_prefix(Self::PREFIX)?).map(Self)
            }

            /// Returns the 32 bytes for a column.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// Creates the value from a column.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}{}", Self::PREFIX, $crate::digest::hex(&self.0))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}
pub(crate) use hash;

hash! {
    /// `sha256:` and 64 hex digits: the digest of a request's body or of a result.
    Digest = "sha256:"
}

impl Digest {
    /// Returns the digest of a JSON text in canonical form.
    pub fn of_json(body: &[u8], rules: &BodyRules) -> Result<Self, JsonError> {
        let document = Document::parse(body, rules.max_bytes)?;
        Ok(Self::of_bytes(&document.canonical(&rules.form)?))
    }

    /// Returns the digest of bytes as they are.
    pub fn of_bytes(body: &[u8]) -> Self {
        Self(sha256(body))
    }

    /// Returns the digest of a body: of its canonical form for JSON, of its bytes otherwise.
    ///
    /// An empty body has no JSON value; it counts as bytes whatever its type says.
    ///
    /// ```
    /// use ichido_core::digest::{BodyRules, Digest};
    ///
    /// let rules = BodyRules::default();
    /// let sent = Digest::of_body("application/json", br#"{"qty": 1.0, "symbol": "ACME"}"#, &rules)?;
    /// let resent = Digest::of_body("application/json", br#"{"symbol":"ACME","qty":1}"#, &rules)?;
    /// assert_eq!(sent, resent, "they mean the same");
    /// assert!(sent.to_string().starts_with("sha256:"));
    /// # Ok::<(), ichido_core::json::JsonError>(())
    /// ```
    pub fn of_body(media_type: &str, body: &[u8], rules: &BodyRules) -> Result<Self, JsonError> {
        if is_json(media_type) && !body.is_empty() {
            Self::of_json(body, rules)
        } else {
            Ok(Self::of_bytes(body))
        }
    }
}

/// How a body is brought into canonical form before it is hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyRules {
    /// Numbers, Unicode and the fields left out, such as `/trace_id` and `/idempotency_key`.
    pub form: CanonicalForm,
    /// JSON bodies over this size are refused.
    ///
    /// The caller has its own limit for reading a body at all.
    pub max_bytes: usize,
}

impl BodyRules {
    /// 1 MiB: the largest JSON body that is canonicalized unless a route says otherwise.
    pub const DEFAULT_MAX_BYTES: usize = 1 << 20;
}

impl Default for BodyRules {
    fn default() -> Self {
        Self { form: CanonicalForm::default(), max_bytes: Self::DEFAULT_MAX_BYTES }
    }
}

/// The media type of a body without a `Content-Type` (RFC 9110, 8.3).
pub const MEDIA_TYPE_DEFAULT: &str = "application/octet-stream";

/// Returns the media type under which a body is compared: type and subtype, in lower case.
///
/// Parameters do not count, because a proxy between two attempts may add a charset.
pub fn media_type(content_type: &str) -> String {
    let essence = essence(content_type);
    if essence.is_empty() { MEDIA_TYPE_DEFAULT.to_owned() } else { essence.to_ascii_lowercase() }
}

/// Returns whether two bodies under one key, each with its `Content-Type`, are the same request.
///
/// The digest alone does not say: `1` as text and `1.0` as JSON have the same. [`crate::fingerprint`] compares the same
/// two values, so every way into Ichido has this one rule.
// SPEC C9, D1.
pub fn is_same_body(one: (&str, Digest), other: (&str, Digest)) -> bool {
    one.1 == other.1 && media_type(one.0) == media_type(other.0)
}

fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Returns whether a media type is JSON: `application/json`, `text/json`, or any type with the suffix `+json`.
pub fn is_json(media_type: &str) -> bool {
    let Some((kind, subtype)) = essence(media_type).split_once('/') else {
        return false;
    };
    let plain = subtype.eq_ignore_ascii_case("json")
        && (kind.eq_ignore_ascii_case("application") || kind.eq_ignore_ascii_case("text"));
    let suffix = subtype.rsplit_once('+').is_some_and(|(_, suffix)| suffix.eq_ignore_ascii_case("json"));
    plain || suffix
}

/// A hash over several parts, each prefixed with its length, so no byte can move between parts.
pub(crate) struct Hasher(Sha256);

impl Hasher {
    /// Creates a hasher.
    ///
    /// `domain` names what is hashed and its version, so hashes of two kinds are never equal.
    pub(crate) fn new(domain: &str) -> Self {
        let mut hasher = Self(Sha256::new());
        hasher.part(domain.as_bytes());
        hasher
    }

    pub(crate) fn part(&mut self, bytes: &[u8]) {
        let len = bytes.len() as u64;
        self.0.update(len.to_be_bytes());
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Formats bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 0xf)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// Parses 64 lower-case hex digits; upper case is refused, so one digest has one text.
pub(crate) fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * bytes.len() || !text.bytes().all(is_digit) {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
