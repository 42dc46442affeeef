//! Checks which features of other crates are enabled.
//!
//! Guarantee: the tests' build enables no feature that the shipped program `ichido` lacks. So the tested program is the
//! shipped one. It says nothing about the libraries, which others may build with fewer features.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::TidyFinding;
use crate::command_line::CommandLine;
use crate::packages::usual;

/// How `cargo tree` shows a crate: name, version, then its features.
const TREE: [&str; 6] = ["tree", "--prefix", "none", "--format", "{p} [{f}]", "--edges"];

/// Features that the tests' build enables so the build with AWS's SDK need not recompile everything: that build has
/// them too, and nothing of ours uses them.
const WITH_AWS: [(&str, &str); 12] = [
    ("crypto-common v0.1", "std"),
    ("digest v0.10", "alloc"),
    ("digest v0.10", "std"),
    ("digest v0.11", "alloc"),
    ("digest v0.11", "oid"),
    ("hyper-util v0.1", "client"),
    ("hyper-util v0.1", "client-legacy"),
    ("hyper-util v0.1", "client-proxy"),
    ("num-integer v0.1", "default"),
    ("sha2 v0.11", "alloc"),
    ("sha2 v0.11", "default"),
    ("sha2 v0.11", "oid"),
];

/// Features of our library that only its own tests use. Each adds a module, and changes nothing that the program uses.
const OF_LIBRARY: [(&str, &str); 2] = [("ichido v0.1", "client"), ("ichido v0.1", "testing")];

/// Returns the features of each crate in the shipped build and in the tests' build, as `cargo tree` lists them.
pub fn trees(root: &Path) -> Result<[String; 2], String> {
    let shipped = CommandLine::cargo(&TREE).and(&["normal", "--package", "ichido-cli"]);
    let tested = CommandLine::cargo(&TREE).and(&["normal,dev"]).and_all(&usual(true));
    let answer = |line: CommandLine| line.answer(root).ok_or_else(|| format!("`{line}` failed"));
    Ok([answer(shipped)?, answer(tested)?])
}

/// Returns a finding for each feature of a shipped crate that only the tests' build has.
pub fn check([shipped, tested]: &[String; 2]) -> Vec<TidyFinding> {
    let tested = features(tested);
    let mut findings = Vec::new();
    for (name, shipped) in features(shipped) {
        let is_known = |feature: &str| {
            let mut known = WITH_AWS.iter().chain(&OF_LIBRARY);
            known.any(|(package, known)| name.starts_with(package) && feature == *known)
        };
        let added = tested.get(name).into_iter().flatten();
        let added = added.filter(|feature| !shipped.contains(*feature) && !is_known(feature));
        findings.extend(added.map(|feature| TidyFinding {
            what: format!("only the tests enable feature `{feature}` of {name}"),
            location: "crates/ichido-cli/Cargo.toml".to_owned(),
            fix: "enable it in the dependencies of `ichido-cli`, or do not use it in tests".to_owned(),
        }));
    }
    findings
}

/// Returns the features of each crate by name and version.
fn features(tree: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in tree.lines() {
        let Some((package, listed)) = line.split_once(" [") else { continue };
        // A workspace crate is followed by its folder, a macro by its kind.
        let package = package.split_once(" (").map_or(package, |(name, _)| name);
        let listed = listed.split(']').next().unwrap_or_default();
        found.entry(package).or_default().extend(listed.split(',').filter(|feature| !feature.is_empty()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(shipped: &str, tested: &str) -> Vec<String> {
        check(&[shipped.to_owned(), tested.to_owned()]).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_feature_that_only_tests_enable_is_found() {
        let shipped = "ichido-cli v0.1.0 (/repo/crates/ichido-cli) []\ntokio v1.54.1 [net,time]\nserde v1.0.0 [std] (*)\n";
        let tested = "tokio v1.54.1 [net,process,time]\nserde v1.0.0 [std]\nproptest v1.12.0 [std]\n";
        assert_eq!(found(shipped, tested), ["only the tests enable feature `process` of tokio v1.54.1"]);
    }

    #[test]
    fn equal_features_and_crates_that_only_tests_use_are_fine() {
        let shipped = "tokio v1.54.1 [net,time]\ntokio v1.54.1 [net,time] (*)\n";
        assert_eq!(found(shipped, "tokio v1.54.1 [net]\nproptest v1.12.0 [std]\n"), [""; 0]);
    }
}
