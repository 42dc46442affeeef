//! Every requirement has its proof: the tests that the page of proofs names exist.
//!
//! Guarantee: `docs/spec.md` and `docs/proofs.md` each have every requirement once and in order, and each row of the proofs names tests that
//! are in the workspace and run, or says `open`. So nobody can take a promise for a proof.
//!
//! A requirement reads `` | A1 | the requirement | ``, its proof `` | A1 | `a_test`, `another_test` | ``. Where nothing proves it yet the
//! proof is `open`; where the tests prove a part, it ends with `open: the missing part`. Tests in Rust are named by their functions, those
//! in JavaScript by their titles.
//!
//! Tests are found by their bare function names in the token stream of each file. Searching lines would find a test in
//! a comment; a full parser does not look into `proptest!`; asking the built binaries (`--list`) would need a tree that
//! compiles. The price: a test whose name a macro generates is not found.

use std::collections::{BTreeMap, BTreeSet};

use super::TidyFinding;
use super::js;
use super::rust::Source;
use super::tree::Tree;

const SPEC: &str = "docs/spec.md";
const PROOFS: &str = "docs/proofs.md";
/// The sections, each with its last number.
const SECTIONS: [(char, u32); 7] =
    [('A', 15), ('B', 12), ('C', 12), ('D', 19), ('E', 6), ('F', 6), ('H', 10)];
/// A row is a number, and its requirement or its proof.
const CELLS: usize = 2;

/// Finds requirements that are missing, repeated or out of order, and proofs that do not exist.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let tests = tests(tree);
    let mut findings = check_page(tree, SPEC, |_| Vec::new());
    findings.extend(check_page(tree, PROOFS, |row| check_proof(row, &tests)));
    findings
}

/// Finds rows of a page that are missing, repeated, out of order or in another form, and what `check_cells` finds in the others.
fn check_page(
    tree: &Tree,
    page: &'static str,
    check_cells: impl Fn(&SpecRow<'_>) -> Vec<TidyFinding>,
) -> Vec<TidyFinding> {
    let Some(text) = tree.get(page) else {
        return vec![finding(page, 0, "the page is missing".to_owned(), "write it")];
    };
    let rows: Vec<SpecRow<'_>> = rows(text).collect();
    let mut findings = check_numbers(page, &rows);
    for row in &rows {
        if row.cells.len() == CELLS {
            findings.extend(check_cells(row));
        } else {
            let what = format!("{} has {} cells, not {CELLS}", row.number, row.cells.len());
            let fix = "write the number and one more cell; escape a bar inside a cell as `\\|`";
            findings.push(finding(page, row.line, what, fix));
        }
    }
    findings
}

/// A table row that begins with a requirement's number.
struct SpecRow<'a> {
    line: usize,
    number: &'a str,
    /// All cells, the number first.
    cells: Vec<&'a str>,
}

fn rows(text: &str) -> impl Iterator<Item = SpecRow<'_>> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let cells = cells(line)?;
        let number = *cells.first()?;
        is_number(number).then_some(SpecRow { line: index + 1, number, cells })
    })
}

/// Returns the cells of `| a | b |`; an escaped bar belongs to its cell.
pub(super) fn cells(line: &str) -> Option<Vec<&str>> {
    let inside = line.trim().strip_prefix('|')?;
    let mut cells = Vec::new();
    let mut start = 0;
    for (index, _) in inside.match_indices('|').filter(|(index, _)| !inside[..*index].ends_with('\\')) {
        cells.push(inside[start..index].trim());
        start = index + 1;
    }
    Some(cells)
}

/// Returns whether the text is a letter and digits, like `D14`.
fn is_number(cell: &str) -> bool {
    let mut chars = cell.chars();
    chars.next().is_some_and(|c| c.is_ascii_uppercase())
        && !chars.as_str().is_empty()
        && chars.all(|c| c.is_ascii_digit())
}

