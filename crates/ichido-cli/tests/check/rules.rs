//! Every rule is listed, explained, and found by the command as its page says.

use std::path::Path;

use ichido_core::boundary::{Rule, Severity, UNREADABLE, rules};

use super::place::{clean, fresh, starting};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_list_is_that_of_the_docs() {
    let out = fresh().check(&["--list"]).quietly(0);
    let mut lines = out.lines();
    assert_eq!(lines.next().map(|head| head.split_whitespace().next()), Some(Some("RULE")));
    // `| [ICH-B000](ICH-B000.md) | error | C8 | … |`
    let readme = page("README.md");
    let rows = readme.lines().filter(|line| line.starts_with("| [ICH-"));
    let documented: Vec<Vec<String>> = rows
        .map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .map(|cells: Vec<String>| {
            let id = cells[0].trim_start_matches('[').split(']').next().unwrap_or_default();
            vec![id.to_owned(), cells[1].clone(), cells[2].clone(), cells[3].clone()]
        })
        .collect();
    let listed: Vec<Vec<String>> = lines
        .map(|line| {
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
        })
        .collect();
    assert_eq!(listed, documented);
}

#[test]
fn each_rule_is_explained_as_its_page_does() {
    let folder = fresh();
    for Rule { id, .. } in rules() {
        let expected = page(&format!("{id}.md"));
        assert_eq!(folder.check(&["--explain", id]).quietly(0), expected);
    }
    assert_eq!(
        folder.check(&["--explain", "ich-b020"]).quietly(0),
        page("ICH-B020.md"),
        "case does not matter"
    );
    let err = folder.check(&["--explain", "ICH-B999"]).refused();
    assert!(err.contains("there is no rule \"ICH-B999\"; `ichido check --list` names them all"), "{err}");
}

#[test]
fn each_failing_example_is_found_and_each_mended_one_is_clean() {
    for rule in rules() {
        let example = rule.example;
        let given = || {
            let folder = starting();
            example.without.iter().for_each(|file| folder.put(file, "", "null"));
            folder
        };
        let folder = given();
        folder.put(example.file, example.pointer, example.failing);
        let failing = folder.check(&["."]);
        if *rule == UNREADABLE {
            let err = failing.refused();
            assert!(err.contains(&format!("\n  {}:", example.file)), "{err}");
        } else {
            let out = failing.quietly(1);
            let heading = format!("{} {}: {}\n  where: ", rule.severity.as_str(), rule.id, rule.title);
            let headings =
                out.lines().filter(|line| line.starts_with("error ") || line.starts_with("warning "));
            let others: Vec<&str> = headings.filter(|line| !line.contains(rule.id)).collect();
            assert!(out.contains(&heading) && others.is_empty(), "{}: {out}", rule.id);
            assert!(out.ends_with(&format!("\nwhy: ichido check --explain {}\n", rule.id)), "{out}");
        }
        let folder = given();
        folder.put(example.file, example.pointer, example.mended);
        let out = folder.check(&["."]).quietly(0);
        assert!(out.ends_with("nothing to mend\n"), "{}: {out}", rule.id);
    }
}

#[test]
fn a_warning_is_a_finding_and_can_be_allowed_with_a_reason() {
    let folder = starting();
    folder.put("adapter.json", "/observability/redaction", "[]");
    let warned = folder.check(&["."]).quietly(1);
    assert!(warned.contains("\n4 files: 0 errors, 1 warning\n"), "{warned}");
    let allowed = folder.check(&["--allow", "ich-b090=no logs \u{1b}here", "."]);
    assert_eq!(allowed.code, Some(0));
    assert_eq!(allowed.out, clean(4));
    let said = "ichido check: allowed ICH-B090 at adapter.json:";
    assert!(
        allowed.err.starts_with(said) && allowed.err.contains("(reason: no logs \\u{1b}here)"),
        "{allowed:?}"
    );
    let needless = folder.check(&["--allow", "ICH-B034=partner", "--allow", "ICH-B090=none", "."]);
    assert!(needless.err.contains("--allow ICH-B034 is not needed"), "{needless:?}");
}

#[test]
fn what_cannot_be_allowed_is_refused_with_the_reason() {
    let folder = starting();
    let error = rules().find(|rule| rule.severity == Severity::Error && **rule != UNREADABLE).expect("one");
    for (flag, what) in [
        (format!("{}=meant", error.id), "is an error, on which `ichido proxy` does not start"),
        ("ICH-B000=meant".to_owned(), "what cannot be read cannot be judged"),
        ("ICH-B999=meant".to_owned(), "there is no rule \"ICH-B999\""),
        ("ICH-B090".to_owned(), "gives no reason; write RULE=REASON"),
        ("ICH-B090= ".to_owned(), "gives no reason; whoever reads it next needs one"),
    ] {
        let err = folder.check(&["--allow", &flag, "."]).refused();
        assert!(err.contains(what), "{flag}: {err}");
    }
    let twice = folder.check(&["--allow", "ICH-B090=a", "--allow", "ich-b090=b", "."]).refused();
    assert!(twice.contains("ICH-B090 is given twice"), "{twice}");
}
