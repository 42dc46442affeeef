//! Checks that the history says what was changed, and why.
//!
//! Guarantee: each commit after [`FIRST`] has a subject `area: imperative` of at most [`MAX_SUBJECT`] characters, and a body.

use std::path::Path;

use super::TidyFinding;
use crate::command_line::CommandLine;

/// The first commit after which the rule counts.
pub const FIRST: &str = "0b49617ff81672dfdbd94c5a9968643cda7a3462";
/// The longest subject, in characters.
pub const MAX_SUBJECT: usize = 72;

/// A commit's message.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The abbreviated hash.
    pub hash: String,
    /// The first line.
    pub subject: String,
    /// The rest.
    pub body: String,
}

/// Reads the commits after [`FIRST`]. A copy without that history has none.
pub fn history(root: &Path) -> Vec<Commit> {
    let line = CommandLine::new(
        "git",
        &["log", "--no-merges", "--format=%h%x01%s%x01%b%x02", &format!("{FIRST}..HEAD")],
    );
    let log = line.answer(root).unwrap_or_default();
    log.split('\u{2}').filter_map(|commit| parse(commit.trim())).collect()
}

fn parse(commit: &str) -> Option<Commit> {
    let mut parts = commit.splitn(3, '\u{1}').map(|part| part.trim().to_owned());
    Some(Commit { hash: parts.next()?, subject: parts.next()?, body: parts.next()? })
}

/// Finds messages that break the rule.
pub fn check(commits: &[Commit]) -> Vec<TidyFinding> {
    let finding = |commit: &Commit| {
        Some(TidyFinding {
            what: wrong(commit)?,
            location: format!("commit {} `{}`", commit.hash, commit.subject),
            fix: "write `area: imperative summary` and a body that says why".to_owned(),
        })
    };
    commits.iter().filter_map(finding).collect()
}

fn wrong(commit: &Commit) -> Option<String> {
    let length = commit.subject.chars().count();
    if MAX_SUBJECT < length {
        return Some(format!("the subject has {length} characters, and may have {MAX_SUBJECT}"));
    }
    let is_area =
        |area: &str| !area.is_empty() && area.chars().all(|mark| mark.is_ascii_lowercase() || mark == '-');
    let is_formed = commit.subject.split_once(": ").is_some_and(|(area, summary)| {
        is_area(area) && summary.starts_with(|mark: char| mark.is_ascii_lowercase())
    });
    if !is_formed {
        return Some("the subject is not `area: imperative summary`".to_owned());
    }
    commit.body.is_empty().then(|| "the message has no body".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong_with(subject: &str, body: &str) -> Option<String> {
        wrong(&Commit { hash: "abc".to_owned(), subject: subject.to_owned(), body: body.to_owned() })
    }

    #[test]
    fn a_subject_with_an_area_and_a_body_is_right() {
        assert_eq!(wrong_with("store: claim keys in one statement", "Two cost a round trip."), None);
    }

    #[test]
    fn other_messages_are_found() {
        let long = format!("store: {}", "x".repeat(66));
        for (subject, body) in [
            ("Claim keys in one statement", "Why."),
            ("store: Claim keys", "Why."),
            ("store claim keys", "Why."),
            (long.as_str(), "Why."),
            ("store: claim keys", ""),
        ] {
            assert!(wrong_with(subject, body).is_some(), "{subject}");
        }
    }
}
