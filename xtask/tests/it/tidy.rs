//! This repository follows its own rules: one test for each.

use xtask::root;
use xtask::tidy::tree::Tree;
use xtask::tidy::{
    TidyFinding, arrows, cases, circles, features, guarantee, length, names, schemas, spec, thin,
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
fn no_crate_depends_against_the_arrows() {
    assert_clean(&arrows::check(&arrows::packages(&root()).expect("cargo knows the workspace")));
}

#[test]
fn every_test_named_in_the_cases_exists_and_runs() {
    assert_clean(&cases::check(&tree()));
}

#[test]
fn no_modules_use_each_other_in_a_circle() {
    assert_clean(&circles::check(&tree()));
}

#[test]
fn no_two_types_share_a_name_in_the_description_of_the_api() {
    assert_clean(&schemas::check(&tree()));
}

#[test]
fn the_tests_switch_on_no_feature_that_is_not_shipped() {
    assert_clean(&features::check(&features::trees(&root()).expect("cargo knows the features")));
}

#[test]
fn every_public_module_opens_with_its_guarantee() {
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
fn the_commands_are_thin_and_only_what_opens_or_examines_a_store_names_it() {
    assert_clean(&thin::check(&tree()));
}
