//! Checks that the modules of a crate use each other in one direction.
//!
//! Guarantee: no module at the root of a crate uses another that uses it, directly or indirectly. So each can be read,
//! moved and tested with what is below it. Inside a module its parts may use each other, and tests may use everything.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::TidyFinding;
use super::tree::Tree;

/// Each module of one crate, and those that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Products whose modules still use each other in both directions.
const ALLOWED: [&str; 1] = ["apps/bookmarks"];

/// Finds the cycles in each crate.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut crates: BTreeMap<&str, Uses> = BTreeMap::new();
    for (path, text) in tree.rust() {
        let Some((package, file)) = path.split_once("/src/") else { continue };
        let is_test = file.ends_with("tests.rs") || file.contains("tests/");
        let module = file.split('/').next().unwrap_or(file).trim_end_matches(".rs");
        if is_test || ALLOWED.contains(&package) || matches!(module, "lib" | "main") {
            continue;
        }
        // Another rule finds files that are not Rust.
        let Ok(tokens) = TokenStream::from_str(text) else { continue };
        collect(tokens, crates.entry(package).or_default().entry(module.to_owned()).or_default());
    }
    crates.iter().flat_map(|(package, uses)| circles(package, uses)).collect()
}

/// Returns what a file uses from the root of its crate.
fn collect(tokens: TokenStream, used: &mut BTreeSet<String>) {
    let mut tokens = tokens.into_iter().peekable();
    let mut is_for_tests = false;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                let attribute = tokens.peek().map(ToString::to_string).unwrap_or_default();
                is_for_tests |= attribute.replace(' ', "") == "[cfg(test)]";
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => is_for_tests = false,
            TokenTree::Ident(word) if word == "crate" => {
                let is_path =
                    |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ':');
                while tokens.next_if(is_path).is_some() {}
                match tokens.peek() {
                    Some(TokenTree::Ident(name)) => _ = used.insert(name.to_string()),
                    Some(TokenTree::Group(group)) => used.extend(firsts(group.stream())),
                    _ => (),
                }
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && is_for_tests => {
                is_for_tests = false;
            }
            TokenTree::Group(group) => collect(group.stream(), used),
            _ => (),
        }
    }
}

/// Returns the first name of each part of `{a::b, c}`.
fn firsts(group: TokenStream) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_first = true;
    for token in group {
        match token {
            TokenTree::Ident(name) if is_first => {
                names.push(name.to_string());
                is_first = false;
            }
            TokenTree::Punct(mark) if mark.as_char() == ',' => is_first = true,
            _ => (),
        }
    }
    names
}

/// Returns a finding for each module that reaches itself, with the modules on the path.
fn circles(package: &str, uses: &Uses) -> Vec<TidyFinding> {
    let mut found: BTreeSet<Vec<&str>> = BTreeSet::new();
    for module in uses.keys() {
        let circle: Vec<&str> = uses
            .keys()
            .filter(|other| reaches(uses, module, other) && reaches(uses, other, module))
            .map(String::as_str)
            .collect();
        if 1 < circle.len() {
            found.insert(circle);
        }
    }
    let finding = |circle: &Vec<&str>| TidyFinding {
        what: format!("these modules depend on each other in a cycle: {}", circle.join(", ")),
        location: format!("{package}/src"),
        fix: "move the shared code into a module below both, or merge the modules".to_owned(),
    };
    found.iter().map(finding).collect()
}

/// Returns whether one module uses another, directly or indirectly.
fn reaches(uses: &Uses, from: &str, to: &str) -> bool {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut next: Vec<&str> = vec![from];
    while let Some(module) = next.pop() {
        for used in uses.get(module).into_iter().flatten() {
            if used == to && module != to {
                return true;
            }
            if seen.insert(used) {
                next.push(used);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_over_several_modules() {
        let tree = Tree::new(&[
            ("crates/a/src/one.rs", "use crate::two::Two;"),
            ("crates/a/src/two/inner.rs", "use crate::{four, three::Three};"),
            ("crates/a/src/three.rs", "fn f() { crate::one::g() }"),
            ("crates/a/src/four.rs", "fn f() {}"),
        ]);
        let findings = check(&tree);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].what, "these modules depend on each other in a cycle: one, three, two");
    }

    #[test]
    fn one_way_is_fine_and_tests_may_use_everything() {
        let tree = Tree::new(&[
            ("crates/a/src/one.rs", "use crate::two::Two; #[cfg(test)] mod tests { use crate::two; }"),
            ("crates/a/src/two.rs", "// crate::one\n#[cfg(test)]\nmod tests { use crate::one::One; }"),
            ("crates/a/src/two/tests.rs", "use crate::one::One;"),
            ("crates/b/src/one.rs", "use crate::one::inner;"),
        ]);
        assert_eq!(check(&tree), []);
    }
}
