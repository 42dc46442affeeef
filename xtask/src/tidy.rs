//! The rules about the repository itself, checked by machine.
//!
//! Guarantee: each rule is a pure function from what was read to findings, so tests on made-up trees show that it can
//! fail. A finding says what is wrong, where, and how to fix it. The rules run as tests of this crate, so `cargo test`
//! enforces them too.
//!
//! A new rule is a module here, a line in [`check`], and a test in `tests/it/tidy.rs`.

pub mod arrows;
pub mod cases;
pub mod circles;
pub mod commits;
pub mod features;
pub mod guarantee;
mod js;
pub mod length;
pub mod names;
mod rust;
pub mod schemas;
pub mod spec;
pub mod thin;
pub mod tree;
pub mod words;

use std::fmt;
use std::path::Path;

use tree::Tree;

/// Something that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TidyFinding {
    /// What is wrong.
    pub what: String,
    /// The file, with a line if that helps, relative to the repository's root.
    pub location: String,
    /// How to fix it.
    pub fix: String,
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  where: {}\n  fix:   {}", self.what, self.location, self.fix)
    }
}

/// The result of checking every rule.
#[derive(Clone, Debug)]
pub struct TidyReport {
    /// The number of rules checked.
    pub rules: usize,
    /// The number of files read.
    pub files: usize,
    /// What breaks a rule.
    pub findings: Vec<TidyFinding>,
}

impl TidyReport {
    /// Returns one line if nothing was found; the error lists all findings.
    pub fn verdict(&self) -> Result<String, String> {
        let listed: Vec<String> = self.findings.iter().map(TidyFinding::to_string).collect();
        let count = match listed.len() {
            0 => return Ok(format!("tidy: {} rules, {} files, no findings", self.rules, self.files)),
            1 => "1 finding".to_owned(),
            more => format!("{more} findings"),
        };
        Err(format!("tidy: {count}\n\n{}", listed.join("\n\n")))
    }
}

/// Checks every rule and prints the result.
pub fn run(root: &Path) -> Result<(), String> {
    println!("{}", check(root)?.verdict()?);
    Ok(())
}

/// Returns the findings of all rules. The error is about reading the repository, not about a rule.
pub fn check(root: &Path) -> Result<TidyReport, String> {
    let tree = Tree::read(root)?;
    let rules = [
        arrows::check(&arrows::packages(root)?),
        cases::check(&tree),
        circles::check(&tree),
        commits::check(&commits::history(root)),
        features::check(&features::trees(root)?),
        guarantee::check(&tree),
        length::check(&tree),
        names::check(&tree),
        schemas::check(&tree),
        spec::check(&tree),
        thin::check(&tree),
        words::check(&tree),
    ];
    Ok(TidyReport { rules: rules.len(), files: tree.files().count(), findings: rules.concat() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(findings: &[&str]) -> TidyReport {
        let finding = |what: &&str| TidyFinding {
            what: (*what).to_owned(),
            location: "src/lib.rs".to_owned(),
            fix: "split it".to_owned(),
        };
        TidyReport { rules: 4, files: 70, findings: findings.iter().map(finding).collect() }
    }

    #[test]
    fn a_clean_tree_reports_what_was_checked() {
        assert_eq!(report(&[]).verdict(), Ok("tidy: 4 rules, 70 files, no findings".to_owned()));
    }

    #[test]
    fn findings_are_counted_and_listed() {
        let one = report(&["too long"]).verdict().expect_err("a finding");
        assert_eq!(one, "tidy: 1 finding\n\ntoo long\n  where: src/lib.rs\n  fix:   split it");
        let two = report(&["too long", "too wide"]).verdict().expect_err("findings");
        assert!(two.starts_with("tidy: 2 findings\n\ntoo long\n"), "{two}");
        assert!(two.contains("\n\ntoo wide\n"), "{two}");
    }
}
