//! What is shown of an error: the first line, cut, and nothing of the prompt (SPEC B8).

use std::error::Error;

use ichido::llm::Prompt;

/// The most characters that are shown of anybody's words.
pub(crate) const WORDS_CHARS_MAX: usize = 300;
/// How many characters in a row must be the prompt's for words to count as repeating it.
const ECHO_CHARS: usize = 16;

/// A provider's words. Only the first line: where a signature is refused, the lines after it repeat what was signed, with its session token.
pub(crate) fn of_provider(message: &str, prompt: &Prompt) -> String {
    let line: String =
        message.trim().lines().next().unwrap_or_default().chars().take(WORDS_CHARS_MAX).collect();
    if repeats(&line, prompt) {
        return "its message repeats the prompt, and is not shown".to_owned();
    }
    line
}

fn repeats(line: &str, prompt: &Prompt) -> bool {
    let starts: Vec<usize> = line.char_indices().map(|(at, _)| at).chain([line.len()]).collect();
    let said = [Some(prompt.user.as_str()), prompt.system.as_deref()];
    starts.windows(ECHO_CHARS + 1).any(|window| {
        let piece = &line[window[0]..window[ECHO_CHARS]];
        said.iter().flatten().any(|text| text.contains(piece))
    })
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

    fn prompt(user: &str) -> Prompt {
        Prompt {
            system: Some("You judge articles.".to_owned()),
            user: user.to_owned(),
            max_tokens: 1,
            form: None,
        }
    }

    #[test]
    fn only_the_first_line_is_shown_and_not_all_of_it() {
        let signed = "The request signature we calculated does not match.\n\nx-amz-security-token:SECRET";
        assert_eq!(of_provider(signed, &prompt("x")), "The request signature we calculated does not match.");
        assert_eq!(of_provider(&"é".repeat(1_000), &prompt("x")).chars().count(), WORDS_CHARS_MAX);
    }

    #[test]
    fn words_that_repeat_the_prompt_are_not_shown() {
        let prompt = prompt("Is the merger of Alpha and Beta good news for me?");
        let kept = "The provided model identifier is invalid.";
        assert_eq!(of_provider(kept, &prompt), kept);
        for echo in [
            "malformed input: 'merger of Alpha and Beta'",
            "blocked: You judge articles.",
            "«of Alpha and Beta»",
        ] {
            let shown = of_provider(echo, &prompt);
            assert!(!shown.contains("Alpha") && !shown.contains("judge"), "{shown}");
        }
    }

    #[test]
    fn a_carried_error_is_part_of_the_chain() {
        let error = std::io::Error::other(std::io::Error::other("the handshake failed"));
        assert!(of_chain(&error).ends_with(": the handshake failed"), "{}", of_chain(&error));
    }
}
