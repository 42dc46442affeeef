//! Keeps prompts and keys out of error messages.

use crate::models::Prompt;

/// The shortest piece of a prompt that counts as leaked, in bytes.
const PIECE_BYTES: usize = 12;
/// The same for a key, of which providers tend to show the ends.
const PIECE_BYTES_OF_KEY: usize = 6;
/// Maximum length of a provider's message that is shown.
const MAX_SHOWN_BYTES: usize = 300;

/// Redacts a call's prompt and key from a provider's message.
// SPEC B8.
pub struct Redactor<'a> {
    /// The prompt of the call.
    pub prompt: &'a Prompt,
    /// The key of the call.
    pub api_key: Option<&'a str>,
}

impl Redactor<'_> {
    /// Returns a provider's message, truncated; or a note that it repeats the prompt or the key.
    pub fn redacted(&self, words: &str) -> String {
        let cut = &words[..words.floor_char_boundary(MAX_SHOWN_BYTES)];
        // A line break would make one log entry look like two.
        let line: String = cut.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        if self.is_leaked_in(cut) { "(not shown: it repeats the prompt or the key)".to_owned() } else { line }
    }

    pub(super) fn is_leaked_in(&self, words: &str) -> bool {
        let texts = [Some(self.prompt.user.as_str()), self.prompt.system.as_deref()];
        let prompt = texts.into_iter().flatten().any(|text| {
            pieces(words, PIECE_BYTES).any(|piece| text.contains(piece)) || is_all_of(text, words)
        });
        prompt
            || self
                .api_key
                .is_some_and(|key| pieces(key, PIECE_BYTES_OF_KEY).any(|piece| words.contains(piece)))
    }
}

/// Returns whether a text too short to be cut into pieces occurs in other words.
fn is_all_of(text: &str, words: &str) -> bool {
    const WORTH_HIDING_BYTES: usize = 4;
    let text = text.trim();
    (WORTH_HIDING_BYTES..2 * PIECE_BYTES).contains(&text.len()) && words.contains(text)
}

/// Returns all pieces of a text with at least this many bytes, at every start.
fn pieces(text: &str, bytes: usize) -> impl Iterator<Item = &str> {
    text.char_indices().filter_map(move |(start, _)| {
        let rest = &text[start..];
        (bytes <= rest.len()).then(|| &rest[..rest.ceil_char_boundary(bytes)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_text_repeating_prompt_or_key_is_redacted() {
        let prompt = Prompt {
            system: Some("You judge what people wrote about their illness.".to_owned()),
            user: "Anna writes: my knee hurts since Tuesday, and nobody knows why.".to_owned(),
            max_tokens: 9,
            form: None,
        };
        let redactor = Redactor { prompt: &prompt, api_key: Some("sk-proj-0123456789abcdef") };
        for words in [
            "Invalid content: 'my knee hurts since Tuesday, and'",
            "You judge what people wrote about their illness. is no system",
            "Incorrect API key provided: sk-proj-01*****cdef",
        ] {
            assert!(redactor.redacted(words).contains("not shown"), "{words}");
        }
        for words in ["The model does not exist", "max_tokens: 99999 > 8192", "", "ün\u{0}gültig"] {
            assert_eq!(redactor.redacted(words), words.replace('\u{0}', " "), "{words}");
        }
        let short = Prompt { system: None, user: " Anna ".to_owned(), ..prompt.clone() };
        let redactor = Redactor { prompt: &short, api_key: None };
        assert!(redactor.redacted("cannot parse Anna").contains("not shown"));
        assert_eq!(redactor.redacted(&"é".repeat(400)).chars().count(), 150, "cut where a letter ends");
    }
}
