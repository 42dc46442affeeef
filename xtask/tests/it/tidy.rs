//! This repository follows its own rules: one test for each.

use xtask::root;
use xtask::tidy::tree::Tree;
use xtask::tidy::{
    TidyFinding, arrows, cases, circles, commits, features, guarantee, length, names, schemas, spec, thin,
    words,
};

fn tree() -> Tree {
    Tree::read(&root()).expect("the repository is readable")
}

#[track_caller]
fn assert_clean(findings: &[TidyFinding]) {
    let listed: Vec<String> = findings.iter().map(TidyFinding::to_string).collect();
    assert!(findings.is_empty(), "\n\n{}\n", listed.join("\n\n"));
}

#[test]
fn crates_depend_only_on_allowed_crates() {
    assert_clean(&arrows::check(&arrows::packages(&root()).expect("cargo knows the workspace")));
}

#[test]
fn every_test_named_in_the_cases_exists_and_runs() {
    assert_clean(&cases::check(&tree()));
}

#[test]
fn modules_do_not_depend_on_each_other_in_cycles() {
    assert_clean(&circles::check(&tree()));
}

#[test]
fn no_two_api_types_share_a_schema_name() {
    assert_clean(&schemas::check(&tree()));
}

#[test]
fn tests_enable_only_shipped_features() {
    assert_clean(&features::check(&features::trees(&root()).expect("cargo knows the features")));
}

#[test]
fn every_public_module_documents_its_guarantee() {
    assert_clean(&guarantee::check(&tree()));
}

#[test]
fn no_file_is_too_long() {
    assert_clean(&length::check(&tree()));
}

#[test]
fn type_names_mean_one_thing() {
    assert_clean(&names::check(&tree()));
}

#[test]
fn every_test_named_in_the_specification_exists_and_runs() {
    assert_clean(&spec::check(&tree()));
}

#[test]
fn commands_are_thin_and_leave_the_store_to_the_api() {
    assert_clean(&thin::check(&tree()));
}

#[test]
fn no_text_has_a_banned_word() {
    assert_clean(&words::check(&tree()));
}

#[test]
fn every_commit_says_what_and_why() {
    assert_clean(&commits::check(&commits::history(&root())));
}
