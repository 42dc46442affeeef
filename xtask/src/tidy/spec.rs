//! The specification names the tests that prove it, and they exist.
//!
//! Guarantee: `docs/spec.md` has every requirement once and in order, and each row's last cell names tests
//! that are in the workspace and run, or says `open`. So nobody can take a promise for a proof.
//!
//! A row reads `` | A1 | what is required | `a_test`, `another_test` | ``. Where nothing proves it yet the
//! last cell is `open`; where the tests prove a part, it ends with `open: what is missing`. Tests in Rust are named by their functions, those
//! in JavaScript by their titles.
//!
//! Tests are found by their bare function names in the token stream of each file. Lines would take a test in a comment for one; a full parser
//! does not look into `proptest!`; asking the built binaries (`--list`) would need a tree that compiles. The price: a test whose name a macro
//! generates is not found.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::js;
use super::rust::Source;
use super::tree::Tree;

const PLACE: &str = "docs/spec.md";
/// The sections, each with its last number.
const SECTIONS: [(char, u32); 6] = [('A', 15), ('B', 12), ('C', 12), ('D', 19), ('E', 6), ('F', 6)];

/// Finds requirements that are missing, repeated or out of order, and proofs that do not exist.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.get(PLACE) else {
        return vec![finding(0, "there is no specification".to_owned(), "write it")];
    };
    let rows: Vec<Row<'_>> = rows(text).collect();
    let tests = tests(tree);
    let mut findings = check_numbers(&rows);
    findings.extend(rows.iter().flat_map(|row| check_row(row, &tests)));
    findings
}

/// A line of a table that begins with a requirement's number.
struct Row<'a> {
    line: usize,
    number: &'a str,
    /// All cells, the number first.
    cells: Vec<&'a str>,
}

fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let cells = cells(line)?;
        let number = *cells.first()?;
        is_number(number).then_some(Row { line: index + 1, number, cells })
    })
}

/// The cells of `| a | b |`; a bar after a backslash belongs to its cell.
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

/// A letter and digits, like `D14`.
fn is_number(cell: &str) -> bool {
    let mut chars = cell.chars();
    chars.next().is_some_and(|c| c.is_ascii_uppercase())
        && !chars.as_str().is_empty()
        && chars.all(|c| c.is_ascii_digit())
}

