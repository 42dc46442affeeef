//! The pages in `docs/probe` match the table of rules.
//!
//! `UPDATE_DOCS=1 cargo test -p ichido-probe --test it pages` rewrites the list.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use ichido_core::ledger::Profile;
use ichido_probe::{Subject, rules};

#[test]
fn each_probe_page_has_a_rule_and_the_list_is_complete() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/probe");
    let mut list = String::from(
        "# Rules of `ichido probe`\n\n\
         Each page says why the rule exists, how to keep it, and what each profile expects. The guide is\n\
         [Is your API idempotent?](../guides/probe.md)\n\n\
         | rule | severity | requirement |\n|---|---|---|\n",
    );
    for rule in rules() {
        _ = writeln!(list, "| [{0}]({0}.md) | {1} | {2} |", rule.id, rule.severity, rule.title);
    }
    let path = folder.join("README.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &list).unwrap();
    }
    let hint = "run `UPDATE_DOCS=1 cargo test -p ichido-probe --test it pages`";
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == list,
        "docs/probe/README.md differs; {hint}"
    );
    let expected: BTreeSet<String> =
        rules().map(|rule| format!("{}.md", rule.id)).chain(["README.md".to_owned()]).collect();
    let found = std::fs::read_dir(folder).unwrap();
    let found: BTreeSet<String> =
        found.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(found, expected);
}

#[test]
fn each_rule_says_what_every_profile_expects() {
    for rule in rules() {
        assert!(!rule.title.ends_with('.') && rule.title.len() < 100, "{}", rule.id);
        assert!(rule.why.ends_with('.') && rule.help.ends_with('.'), "{}", rule.id);
        for profile in Profile::ALL.into_iter().filter(|_| rule.subject == Subject::Api) {
            let row = format!("| {profile} | {} |", rule.expected(profile));
            assert!(rule.page.contains(&row), "{} {profile}", rule.id);
        }
        if rule.subject == Subject::Webhook {
            let expected = rule.expected(Profile::Ichido);
            assert!(!expected.is_empty() && rule.page.trim_end().ends_with(expected), "{}", rule.id);
        }
    }
    assert!(rules().is_sorted_by_key(|rule| rule.id));
}
