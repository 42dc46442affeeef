//! Every rule is listed, explained, and found by the command as its page says.

use std::path::Path;

use ichido_boundary::{Severity, UNREADABLE, rules};

use super::fixture::{clean, fresh, judged, starting};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn rule_list_matches_the_docs() {
    let out = fresh().check(&["--list"]).quietly(0);
    let mut lines = out.lines();
    assert_eq!(lines.next().map(|head| head.split_whitespace().next()), Some(Some("RULE")));
    // `| [ICH-B000](ICH-B000.md) | error | … |`
    let readme = page("README.md");
    let rows = readme.lines().filter(|line| line.starts_with("| [ICH-"));
    let documented: Vec<Vec<String>> = rows
        .map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .map(|cells: Vec<String>| {
            let id = cells[0].trim_start_matches('[').split(']').next().unwrap_or_default();
            vec![id.to_owned(), cells[1].clone(), cells[2].clone()]
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
fn explain_prints_the_rules_page() {
    let folder = fresh();
    for id in rules().map(|rule| rule.id) {
        let expected = page(&format!("{id}.md"));
        assert_eq!(folder.check(&["--explain", id]).quietly(0), expected);
    }
}

#[test]
fn short_rule_ids_work_and_unknown_ones_get_suggestions() {
    let folder = fresh();
    for short in ["ich-b020", "ICH-B20", "b020", "B020", "b20", "020", "20"] {
        assert_eq!(folder.check(&["--explain", short]).quietly(0), page("ICH-B020.md"), "{short}");
    }
    for (unknown, what) in [
        ("ICH-B999", "there is no rule \"ICH-B999\"; similar: ICH-B091 ("),
        ("29", "similar: ICH-B030 ("),
        ("cors", "similar: ICH-B011 (The key passes the CORS list); `ichido check --list` lists all rules"),
        ("zebra", "there is no rule \"zebra\"; `ichido check --list` lists all rules"),
        ("", "there is no rule \"\"; `ichido check --list`"),
        ("99999999", "there is no rule \"99999999\""),
        ("\u{202e}", "there is no rule \"\\u{202e}\""),
    ] {
        let err = folder.check(&["--explain", unknown]).refused();
        assert!(err.contains(what), "{unknown}: {err}");
    }
}

#[test]
fn failing_examples_are_found_and_fixed_ones_pass() {
    for rule in rules() {
        let example = rule.example().expect("each page has one");
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
            let last: Vec<&str> = out.lines().rev().take(2).collect();
            assert_eq!(last[1], format!("why: ichido check --explain {}", rule.id), "{out}");
            assert!(last[0].contains(" files (") && last[0].contains(" error"), "{out}");
        }
        let folder = given();
        folder.put(example.file, example.pointer, example.fixed);
        let out = folder.check(&["."]).quietly(0);
        assert!(out.ends_with("no findings\n"), "{}: {out}", rule.id);
    }
}

#[test]
fn warning_is_a_finding_unless_allowed_with_reason() {
    let folder = starting();
    folder.put("adapter.json", "/observability/redaction", "[]");
    let warned = folder.check(&["."]).quietly(1);
    assert!(warned.ends_with(&format!("\n{}: 0 errors, 1 warning\n", judged(4))), "{warned}");
    let allowed = folder.check(&["--allow", "b90=no logs \u{1b}here", "."]).quietly(0);
    assert!(
        allowed.starts_with("allowed ICH-B090: ") && allowed.contains("\n  where: adapter.json:"),
        "{allowed}"
    );
    assert!(allowed.contains("\n  reason: no logs \\u{1b}here\n"), "{allowed}");
    assert!(allowed.ends_with(&clean(4).replace("findings\n", "findings, 1 allowed\n")), "{allowed}");
    let needless = folder.check(&["--allow", "ICH-B034=partner", "--allow", "ICH-B090=none", "."]);
    assert!(needless.err.contains("--allow ICH-B034 is not needed"), "{needless:?}");
}

#[test]
fn invalid_allowance_is_refused_with_the_reason() {
    let folder = starting();
    let error = rules().find(|rule| rule.severity == Severity::Error && **rule != UNREADABLE).expect("one");
    for (flag, what) in [
        (format!("{}=meant", error.id), "is an error, and `ichido proxy` does not start with it"),
        ("ICH-B000=meant".to_owned(), "an unreadable file cannot be checked"),
        ("ICH-B999=meant".to_owned(), "there is no rule \"ICH-B999\""),
        ("ICH-B090".to_owned(), "has no reason; write RULE=REASON"),
        ("ICH-B090= ".to_owned(), "has no reason; explain it in words"),
        ("ICH-B090=…!?".to_owned(), "has no reason; explain it in words"),
    ] {
        let err = folder.check(&["--allow", &flag, "."]).refused();
        assert!(err.contains(what), "{flag}: {err}");
    }
    let twice = folder.check(&["--allow", "ICH-B090=a", "--allow", "ich-b090=b", "."]).refused();
    assert!(twice.contains("ICH-B090 is given twice"), "{twice}");
}
