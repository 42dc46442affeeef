//! What must not be shown.

use crate::models::Prompt;

/// How much of what must not be shown is too much of it, in bytes: the shortest piece that is looked for.
const PIECE_BYTES: usize = 12;
/// The same of a key, of which providers like to show the ends.
const PIECE_BYTES_OF_KEY: usize = 6;
/// The most of a provider's words that are shown.
const SHOWN_BYTES_MAX: usize = 300;

/// What must not be shown of a call: the words of its prompt, and the key it was made with (SPEC B8).
pub struct Redactor<'a> {
    /// What was asked.
    pub prompt: &'a Prompt,
    /// The key.
    pub api_key: Option<&'a str>,
}

impl Redactor<'_> {
    /// A provider's words, cut; or, where they repeat what must not be shown, that they do.
    pub fn shown(&self, words: &str) -> String {
        let cut = &words[..words.floor_char_boundary(SHOWN_BYTES_MAX)];
        // A line break would make one entry of a log look like two.
        let http_model: String =
            cut.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        if self.is_in(cut) {
            "(its words repeat the prompt or the key, and are not shown)".to_owned()
        } else {
            http_model
        }
    }

    pub(super) fn is_in(&self, words: &str) -> bool {
        let said = [Some(self.prompt.user.as_str()), self.prompt.system.as_deref()];
        let prompt = said.into_iter().flatten().any(|text| {
            pieces(words, PIECE_BYTES).any(|piece| text.contains(piece)) || is_all_of(text, words)
        });
        prompt
            || self
                .api_key
                .is_some_and(|key| pieces(key, PIECE_BYTES_OF_KEY).any(|piece| words.contains(piece)))
    }
}

/// Whether a text too short to be cut into pieces stands in other words.
fn is_all_of(text: &str, words: &str) -> bool {
    const WORTH_HIDING_BYTES: usize = 4;
    let text = text.trim();
    (WORTH_HIDING_BYTES..2 * PIECE_BYTES).contains(&text.len()) && words.contains(text)
}

/// All pieces of a text of at least so many bytes, wherever they begin.
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
    fn words_that_repeat_the_prompt_or_the_key_are_not_shown() {
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
            assert!(redactor.shown(words).contains("not shown"), "{words}");
        }
        for words in ["The model does not exist", "max_tokens: 99999 > 8192", "", "ün\u{0}gültig"] {
            assert_eq!(redactor.shown(words), words.replace('\u{0}', " "), "{words}");
        }
        let short = Prompt { system: None, user: " Anna ".to_owned(), ..prompt.clone() };
        let redactor = Redactor { prompt: &short, api_key: None };
        assert!(redactor.shown("cannot parse Anna").contains("not shown"));
        assert_eq!(redactor.shown(&"é".repeat(400)).chars().count(), 150, "cut where a letter ends");
    }
}
