//! What changed lately, by git, and what must therefore be checked.
//!
//! Guarantee: without history, everything counts as changed.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr as _;

use proc_macro2::{TokenStream, TokenTree};

use crate::line::Line;
use crate::tidy::arrows::Package;
use crate::tidy::tree::Tree;

/// How many commits back a change still counts as new.
const COMMITS: u32 = 30;
/// Our libraries, by the name that code uses, and where they are.
const LIBRARIES: [(&str, &str); 5] = [
    ("fake_llm", "testing/fake-llm"),
    ("ichido", "crates/ichido"),
    ("ichido_bedrock", "crates/ichido-bedrock"),
    ("ichido_core", "crates/ichido-core"),
    ("ichido_store", "crates/ichido-store"),
];
/// A line of a public interface.
const PUBLIC: &str = r"^[[:space:]]*pub [a-z]";
/// A line of `Cargo.lock` that differs when a crate from a registry comes, goes or changes.
const LOCKED: &str = "^(checksum|source) = ";

/// Whether crates in these folders, or the public interface of a module of ours that they use, changed.
pub(super) fn crates_changed(root: &Path, folders: &[&str]) -> Result<bool, String> {
    let tree = Tree::read(root)?;
    let sources = tree.rust().filter(|(path, _)| folders.iter().any(|folder| path.starts_with(folder)));
    let used: BTreeSet<String> = sources.flat_map(|(_, text)| modules_used(text, &tree)).collect();
    let used: Vec<&str> = used.iter().map(String::as_str).collect();
    Ok(changed(root, ".", folders) || changed(root, PUBLIC, &used))
}

/// Whether a dependency, or the rules for dependencies, changed.
pub(super) fn dependencies_changed(root: &Path) -> bool {
    changed(root, LOCKED, &["Cargo.lock"]) || changed(root, ".", &["deny.toml"])
}

/// Whether a line that matches `pattern` came or went in these paths, committed or not.
fn changed(root: &Path, pattern: &str, paths: &[&str]) -> bool {
    let since = format!("HEAD~{COMMITS}");
    let line = Line::new("git", &["diff", "--name-only", "-G", pattern, &since, "--"]).and(paths);
    line.answer(root).is_none_or(|files| !files.is_empty())
}

/// The files with the modules of our libraries that a file names, as paths for git.
fn modules_used(text: &str, tree: &Tree) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    if let Ok(tokens) = TokenStream::from_str(text) {
        find_modules(tokens, tree, &mut used);
    }
    used
}

fn find_modules(tokens: TokenStream, tree: &Tree, used: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => find_modules(group.stream(), tree, used),
            TokenTree::Ident(word) => {
                let library = LIBRARIES.iter().find(|(name, _)| word == name);
                // `name :: next`: two marks stand between them.
                if let (Some((_, folder)), Some(next)) = (library, tokens.get(index + 3)) {
                    used.insert(format!("{folder}/src/lib.rs"));
                    for module in first_words(next) {
                        used.insert(format!("{folder}/src/{module}.rs"));
                        // `name :: module :: inner`, if that is a file, else all that is in the module.
                        let inner =
                            tokens.get(index + 6).map(|inner| format!("{folder}/src/{module}/{inner}"));
                        let inner = inner.filter(|inner| tree.get(&format!("{inner}.rs")).is_some());
                        let inner = inner.unwrap_or_else(|| format!("{folder}/src/{module}"));
                        used.extend([format!("{inner}.rs"), format!("{inner}/")]);
                    }
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => (),
        }
    }
}

/// The module in `module::Item`, or the modules in `{one::Item, other}`.
fn first_words(token: &TokenTree) -> Vec<String> {
    match token {
        TokenTree::Ident(word) => vec![word.to_string()],
        TokenTree::Group(group) => {
            let mut words = Vec::new();
            let mut is_first = true;
            for token in group.stream() {
                if let (TokenTree::Ident(word), true) = (&token, is_first) {
                    words.push(word.to_string());
                }
                is_first = matches!(&token, TokenTree::Punct(mark) if mark.as_char() == ',');
            }
            words
        }
        TokenTree::Punct(_) | TokenTree::Literal(_) => Vec::new(),
    }
}

