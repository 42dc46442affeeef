//! Claims of a token, by their names or by their path through nested objects.

use ichido_core::json::JsonValue;

use crate::member::escape;

/// The maximum nesting of a claim; issuers nest two or three deep.
pub const MAX_CLAIM_DEPTH: usize = 8;

/// The path to a claim: `sub`, `actor.actor_id`, or `['tenant.id']` for a name with a dot.
///
/// A name with `://` is one name as written, because issuers use URIs to name their own claims.
///
/// ```
/// use ichido_boundary::ClaimPath;
/// use ichido_core::json::Document;
///
/// let claims = Document::parse(br#"{"actor": {"actor_id": "a-7"}, "actor.actor_id": "other"}"#, 1_024)?;
/// let path = ClaimPath::parse("actor.actor_id").ok_or("a path")?;
/// assert_eq!(path.find(claims.root()).and_then(|claim| claim.as_str()).as_deref(), Some("a-7"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimPath(Vec<String>); // Invariant: 1..=MAX_CLAIM_DEPTH names, none of them empty or with a `*`.

impl ClaimPath {
    /// Parses a path; `None` if the text names nothing, or everything.
    pub fn parse(text: &str) -> Option<Self> {
        let names = names(text)?;
        // A blank or a comma is a typo: no token has such a claim, so all callers would be equal.
        let is_slip = |letter: char| letter.is_whitespace() || letter.is_control() || letter == ',';
        let is_named = names.iter().all(|name| !name.contains(is_slip));
        (is_named && names.len() <= MAX_CLAIM_DEPTH).then_some(Self(names))
    }

    /// Returns the claim at the path; `None` if the token does not have it.
    pub fn find<'d, 'a>(&self, claims: JsonValue<'d, 'a>) -> Option<JsonValue<'d, 'a>> {
        self.0.iter().try_fold(claims, |value, name| value.get(name))
    }

    /// Returns the name of the claim itself, without the objects that contain it.
    pub fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// Returns the path as a JSON pointer, which no other path has.
    pub fn pointer(&self) -> String {
        self.0.iter().flat_map(|name| ["/".to_owned(), escape(name)]).collect()
    }
}

/// Writes it as in a file.
impl std::fmt::Display for ClaimPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plain = |name: &String| !name.contains(['.', '[']) || (self.0.len() == 1 && name.contains("://"));
        for (index, name) in self.0.iter().enumerate() {
            if !plain(name) {
                write!(f, "['{name}']")?;
            } else if index == 0 {
                f.write_str(name)?;
            } else {
                write!(f, ".{name}")?;
            }
        }
        Ok(())
    }
}

/// Returns the names of a path in order.
///
/// Returns `None` if one of them is missing or is a `*`.
pub(super) fn names(text: &str) -> Option<Vec<String>> {
    if text.contains("://") && !text.starts_with('[') {
        return is_name(text).then(|| vec![text.to_owned()]);
    }
    let mut names = Vec::new();
    let mut rest = text;
    loop {
        let (name, after) = match rest.strip_prefix('[') {
            Some(quoted) => bracketed(quoted)?,
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        names.push(Some(name).filter(|name| is_name(name))?.to_owned());
        rest = match after.strip_prefix('.') {
            Some(next) => next,
            None if after.is_empty() => return Some(names),
            None if after.starts_with('[') => after,
            None => return None,
        };
    }
}

/// Splits `'name']` or `"name"]` into the name and what follows it.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    match text.strip_prefix('\'') {
        Some(quoted) => quoted.split_once("']"),
        None => text.strip_prefix('"')?.split_once("\"]"),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn pointer(text: &str) -> String {
        ClaimPath::parse(text).unwrap_or_else(|| panic!("{text} is a path")).pointer()
    }

    #[test]
    fn a_path_has_one_meaning() {
        for (text, expected) in [
            ("sub", "/sub"),
            ("actor.actor_id", "/actor/actor_id"),
            ("['tenant.id']", "/tenant.id"),
            ("[\"tenant.id\"]", "/tenant.id"),
            ("actor['actor.id'].name", "/actor/actor.id/name"),
            ("https://example.com/tenant.id", "/https:~1~1example.com~1tenant.id"),
            ("['https://example.com/app'].tenant", "/https:~1~1example.com~1app/tenant"),
            ("a/b", "/a~1b"),
        ] {
            assert_eq!(pointer(text), expected, "{text}");
            let path = ClaimPath::parse(text).expect("a path");
            assert_eq!(ClaimPath::parse(&path.to_string()), Some(path), "{text}");
        }
        assert_eq!(ClaimPath::parse("a.b"), ClaimPath::parse("['a']['b']"));
        assert_ne!(ClaimPath::parse("a.b"), ClaimPath::parse("['a.b']"));
    }

    #[test]
    fn empty_or_wildcard_text_is_not_a_claim_path() {
        for text in ["", ".", "a.", ".a", "a..b", "*", "a.*", "[]", "['']", "['a'", "['a]", "[a]", "['a']b"] {
            assert_eq!(ClaimPath::parse(text), None, "{text}");
        }
        assert_eq!(ClaimPath::parse(&["a"; MAX_CLAIM_DEPTH + 1].join(".")), None, "too deep");
        assert!(ClaimPath::parse(&["a"; MAX_CLAIM_DEPTH].join(".")).is_some());
    }
}
