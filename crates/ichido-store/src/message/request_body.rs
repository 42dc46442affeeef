//! A request's bytes, with the media type and the digest that belong to them.

use ichido_core::digest::{BodyRules, Digest, MEDIA_TYPE_DEFAULT, is_json, is_same_body};
use ichido_core::json::{CanonicalForm, JsonError};

use super::limits::MAX_REQUEST_BYTES;

/// The caller's bytes, their media type and their digest, which cannot disagree.
///
/// ```
/// use ichido_core::json::CanonicalForm;
/// use ichido_store::message::RequestBody;
///
/// let json = |text: &str| RequestBody::new("application/json", text.into(), CanonicalForm::default());
/// assert_eq!(json(r#"{"qty": 1.0, "symbol": "ACME"}"#)?.digest(), json(r#"{"symbol":"ACME","qty":1}"#)?.digest());
/// assert_ne!(RequestBody::from(b"1.0".to_vec()).digest(), RequestBody::from(b"1".to_vec()).digest());
/// # Ok::<(), ichido_store::message::InvalidBody>(())
/// ```
// SPEC D1: a caller that set the bytes and forgot the digest would get another message's outcome.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestBody {
    content_type: String,
    bytes: Vec<u8>,
    digest: Digest,
}

impl RequestBody {
    /// Creates a body of a media type. JSON is compared by its meaning, everything else by its bytes.
    ///
    /// Ambiguous JSON is refused, and so is an empty body that should be JSON: its receiver could not read it.
    // SPEC C9.
    pub fn new(
        content_type: impl Into<String>,
        bytes: Vec<u8>,
        form: CanonicalForm,
    ) -> Result<Self, InvalidBody> {
        let content_type = content_type.into();
        let digest = if is_json(&content_type) {
            Digest::of_json(&bytes, &BodyRules { form, max_bytes: MAX_REQUEST_BYTES })
        } else {
            Ok(Digest::of_bytes(&bytes))
        };
        match digest {
            Ok(digest) => Ok(Self { content_type, bytes, digest }),
            Err(error) => Err(InvalidBody { error, bytes }),
        }
    }

    /// Returns the media type.
    pub fn content_type(&self) -> &str {
        &self.content_type
    }

    /// Returns the caller's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the digest.
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns whether a request of this media type and digest, under the same key, is the same request.
    pub fn is_same(&self, content_type: &str, digest: Digest) -> bool {
        is_same_body((&self.content_type, self.digest), (content_type, digest))
    }
}

/// Bytes of no particular media type, compared as they are.
impl From<Vec<u8>> for RequestBody {
    fn from(bytes: Vec<u8>) -> Self {
        let digest = Digest::of_bytes(&bytes);
        Self { content_type: MEDIA_TYPE_DEFAULT.to_owned(), bytes, digest }
    }
}

/// Why bytes are not a request of their media type.
#[derive(Clone, thiserror::Error)]
#[error("the body is not valid JSON: {error}")]
pub struct InvalidBody {
    /// What is wrong, and where.
    pub error: JsonError,
    /// The bytes.
    pub bytes: Vec<u8>,
}

ichido_core::debug_only! {
    /// Keeps the bytes out of logs.
    InvalidBody as body { error, bytes: body.bytes.len() }
}

ichido_core::debug_only! {
    /// Keeps the bytes out of logs.
    RequestBody as body { content_type, bytes: body.bytes.len() }
}