/// The crates with uncommitted changes, or else with changes in the last commit, and all that use them.
///
/// A change outside of all crates, in a document or a script, concerns the rules about the repository: `xtask`.
pub(super) fn crates_to_test(root: &Path, packages: &[Package]) -> Result<BTreeSet<String>, String> {
    let git = |words: &[&str]| {
        let line = Line::new("git", words);
        line.answer(root).ok_or_else(|| format!("`{line}` failed; `--quick` needs git"))
    };
    let untracked = git(&["ls-files", "--others", "--exclude-standard"])?;
    let mut files = format!("{}{untracked}", git(&["diff", "--name-only", "HEAD"])?);
    if files.is_empty() {
        files = git(&["diff", "--name-only", "HEAD~1"])?;
    }
    let changed = files.lines().map(|file| package_of(file, packages).unwrap_or("xtask").to_owned());
    Ok(with_users(changed.collect(), packages))
}

/// The package whose folder, the innermost, holds the file.
fn package_of<'a>(file: &str, packages: &'a [Package]) -> Option<&'a str> {
    let folder =
        |package: &Package| package.manifest.strip_suffix("Cargo.toml").unwrap_or_default().to_owned();
    let holders = packages.iter().filter(|package| {
        let folder = folder(package);
        !folder.is_empty() && file.starts_with(&folder)
    });
    holders.max_by_key(|package| folder(package).len()).map(|package| package.name.as_str())
}

fn with_users(mut found: BTreeSet<String>, packages: &[Package]) -> BTreeSet<String> {
    loop {
        let needs_one = |package: &&Package| package.needs.iter().any(|need| found.contains(need));
        let users = packages.iter().filter(needs_one).map(|package| package.name.clone());
        let users: Vec<String> = users.collect();
        let before = found.len();
        found.extend(users);
        if found.len() == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, manifest: &str, needs: &[&str]) -> Package {
        let needs = needs.iter().map(|need| (*need).to_owned()).collect();
        Package { name: name.to_owned(), manifest: manifest.to_owned(), needs }
    }

    fn packages() -> [Package; 4] {
        [
            package("core", "crates/core/Cargo.toml", &["serde"]),
            package("store", "crates/store/Cargo.toml", &["core"]),
            package("bench", "bench/Cargo.toml", &["store"]),
            package("bench-llm", "bench/llm/Cargo.toml", &[]),
        ]
    }

    #[test]
    fn modules_are_found_in_every_form_of_a_path() {
        let text = "use ichido::llm::Model; use ichido_core::{key, time::Timestamp}; fn f() { ichido_store::letter::g() }
            use ichido_store::testing::sqlite::fresh_file;";
        let tree = Tree::of(&[("crates/ichido-store/src/testing/sqlite.rs", "")]);
        let used = modules_used(text, &tree);
        for path in [
            "crates/ichido/src/llm.rs",
            "crates/ichido/src/llm/",
            "crates/ichido-core/src/key.rs",
            "crates/ichido-core/src/time/",
            "crates/ichido-store/src/letter.rs",
            "crates/ichido-store/src/letter/",
            "crates/ichido-store/src/lib.rs",
            "crates/ichido-store/src/testing/sqlite.rs",
        ] {
            assert!(used.contains(path), "{path} is missing in {used:?}");
        }
        assert!(!used.iter().any(|path| path.contains("Timestamp") || path.contains("Model")), "{used:?}");
        assert!(
            !used.contains("crates/ichido-store/src/testing/"),
            "another file of the module is not used: {used:?}"
        );
    }

    #[test]
    fn a_file_belongs_to_the_innermost_package() {
        assert_eq!(package_of("bench/llm/src/main.rs", &packages()), Some("bench-llm"));
        assert_eq!(package_of("bench/src/main.rs", &packages()), Some("bench"));
        assert_eq!(package_of("docs/spec.md", &packages()), None);
    }

    #[test]
    fn users_of_users_are_tested_too() {
        let found = with_users(BTreeSet::from(["core".to_owned()]), &packages());
        assert_eq!(found, ["bench", "core", "store"].map(str::to_owned).into());
    }

    #[test]
    fn without_history_everything_counts_as_changed() {
        let folder = std::env::temp_dir();
        assert!(changed(&folder, ".", &["Cargo.lock"]));
        assert!(dependencies_changed(&folder));
    }
}
