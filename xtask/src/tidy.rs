//! The rules about the repository itself, checked by machine.
//!
//! Guarantee: each rule is a pure function from what was read to findings, so it has tests on made-up
//! trees that show it can fail. A finding says what is wrong, where, and how to mend it. The rules run as
//! tests of this crate, so `cargo test` holds them too.
//!
//! A new rule is a module here, a line in [`check`], a test in `tests/tidy.rs`.

pub mod arrows;
pub mod guarantee;
pub mod length;
mod rust;
pub mod spec;
pub mod tree;

use std::fmt;
use std::path::Path;

use tree::Tree;

/// Something that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub what: String,
    /// The file, with a line where one helps, from the root of the repository.
    pub place: String,
    /// What to do about it.
    pub mend: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  where: {}\n  mend:  {}", self.what, self.place, self.mend)
    }
}

/// Checks every rule; the error lists all findings.
pub fn run(root: &Path) -> Result<(), String> {
    let findings = check(root)?;
    if findings.is_empty() {
        println!("tidy: nothing found");
        return Ok(());
    }
    let listed: Vec<String> = findings.iter().map(Finding::to_string).collect();
    Err(format!("tidy: {} found\n\n{}", findings.len(), listed.join("\n\n")))
}

/// The findings of all rules. The error is about reading the repository, not about a rule.
pub fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let tree = Tree::read(root)?;
    let rules = [
        arrows::check(&arrows::packages(root)?),
        guarantee::check(&tree),
        length::check(&tree),
        spec::check(&tree),
    ];
    Ok(rules.concat())
}
