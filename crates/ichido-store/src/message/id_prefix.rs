//! The first digits of a message's id, as people type them.

use uuid::Uuid;

/// The first digits of a message's id, with or without dashes.
///
/// ```
/// use ichido_store::message::IdPrefix;
/// use uuid::Uuid;
///
/// let prefix = IdPrefix::parse("01A1df2e-24").unwrap();
/// let id: Uuid = "01a1df2e-24dc-702a-8000-3798d20b2380".parse().unwrap();
/// assert!(prefix.first() <= id && id < prefix.end());
/// assert_eq!(IdPrefix::parse("01a"), None, "too short");
/// assert_eq!(IdPrefix::parse("order-17"), None, "no hexadecimal digits");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdPrefix {
    first: Uuid,
    end: Uuid,
}

impl IdPrefix {
    /// The minimum number of digits.
    pub const MIN_DIGITS: usize = 4;
    /// The maximum number of digits: those of a whole id.
    pub const MAX_DIGITS: usize = 32;

    /// Parses hexadecimal digits. Returns `None` for anything else, or for too few or too many digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|character| *character != '-').collect();
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || !(Self::MIN_DIGITS..=Self::MAX_DIGITS).contains(&digits.len()) {
            return None;
        }
        let first = u128::from_str_radix(&format!("{digits:0<32}"), 16).ok()?;
        let last = u128::from_str_radix(&format!("{digits:f<32}"), 16).ok()?;
        Some(Self { first: Uuid::from_u128(first), end: Uuid::from_u128(last.saturating_add(1)) })
    }

    /// Returns the first id with these digits.
    #[must_use]
    pub const fn first(self) -> Uuid {
        self.first
    }

    /// Returns the end of the ids with these digits: the first id after them.
    #[must_use]
    pub const fn end(self) -> Uuid {
        self.end
    }
}