fn check_numbers(page: &str, rows: &[SpecRow<'_>]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let wanted: Vec<String> = SECTIONS
        .iter()
        .flat_map(|(section, last)| (1..=*last).map(move |n| format!("{section}{n}")))
        .collect();
    let mut position_last = None;
    let mut seen = BTreeSet::new();
    for row in rows {
        let Some(position) = wanted.iter().position(|number| number == row.number) else {
            let fix = "remove the row, or raise its section in xtask/src/tidy/spec.rs";
            let what = format!("{} is not a requirement's number", row.number);
            findings.push(finding(page, row.line, what, fix));
            continue;
        };
        if !seen.insert(row.number) {
            let what = format!("{} occurs twice", row.number);
            findings.push(finding(page, row.line, what, "keep one of the rows"));
        } else if Some(position) < position_last {
            let what = format!("{} is out of order", row.number);
            findings.push(finding(page, row.line, what, "sort the rows"));
        }
        position_last = position_last.max(Some(position));
    }
    let missing = wanted.iter().filter(|number| !seen.contains(number.as_str()));
    findings.extend(missing.map(|number| {
        finding(page, 0, format!("{number} is missing"), "do not drop a requirement; add its row")
    }));
    findings
}

fn check_proof(row: &SpecRow<'_>, tests: &BTreeMap<String, Vec<Test>>) -> Vec<TidyFinding> {
    let proof = row.cells.last().copied().unwrap_or_default();
    let names = match names(proof) {
        Ok(names) => names,
        Err(problem) => {
            let fix =
                "write test names in backticks, separated with commas, or `open`, or end with `open: …`";
            return vec![finding(PROOFS, row.line, format!("{}: {problem}", row.number), fix)];
        }
    };
    let check_name = |name: &str| match tests.get(name).map(Vec::as_slice) {
        None => Some(finding(
            PROOFS,
            row.line,
            format!("{} names `{name}`, which does not exist", row.number),
            "use the test's current name, or write `open`",
        )),
        Some(found) => found.iter().find(|test| test.is_ignored).map(|test| {
            let what = format!("{} names `{name}`, which is ignored in {}", row.number, test.file);
            finding(PROOFS, row.line, what, "remove its `#[ignore]`, or write `open`")
        }),
    };
    names.into_iter().filter_map(check_name).collect()
}

/// Returns the tests that the last cell of a row names.
pub(super) fn names(proof: &str) -> Result<Vec<&str>, String> {
    let mut names = Vec::new();
    let mut rest = proof;
    loop {
        if let Some(after) = rest.strip_prefix("open") {
            return match after.strip_prefix(':').map(str::trim) {
                Some("") => Err("`open:` does not say what is missing".to_owned()),
                Some(_) => Ok(names),
                None if !after.is_empty() => Err(format!("`{rest}` is neither a test nor `open`")),
                None if names.is_empty() => Ok(names),
                None => Err("`open` after tests does not say what is missing".to_owned()),
            };
        }
        let Some((name, after)) = rest.strip_prefix('`').and_then(|quoted| quoted.split_once('`')) else {
            return Err(format!("`{rest}` is neither a test nor `open`"));
        };
        names.push(name);
        match after.trim_start().strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None if after.trim().is_empty() => return Ok(names),
            None => return Err(format!("no comma after `{name}`")),
        }
    }
}

/// A test function of the workspace.
pub(super) struct Test {
    pub(super) file: String,
    pub(super) is_ignored: bool,
}

/// Returns all tests by name. Two crates may prove the same claim with the same name; then both must run.
pub(super) fn tests(tree: &Tree) -> BTreeMap<String, Vec<Test>> {
    let mut tests: BTreeMap<String, Vec<Test>> = BTreeMap::new();
    for (path, text) in tree.rust() {
        // A file that is not Rust fails to compile; its tests prove nothing.
        let functions = Source::read(text).map(|source| source.functions).unwrap_or_default();
        for function in functions.into_iter().filter(|function| function.is_test) {
            let test = Test { file: path.to_owned(), is_ignored: function.is_ignored };
            tests.entry(function.name).or_default().push(test);
        }
    }
    for (path, text) in tree.js_tests() {
        for js::Titled { title, is_ignored } in js::tests(text) {
            tests.entry(title).or_default().push(Test { file: path.to_owned(), is_ignored });
        }
    }
    tests
}

