//! Formats errors for display: the first line, truncated, and nothing of the prompt.
// SPEC B8.

use std::error::Error;

use ichido_llm::models::{Prompt, Redactor};

/// Maximum number of characters shown of an error.
pub(crate) const MAX_WORDS_CHARS: usize = 300;

/// Formats a provider's message. Only the first line is shown: if a signature is refused, the following lines repeat
/// what was signed, including the session token.
pub(crate) fn of_provider(message: &str, prompt: &Prompt) -> String {
    // The secret key is not part of a request, so it is not part of a response.
    Redactor { prompt, api_key: None }.redacted(message.trim().lines().next().unwrap_or_default())
}

/// Formats an error and its sources, the outermost first.
pub(crate) fn of_chain(error: &(dyn Error + 'static)) -> String {
    let said: Vec<String> = chain(error).map(ToString::to_string).collect();
    said.join(": ").chars().take(MAX_WORDS_CHARS).collect()
}

/// Returns an error and its sources. An [`std::io::Error`] omits the error that it carries from its sources.
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
    fn error_chain_includes_sources() {
        let error = std::io::Error::other(std::io::Error::other("the handshake failed"));
        assert!(of_chain(&error).ends_with(": the handshake failed"), "{}", of_chain(&error));
    }
}
