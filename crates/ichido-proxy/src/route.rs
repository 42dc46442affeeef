//! Routes: which operation a request belongs to, by method and path.
//!
//! Guarantee: a path belongs to at most one operation, whatever the order of the operations: a literal segment
//! precedes a named one, from the left. Paths are compared byte for byte, without decoding. A path that a service may
//! resolve to another one belongs to no operation.

use std::cmp::Ordering;
use std::fmt;

/// The maximum number of segments of a pattern.
const MAX_SEGMENTS: usize = 64;

/// A path pattern with named segments, such as `/v1/orders/{id}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Segment>); // Invariant: 1..=MAX_SEGMENTS.

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(String),
    /// Any text that is not empty.
    Named(String),
}

/// Why a text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a path pattern; write it like /v1/orders/{{id}}, without a query")]
pub(crate) struct PatternError(String);

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Self, PatternError> {
        let wrong = || PatternError(text.to_owned());
        let segments = text.strip_prefix('/').ok_or_else(wrong)?.split('/');
        let segments: Vec<_> = segments.map(Segment::parse).collect::<Option<_>>().ok_or_else(wrong)?;
        if segments.len() <= MAX_SEGMENTS { Ok(Self(segments)) } else { Err(wrong()) }
    }

    /// Whether the pattern matches a request's path.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let Some(path) = path.strip_prefix('/').filter(|path| !has_dot_segment(path)) else { return false };
        let mut found = path.split('/');
        self.0.iter().all(|segment| found.next().is_some_and(|text| segment.matches(text)))
            && found.next().is_none()
    }

    /// Compares two patterns by precedence. Equal means that they match the same paths.
    pub(crate) fn precedes(&self, other: &Self) -> Ordering {
        let rank = |segment: &Segment| match segment {
            Segment::Literal(text) => (0, text.clone()),
            Segment::Named(_) => (1, String::new()),
        };
        self.0.iter().map(rank).cmp(other.0.iter().map(rank))
    }
}

/// Whether a path has a `.` or `..` segment after decoding.
///
/// A service that resolves it would run another operation than the one that the path matches.
fn has_dot_segment(path: &str) -> bool {
    let read = path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "\\");
    read.split(['/', '\\']).any(|segment| segment == "." || segment == "..")
}

impl Segment {
    fn parse(text: &str) -> Option<Self> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"{}?#\"<>\\^`|".contains(&byte);
        if let Some(name) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            let is_name = !name.is_empty() && name.bytes().all(is_word);
            return is_name.then(|| Self::Named(name.to_owned()));
        }
        text.bytes().all(is_plain).then(|| Self::Literal(text.to_owned()))
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Literal(literal) => literal == text,
            Self::Named(_) => !text.is_empty(),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| match segment {
            Segment::Literal(text) => write!(f, "/{text}"),
            Segment::Named(name) => write!(f, "/{{{name}}}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).expect("a pattern")
    }

    #[test]
    fn pattern_matches_whole_undecoded_paths() {
        let orders = pattern("/v1/orders/{id}");
        for (path, expected) in [
            ("/v1/orders/7", true),
            ("/v1/orders/a%2Fb", true),
            ("/v1/orders/", false),
            ("/v1/orders", false),
            ("/v1/orders/7/", false),
            ("/v1/%6Frders/7", false),
            ("v1/orders/7", false),
        ] {
            assert_eq!(orders.matches(path), expected, "{path}");
        }
        assert!(pattern("/").matches("/"));
        assert!(!pattern("/").matches("//"));
        assert!(pattern("/a/").matches("/a/"));
        assert_eq!(orders.to_string(), "/v1/orders/{id}");
    }

    #[test]
    fn path_with_dot_segments_matches_no_operation() {
        let orders = pattern("/v1/orders/{id}");
        for id in [".", "..", "%2e%2E", ".%2e", "7%2F..%2F8", "7%5C..", "..%2f"] {
            assert!(!orders.matches(&format!("/v1/orders/{id}")), "{id}");
        }
        for id in ["...", "a..b", ".hidden", "a%2Fb", "7%2F..8"] {
            assert!(orders.matches(&format!("/v1/orders/{id}")), "{id}");
        }
    }

    #[test]
    fn invalid_patterns_are_rejected() {
        for text in ["", "v1", "/a?b", "/{}", "/{a b}", "/a{b}", "/{*rest}", "/ä", "/a b", "/{a}{b}"] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
        assert!(Pattern::parse(&"/a".repeat(MAX_SEGMENTS + 1)).is_err());
    }

    #[test]
    fn literal_segment_precedes_a_named_one() {
        let mut patterns = ["/{a}/b", "/a/{b}", "/a/b", "/{a}/{b}"].map(pattern);
        patterns.sort_by(Pattern::precedes);
        assert_eq!(patterns.map(|pattern| pattern.to_string()), ["/a/b", "/a/{b}", "/{a}/b", "/{a}/{b}"]);
        assert_eq!(pattern("/a/{x}").precedes(&pattern("/a/{y}")), Ordering::Equal);
    }
}
