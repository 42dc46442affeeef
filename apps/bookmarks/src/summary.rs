//! The built-in summary: sentences from the page itself, the same for the same text.

use crate::reading::{shortened, words};
use crate::settings::limits::MAX_SUMMARY_CHARS;

/// A shorter sentence says little: a heading, a date, a button.
const MIN_CHARS: usize = 30;
/// The same for scripts without blanks between words.
const MIN_CHARS_DENSE: usize = 12;

/// Returns the first meaningful sentences that fit; `None` for an empty text.
///
/// A sentence counts if it ends like one and is not short. If there is none, the beginning of the text is used.
pub(crate) fn extract(text: &str) -> Option<String> {
    let mut summary = String::new();
    for sentence in text.lines().flat_map(sentences).filter(|sentence| says_something(sentence)) {
        // A sentence that occurs twice on a page is used once.
        if summary.contains(sentence) {
            continue;
        }
        let gap = if summary.is_empty() || is_dense(sentence) { "" } else { " " };
        if MAX_SUMMARY_CHARS < summary.chars().count() + gap.len() + sentence.chars().count() {
            break;
        }
        summary.push_str(gap);
        summary.push_str(sentence);
    }
    if summary.is_empty() { fitting(text) } else { Some(summary) }
}

/// Formats a text as a summary: on one line, truncated if too long; `None` if nothing is left.
pub(crate) fn fitting(text: &str) -> Option<String> {
    Some(shortened(&words(text), MAX_SUMMARY_CHARS)).filter(|text| !text.is_empty())
}

/// Splits a line into sentences: up to an end mark, and in scripts with blanks only before a blank, so `3.5` stays
/// whole.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if rest.is_empty() {
            return None;
        }
        let mut chars = rest.char_indices().peekable();
        let mut end = rest.len();
        while let Some((at, c)) = chars.next() {
            let is_end = match c {
                '。' | '！' | '？' => true,
                '.' | '!' | '?' => chars.peek().is_none_or(|(_, next)| next.is_whitespace()),
                _ => false,
            };
            if is_end {
                end = at + c.len_utf8();
                break;
            }
        }
        let (sentence, after) = rest.split_at(end);
        rest = after;
        Some(sentence)
    })
}

fn says_something(sentence: &str) -> bool {
    let least = if is_dense(sentence) { MIN_CHARS_DENSE } else { MIN_CHARS };
    least <= sentence.chars().count() && sentence.ends_with(['.', '!', '?', '。', '！', '？'])
}

/// Returns whether the script has no blanks between words.
fn is_dense(sentence: &str) -> bool {
    let (mut all, mut dense) = (0_usize, 0_usize);
    for c in sentence.chars().filter(|c| c.is_alphabetic()) {
        all += 1;
        dense += usize::from(('\u{3040}'..='\u{9fff}').contains(&c));
    }
    all < dense * 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_repeated_sentence_is_used_once() {
        let text = "The same sentence occurs on this page twice. The same sentence occurs on this page twice. And then there is another one.";
        let said = "The same sentence occurs on this page twice. And then there is another one.";
        assert_eq!(extract(text).as_deref(), Some(said));
    }

    #[test]
    fn the_first_meaningful_sentences_are_used() {
        let text = "Home\nBy Ann.\nThe fox of version 3.5 jumped over the lazy dog. Did the dog mind? It slept on in the sun, and did not. \nMore";
        let expected =
            "The fox of version 3.5 jumped over the lazy dog. It slept on in the sun, and did not.";
        assert_eq!(extract(text).as_deref(), Some(expected));
    }

    #[test]
    fn japanese_sentences_end_with_their_own_marks() {
        let text = "ホーム\n吾輩は猫である。名前はまだ無いのである、と猫は言った。どこで生れたかとんと見当がつかぬ。";
        let expected = "名前はまだ無いのである、と猫は言った。どこで生れたかとんと見当がつかぬ。";
        assert_eq!(extract(text).as_deref(), Some(expected));
    }

    #[test]
    fn a_text_without_sentences_is_truncated() {
        assert_eq!(extract("only words"), Some("only words".to_owned()));
        assert_eq!(extract(" \n"), None);
        let long = extract(&"word ".repeat(200)).unwrap();
        assert!(long.chars().count() <= MAX_SUMMARY_CHARS && long.ends_with("word…"), "{long}");
    }

    proptest! {
        #[test]
        fn a_summary_is_never_too_long_and_always_the_same(text in any::<String>()) {
            let summary = extract(&text);
            prop_assert!(summary.as_ref().is_none_or(|summary| summary.chars().count() <= MAX_SUMMARY_CHARS));
            prop_assert_eq!(extract(&text), summary);
        }
    }
}
