//! What a person looks for, and how each database is asked for it.

use uuid::Uuid;

use super::readable;
use super::tokens::{Phrase, fold, tag_word};
use crate::canonical::canonical;
use crate::tags::Tags;

/// The fields in the order of their relevance, with the label of each in a `tsvector`. There are only four labels; the
/// text of the page has none.
const FIELDS: [(&str, char); 4] = [("title", 'A'), ("tags", 'B'), ("url", 'C'), ("summary", 'D')];
const LAST_FIELD: &str = "text";
/// How many fields there are. A match has the level of the last field that it needs, from 1.
pub(super) const LEVELS: usize = FIELDS.len() + 1;

/// Words and phrases that must all occur, and tags.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Query {
    phrases: Vec<Phrase>,
    tags: Vec<TagWord>,
}

/// The word of a tag to find.
#[derive(Debug, PartialEq, Eq)]
struct TagWord {
    word: String,
    /// It may be only the beginning of a tag.
    is_prefix: bool,
}

impl Query {
    /// Reads what a person typed: words (or their beginnings), addresses, `"a phrase"`, `#tag`, `#"a tag"`. `None` if
    /// nothing is left to look for.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let folded = fold(text);
        let (mut phrases, mut tags) = (Vec::new(), Vec::new());
        let mut rest = folded.trim_start();
        while !rest.is_empty() {
            let (is_tag, after) = rest.strip_prefix('#').map_or((false, rest), |after| (true, after));
            let quoted = after.strip_prefix('"');
            let part = quoted.unwrap_or(after);
            let is_end = |c: char| if quoted.is_some() { c == '"' } else { c.is_whitespace() };
            let (part, after) = part.split_once(is_end).unwrap_or((part, ""));
            rest = after.trim_start();
            if is_tag {
                // The last word is still being typed.
                let is_prefix = quoted.is_none() && rest.is_empty();
                tags.extend(Tags::tag(part).map(|tag| TagWord { word: tag_word(&tag), is_prefix }));
            } else if quoted.is_some() {
                phrases.extend(Phrase::parse(part, false));
            } else {
                phrases.extend(Phrase::parse(address(part).as_deref().unwrap_or(part), true));
            }
        }
        let query = Self { phrases, tags };
        Some(query).filter(|query| !query.phrases.is_empty() || !query.tags.is_empty())
    }

    /// Returns the words that the first fields must have, one query per level, and last the query that finds all.
    pub(super) fn levels(&self, person: Uuid, write: fn(&Self, Uuid, usize) -> String) -> [String; LEVELS] {
        std::array::from_fn(|at| write(self, person, at + 1))
    }

    /// Writes a level in the language of FTS5. Words have only letters and digits, so there is nothing to escape.
    pub(super) fn fts5(&self, person: Uuid, level: usize) -> String {
        let fields: Vec<&str> =
            FIELDS.iter().map(|(name, _)| *name).chain([LAST_FIELD]).take(level).collect();
        let quoted = |phrase: &Phrase| {
            let end = if phrase.is_prefix { " *" } else { "" };
            format!("{{{}}} : \"{}\"{end}", fields.join(" "), phrase.words.join(" "))
        };
        let mut all = vec![format!("person : \"{}\"", person.simple())];
        all.extend(self.phrases.iter().map(quoted));
        let tag = |TagWord { word, is_prefix }: &TagWord| {
            format!("tags : \"{word}\"{}", if *is_prefix { " *" } else { "" })
        };
        all.extend(self.tags_at(level).map(tag));
        all.join(" AND ")
    }

    /// Writes a level in the language of a `tsquery`.
    pub(super) fn tsquery(&self, person: Uuid, level: usize) -> String {
        let labels: String = FIELDS.iter().map(|(_, label)| *label).take(level).collect();
        // No label finds every field.
        let labels = if level < FIELDS.len() { labels } else { String::new() };
        self.as_tsquery(person, level, &labels, " <-> ")
    }

    /// Writes a `tsquery` that the index answers alone: it finds what has all words, whether or not they form the phrases.
    pub(super) fn all_words(&self, person: Uuid) -> String {
        self.as_tsquery(person, LEVELS, "", " & ")
    }

    fn as_tsquery(&self, person: Uuid, level: usize, labels: &str, within_phrase: &str) -> String {
        let quoted = |phrase: &Phrase| {
            let last = phrase.words.len() - 1;
            let words = phrase.words.iter().enumerate().map(|(at, word)| {
                let end = if phrase.is_prefix && at == last { "*" } else { "" };
                format!("'{word}':{end}{labels}")
            });
            // A colon needs something after it.
            let words = words.map(|word| word.trim_end_matches(':').to_owned());
            format!("({})", words.collect::<Vec<_>>().join(within_phrase))
        };
        let mut all = vec![format!("'{}'", person.simple())];
        all.extend(self.phrases.iter().map(quoted));
        let tag =
            |TagWord { word, is_prefix }: &TagWord| format!("'{word}'{}", if *is_prefix { ":*" } else { "" });
        all.extend(self.tags_at(level).map(tag));
        all.join(" & ")
    }

    /// A tag is a filter: it counts for finding, and for the order only if there is nothing else.
    fn tags_at(&self, level: usize) -> impl Iterator<Item = &TagWord> {
        let counts = level == LEVELS || self.phrases.is_empty();
        self.tags.iter().filter(move |_| counts)
    }
}

