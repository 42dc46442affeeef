//! The content of a valid request, for any API.

use serde_json::Value;

use crate::seen::AskedJson;

/// How many characters count as one token. Providers differ; tests only need longer texts to cost more.
const CHARS_PER_TOKEN: usize = 4;

/// The content of a request.
#[derive(Debug, Default)]
pub(crate) struct Ask {
    pub(crate) model: String,
    /// Everything the user says, in order.
    pub(crate) text: String,
    /// Everything else: by the system, and earlier by the model.
    pub(crate) chars_besides: usize,
    /// Maximum number of tokens of the answer.
    pub(crate) max_tokens: Option<u32>,
    /// Whether little reasoning was requested.
    pub(crate) is_low_effort: bool,
    pub(crate) asked_json: Option<AskedJson>,
    /// The tool that the model must use, whose input is then the answer.
    pub(crate) tool: Option<String>,
}

impl Ask {
    /// Adds a text of the user.
    pub(crate) fn add_user_text(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Sets the tool that the model must use, if any, so it answers by the schema of the tool's input.
    pub(crate) fn forced(&mut self, tool: Option<(String, Option<Value>)>, by: &str) {
        if let Some((name, schema)) = tool {
            self.asked_json = Some(AskedJson { by: by.to_owned(), schema });
            self.tool = Some(name);
        }
    }

    pub(crate) fn tokens_in(&self) -> u32 {
        tokens(self.text.chars().count() + self.chars_besides)
    }

    /// Returns the tokens that a provider reserves at the start.
    pub(crate) fn tokens_reserved(&self) -> u32 {
        self.tokens_in().saturating_add(self.max_tokens.unwrap_or_default())
    }

    /// Returns the first item that the user names: the word after the marker, where a word begins.
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

/// Returns how many tokens a text of this many characters counts as.
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
