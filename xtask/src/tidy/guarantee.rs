//! Checks that every module has docs, and every public one a guarantee.
//!
//! Guarantee: each source file of our crates opens with `//!` docs, and each public module, including the crate's root,
//! has a line there that begins with `Guarantee:`. An inline module is covered by the guarantee of its file. Test code
//! is left out, and a module without a single item needs none.
//!
//! A module is public if it is declared `pub mod name;`, whatever re-exports reach it: that is easy to see and to
//! check.

use super::TidyFinding;
use super::rust::{Module, Source};
use super::tree::Tree;

const MARK: &str = "Guarantee:";

/// Finds files without docs, and public modules without a guarantee.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    tree.rust()
        .filter(|(path, _)| is_source(path))
        .flat_map(|(path, text)| check_file(tree, path, text))
        .collect()
}

/// Tests explain themselves with their names.
fn is_source(path: &str) -> bool {
    let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
    path.contains("/src/") && !is_test
}

fn check_file(tree: &Tree, path: &str, text: &str) -> Vec<TidyFinding> {
    let source = match Source::read(text) {
        Ok(source) => source,
        Err(error) => {
            return vec![finding(format!("cannot parse the file as Rust: {error}"), path, "make it compile")];
        }
    };
    let mut findings = Vec::new();
    if source.docs.is_empty() {
        findings.push(finding(
            "the file does not open with `//!` docs".to_owned(),
            path,
            "state its purpose in the first lines",
        ));
    }
    if path.ends_with("/src/lib.rs") && !has_guarantee(&source) {
        findings.push(missing_guarantee("the crate", path));
    }
    let public = source.modules.iter().filter(|module| module.is_public);
    findings.extend(public.filter_map(|module| check_module(tree, path, module)));
    findings
}

fn check_module(tree: &Tree, declared_in: &str, module: &Module) -> Option<TidyFinding> {
    let name = format!("the public module `{}`", module.path.replace('/', "::"));
    let folder = folder_of_modules(declared_in);
    let locations = [format!("{folder}/{}.rs", module.path), format!("{folder}/{}/mod.rs", module.path)];
    let Some((location, text)) = locations.iter().find_map(|location| Some((location, tree.get(location)?)))
    else {
        let fix = format!("move it to {}, without a `#[path]`", locations[0]);
        return Some(finding(format!("{name} has no file at the usual path"), declared_in, &fix));
    };
    // A file that is not Rust is reported on its own.
    let source = Source::read(text).ok()?;
    (!has_guarantee(&source)).then(|| missing_guarantee(&name, location))
}

/// Returns where the compiler looks for the modules that the file at `path` declares.
fn folder_of_modules(path: &str) -> &str {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => folder,
        _ => path.trim_end_matches(".rs"),
    }
}

fn has_guarantee(source: &Source) -> bool {
    has_mark(&source.docs) || !source.has_items
}

fn has_mark(docs: &[String]) -> bool {
    docs.iter().any(|line| line.starts_with(MARK))
}

fn missing_guarantee(what: &str, location: &str) -> TidyFinding {
    let fix =
        format!("add a line to its `//!` docs that begins with `{MARK}` and states what callers can rely on");
    finding(format!("{what} does not document its guarantee"), location, &fix)
}

fn finding(what: String, location: &str, fix: &str) -> TidyFinding {
    TidyFinding { what, location: location.to_owned(), fix: fix.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "//! A crate.\n//!\n//! Guarantee: it holds.\n\npub mod key;\nmod inner;\n";
    const KEY: &str = "//! Keys.\n//!\n//! Guarantee: they fit.\n\npub struct Key;\n";
    const INNER: &str = "//! Helpers of the crate.\n\nfn help() {}\n";

    fn found(lib: &str, key: &str, inner: &str) -> Vec<(String, String)> {
        let files =
            [("crates/a/src/lib.rs", lib), ("crates/a/src/key.rs", key), ("crates/a/src/inner.rs", inner)];
        check(&Tree::new(&files)).into_iter().map(|finding| (finding.location, finding.what)).collect()
    }

    fn one(location: &str, what: &str) -> Vec<(String, String)> {
        vec![(location.to_owned(), what.to_owned())]
    }

    #[test]
    fn a_crate_that_follows_the_rule_passes() {
        assert_eq!(found(LIB, KEY, INNER), []);
    }

    #[test]
    fn a_public_module_without_a_guarantee_is_found() {
        let key = "//! Keys. They come without any Guarantee: none.\n\npub struct Key;\n";
        let what = "the public module `key` does not document its guarantee";
        assert_eq!(found(LIB, key, INNER), one("crates/a/src/key.rs", what));
    }

    #[test]
    fn a_guarantee_in_an_ordinary_comment_does_not_count() {
        let key = "//! Keys.\n// Guarantee: they fit.\n\npub struct Key;\n";
        assert_eq!(found(LIB, key, INNER).len(), 1);
    }

    #[test]
    fn a_private_module_needs_only_docs() {
        let what = "the file does not open with `//!` docs";
        assert_eq!(found(LIB, KEY, "fn help() {}\n"), one("crates/a/src/inner.rs", what));
    }

    #[test]
    fn a_crate_root_without_a_guarantee_is_found() {
        let lib = "//! A crate.\n\npub mod key;\n";
        let what = "the crate does not document its guarantee";
        assert_eq!(found(lib, KEY, INNER), one("crates/a/src/lib.rs", what));
    }

    #[test]
    fn an_inline_module_is_covered_by_its_file() {
        let lib = format!(
            "{LIB}pub mod limits {{ pub const MAX: u8 = 1; }}
"
        );
        assert_eq!(found(&lib, KEY, INNER), []);
    }

    #[test]
    fn a_nested_module_is_searched_beside_its_parent() {
        let files = [
            ("apps/b/src/main.rs", "//! A program.\n\nmod page;\n"),
            ("apps/b/src/page.rs", "//! Pages.\n\npub mod list;\npub mod lost;\n"),
            ("apps/b/src/page/list.rs", "//! The list.\n\nfn list() {}\n"),
        ];
        let findings = check(&Tree::new(&files));
        let locations: Vec<&str> = findings.iter().map(|finding| finding.location.as_str()).collect();
        assert_eq!(locations, ["apps/b/src/page/list.rs", "apps/b/src/page.rs"]);
        assert!(findings[1].what.contains("has no file"));
    }

    #[test]
    fn tests_and_modules_without_items_are_left_out() {
        let lib = format!("{LIB}#[cfg(test)]\nmod tests;\n");
        let files = [
            ("crates/a/src/lib.rs", lib.as_str()),
            ("crates/a/src/key.rs", "//! Not written yet.\n"),
            ("crates/a/src/inner.rs", INNER),
            ("crates/a/src/tests.rs", "fn helper() {}\n"),
            ("crates/a/tests/it.rs", "fn helper() {}\n"),
        ];
        assert_eq!(check(&Tree::new(&files)), []);
    }
}