/// Returns a pasted address as it is indexed: without its scheme, `www.`, port, fragment and tracking parameters. `None`
/// if it is none.
fn address(text: &str) -> Option<String> {
    let has_scheme = text.starts_with("http://") || text.starts_with("https://");
    let given = if has_scheme { text.to_owned() } else { format!("http://{text}") };
    let shown = readable(&canonical(&given).ok()?);
    let host = shown.split(' ').next()?;
    // Without a scheme, only what begins with the name of a host is an address: `1/2` is none, although it could be read as one.
    let is_host = host == "localhost" || (host.contains('.') && text.starts_with(host));
    (has_scheme || is_host).then(|| shown.strip_prefix("www.").unwrap_or(&shown).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fts5(text: &str, level: usize) -> String {
        let written = Query::parse(text).unwrap().fts5(Uuid::nil(), level);
        written.strip_prefix(&format!("person : \"{}\" AND ", Uuid::nil().simple())).unwrap().to_owned()
    }

    #[test]
    fn words_phrases_and_tags_are_told_apart() {
        for (text, expected) in [
            ("Fox", "{title} : \"fox\" *"),
            ("lazy  dog", "{title} : \"lazy\" * AND {title} : \"dog\" *"),
            ("\"lazy dog\" cat", "{title} : \"lazy dog\" AND {title} : \"cat\" *"),
            ("\"lazy dog", "{title} : \"lazy dog\""),
            ("#Rust", "tags : \"#rust\" *"),
            ("#\"rust\"", "tags : \"#rust\""),
            ("#food #dr", "tags : \"#food\" AND tags : \"#dr\" *"),
            ("＃\"machine  learning\"", "tags : \"#machine_20_learning\""),
            ("#rust fox", "{title} : \"fox\" *"),
            ("東京", "{title} : \"東京\""),
            ("a\u{3000}b", "{title} : \"a\" * AND {title} : \"b\" *"),
        ] {
            assert_eq!(fts5(text, 1), expected, "{text}");
        }
        assert_eq!(fts5("#rust fox", 5), "{title tags url summary text} : \"fox\" * AND tags : \"#rust\"");
        for nothing in ["", "  ", "%", "#", "\"\"", "# \" ' *"] {
            assert_eq!(Query::parse(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_pasted_address_is_read_as_it_is_indexed() {
        for (text, expected) in [
            ("https://example.test/", "example test"),
            ("https://www.Example.test/A?utm_source=x&b=2#part", "example test a b 2"),
            ("www.example.test", "example test"),
            ("localhost:4811/articles/sourdough", "localhost articles sourdough"),
            ("127.0.0.1:4811/missing", "127 0 0 1 missing"),
            ("127.0.0.1", "127 0 0 1"),
            ("https://a.example/%E6%97%A5%E8%A8%98", "a example 日記"),
            ("https://exam", "exam"),
            ("1/2", "1 2"),
            ("john:3", "john 3"),
            ("and/or", "and or"),
            ("me@a.example", "me a example"),
        ] {
            let query = Query::parse(text).unwrap();
            assert_eq!(query.phrases[0].words.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn labels_name_the_fields_of_a_level() {
        let query = Query::parse("\"lazy dog\" fo #c++").unwrap();
        let person = Uuid::nil().simple();
        for (level, expected) in [
            (1, "('lazy':A <-> 'dog':A) & ('fo':*A)"),
            (2, "('lazy':AB <-> 'dog':AB) & ('fo':*AB)"),
            (4, "('lazy' <-> 'dog') & ('fo':*)"),
            (5, "('lazy' <-> 'dog') & ('fo':*) & '#c_2b__2b_':*"),
        ] {
            assert_eq!(query.tsquery(Uuid::nil(), level), format!("'{person}' & {expected}"));
        }
        let expected = format!("'{person}' & ('lazy' & 'dog') & ('fo':*) & '#c_2b__2b_':*");
        assert_eq!(query.all_words(Uuid::nil()), expected);
    }
}
