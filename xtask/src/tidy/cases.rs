//! Checks that the page of cases names tests that exist.
//!
//! Guarantee: `docs/cases.md` has the thirty cases once and in order, and every row of its tables ends with tests that
//! are in the workspace and run. Unlike the specification, it has no open rows.

use std::collections::BTreeMap;

use super::TidyFinding;
use super::spec::{Test, cells, names, tests};
use super::tree::Tree;

const FILE: &str = "docs/cases.md";
const CASES: usize = 30;

/// Finds cases that are missing or out of order, and tests that do not exist.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let Some(text) = tree.get(FILE) else {
        return vec![finding(0, "the page of cases is missing".to_owned(), "write it")];
    };
    let tests = tests(tree);
    let mut findings = Vec::new();
    let mut numbers = Vec::new();
    let rows = text.lines().enumerate().filter_map(|(index, line)| Some((index + 1, cells(line)?)));
    for (line, cells) in rows.filter(|(_, cells)| !is_head(cells)) {
        numbers.extend(cells.first().and_then(|number| number.parse::<usize>().ok()));
        let proof = cells.last().copied().unwrap_or_default();
        let named = match names(proof) {
            Ok(named) if !named.is_empty() && !proof.contains("open") => named,
            _ => {
                let what = format!("`{proof}` is not a list of tests");
                findings.push(finding(line, what, "write test names in backticks, separated with commas"));
                continue;
            }
        };
        let faults = named.into_iter().filter_map(|name| fault(name, &tests));
        findings.extend(faults.map(|(what, fix)| finding(line, what, fix)));
    }
    if numbers != (1..=CASES).collect::<Vec<_>>() {
        let what = format!("the cases are not 1 to {CASES} in order: {numbers:?}");
        findings.push(finding(0, what, "do not drop a case; give each case its row"));
    }
    findings
}

/// Returns what is wrong with a test of this name, and how to fix it.
fn fault(name: &str, tests: &BTreeMap<String, Vec<Test>>) -> Option<(String, &'static str)> {
    let Some(found) = tests.get(name) else {
        return Some((
            format!("test `{name}` does not exist"),
            "use the test's current name, or write the test",
        ));
    };
    let ignored = found.iter().find(|test| test.is_ignored)?;
    Some((format!("`{name}` is ignored in {}", ignored.file), "remove its `#[ignore]`"))
}

/// Returns whether a row is a table's heading.
fn is_head(cells: &[&str]) -> bool {
    matches!(cells.last(), Some(&("test" | "")) | None)
        || cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':')))
}

fn finding(line: usize, what: String, fix: &str) -> TidyFinding {
    let location = if line == 0 { FILE.to_owned() } else { format!("{FILE}:{line}") };
    TidyFinding { what, location, fix: fix.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "#[test] fn met() {}\n#[test] #[ignore = \"slow\"] fn asleep() {}\n";

    fn page(row: impl Fn(usize) -> Option<String>) -> String {
        let mut text = String::from("# Cases\n| # | what | test |\n|---|---|---|\n");
        for number in 1..=CASES {
            text += &row(number).unwrap_or_else(|| format!("| {number} | it | `met` |\n"));
        }
        text + "\n| bug | test |\n|---|---|\n| a bug | `met`, `met` |\n"
    }

    fn found(text: &str) -> Vec<String> {
        let tree = Tree::new(&[(FILE, text), ("crates/a/tests/it.rs", TESTS)]);
        check(&tree).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_whole_page_is_clean() {
        assert_eq!(found(&page(|_| None)), [""; 0]);
    }

    #[test]
    fn a_case_without_a_test_that_runs_is_found() {
        for (proof, what) in [
            ("`gone`", "test `gone` does not exist"),
            ("`asleep`", "`asleep` is ignored in crates/a/tests/it.rs"),
            ("open", "`open` is not a list of tests"),
            ("later", "`later` is not a list of tests"),
        ] {
            let page = page(|number| (number == 7).then(|| format!("| 7 | it | {proof} |\n")));
            assert_eq!(found(&page), [what]);
        }
    }

    #[test]
    fn a_case_that_is_missing_is_found() {
        let page = page(|number| (number == 7).then(String::new));
        assert!(found(&page)[0].starts_with("the cases are not 1 to 30 in order"), "{:?}", found(&page));
    }

    #[test]
    fn a_missing_page_is_found() {
        assert_eq!(check(&Tree::new(&[])).len(), 1);
    }
}
