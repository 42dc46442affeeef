//! What a well-formed request asks for, whatever API it speaks.

use serde_json::Value;

use crate::seen::AskedJson;

/// How many characters are counted as one token. Providers differ; tests need only that longer texts cost more.
const CHARS_PER_TOKEN: usize = 4;

/// What is asked for.
#[derive(Debug, Default)]
pub(crate) struct Ask {
    pub(crate) model: String,
    /// All that the user says, in order.
    pub(crate) text: String,
    /// What else is said: by the system, by the model before.
    pub(crate) chars_besides: usize,
    /// How many tokens the answer may have.
    pub(crate) tokens_max: Option<u32>,
    pub(crate) asked_json: Option<AskedJson>,
    /// The tool that the model has to use, by whose input it answers then.
    pub(crate) tool: Option<String>,
}

impl Ask {
    /// The user says this too.
    pub(crate) fn said(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// The model has to use this tool, if any, and so answers by the schema of its input.
    pub(crate) fn forced(&mut self, tool: Option<(String, Option<Value>)>, by: &str) {
        if let Some((name, schema)) = tool {
            self.asked_json = Some(AskedJson { by: by.to_owned(), schema });
            self.tool = Some(name);
        }
    }

    pub(crate) fn tokens_in(&self) -> u32 {
        tokens(self.text.chars().count() + self.chars_besides)
    }

    /// What a provider sets aside for it at the start.
    pub(crate) fn tokens_reserved(&self) -> u32 {
        self.tokens_in().saturating_add(self.tokens_max.unwrap_or_default())
    }

    /// The word of the first item that the user names: what follows the marker, where a word begins.
    pub(crate) fn item(&self, marker: &str) -> String {
        let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let word_at = |(start, _): (usize, &str)| {
            let begins = !self.text[..start].ends_with(is_of_word);
            let rest = &self.text[start + marker.len()..];
            let word = &rest[..rest.find(|letter| !is_of_word(letter)).unwrap_or(rest.len())];
            (begins && !word.is_empty()).then(|| word.to_owned())
        };
        self.text.match_indices(marker).find_map(word_at).unwrap_or_default()
    }
}

/// How many tokens a text of so many characters is counted as.
pub(crate) fn tokens(chars: usize) -> u32 {
    u32::try_from(chars.div_ceil(CHARS_PER_TOKEN)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> String {
        Ask { text: text.to_owned(), ..Ask::default() }.item("item-")
    }

    #[test]
    fn an_item_is_the_first_word_after_the_marker() {
        assert_eq!(item("Judge item-007, not item-8."), "007");
        assert_eq!(item("item-a_b-c"), "a_b");
        assert_eq!(item("a lineitem-x and an item- y and then item-é"), "é");
        assert_eq!(item("nothing"), "");
    }
}
