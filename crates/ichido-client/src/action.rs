//! An action: one key and one request, however many attempts.

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use ichido_core::client_attempt;
use ichido_core::hops::Hops;
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Safety;

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const X_IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("x-idempotency-key");
pub(crate) const TRY: HeaderName = HeaderName::from_static(client_attempt::FIELD);
pub(crate) const HOPS: HeaderName = HeaderName::from_static("ichido-hops");

/// Header fields that the caller cannot set.
///
/// The key never changes, and the others belong to the connection.
pub(crate) const OURS: [HeaderName; 13] = [
    IDEMPOTENCY_KEY,
    X_IDEMPOTENCY_KEY,
    TRY,
    HOPS,
    AUTHORIZATION,
    HOST,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    CONNECTION,
    TE,
    TRAILER,
    UPGRADE,
    EXPECT,
];

/// A state-changing request under one key.
///
/// Every attempt is the same, byte for byte, except for its number. An action without a key ([`Action::without_key`]) is
/// retried only with proof that nothing was done.
// Spec: C4.
#[derive(Clone)]
pub struct Action {
    pub(crate) method: Method,
    pub(crate) path: PathAndQuery,
    /// `None` if the server does not support keys: a second attempt could take effect twice.
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) cause: Cause,
    pub(crate) previous_attempts: u32,
    /// The hops before this client.
    pub(crate) hops: Hops,
}

ichido_core::words! {
    /// The party that started an attempt.
    // Spec: A14.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Cause {
        /// A person, for the first time or with a retry button.
        Manual = "manual",
        /// A program.
        Auto = "auto",
    }
}

/// Why a request cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// The path is invalid.
    #[error("the path must begin with / and contain only visible ASCII; percent-encode the rest")]
    Path,
    /// The media type is not a valid header value.
    #[error("the media type is not a valid header value; write it like application/json")]
    ContentType,
    /// The client sets this header field itself.
    #[error("the client sets the header {0} itself; remove it")]
    ReservedHeader(HeaderName),
    /// The method reads, and a read needs no key.
    #[error("{0} changes nothing, so it needs no key; an action is a POST, PUT, PATCH or DELETE")]
    ReadMethod(Method),
}

impl Action {
    /// Creates an action for `path`, which is appended to the client's base URL.
    ///
    /// ```
    /// use ichido_client::{Action, ActionError};
    /// use ichido_core::key::IdempotencyKey;
    ///
    /// let key = IdempotencyKey::parse("order-1")?;
    /// let order = Action::new(http::Method::POST, "/orders", key.clone(), "application/json", r#"{"qty":1}"#)?;
    /// assert_eq!(Action::new(http::Method::POST, "orders", key, "application/json", "").err(), Some(ActionError::Path));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        method: Method,
        path: &str,
        key: IdempotencyKey,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<Self, ActionError> {
        let unkeyed = Self::without_key(method, path, content_type, body)?;
        Ok(Self { key: Some(key), ..unkeyed })
    }