/// A finding at `line` of a page; 0 is the page as a whole.
fn finding(page: &str, line: usize, what: String, fix: &str) -> TidyFinding {
    let location = if line == 0 { page.to_owned() } else { format!("{page}:{line}") };
    TidyFinding { what, location, fix: fix.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str =
        "#[test] fn proved() {}\n#[test] #[ignore = \"slow\"] fn asleep() {}\nfn helper() {}\n";

    /// A whole page, all open but for the rows that `row` writes.
    fn page(row: impl Fn(&str) -> Option<String>) -> String {
        let mut text = String::from("# Page\n| # | tests |\n|---|---|\n");
        for (section, last) in SECTIONS {
            for n in 1..=last {
                let number = format!("{section}{n}");
                text += &row(&number).unwrap_or_else(|| format!("| {number} | open |\n"));
            }
        }
        text
    }

    /// The findings about these two pages.
    fn found_in(spec: &str, proofs: &str) -> Vec<TidyFinding> {
        check(&Tree::new(&[(SPEC, spec), (PROOFS, proofs), ("crates/a/tests/it.rs", TESTS)]))
    }

    /// The findings about these proofs, with a whole specification beside them.
    fn found(proofs: &str) -> Vec<String> {
        found_in(&page(|_| None), proofs).into_iter().map(|finding| finding.what).collect()
    }

    /// Returns the findings when the proof of D7 is `proof`.
    fn found_for(proof: &str) -> Vec<String> {
        found(&page(|number| (number == "D7").then(|| format!("| D7 | {proof} |\n"))))
    }

    #[test]
    fn open_proved_and_partly_proved_pass() {
        for proof in ["open", "`proved`", "`proved`, `proved`", "`proved`, open: the rest", "open: all of it"]
        {
            assert_eq!(found_for(proof), [""; 0], "{proof}");
        }
    }

    #[test]
    fn a_test_that_does_not_exist_is_found() {
        assert_eq!(found_for("`proved`, `promised`"), ["D7 names `promised`, which does not exist"]);
        assert_eq!(found_for("`helper`"), ["D7 names `helper`, which does not exist"]);
    }

    #[test]
    fn a_test_that_is_ignored_is_found() {
        assert_eq!(found_for("`asleep`"), ["D7 names `asleep`, which is ignored in crates/a/tests/it.rs"]);
    }

    #[test]
    fn a_proof_in_another_form_is_found() {
        for proof in
            ["", "proved", "later", "opened", "`proved` `proved`", "`proved`,", "`proved`, open", "open:"]
        {
            assert_eq!(found_for(proof).len(), 1, "{proof:?}");
        }
    }

    #[test]
    fn a_row_without_its_second_cell_is_found() {
        let text = page(|number| (number == "D7").then(|| "| D7 |\n".to_owned()));
        assert_eq!(found(&text), ["D7 has 1 cells, not 2"]);
    }

    #[test]
    fn an_escaped_bar_does_not_end_a_cell() {
        let text = page(|number| (number == "D14").then(|| "| D14 | `{a=b\\|c}` |\n".to_owned()));
        assert_eq!(found_in(&text, &page(|_| None)), []);
    }

    #[test]
    fn a_number_that_is_missing_is_found() {
        assert_eq!(found(&page(|number| (number == "C12").then(String::new))), ["C12 is missing"]);
        assert_eq!(found("").len(), 80);
    }

    #[test]
    fn a_duplicate_number_is_found() {
        let twice = "| B3 | open |\n".repeat(2);
        assert_eq!(found(&page(|number| (number == "B3").then(|| twice.clone()))), ["B3 occurs twice"]);
    }

    #[test]
    fn a_number_out_of_order_is_found() {
        let text = page(|number| match number {
            "E1" => Some("| E2 | open |\n".to_owned()),
            "E2" => Some("| E1 | open |\n".to_owned()),
            _ => None,
        });
        assert_eq!(found(&text), ["E1 is out of order"]);
    }

    #[test]
    fn an_unknown_number_is_found() {
        let text = page(|_| None) + "| F7 | open |\n";
        assert_eq!(found(&text), ["F7 is not a requirement's number"]);
    }

    #[test]
    fn the_specification_is_checked_like_its_proofs() {
        let spec = page(|number| (number == "C12").then(String::new));
        let findings = found_in(&spec, &page(|_| None));
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].what.as_str(), findings[0].location.as_str()), ("C12 is missing", SPEC));
    }

    #[test]
    fn a_repository_without_the_two_pages_is_found() {
        assert_eq!(check(&Tree::new(&[])).len(), 2);
    }
}
