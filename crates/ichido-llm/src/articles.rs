//! Reads articles and turns them into questions that a model judges by a reader's interests.
//!
//! Guarantee: an article reaches the model as data, in one JSON object, so no text in it can pose as another part of
//! the question. Every line that cannot be judged is reported with its line number and without its content.
//!
//! ```
//! use ichido_llm::articles::{self, Profile};
//!
//! let profile = Profile::parse(Profile::DEFAULT)?;
//! let lines = r#"{"title": "A cure for hiccups", "url": "https://example.org/1"}"#;
//! let articles = articles::read(lines.as_bytes(), "articles.jsonl")?;
//! let prompts = articles::prompts(&articles, &profile, articles::DEFAULT_OUTPUT_TOKENS);
//! assert!(prompts[0].user.contains("A cure for hiccups"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
// SPEC B6, B11.

mod judgement;
pub mod plan;
mod profile;
pub mod progress;
mod report;

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::ops::RangeInclusive;
use std::path::Path;

use ichido_core::settings::ConfigErrors;
use serde_json::{Map, Value};

use crate::models::Prompt;
pub use judgement::Judgement;
pub use profile::{Profile, ProfileError};
pub use report::RunResult;

/// Maximum number of articles in one run.
pub const MAX_ARTICLES: usize = 100_000;
/// Maximum length of a line, in bytes.
pub const MAX_LINE_BYTES: usize = 256 << 10;
/// What some programs write before UTF-8.
const BOM: &[u8] = "\u{feff}".as_bytes();
/// Maximum number of problems reported for one file.
const MAX_PROBLEMS: usize = 20;
/// Default maximum number of tokens of an answer.
///
/// A judgement is a label, a number and a sentence, about 60 tokens. The rest is for models that reason first, because
/// their reasoning counts as well.
pub const DEFAULT_OUTPUT_TOKENS: u32 = 2_048;
/// The values allowed for the same: no judgement fits into fewer, and no model writes more.
pub const OUTPUT_TOKENS: RangeInclusive<i64> = 64..=128_000;

/// One article.
#[derive(Debug)]
pub struct Article {
    /// The line in the file, starting at 1.
    line: usize,
    members: Map<String, Value>,
}

impl Article {
    fn parse(line: usize, bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            format!("it is not UTF-8 at byte {}; convert the file", error.valid_up_to() + 1)
        })?;
        if text.starts_with('[') {
            return Err("it is a JSON array; write one object per line, as `jq -c '.[]'` does".to_owned());
        }
        let members: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
            let why = if error.is_eof() {
                "the line ends too early; write each object on one line, as `jq -c .` does".to_owned()
            } else {
                format!(
                    "column {}; write {{\"title\": …, \"url\": …, \"description\": …}}",
                    error.column().max(1)
                )
            };
            format!("it is not a JSON object: {why}")
        })?;
        let article = Self { line, members };
        let says = |member| article.text(member).is_some_and(|text| !text.trim().is_empty());
        if says("title") || says("url") || says("description") {
            return Ok(article);
        }
        Err("it has no title, url or description, so there is nothing to judge".to_owned())
    }

    fn text(&self, member: &str) -> Option<&str> {
        self.members.get(member).and_then(Value::as_str)
    }

    /// Builds the prompt that asks the model about this article.
    fn prompt(&self, system: &str, max_tokens: u32) -> Prompt {
        let article = serde_json::to_string(&self.members).unwrap_or_default();
        let user = format!("The article, as one JSON object:\n{article}\n");
        Prompt { system: Some(system.to_owned()), user, max_tokens, form: None }
    }
}

/// Reads all articles of a file, or returns every problem.
pub fn read_file(file: &Path) -> Result<Vec<Article>, ConfigErrors> {
    let name = file.display().to_string();
    let opened =
        File::open(file).map_err(|error| ConfigErrors::one(&name, format!("cannot read it: {error}")))?;
    read(BufReader::new(opened), &name)
}

