//! The credentials of a target, which no output shows.
//!
//! Guarantee: a credential that the target was given (a header such as `Authorization`, the header of another identity, a
//! token in a query) is a shell variable in every text that went through [`Secrets`]; so a transcript can be passed on,
//! and runs where the variables are set.

use crate::target::{Counter, Target};

/// Parts of the names of headers and parameters whose values are credentials.
const NAMES: [&str; 12] = [
    "auth",
    "cookie",
    "token",
    "secret",
    "passw",
    "session",
    "credential",
    "api-key",
    "api_key",
    "apikey",
    "access-key",
    "access_key",
];
/// Whole names of parameters whose values are credentials.
const PARAMETERS: [&str; 4] = ["key", "sig", "signature", "code"];
/// A shorter credential is hidden where it is sent, but not wherever its letters occur.
const MIN_BYTES: usize = 5;

/// The credentials of a target, the longest first.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Vec<Secret>);

#[derive(Clone)]
struct Secret {
    variable: String,
    value: String,
    /// What it is, for the person who has to set the variable.
    meaning: String,
}

// The value is left out.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.variable)
    }
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a [u8]),
    Variable(&'a str),
}

impl Secrets {
    /// Finds the credentials of a target.
    pub fn of(target: &Target) -> Self {
        let mut secrets = Self::default();
        let named = target.headers.iter().filter(|(name, _)| is_credential(name));
        let identities = target.second_identity.iter().chain(&target.fresh_credential);
        for (name, value) in named.chain(identities) {
            secrets.add(name, credential(name, value), format!("the credential of the header {name}"));
        }
        let counted = match &target.counter {
            Some(Counter::Get { path, .. }) => Some(path),
            Some(Counter::Command(_)) | None => None,
        };
        let others = counted.into_iter().chain(target.other_operation.as_ref().map(|(_, path)| path));
        for path in others.chain([&target.path]) {
            let query = path.split_once('?').map_or("", |(_, query)| query);
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            for (name, value) in pairs.filter(|(name, _)| is_credential(name) || PARAMETERS.contains(name)) {
                secrets.add(name, value, format!("the parameter {name}"));
            }
        }
        secrets.0.sort_by_key(|secret| std::cmp::Reverse(secret.value.len()));
        secrets
    }

    fn add(&mut self, name: &str, value: &str, meaning: String) {
        // What changes from rule to rule is not a credential.
        if value.is_empty() || value.contains('{') || self.0.iter().any(|secret| secret.value == value) {
            return;
        }
        let upper = |one: char| if one.is_ascii_alphanumeric() { one.to_ascii_uppercase() } else { '_' };
        let name = format!("PROBE_{}", name.chars().map(upper).collect::<String>());
        let mut names = std::iter::once(name.clone()).chain((2..).map(|number| format!("{name}_{number}")));
        let is_free = |name: &String| self.0.iter().all(|secret| secret.variable != *name);
        let variable = names.find(is_free).unwrap_or(name);
        self.0.push(Secret { variable, value: value.to_owned(), meaning });
    }

    /// Returns the text with the name of a variable for each credential.
    pub fn redacted(&self, text: &str) -> String {
        let pieces = self.pieces(text.as_bytes(), false);
        let shown = pieces.iter().map(|piece| match piece {
            Piece::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Piece::Variable(name) => format!("${name}"),
        });
        let mut shown: String = shown.collect();
        if shown.contains('…') {
            // It may have been cut off inside a credential.
            for Secret { variable, value, .. } in &self.0 {
                for start in (MIN_BYTES..value.len()).rev().filter_map(|end| value.get(..end)) {
                    shown = shown.replace(&format!("{start}…"), &format!("${variable}…"));
                }
            }
        }
        shown
    }

    /// Splits a text at its credentials; `is_sent` where even a short one is one.
    pub(crate) fn pieces<'a>(&'a self, mut text: &'a [u8], is_sent: bool) -> Vec<Piece<'a>> {
        let mut pieces = Vec::new();
        loop {
            let known = self.0.iter().filter(|secret| is_sent || MIN_BYTES <= secret.value.len());
            let found = known.filter_map(|secret| Some((find(text, secret.value.as_bytes())?, secret)));
            // The longest of those at one place is the first.
            let Some((at, secret)) = found.min_by_key(|(at, _)| *at) else { break };
            pieces.extend((0 < at).then_some(Piece::Text(&text[..at])));
            pieces.push(Piece::Variable(&secret.variable));
            text = &text[at + secret.value.len()..];
        }
        pieces.extend((!text.is_empty()).then_some(Piece::Text(text)));
        pieces
    }

    /// Returns the meaning of a variable.
    pub(crate) fn meaning(&self, variable: &str) -> &str {
        self.0.iter().find(|secret| secret.variable == variable).map_or("", |secret| &secret.meaning)
    }
}

/// Whether the values of such a header or parameter are credentials.
pub(crate) fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|part| name.contains(part))
}

/// Returns the part of a header's value that is secret: the scheme is not.
fn credential<'a>(name: &str, value: &'a str) -> &'a str {
    let has_scheme = name.to_ascii_lowercase().ends_with("authorization");
    value.split_once(' ').filter(|_| has_scheme).map_or(value, |(_, rest)| rest.trim_start())
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(headers: &[(&str, &str)], query: &str) -> Secrets {
        let mut secrets = Secrets::default();
        for (name, value) in headers.iter().filter(|(name, _)| is_credential(name)) {
            secrets.add(name, credential(name, value), String::new());
        }
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            secrets.add(name, value, String::new());
        }
        secrets.0.sort_by_key(|secret| std::cmp::Reverse(secret.value.len()));
        secrets
    }

    #[test]
    fn each_credential_is_a_variable_wherever_it_occurs() {
        let secrets = secrets(
            &[
                ("Authorization", "Bearer abcdef"),
                ("X-Api-Key", "abcdefgh"),
                ("X-User", "ann"),
                ("Cookie", "s=1"),
            ],
            "token=t0ken-1",
        );
        let text = "401 {\"key\":\"abcdefgh\",\"token\":\"abcdef\"} at ?token=t0ken-1, s=1, ann";
        let expected = "401 {\"key\":\"$PROBE_X_API_KEY\",\"token\":\"$PROBE_AUTHORIZATION\"} at \
                        ?token=$PROBE_TOKEN, s=1, ann";
        assert_eq!(secrets.redacted(text), expected);
        assert_eq!(
            secrets.pieces(b"s=1", true),
            [Piece::Variable("PROBE_COOKIE")],
            "a short one is hidden where it is sent"
        );
        assert_eq!(secrets.redacted("a t0ken…, an abc…"), "a $PROBE_TOKEN…, an abc…");
        assert!(!format!("{secrets:?}").contains("abcdef"));
    }

    #[test]
    fn two_values_of_one_name_have_two_variables() {
        let secrets = secrets(&[("Authorization", "Bearer first1"), ("authorization", "second")], "");
        assert_eq!(secrets.redacted("first1 second"), "$PROBE_AUTHORIZATION $PROBE_AUTHORIZATION_2");
    }
}
