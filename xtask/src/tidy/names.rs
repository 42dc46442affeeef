//! Checks that type names mean one thing.
//!
//! Guarantee: at most two types of the workspace share a name, unless the name is one that every Rust programmer reads by its module,
//! and no type has a name that says nothing.

use std::collections::BTreeMap;

use super::TidyFinding;
use super::tree::Tree;

/// Names that the module explains.
const BY_MODULE: [&str; 9] =
    ["Args", "Code", "Command", "Error", "Event", "Kind", "Outcome", "Settings", "State"];
/// Names that no type may have.
const BANNED: [&str; 8] = ["Asked", "Came", "Held", "Kept", "Place", "Told", "Way", "Whom"];
const MAX_TYPES: usize = 2;

/// Finds names that more than `MAX_TYPES` types share, and banned ones.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut named: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, text) in tree.rust() {
        for name in text.lines().filter_map(defined) {
            named.entry(name).or_default().push(path);
        }
    }
    named.into_iter().filter_map(|(name, paths)| finding(name, &paths)).collect()
}

fn finding(name: &str, paths: &[&str]) -> Option<TidyFinding> {
    let what = if BANNED.contains(&name) {
        format!("`{name}` does not say what it is")
    } else if MAX_TYPES < paths.len() && !BY_MODULE.contains(&name) {
        format!("{} types are called `{name}`", paths.len())
    } else {
        return None;
    };
    let fix = "choose a specific name; see docs/glossary.md".to_owned();
    Some(TidyFinding { what, location: paths.join(", "), fix })
}

/// Returns the name of the type that this line defines.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ')?.1,
        None => line,
    };
    let kinds = ["struct ", "enum ", "trait "];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    let end = rest.find(|mark: char| !mark.is_alphanumeric()).unwrap_or(rest.len());
    rest.get(..end).filter(|name| name.starts_with(|mark: char| mark.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::new(files)).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_name_of_three_types_is_found() {
        let one = "pub(crate) struct Gate<T>(T);\n/// struct Gate;\nstruct Args;";
        let two = "    enum Gate {\nstruct Args;";
        let three = "pub trait Gate: Send {\nstruct Args;";
        assert_eq!(found(&[("crates/a/src/a.rs", one), ("crates/a/src/b.rs", two)]), Vec::<String>::new());
        assert_eq!(
            found(&[("crates/a/src/a.rs", one), ("crates/a/src/b.rs", two), ("crates/a/src/c.rs", three)]),
            ["3 types are called `Gate`"]
        );
    }

    #[test]
    fn a_name_that_says_nothing_is_found() {
        assert_eq!(found(&[("crates/a/src/a.rs", "pub enum Came {}")]), ["`Came` does not say what it is"]);
        assert_eq!(found(&[("crates/a/src/a.rs", "pub enum Camera {}")]), Vec::<String>::new());
    }
}