/// Reads all articles, one JSON object per line, or returns every problem.
///
/// `name` is the file's name in error messages.
pub fn read(mut lines: impl BufRead, name: &str) -> Result<Vec<Article>, ConfigErrors> {
    let (mut articles, mut faults) = (Vec::new(), ConfigErrors::default());
    for number in 1.. {
        let mut bytes = Vec::new();
        let read = lines.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut bytes);
        let end = match read {
            Err(error) => Some(format!("it cannot be read: {error}")),
            Ok(0) => break,
            Ok(_) if articles.len() == MAX_ARTICLES => {
                Some(format!("there are more than {MAX_ARTICLES} articles; split the file"))
            }
            Ok(_) => None,
        };
        if let Some(what) = end {
            faults.add(format!("{name}:{number}"), what);
            break;
        }
        let text = bytes.strip_prefix(BOM).filter(|_| number == 1).unwrap_or(&bytes).trim_ascii();
        if text.is_empty() {
            continue;
        }
        let article = if MAX_LINE_BYTES < bytes.len() && !bytes.ends_with(b"\n") {
            // An error appears again at the next line.
            drop(lines.skip_until(b'\n'));
            Err(format!("it is longer than {MAX_LINE_BYTES} bytes; shorten the article"))
        } else {
            Article::parse(number, text)
        };
        articles.extend(faults.check(&format!("{name}:{number}"), article));
        if faults.0.len() == MAX_PROBLEMS {
            break;
        }
    }
    if faults.0.is_empty() && articles.is_empty() {
        faults.add(name, "it has no articles; write one JSON object per line");
    }
    faults.or(Some(articles))
}

/// Returns the questions, one per article, in order. An answer may have this many tokens.
pub fn prompts(articles: &[Article], profile: &Profile, max_tokens: u32) -> Vec<Prompt> {
    let system = profile.system();
    articles.iter().map(|article| article.prompt(&system, max_tokens)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_blank_lines_skipped() {
        let text = "{\"title\":\"A\",\"url\":\"https://a\",\"tags\":[\"x\"]}\n\n  \n{\"description\":\"B\"}";
        let articles = read(text.as_bytes(), "a").unwrap();
        assert_eq!(articles.iter().map(|article| article.line).collect::<Vec<_>>(), [1, 4]);
        let prompt = articles[0].prompt("judge", DEFAULT_OUTPUT_TOKENS);
        let expected =
            "The article, as one JSON object:\n{\"tags\":[\"x\"],\"title\":\"A\",\"url\":\"https://a\"}\n";
        assert_eq!(prompt.user, expected);
    }

    #[test]
    fn every_invalid_line_is_reported() {
        let faults = |text: &str| read(text.as_bytes(), "a").unwrap_err().0;
        let found = faults("{\"title\":\"A\"}\nnot json\n[1]\n{\"author\":\"me\"}\n{\"title\":\"  \"}\n");
        let places: Vec<_> = found.iter().map(|fault| fault.place.as_str()).collect();
        assert_eq!(places, ["a:2", "a:3", "a:4", "a:5"]);
        assert!(!format!("{found:?}").contains("not json"), "the input is not repeated");
        assert_eq!(faults("\n\n")[0].place, "a");
        let long = format!("{{\"title\":\"{}\"}}", "x".repeat(5 * MAX_LINE_BYTES));
        let found = faults(&format!("{long}\n{{\"title\":\"A\"}}\n{long}"));
        let places: Vec<_> = found.iter().map(|fault| fault.place.as_str()).collect();
        assert_eq!(places, ["a:1", "a:3"], "reading goes on at the next line");
        assert!(found[0].what.contains("longer than"));
        assert_eq!(faults(&"junk\n".repeat(100)).len(), MAX_PROBLEMS);
    }

    #[test]
    fn invalid_line_is_reported_with_its_cause() {
        let fault = |bytes: &[u8]| read(bytes, "a").unwrap_err().0[0].what.clone();
        for (bytes, cause) in [
            (&b"{\"title\":\"A"[..], "the line ends too early"),
            (b"{\n\"title\": \"A\"\n}\n", "the line ends too early"),
            (b"[{\"title\":\"A\"}]", "it is a JSON array; write one object per line, as `jq -c '.[]'` does"),
            (b"{\"title\":\"\xff\"}", "it is not UTF-8 at byte 11"),
            (b"\xff\xfe{\0", "it is not UTF-8 at byte 1"),
            (b"{\"title\" \"A\"}", "column 10"),
            (b"7", "column 1"),
        ] {
            assert!(fault(bytes).contains(cause), "{cause}: {}", fault(bytes));
        }
        let marked = "\u{feff}{\"title\":\"A\"}\n";
        assert_eq!(
            read(marked.as_bytes(), "a").unwrap().len(),
            1,
            "a byte order mark is no part of the line"
        );
    }
}
