//! Checks that no text uses a word that readers stumble over.
//!
//! Guarantee: no file that a person writes has a banned word, in code, strings or prose. The two files that list such words are
//! left out.

use super::TidyFinding;
use super::tree::Tree;

/// Words, and what to write instead. A word that ends with `*` is banned with every ending.
const BANNED: [(&str, &str); 15] = [
    ("mend*", "fix, repair or help"),
    ("whoever", "the caller, the worker or whatever it is"),
    ("whom", "the subject's own name"),
    ("whereto", "endpoint or address"),
    ("in vain", "without effect"),
    ("makes no sense", "is invalid"),
    ("make no sense", "are invalid"),
    ("of paper", "mock"),
    ("stands against", "conflicts with"),
    ("time_out*", "timeout"),
    ("time-out*", "timeout"),
    ("honours_key*", "guarantee or deduplicates"),
    ("*_most", "max_… first"),
    ("*_least", "min_… first"),
    ("under_way", "in_flight"),
];
/// Names of the standard library that end like a banned word.
const ALLOWED: [&str; 2] = ["at_most", "at_least"];
const SKIPPED: [&str; 2] = ["xtask/src/tidy/names.rs", "xtask/src/tidy/words.rs"];

/// Finds banned words, one finding a file and word.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| !SKIPPED.contains(path)) {
        let text = text.to_lowercase();
        for (pattern, instead) in BANNED {
            if let Some(line) = text.lines().position(|line| has(line, pattern)) {
                findings.push(TidyFinding {
                    what: format!("`{pattern}` is a word that readers stumble over"),
                    location: format!("{path}:{}", line + 1),
                    fix: format!("write {instead}"),
                });
            }
        }
    }
    findings
}

fn has(line: &str, pattern: &str) -> bool {
    let (word, is_end) = match pattern.strip_prefix('*') {
        Some(end) => (end, true),
        None => (pattern, false),
    };
    let (word, is_start) = match word.strip_suffix('*') {
        Some(start) => (start, true),
        None => (word, false),
    };
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (line.get(..at).unwrap_or(""), line.get(at + word.len()..).unwrap_or(""));
        let starts = is_end || !before.ends_with(is_part);
        let ends = is_start || !after.starts_with(is_part);
        starts && ends && !ALLOWED.iter().any(|allowed| is_end && whole(before, word).ends_with(allowed))
    })
}

fn whole(before: &str, word: &str) -> String {
    let start = before.rfind(|mark| !is_part(mark)).map_or(0, |at| at + 1);
    format!("{}{word}", before.get(start..).unwrap_or(""))
}

fn is_part(mark: char) -> bool {
    mark.is_ascii_alphanumeric() || mark == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check(&Tree::new(&[("docs/a.md", text)])).len()
    }

    #[test]
    fn banned_words_are_found_in_prose_and_names() {
        for text in
            ["Mend it.", "fn mended()", "for whom", "a time_out_ms", "BYTES_MOST", "a broker\nof paper"]
        {
            assert_eq!(found(text), 1, "{text}");
        }
    }

    #[test]
    fn words_that_only_look_like_them_are_not_found() {
        for text in ["recommended", "amend it", "whomever_x", "at_most", "at least", "utmost", "paper"] {
            assert_eq!(found(text), 0, "{text}");
        }
    }
}
