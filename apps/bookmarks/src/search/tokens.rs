//! Words as they are indexed and searched: folded, and split where the script has no blanks.
//!
//! Both databases get these words, so both find the same, without an extension. A word is folded by width, case and
//! compatibility (NFKC). A run of Chinese or Japanese characters becomes its pairs of neighbours, so any part of it with
//! two characters is found: 東京都 becomes 東京, 京都, 都. The last character alone lets a single one be found by prefix.

use unicode_normalization::UnicodeNormalization as _;

use crate::settings::limits::MAX_WORD_CHARS;

/// Folds a text: two spellings that people take for the same become equal.
pub(crate) fn fold(text: &str) -> String {
    let folded = text.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    folded.nfkc().collect()
}

/// Returns the words of a text that is stored.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    runs(text).into_iter().flat_map(Run::words)
}

/// The words of a phrase to find, in this order and next to each other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Phrase {
    pub(super) words: Vec<String>,
    /// The last one may be only the beginning of a word.
    pub(super) is_prefix: bool,
}

impl Phrase {
    /// Returns `None` if a text has neither letters nor digits.
    pub(super) fn parse(text: &str, is_prefix: bool) -> Option<Self> {
        let mut runs = runs(text);
        let last = runs.pop()?;
        let mut words: Vec<String> = runs.into_iter().flat_map(Run::words).collect();
        let is_pair = last.is_dense && 1 < last.text.chars().count();
        // A single character is the first of a pair, or the last of its run.
        let is_prefix = !is_pair && (is_prefix || last.is_dense);
        words.extend(last.words());
        if is_pair {
            words.pop();
        }
        Some(Self { words, is_prefix })
    }
}

/// Returns the word that stands for a whole tag. A blank or sign is written as its number, so no other word is equal.
pub(super) fn tag_word(tag: &str) -> String {
    let letters = tag.chars().map(|c| match c {
        c if c.is_alphanumeric() => c.to_string(),
        c => format!("_{:x}_", u32::from(c)),
    });
    format!("#{}", letters.collect::<String>())
}

/// Letters and digits without a gap, all of one kind of script.
struct Run {
    text: String,
    /// Whether the script has no blanks between words.
    is_dense: bool,
}

impl Run {
    fn words(self) -> Vec<String> {
        if !self.is_dense {
            return vec![self.text.chars().take(MAX_WORD_CHARS).collect()];
        }
        let chars: Vec<char> = self.text.chars().collect();
        (0..chars.len()).map(|at| chars[at..].iter().take(2).collect()).collect()
    }
}

fn runs(text: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut is_inside = false;
    for c in fold(text).chars() {
        let is_dense = is_dense(c);
        match runs.last_mut().filter(|run| is_inside && run.is_dense == is_dense) {
            _ if !c.is_alphanumeric() => is_inside = false,
            Some(run) => run.text.push(c),
            None => {
                runs.push(Run { text: c.to_string(), is_dense });
                is_inside = true;
            }
        }
    }
    runs
}

/// Kana and Han characters.
fn is_dense(c: char) -> bool {
    matches!(c, '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn indexed(text: &str) -> String {
        words(text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_are_folded_by_width_case_and_compatibility() {
        for (text, expected) in [
            ("Foxes & DOGS", "foxes dogs"),
            ("ＱＵＥＵＥ", "queue"),
            ("ｸﾗｲｱﾝﾄ", "クラ ライ イア アン ント ト"),
            ("ガ", "ガ"),
            ("Straße ΟΔΟΣ οδος", "strasse οδοσ οδοσ"),
            ("ﬁnance ①", "finance 1"),
            ("cafe\u{301}", "café"),
            ("a_b-c.d", "a b c d"),
            ("", ""),
            ("%_\\'\"", ""),
        ] {
            assert_eq!(indexed(text), expected, "{text}");
        }
    }

    #[test]
    fn a_script_without_blanks_becomes_pairs() {
        for (text, expected) in [
            ("東京都", "東京 京都 都"),
            ("猫", "猫"),
            ("東京tower2", "東京 京 tower2"),
            ("日本語、検索", "日本 本語 語 検索 索"),
            ("データベース", "デー ータ タベ ベー ース ス"),
        ] {
            assert_eq!(indexed(text), expected, "{text}");
        }
    }

    #[test]
    fn a_phrase_is_found_inside_a_run() {
        for (text, is_prefix, expected) in [
            ("東京", true, ("東京", false)),
            ("京都", false, ("京都", false)),
            ("猫", false, ("猫", true)),
            ("東京都", true, ("東京 京都", false)),
            ("example.com", true, ("example com", true)),
            ("lazy dog", false, ("lazy dog", false)),
            ("京tower", true, ("京 tower", true)),
        ] {
            let phrase = Phrase::parse(text, is_prefix).unwrap();
            assert_eq!((phrase.words.join(" ").as_str(), phrase.is_prefix), expected, "{text}");
        }
        assert_eq!(Phrase::parse("%", true), None);
    }

    #[test]
    fn a_tag_has_a_word_of_its_own() {
        assert_eq!(tag_word("rust"), "#rust");
        assert_eq!(tag_word("c++ 本"), "#c_2b__2b__20_本");
    }

    proptest! {
        #[test]
        fn any_text_gives_words_without_signs(text in any::<String>()) {
            for word in words(&text) {
                prop_assert!(!word.is_empty() && word.chars().all(char::is_alphanumeric), "{}", word);
            }
        }
    }
}
