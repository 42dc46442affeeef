//! The filter box: `queue:orders state:dead code:BROKER_5XX`, and an id or a key by itself.
//!
//! Guarantee: a filter that is read and written again is the same, so the address of a page is the filter. A name that is not known is an
//! error, and never ignored: a search must not show more than was asked for.

use form_urlencoded::Serializer;
use ichido_store::message::IdPrefix;

/// The names of filters, and the parameter of the API that each is.
const FIELDS: [(&str, &str); 10] = [
    ("queue", "queue"),
    ("state", "state"),
    ("code", "code"),
    ("key", "key"),
    ("identity", "identity"),
    ("id", "id"),
    ("trace", "trace_id"),
    ("receipt", "receipt"),
    ("since", "created_from"),
    ("before", "created_before"),
];
/// Begins the name of a filter on a member of the request, such as `payload./symbol:USDJPY`.
const PAYLOAD: &str = "payload.";

/// The names that a filter may have, for people.
pub(super) const NAMES: &str =
    "queue, state, code, key, identity, id, trace, receipt, since, before, payload./…";

/// A parsed filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageFilterText {
    /// Name and value, in order.
    terms: Vec<(String, String)>,
    /// An id, the first digits of one, a key, or a receipt.
    bare: Option<String>,
}

/// Why a text is not a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FilterError {
    UnknownName(String),
    Repeated(String),
    TwoBare,
}

impl MessageFilterText {
    /// Parses a text. White space separates terms; a value with spaces has double quotes.
    pub(super) fn parse(text: &str) -> Result<Self, FilterError> {
        let mut filter = Self::default();
        for word in words(text) {
            let is_name = |name: &str| !name.is_empty() && name.bytes().all(|mark| mark.is_ascii_lowercase());
            // A key may be an address.
            let named = word.split_once(':').filter(|(name, value)| {
                name.starts_with(PAYLOAD) || (is_name(name) && !value.starts_with("//"))
            });
            match named {
                Some((name, value)) => filter.add(name, value)?,
                None if filter.bare.is_some() => return Err(FilterError::TwoBare),
                None => filter.bare = Some(word),
            }
        }
        Ok(filter)
    }

    fn add(&mut self, name: &str, value: &str) -> Result<(), FilterError> {
        let is_pointer = name.strip_prefix(PAYLOAD).is_some_and(|pointer| pointer.starts_with('/'));
        if !is_pointer && !FIELDS.iter().any(|(known, _)| *known == name) {
            return Err(FilterError::UnknownName(name.to_owned()));
        }
        let is_same = |known: &str| known == name || (is_pointer && known.starts_with(PAYLOAD));
        if self.terms.iter().any(|(known, _)| is_same(known)) {
            return Err(FilterError::Repeated(name.to_owned()));
        }
        self.terms.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Returns the value of a term.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.terms.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns this filter with another value of one term, or without it.
    pub(super) fn with(&self, name: &str, value: Option<&str>) -> Self {
        let mut other = self.clone();
        other.terms.retain(|(known, _)| known != name);
        other.terms.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        other
    }

    /// Returns the idempotency key that it may be about.
    pub(super) fn key(&self) -> Option<&str> {
        self.get("key").or(self.bare.as_deref())
    }

    /// Whether it selects everything.
    pub(super) fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.bare.is_none()
    }

    /// Returns the queries of the API that it means, of which the first with a result counts.
    pub(super) fn queries(&self) -> Vec<String> {
        let Some(bare) = &self.bare else { return vec![self.query(None)] };
        let by_id = IdPrefix::parse(bare).map(|_| self.query(Some(("id", bare))));
        // A receipt last, which no index finds.
        by_id.into_iter().chain(["key", "receipt"].map(|name| self.query(Some((name, bare))))).collect()
    }

    fn query(&self, bare: Option<(&str, &str)>) -> String {
        let mut query = Serializer::new(String::new());
        for (name, value) in &self.terms {
            if let Some(pointer) = name.strip_prefix(PAYLOAD) {
                query.append_pair("field", pointer).append_pair("value", value);
            } else {
                let parameter = FIELDS.iter().find(|(known, _)| known == name);
                query.append_pair(parameter.map_or("", |(_, parameter)| parameter), value);
            }
        }
        if let Some((name, value)) = bare {
            query.append_pair(name, value);
        }
        query.finish()
    }
}

