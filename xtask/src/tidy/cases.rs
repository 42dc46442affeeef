//! Checks that pages of numbered claims name tests that exist.
//!
//! Guarantee: `docs/cases.md` has the thirty cases and `docs/comparison.md` the six questions, once and in order, and every
//! row of their tables ends with tests that are in the workspace and run. Unlike the specification, they have no open rows.

use std::collections::BTreeMap;

use super::TidyFinding;
use super::spec::{Test, cells, names, tests};
use super::tree::Tree;

/// The pages, each with its last number.
const PAGES: [(&str, usize); 2] = [("docs/cases.md", 30), ("docs/comparison.md", 6)];

/// Finds rows that are missing or out of order, and tests that do not exist.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let tests = tests(tree);
    PAGES.iter().flat_map(|(page, last)| check_page(tree, &tests, page, *last)).collect()
}

fn check_page(tree: &Tree, tests: &BTreeMap<String, Vec<Test>>, page: &str, last: usize) -> Vec<TidyFinding> {
    let finding = |line, what, fix| finding(page, line, what, fix);
    let Some(text) = tree.get(page) else {
        return vec![finding(0, "the page is missing".to_owned(), "write it")];
    };
    let mut findings = Vec::new();
    let mut numbers = Vec::new();
    let rows = text.lines().enumerate().filter_map(|(index, line)| Some((index + 1, cells(line)?)));
    for (line, cells) in rows.filter(|(_, cells)| !is_head(cells)) {
        numbers.extend(cells.first().and_then(|number| number.parse::<usize>().ok()));
        let proof = cells.last().copied().unwrap_or_default();
        let named = match names(proof) {
            Ok(named) if !named.is_empty() && !proof.contains("open:") => named,
            _ => {
                let what = format!("`{proof}` is not a list of tests");
                findings.push(finding(line, what, "write test names in backticks, separated with commas"));
                continue;
            }
        };
        let faults = named.into_iter().filter_map(|name| fault(name, tests));
        findings.extend(faults.map(|(what, fix)| finding(line, what, fix)));
    }
    if numbers != (1..=last).collect::<Vec<_>>() {
        let what = format!("the rows are not 1 to {last} in order: {numbers:?}");
        findings.push(finding(0, what, "do not drop a row; give each number its own"));
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

fn finding(page: &str, line: usize, what: String, fix: &str) -> TidyFinding {
    let location = if line == 0 { page.to_owned() } else { format!("{page}:{line}") };
    TidyFinding { what, location, fix: fix.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "#[test] fn met() {}\n#[test] #[ignore = \"slow\"] fn asleep() {}\n";

    fn page(last: usize, row: impl Fn(usize) -> Option<String>) -> String {
        let mut text = String::from("# Cases\n| # | what | test |\n|---|---|---|\n");
        for number in 1..=last {
            text += &row(number).unwrap_or_else(|| format!("| {number} | it | `met` |\n"));
        }
        text + "\n| bug | test |\n|---|---|\n| a bug | `met`, `met` |\n"
    }

    /// The findings if `row` writes row 5 of each page.
    fn found(row: Option<&str>) -> Vec<String> {
        let pages = PAGES
            .map(|(name, last)| (name, page(last, |number| row.filter(|_| number == 5).map(str::to_owned))));
        let mut files: Vec<(&str, &str)> = pages.iter().map(|(name, text)| (*name, text.as_str())).collect();
        files.push(("crates/a/tests/it.rs", TESTS));
        check(&Tree::new(&files)).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_whole_page_is_clean() {
        assert_eq!(found(None), [""; 0]);
    }

    #[test]
    fn a_case_without_a_test_that_runs_is_found() {
        for (proof, what) in [
            ("`gone`", "test `gone` does not exist"),
            ("`asleep`", "`asleep` is ignored in crates/a/tests/it.rs"),
            ("open", "`open` is not a list of tests"),
            ("later", "`later` is not a list of tests"),
        ] {
            assert_eq!(found(Some(&format!("| 5 | it | {proof} |\n"))), [what; PAGES.len()]);
        }
    }

    #[test]
    fn a_case_that_is_missing_is_found() {
        let found = found(Some(""));
        assert!(found[0].starts_with("the rows are not 1 to 30 in order"), "{found:?}");
        assert!(found[1].starts_with("the rows are not 1 to 6 in order"), "{found:?}");
    }

    #[test]
    fn a_missing_page_is_found() {
        assert_eq!(check(&Tree::new(&[])).len(), PAGES.len());
    }
}
