//! Checks that no file is too long to be read whole.
//!
//! Guarantee: every file of the tree has at most [`MAX_LINES`] lines, except the changelog, which only grows and is
//! read from the top, and the reference of commands, which is generated and searched.

use super::TidyFinding;
use super::tree::Tree;

/// A file with more lines has more than one purpose.
pub const MAX_LINES: usize = 700;
const EXCEPT: [&str; 2] = ["CHANGELOG.md", "docs/cli.md"];

/// Finds the files that are too long.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let counted = tree.files().map(|(path, text)| (path, text.lines().count()));
    counted
        .filter(|(path, lines)| MAX_LINES < *lines && !EXCEPT.contains(path))
        .map(|(path, lines)| TidyFinding {
            what: format!("the file has {lines} lines; the maximum is {MAX_LINES}"),
            location: path.to_owned(),
            fix: "split it by topic, or move its tests to a separate file".to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_too_many_is_found() {
        let fits = "//\n".repeat(MAX_LINES);
        let long = "//\n".repeat(MAX_LINES + 1);
        assert_eq!(check(&Tree::new(&[("crates/a/src/lib.rs", &fits)])), []);
        let findings = check(&Tree::new(&[("crates/a/src/lib.rs", &long)]));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].location, "crates/a/src/lib.rs");
        assert_eq!(findings[0].what, "the file has 701 lines; the maximum is 700");
    }

    #[test]
    fn the_changelog_may_grow() {
        let long = "- a change\n".repeat(MAX_LINES + 1);
        assert_eq!(check(&Tree::new(&[("CHANGELOG.md", &long)])), []);
        assert_eq!(check(&Tree::new(&[("docs/guide.md", &long)])).len(), 1);
    }
}