impl std::fmt::Display for MessageFilterText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = self.terms.iter().map(|(name, value)| format!("{name}:{}", quoted(value)));
        let words: Vec<String> = named.chain(self.bare.as_deref().map(quoted)).collect();
        f.write_str(&words.join(" "))
    }
}

/// Returns a value as it is written in a filter.
pub(super) fn quoted(value: &str) -> String {
    let needs_quotes =
        value.is_empty() || value.contains(|mark: char| mark.is_whitespace() || matches!(mark, '"' | '\\'));
    if needs_quotes {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        value.to_owned()
    }
}

/// Splits a text at white space outside of quotes. A backslash in quotes takes the next character as it is.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut has_word, mut in_quotes) = (Vec::new(), String::new(), false, false);
    let mut marks = text.chars();
    while let Some(mark) = marks.next() {
        match mark {
            '"' => (in_quotes, has_word) = (!in_quotes, true),
            '\\' if in_quotes => word.extend(marks.next()),
            mark if mark.is_whitespace() && !in_quotes => {
                if has_word {
                    words.push(std::mem::take(&mut word));
                }
                has_word = false;
            }
            mark => {
                word.push(mark);
                has_word = true;
            }
        }
    }
    words.extend(has_word.then_some(word));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_means_a_query_and_reads_back() {
        let table: &[(&str, &[&str])] = &[
            ("", &[""]),
            ("queue:orders state:dead code:BROKER_5XX", &["queue=orders&state=dead&code=BROKER_5XX"]),
            ("payload./symbol:USDJPY", &["field=%2Fsymbol&value=USDJPY"]),
            ("key:\"a b\"", &["key=a+b"]),
            ("01995b1c", &["id=01995b1c", "key=01995b1c", "receipt=01995b1c"]),
            ("queue:orders order-1", &["queue=orders&key=order-1", "queue=orders&receipt=order-1"]),
            ("receipt:r-7", &["receipt=r-7"]),
            ("order:1:2 state:sent", &[]),
            ("https://shop/1", &["key=https%3A%2F%2Fshop%2F1", "receipt=https%3A%2F%2Fshop%2F1"]),
            ("key:x&state=dead", &["key=x%26state%3Ddead"]),
        ];
        for (text, queries) in table {
            let Ok(filter) = MessageFilterText::parse(text) else {
                assert!(queries.is_empty(), "{text}");
                continue;
            };
            assert_eq!(filter.queries(), *queries, "{text}");
            assert_eq!(MessageFilterText::parse(&filter.to_string()).as_ref(), Ok(&filter), "{text}");
        }
        for value in ["", "a b", "a\"b", "a\\", "é"] {
            let filter = MessageFilterText::default().with("identity", Some(value));
            assert_eq!(MessageFilterText::parse(&filter.to_string()).as_ref(), Ok(&filter), "{value:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        use FilterError::{Repeated, TwoBare, UnknownName};
        let error = |text: &str| MessageFilterText::parse(text).expect_err("an error");
        assert_eq!(error("stat:dead"), UnknownName("stat".to_owned()));
        assert_eq!(error("payload.symbol:x"), UnknownName("payload.symbol".to_owned()));
        assert_eq!(error("state:dead state:sent"), Repeated("state".to_owned()));
        assert_eq!(error("payload./a:1 payload./b:2"), Repeated("payload./b".to_owned()));
        assert_eq!(error("abc def"), TwoBare);
    }

    #[test]
    fn a_term_is_replaced_or_removed() {
        let filter = MessageFilterText::parse("queue:orders state:dead").expect("a filter");
        assert_eq!(filter.with("state", Some("sent")).to_string(), "queue:orders state:sent");
        assert_eq!(filter.with("state", None).to_string(), "queue:orders");
        assert_eq!((filter.get("state"), filter.get("code")), (Some("dead"), None));
    }
}
