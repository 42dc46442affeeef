//! The articles, one JSON object a line.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use ichido_llm::models::Prompt;
use serde_json::{Map, Value};

use super::profile::Profile;

/// The most articles in one run.
const ARTICLES_MAX: usize = 100_000;
/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 256 << 10;
/// The most problems that are told of one file.
const PROBLEMS_MAX: usize = 20;
/// The most tokens of a judgement: a label, a number and a sentence.
pub(super) const ANSWER_TOKENS_MAX: u32 = 200;
/// How `ARTICLES` names standard input.
const STDIN: &str = "-";

/// One article.
pub(super) struct Article {
    /// Where it stands in the file, from 1.
    pub(super) line: usize,
    members: Map<String, Value>,
}

/// Everything that is wrong with a file, line by line.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) line: Option<usize>,
    pub(super) what: String,
}

impl Article {
    pub(super) fn text(&self, member: &str) -> Option<&str> {
        self.members.get(member).and_then(Value::as_str)
    }

    /// What the model is asked of it: all of its members, as JSON, so that no text in it can pass for another part.
    pub(super) fn prompt(&self, system: &str) -> Prompt {
        let article = serde_json::to_string(&self.members).unwrap_or_default();
        let user = format!("The article, as one JSON object:\n{article}\n");
        Prompt { system: Some(system.to_owned()), user, max_tokens: ANSWER_TOKENS_MAX, form: None }
    }
}

/// Reads all of them, or says everything that is wrong.
pub(super) fn read(file: &Path) -> Result<Vec<Article>, Vec<Problem>> {
    let opened: Box<dyn BufRead> = if file.as_os_str() == STDIN {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        match std::fs::File::open(file) {
            Ok(file) => Box::new(BufReader::new(file)),
            Err(error) => {
                return Err(vec![Problem { line: None, what: format!("it cannot be read: {error}") }]);
            }
        }
    };
    read_from(opened)
}

fn read_from(mut lines: impl BufRead) -> Result<Vec<Article>, Vec<Problem>> {
    let (mut articles, mut problems) = (Vec::new(), Vec::new());
    for line in 1.. {
        let mut bytes = Vec::new();
        let read = lines.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut bytes);
        let what = match read {
            Err(error) => Some(format!("it cannot be read: {error}")),
            Ok(0) => break,
            Ok(_) if LINE_BYTES_MAX < bytes.trim_ascii_end().len() => {
                Some(format!("it is longer than {LINE_BYTES_MAX} bytes; what follows is not read"))
            }
            Ok(_) if articles.len() == ARTICLES_MAX => {
                Some(format!("there are more than {ARTICLES_MAX} articles; split the file"))
            }
            Ok(_) => None,
        };
        if let Some(what) = what {
            problems.push(Problem { line: Some(line), what });
            break;
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        match article(line, &bytes) {
            Ok(article) => articles.push(article),
            Err(what) => problems.push(Problem { line: Some(line), what }),
        }
        if problems.len() == PROBLEMS_MAX {
            break;
        }
    }
    if problems.is_empty() && articles.is_empty() {
        problems.push(Problem {
            line: None,
            what: "there is no article in it; write one JSON object a line".to_owned(),
        });
    }
    if problems.is_empty() { Ok(articles) } else { Err(problems) }
}

fn article(line: usize, bytes: &[u8]) -> Result<Article, String> {
    let members: Map<String, Value> = serde_json::from_slice(bytes).map_err(|error| {
        format!(
            "it is no JSON object: column {}; write {{\"title\": …, \"url\": …, \"description\": …}}",
            error.column()
        )
    })?;
    let article = Article { line, members };
    let says = |member| article.text(member).is_some_and(|text| !text.trim().is_empty());
    if says("title") || says("url") || says("description") {
        return Ok(article);
    }
    Err("it has neither title nor url nor description: there is nothing to judge".to_owned())
}

/// The prompts, in order.
pub(super) fn prompts(articles: &[Article], profile: &Profile) -> Vec<Prompt> {
    let system = profile.system();
    articles.iter().map(|article| article.prompt(&system)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_blank_ones_passed_over() {
        let text = "{\"title\":\"A\",\"url\":\"https://a\",\"tags\":[\"x\"]}\n\n  \n{\"description\":\"B\"}";
        let articles = read_from(text.as_bytes()).unwrap();
        assert_eq!(articles.iter().map(|article| article.line).collect::<Vec<_>>(), [1, 4]);
        let prompt = articles[0].prompt("judge");
        let expected =
            "The article, as one JSON object:\n{\"tags\":[\"x\"],\"title\":\"A\",\"url\":\"https://a\"}\n";
        assert_eq!(prompt.user, expected);
    }

    #[test]
    fn every_line_that_cannot_be_judged_is_said() {
        let text = "{\"title\":\"A\"}\nnot json\n[1]\n{\"author\":\"me\"}\n{\"title\":\"  \"}\n";
        let problems = read_from(text.as_bytes()).err().unwrap();
        let lines: Vec<_> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [Some(2), Some(3), Some(4), Some(5)]);
        assert!(!format!("{problems:?}").contains("not json"), "what was read is not repeated");
        assert_eq!(read_from(&b"\n\n"[..]).err().unwrap()[0].line, None);
        let long = format!("{{\"title\":\"{}\"}}", "x".repeat(LINE_BYTES_MAX));
        assert!(read_from(long.as_bytes()).err().unwrap()[0].what.contains("longer than"));
        let many = "junk\n".repeat(100);
        assert_eq!(read_from(many.as_bytes()).err().unwrap().len(), PROBLEMS_MAX);
    }
}
