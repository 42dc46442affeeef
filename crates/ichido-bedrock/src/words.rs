//! What is shown of an error: the first line, cut, and nothing of the prompt (SPEC B8).

use std::error::Error;

use ichido_llm::models::{Prompt, Redactor};

/// The most characters that are shown of anybody's words.
pub(crate) const WORDS_CHARS_MAX: usize = 300;

/// A provider's words. Only the first line: where a signature is refused, the lines after it repeat what was signed, with its session token.
pub(crate) fn of_provider(message: &str, prompt: &Prompt) -> String {
    // The secret key is in no request, and so in no answer.
    Redactor { prompt, api_key: None }.shown(message.trim().lines().next().unwrap_or_default())
}

/// What an error and those below it say, the outermost first.
pub(crate) fn of_chain(error: &(dyn Error + 'static)) -> String {
    let said: Vec<String> = chain(error).map(ToString::to_string).collect();
    said.join(": ").chars().take(WORDS_CHARS_MAX).collect()
}

/// An error, and those below it. An [`std::io::Error`] leaves out of its sources the one that it carries.
pub(crate) fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| match error.downcast_ref::<std::io::Error>() {
        Some(io) => io.get_ref().map(|carried| carried as &(dyn Error + 'static)),
        None => error.source(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_line_is_shown() {
        let prompt = Prompt { system: None, user: "x".to_owned(), max_tokens: 1, form: None };
        let signed = "The request signature we calculated does not match.\n\nx-amz-security-token:SECRET";
        assert_eq!(of_provider(signed, &prompt), "The request signature we calculated does not match.");
    }

    #[test]
    fn a_carried_error_is_part_of_the_chain() {
        let error = std::io::Error::other(std::io::Error::other("the handshake failed"));
        assert!(of_chain(&error).ends_with(": the handshake failed"), "{}", of_chain(&error));
    }
}