    /// Creates an action for a server that does not support keys.
    ///
    /// It is retried only if nothing can have been done: it never left, or the server rejected it unread (429). In
    /// any other case the client gives up at the first doubt with [`Why::NoKey`](crate::decision::GiveUpReason::NoKey): even a
    /// second PUT or DELETE may undo what somebody else did in between.
    pub fn without_key(
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<Self, ActionError> {
        if method.is_safe() {
            return Err(ActionError::ReadMethod(method));
        }
        let path = parse_path(path)?;
        let content_type = HeaderValue::from_str(content_type).map_err(|_| ActionError::ContentType)?;
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type)]);
        let (body, cause, hops) = (body.into(), Cause::Manual, Hops::default());
        Ok(Self { method, path, key: None, headers, body, cause, previous_attempts: 0, hops })
    }

    /// Adds a header field.
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Result<Self, ActionError> {
        if OURS.contains(&name) {
            return Err(ActionError::ReservedHeader(name));
        }
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Sets who starts the action. The default is a person.
    #[must_use]
    pub fn started_by(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    /// Sets how many attempts were made earlier, so numbering continues.
    #[must_use]
    pub fn with_previous_attempts(self, previous_attempts: u32) -> Self {
        Self { previous_attempts, ..self }
    }

    /// Sets the hops of an action that started elsewhere. This client is the next hop.
    // Spec: F1.
    #[must_use]
    pub fn with_hops(self, hops: Hops) -> Self {
        Self { hops, ..self }
    }

    /// Builds `Ichido-Attempt` for the attempt after `sent` others of this call.
    pub(crate) fn try_field(&self, sent: u32) -> String {
        let number = self.previous_attempts.saturating_add(sent).saturating_add(1);
        let cause = if sent == 0 { self.cause } else { Cause::Auto };
        format!("{number}; {}", cause.as_str())
    }

    /// Why a second attempt would be safe, if it is.
    pub(crate) const fn safety(&self) -> Safety {
        match self.key {
            Some(_) => Safety::Keyed,
            None => Safety::None,
        }
    }
}

/// Parses the path after the base URL. Anything else could be read as a host or as a query of the base.
pub(crate) fn parse_path(path: &str) -> Result<PathAndQuery, ActionError> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    let path = Some(path).filter(|path| path.starts_with('/') && path.bytes().all(is_plain));
    path.and_then(|path| PathAndQuery::try_from(path).ok()).ok_or(ActionError::Path)
}

ichido_core::debug_only! {
    /// Shows neither the body nor header values, and only the hash of the key.
    Action as action { method, path: action.path.path(), key, body_bytes: action.body.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(key: &str) -> Action {
        let key = IdempotencyKey::parse(key).unwrap();
        Action::new(Method::POST, "/orders", key, "application/json", "secret body").unwrap()
    }

    #[test]
    fn attempt_header_has_its_number_and_cause() {
        let fields = |action: &Action| [0, 1, 2].map(|sent| action.try_field(sent));
        assert_eq!(fields(&action("k")), ["1; manual", "2; auto", "3; auto"]);
        let pressed_again = action("k").with_previous_attempts(3);
        assert_eq!(fields(&pressed_again), ["4; manual", "5; auto", "6; auto"]);
        let by_program = action("k").started_by(Cause::Auto).with_previous_attempts(u32::MAX - 1);
        assert_eq!(by_program.try_field(0), "4294967295; auto");
        assert_eq!(by_program.try_field(7), "4294967295; auto");
    }

    #[test]
    fn caller_cannot_set_the_clients_own_headers() {
        for name in OURS {
            let value = HeaderValue::from_static("x");
            assert_eq!(
                action("k").with_header(name.clone(), value).err(),
                Some(ActionError::ReservedHeader(name))
            );
        }
        let name = HeaderName::from_static("ichido-identity");
        assert!(action("k").with_header(name, HeaderValue::from_static("ann")).is_ok());
    }

    #[test]
    fn invalid_actions_are_rejected() {
        let key = || IdempotencyKey::parse("k").unwrap();
        for path in ["", "orders", "//", "http://elsewhere.example/", "/a b", "/a#b", "/ä", "?a"] {
            let made = Action::new(Method::POST, path, key(), "text/plain", "");
            let is_path = path == "//";
            assert_eq!(made.is_ok(), is_path, "{path:?}");
        }
        let read = Action::new(Method::GET, "/", key(), "text/plain", "");
        assert_eq!(read.err(), Some(ActionError::ReadMethod(Method::GET)));
        let broken = Action::new(Method::POST, "/", key(), "text/plain\r\nX: y", "");
        assert_eq!(broken.err(), Some(ActionError::ContentType));
    }

    #[test]
    fn second_attempt_without_a_key_is_never_safe() {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let unkeyed = Action::without_key(method, "/orders/1", "application/json", "").unwrap();
            assert_eq!(unkeyed.safety(), Safety::None);
        }
        assert_eq!(action("k").safety(), Safety::Keyed);
        let read = Action::without_key(Method::GET, "/", "text/plain", "");
        assert_eq!(read.err(), Some(ActionError::ReadMethod(Method::GET)));
    }

    #[test]
    fn debug_output_hides_key_and_body() {
        let secret = action("k-secret");
        let shown = format!("{secret:?} {:?}", secret.key);
        assert!(!shown.contains("secret"), "{shown}");
    }
}
