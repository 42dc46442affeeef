//! Which attempt of its client a request is, and who started it.
//!
//! The header is `Ichido-Attempt`, such as `2; auto`.
//!
//! Guarantee: whatever a client sends maps to one of three values, so no client can make a metric grow without bound.
// SPEC A14.

use crate::words;

/// The header's name.
pub const FIELD: &str = "ichido-attempt";

words! {
    /// What a server counts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ClientAttempt {
        /// The first attempt, or a client that does not say.
        First = "first",
        /// A later attempt that the client made automatically.
        Auto = "auto",
        /// A later attempt that a person asked for.
        Manual = "manual",
    }
}

impl ClientAttempt {
    /// Parses the header's value. A missing or unreadable value counts as the first attempt.
    pub fn read(value: Option<&[u8]>) -> Self {
        let value = value.and_then(|value| std::str::from_utf8(value).ok()?.split_once(';'));
        match value.map(|(number, cause)| (number.trim(), cause.trim())) {
            None | Some(("1", _)) => Self::First,
            Some((_, "auto")) => Self::Auto,
            Some((_, "manual")) => Self::Manual,
            Some(_) => Self::First,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempt_is_identified_by_number_and_starter() {
        for (value, known) in [
            (None, ClientAttempt::First),
            (Some("1; manual"), ClientAttempt::First),
            (Some("2; auto"), ClientAttempt::Auto),
            (Some("4; manual"), ClientAttempt::Manual),
            (Some("4;manual"), ClientAttempt::Manual),
            (Some("nonsense"), ClientAttempt::First),
            (Some("2; somebody"), ClientAttempt::First),
        ] {
            assert_eq!(ClientAttempt::read(value.map(str::as_bytes)), known, "{value:?}");
        }
        assert_eq!(ClientAttempt::read(Some(&[0xff, b';'])), ClientAttempt::First);
    }
}
