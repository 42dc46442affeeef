//! Checks that the types in an API's description have unique names.
//!
//! Guarantee: no two described types of one crate have the same name. The description would contain only one of them,
//! and be wrong about the other.

use std::collections::BTreeMap;

use super::TidyFinding;
use super::tree::Tree;

/// Finds names that two described types share.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut named: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (path, text) in tree.rust() {
        let package = path.split("/src/").next().unwrap_or(path);
        for name in described(text) {
            named.entry((package, name)).or_default().push(path);
        }
    }
    let shared = named.into_iter().filter(|(_, locations)| 1 < locations.len());
    let finding = |((_, name), locations): ((&str, &str), Vec<&str>)| TidyFinding {
        what: format!(
            "two types are described as `{name}`, so the API description contains only one of them"
        ),
        location: locations.join(", "),
        fix: "give each its own name".to_owned(),
    };
    shared.map(finding).collect()
}

/// Returns the names of the types that derive `ToSchema`.
fn described(text: &str) -> Vec<&str> {
    let is_end = |mark: char| !mark.is_alphanumeric() && mark != '_';
    let named = text.split("#[derive(").skip(1).filter_map(|after| {
        let (derived, item) = after.split_once(')')?;
        let mut words = item.split_whitespace().skip_while(|word| !matches!(*word, "struct" | "enum"));
        words.nth(1).filter(|_| derived.contains("ToSchema"))
    });
    named.map(|word| word.split(is_end).next().unwrap_or(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_name_of_two_types_is_found() {
        let one = "#[derive(Debug, ToSchema)]\nstruct Outcome {}\n#[derive(Debug)]\nstruct Other;";
        let two = "/// Text.\n#[derive(ToSchema)]\n#[serde(x)]\npub(super) enum Outcome<T> {}";
        let shared = Tree::new(&[("crates/a/src/one.rs", one), ("crates/a/src/two.rs", two)]);
        assert_eq!(check(&shared).len(), 1);
        let apart = Tree::new(&[("crates/a/src/one.rs", one), ("crates/b/src/two.rs", two)]);
        assert_eq!(check(&apart), []);
    }
}