fn check_numbers(rows: &[Row<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let wanted: Vec<String> = SECTIONS
        .iter()
        .flat_map(|(section, last)| (1..=*last).map(move |n| format!("{section}{n}")))
        .collect();
    let mut position_last = None;
    let mut seen = BTreeSet::new();
    for row in rows {
        let Some(position) = wanted.iter().position(|number| number == row.number) else {
            let mend = "remove the row, or raise its section in xtask/src/tidy/spec.rs";
            findings.push(finding(row.line, format!("{} is not a requirement's number", row.number), mend));
            continue;
        };
        if !seen.insert(row.number) {
            findings.push(finding(row.line, format!("{} stands twice", row.number), "keep one of the rows"));
        } else if Some(position) < position_last {
            findings.push(finding(row.line, format!("{} is out of order", row.number), "sort the rows"));
        }
        position_last = position_last.max(Some(position));
    }
    let missing = wanted.iter().filter(|number| !seen.contains(number.as_str()));
    findings.extend(missing.map(|number| {
        finding(0, format!("{number} is missing"), "a requirement is never dropped; add its row")
    }));
    findings
}

fn check_row(row: &Row<'_>, tests: &BTreeMap<String, Vec<Test>>) -> Vec<Finding> {
    let &[_, _, proof] = row.cells.as_slice() else {
        let what = format!("{} has {} cells, not 3", row.number, row.cells.len());
        return vec![finding(
            row.line,
            what,
            "write number, requirement and proof; a bar inside a cell is `\\|`",
        )];
    };
    let names = match names(proof) {
        Ok(names) => names,
        Err(problem) => {
            let mend =
                "write names of tests in backticks with commas between, or `open`, or `open: …` at the end";
            return vec![finding(row.line, format!("{}: {problem}", row.number), mend)];
        }
    };
    let check_name = |name: &str| match tests.get(name).map(Vec::as_slice) {
        None => Some(finding(
            row.line,
            format!("{} names `{name}`, and there is no such test", row.number),
            "name the test as it is called now, or say `open`",
        )),
        Some(found) => found.iter().find(|test| test.is_ignored).map(|test| {
            let what = format!("{} names `{name}`, which is ignored in {}", row.number, test.file);
            finding(row.line, what, "let it run, or say `open`")
        }),
    };
    names.into_iter().filter_map(check_name).collect()
}

/// The tests that the last cell of a row names.
pub(super) fn names(proof: &str) -> Result<Vec<&str>, String> {
    let mut names = Vec::new();
    let mut rest = proof;
    loop {
        if let Some(after) = rest.strip_prefix("open") {
            return match after.strip_prefix(':').map(str::trim) {
                Some("") => Err("`open:` without what is missing".to_owned()),
                Some(_) => Ok(names),
                None if !after.is_empty() => Err(format!("`{rest}` is neither a test nor `open`")),
                None if names.is_empty() => Ok(names),
                None => Err("`open` after tests, without what is missing".to_owned()),
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

/// All tests by name. Two crates may prove the same claim by the same name; then both must run.
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

/// A finding at `line` of the specification; 0 is the file as a whole.
fn finding(line: usize, what: String, mend: &str) -> Finding {
    let place = if line == 0 { PLACE.to_owned() } else { format!("{PLACE}:{line}") };
    Finding { what, place, mend: mend.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str =
        "#[test] fn proved() {}\n#[test] #[ignore = \"slow\"] fn asleep() {}\nfn helper() {}\n";

    /// A whole specification, all open but for the rows that `row` writes.
    fn spec(row: impl Fn(&str) -> Option<String>) -> String {
        let mut text = String::from("# Spec\n| # | requirement | tests |\n|---|---|---|\n");
        for (section, last) in SECTIONS {
            for n in 1..=last {
                let number = format!("{section}{n}");
                text += &row(&number).unwrap_or_else(|| format!("| {number} | must | open |\n"));
            }
        }
        text
    }

    fn found(text: &str) -> Vec<String> {
        let tree = Tree::of(&[(PLACE, text), ("crates/a/tests/it.rs", TESTS)]);
        check(&tree).into_iter().map(|finding| finding.what).collect()
    }

    /// The findings when the proof of D7 is `proof`.
    fn found_for(proof: &str) -> Vec<String> {
        found(&spec(|number| (number == "D7").then(|| format!("| D7 | must | {proof} |\n"))))
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
        assert_eq!(found_for("`proved`, `promised`"), ["D7 names `promised`, and there is no such test"]);
        assert_eq!(found_for("`helper`"), ["D7 names `helper`, and there is no such test"]);
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
    fn a_row_without_its_third_cell_is_found() {
        let text = spec(|number| (number == "D7").then(|| "| D7 | must |\n".to_owned()));
        assert_eq!(found(&text), ["D7 has 2 cells, not 3"]);
    }

    #[test]
    fn an_escaped_bar_does_not_end_a_cell() {
        let text = spec(|number| (number == "D14").then(|| "| D14 | `{a=b\\|c}` | `proved` |\n".to_owned()));
        assert_eq!(found(&text), [""; 0]);
    }

    #[test]
    fn a_number_that_is_missing_is_found() {
        assert_eq!(found(&spec(|number| (number == "C12").then(String::new))), ["C12 is missing"]);
        assert_eq!(found("").len(), 70);
    }

    #[test]
    fn a_number_that_stands_twice_is_found() {
        let twice = "| B3 | must | open |\n".repeat(2);
        assert_eq!(found(&spec(|number| (number == "B3").then(|| twice.clone()))), ["B3 stands twice"]);
    }

    #[test]
    fn a_number_out_of_order_is_found() {
        let text = spec(|number| match number {
            "E1" => Some("| E2 | must | open |\n".to_owned()),
            "E2" => Some("| E1 | must | open |\n".to_owned()),
            _ => None,
        });
        assert_eq!(found(&text), ["E1 is out of order"]);
    }

    #[test]
    fn a_number_that_nobody_asked_for_is_found() {
        let text = spec(|_| None) + "| F7 | must | open |\n";
        assert_eq!(found(&text), ["F7 is not a requirement's number"]);
    }

    #[test]
    fn a_repository_without_a_specification_is_found() {
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
