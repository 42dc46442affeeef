//! The hops that a request passed, as one bounded header.
//!
//! Guarantee: a [`Hops`] has at most [`MAX_HOPS`] entries, and its field value has at most [`MAX_FIELD_BYTES`] bytes,
//! whatever was sent. A malformed list counts as no hops, never as an error: the header is informative and must not
//! stop a request.
//!
//! On the wire it is a structured-field list (RFC 9651). Each entry has the hop's name, the time it received the
//! request in milliseconds since the Unix epoch, and the id it gave the request.
//!
//! ```
//! use ichido_core::hops::{Hop, HopName, Hops, RequestId};
//! use ichido_core::time::Timestamp;
//!
//! let inbound = Hops::read([r#"bff;t=1800000000000;r="7f1c""#]);
//! let gateway = Hop {
//!     name: HopName::parse("gateway")?,
//!     at: Timestamp::from_millis(1_800_000_000_012),
//!     request_id: RequestId::parse("7f1c")?,
//! };
//! let outbound = inbound.and(gateway);
//! assert_eq!(outbound.to_string(), r#"bff;t=1800000000000;r="7f1c", gateway;t=1800000000012;r="7f1c""#);
//! # Ok::<(), ichido_core::hops::HopError>(())
//! ```
// SPEC F1.

use std::borrow::Cow;
use std::fmt;

use crate::time::Timestamp;

/// The header's name in our spelling.
pub const NAME: &str = "Ichido-Hops";

/// The maximum number of entries.
pub const MAX_HOPS: usize = 8;

/// The longest field value that is read, over all its lines.
///
/// Eight of the longest entries fit.
pub const MAX_FIELD_BYTES: usize = 2048;

/// The last time an entry can hold.
///
/// Structured-field integers have 15 digits, which end in the year 33658.
const MAX_MILLIS: i64 = 999_999_999_999_999;

/// One component that the request passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The component's name.
    pub name: HopName,
    /// When it received the request, by its own clock, in whole milliseconds.
    pub at: Timestamp,
    /// The id that it gave the request.
    pub request_id: RequestId,
}

/// The name of a hop, such as `bff`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopName(Cow<'static, str>); // Invariant: 1..=MAX_LEN of `a-z 0-9 _ - .`, a letter first.

/// The id of one request, as `x-request-id` carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(String); // Invariant: 1..=MAX_LEN of ASCII letters, digits and `-_.:/+=~@`.

/// Why a text is not a valid name or id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HopError {
    /// Not a valid hop name.
    #[error(
        "a hop's name has 1 to 32 characters: a lowercase letter, then lowercase letters, digits, `_`, `-` or `.`"
    )]
    Name,
    /// Not a valid request id.
    #[error("a request id has 1 to 128 characters: ASCII letters, digits and `-_.:/+=~@`")]
    RequestId,
}

impl HopName {
    /// The hop of a message that leaves a queue.
    ///
    /// Its request id is the message's id.
    pub const OUTBOX: Self = Self(Cow::Borrowed("outbox"));

    /// The maximum number of characters in a name.
    pub const MAX_LEN: usize = 32;

    /// Parses a name.
    ///
    /// It must be a structured-field token and valid in every header and log.
    pub fn parse(text: &str) -> Result<Self, HopError> {
        let is_letter = |byte: &u8| byte.is_ascii_lowercase();
        let is_allowed = |byte: &u8| is_letter(byte) || byte.is_ascii_digit() || b"_-.".contains(byte);
        let bytes = text.as_bytes();
        let fits = bytes.len() <= Self::MAX_LEN && bytes.first().is_some_and(is_letter);
        if fits && bytes.iter().all(is_allowed) {
            Ok(Self(Cow::Owned(text.to_owned())))
        } else {
            Err(HopError::Name)
        }
    }

    /// Returns the name's characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl RequestId {
    /// The maximum number of characters in an id.
    pub const MAX_LEN: usize = 128;

    /// Parses an id.
    ///
    /// It must not need quoting in a header, a log or a shell.
    pub fn parse(text: &str) -> Result<Self, HopError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/+=~@".contains(&byte);
        let fits = (1..=Self::MAX_LEN).contains(&text.len());
        if fits && text.bytes().all(is_allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(HopError::RequestId)
        }
    }

    /// Returns the id of a message, which is always a valid one.
    pub fn from_uuid(id: uuid::Uuid) -> Self {
        Self(id.to_string())
    }

    /// Returns the id's characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The hops of a request, the first hop first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hops(Vec<Hop>); // Invariant: at most MAX_HOPS.

impl Hops {
    /// Reads the header's lines in order. A malformed or oversized header gives no hops.
    ///
    /// An edge component ignores the header and begins with [`Hops::default`]: an untrusted caller's hops may be false.
    pub fn read<V: AsRef<[u8]>>(lines: impl IntoIterator<Item = V>) -> Self {
        let mut value = Vec::new();
        for line in lines {
            if !value.is_empty() {
                value.extend_from_slice(b", ");
            }
            value.extend_from_slice(line.as_ref());
            if MAX_FIELD_BYTES < value.len() {
                return Self::default();
            }
        }
        if value.is_empty() { Self::default() } else { parse(&value).unwrap_or_default() }
    }

    /// Appends one hop.
    ///
    /// A full header stays unchanged: how a request began says more than the latest turn of a loop.
    #[must_use]
    pub fn and(mut self, hop: Hop) -> Self {
        if self.0.len() < MAX_HOPS {
            // Mostly the last one, so there is no room for more.
            self.0.reserve_exact(1);
            self.0.push(hop);
        }
        self
    }

    /// Returns whether there are no hops.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether it is full: [`Hops::and`] leaves it unchanged.
    pub fn is_full(&self) -> bool {
        self.0.len() == MAX_HOPS
    }

    /// Returns the hops, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &Hop> {
        self.0.iter()
    }
}

/// Returns the header's value.
impl fmt::Display for Hops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Hop { name, at, request_id }) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let millis = at.as_millis().clamp(0, MAX_MILLIS);
            write!(f, "{comma}{};t={millis};r=\"{}\"", name.0, request_id.0)?;
        }
        Ok(())
    }
}

fn parse(value: &[u8]) -> Option<Hops> {
    let list: sfv::List = sfv::Parser::new(value).parse().ok()?;
    if MAX_HOPS < list.len() {
        return None;
    }
    list.iter().map(hop).collect::<Option<Vec<Hop>>>().map(Hops)
}

fn hop(entry: &sfv::ListEntry) -> Option<Hop> {
    let sfv::ListEntry::Item(item) = entry else { return None };
    let sfv::BareItem::Token(name) = &item.bare_item else { return None };
    let (Some(sfv::BareItem::Integer(millis)), Some(sfv::BareItem::String(id))) =
        (item.params.get("t"), item.params.get("r"))
    else {
        return None;
    };
    let millis = i64::from(*millis);
    Some(Hop {
        name: HopName::parse(name.as_str()).ok()?,
        at: (0..=MAX_MILLIS).contains(&millis).then(|| Timestamp::from_millis(millis))?,
        request_id: RequestId::parse(id.as_str()).ok()?,
    })
}

#[cfg(test)]
mod tests;
