//! Reads recent changes from git, and decides what must be checked.
//!
//! Guarantee: without history, everything counts as changed.

use std::collections::BTreeSet;
use std::path::Path;

use crate::command_line::CommandLine;
use crate::tidy::arrows::Package;

/// How many commits back a change still counts as recent.
const COMMITS: u32 = 30;
/// A line of an interface: a public item or field, a function (a trait's has no `pub`), an enum variant.
const INTERFACE: &str = r"^[[:space:]]*(pub |(async )?fn |[A-Z][A-Za-z0-9]*( \{|\(|,|$))";
/// Every line.
const ANY: &str = ".";
/// A line of `Cargo.lock` that differs when a registry crate is added, removed or changed.
const LOCKED: &str = "^(checksum|source) = ";
/// Files that concern every crate.
const OF_ALL: [&str; 4] = ["Cargo.toml", "Cargo.lock", "clippy.toml", "rustfmt.toml"];

/// The paths that decide whether a lane is due, as git patterns.
pub(super) struct Lane {
    /// A change of any line counts.
    pub(super) files: &'static [&'static str],
    /// A change of the interface counts.
    pub(super) interfaces: &'static [&'static str],
}

/// The crates that compile AWS's SDK.
pub(super) const BEDROCK: Lane = Lane {
    files: &[
        "bench/llm/*",
        "crates/ichido-bedrock/*",
        "crates/ichido-cli/src/judge/*",
        "crates/ichido-cli/tests/it/judge_bedrock*",
        "examples/lambda/*",
    ],
    interfaces: &[
        "crates/ichido-core/src/debug_only*",
        "crates/ichido-core/src/limits*",
        "crates/ichido-core/src/retry*",
        "crates/ichido-core/src/settings*",
        "crates/ichido-core/src/time*",
        "crates/ichido-core/src/verdict*",
        "crates/ichido-store/src/testing*",
        "crates/ichido-http/src/client*",
        "crates/ichido-http/src/clock*",
        "crates/ichido-http/src/url*",
        "crates/ichido/src/destination/http*",
        "crates/ichido-llm/src/*",
        "testing/fake-llm/src/*",
        "testing/http/src/*",
    ],
};

/// The benchmarks.
pub(super) const BENCH: Lane = Lane {
    files: &["bench/Cargo.toml", "bench/src/*"],
    interfaces: &[
        "crates/ichido-core/src/digest*",
        "crates/ichido-core/src/fingerprint*",
        "crates/ichido-core/src/json*",
        "crates/ichido-core/src/key*",
        "crates/ichido-core/src/ledger*",
        "crates/ichido-core/src/lifecycle*",
        "crates/ichido-core/src/retry*",
        "crates/ichido-core/src/time*",
        "crates/ichido-core/src/verdict*",
        "crates/ichido-store/src/diagnostics*",
        "crates/ichido-store/src/ledger*",
        "crates/ichido-store/src/message*",
        "crates/ichido-store/src/store.rs",
        "crates/ichido-store/src/store/*",
        "crates/ichido-store/src/testing*",
        "crates/ichido/src/application*",
        "crates/ichido/src/destination*",
        "crates/ichido/src/once*",
        "crates/ichido/src/worker*",
    ],
};

/// The fuzz targets.
pub(super) const FUZZ: Lane = Lane {
    files: &["fuzz/*"],
    interfaces: &[
        "crates/ichido-boundary/src/*",
        "crates/ichido-core/src/json*",
        "crates/ichido-core/src/key*",
        "crates/ichido-core/src/retry*",
        "crates/ichido-core/src/settings*",
        "crates/ichido-core/src/time*",
        "crates/ichido-core/src/verdict*",
        "crates/ichido-http/src/guard*",
        "crates/ichido-http/src/server/bounds*",
        "crates/ichido-http/src/server/framing*",
        "crates/ichido-http/src/trust*",
        "crates/ichido-http/src/url*",
    ],
};

impl Lane {
    /// Returns whether a change could break what the lane checks.
    pub(super) fn is_due(&self, root: &Path) -> bool {
        changed(root, ANY, self.files) || changed(root, INTERFACE, self.interfaces)
    }
}

/// Returns whether an AWS crate was added, removed or updated.
pub(super) fn aws_changed(root: &Path) -> bool {
    let before = CommandLine::new("git", &["show", &format!("HEAD~{COMMITS}:Cargo.lock")]).answer(root);
    let now = std::fs::read_to_string(root.join("Cargo.lock"));
    match (before, now) {
        (Some(before), Ok(now)) => aws_versions(&before) != aws_versions(&now),
        _ => true,
    }
}

/// Returns the names and versions of AWS's crates in a `Cargo.lock`.
fn aws_versions(lock: &str) -> Vec<(&str, &str)> {
    let lines = lock.lines().zip(lock.lines().skip(1));
    lines.filter(|(name, _)| name.starts_with("name = \"aws-")).collect()
}

/// Returns whether a dependency, or the rules for dependencies, changed.
pub(super) fn dependencies_changed(root: &Path) -> bool {
    changed(root, LOCKED, &["Cargo.lock"]) || changed(root, ANY, &["deny.toml"])
}

/// Returns whether a line that matches `pattern` was added or removed in these paths, committed or not.
fn changed(root: &Path, pattern: &str, paths: &[&str]) -> bool {
    let since = format!("HEAD~{COMMITS}");
    let line = CommandLine::new("git", &["diff", "--name-only", "--no-renames", "-G", pattern, &since, "--"]);
    line.and(paths).answer(root).is_none_or(|files| !files.is_empty())
}

/// Returns the crates with uncommitted changes, or else with changes in the last commit.
///
/// A change of a file that concerns every crate, such as `Cargo.lock`, selects all of them. Any other change outside of
/// the crates, in a document or a script, concerns the rules about the repository: `xtask`.
pub(super) fn changed_crates(root: &Path, packages: &[Package]) -> Result<BTreeSet<String>, String> {
    let git = |words: &[&str]| {
        let line = CommandLine::new("git", words);
        line.answer(root).ok_or_else(|| format!("`{line}` failed; `--quick` needs git and a repository"))
    };
    let untracked = git(&["ls-files", "--others", "--exclude-standard"])?;
    let mut files = format!("{}{untracked}", git(&["diff", "--name-only", "--no-renames", "HEAD"])?);
    if files.is_empty() {
        files = git(&["diff", "--name-only", "--no-renames", "HEAD~1"])?;
    }
    Ok(changed_in(&files, packages))
}

/// Returns the crates that the listed files concern.
fn changed_in(files: &str, packages: &[Package]) -> BTreeSet<String> {
    if files.lines().any(|file| OF_ALL.contains(&file)) {
        return packages.iter().map(|package| package.name.clone()).collect();
    }
    files.lines().map(|file| package_of(file, packages).unwrap_or("xtask").to_owned()).collect()
}

/// Returns the package with the innermost folder that contains the file.
fn package_of<'a>(file: &str, packages: &'a [Package]) -> Option<&'a str> {
    let folder =
        |package: &Package| package.manifest.strip_suffix("Cargo.toml").unwrap_or_default().to_owned();
    let holders = packages.iter().filter(|package| {
        let folder = folder(package);
        !folder.is_empty() && file.starts_with(&folder)
    });
    holders.max_by_key(|package| folder(package).len()).map(|package| package.name.as_str())
}

/// Returns these crates and all that depend on them.
pub(super) fn with_users(mut found: BTreeSet<String>, packages: &[Package]) -> BTreeSet<String> {
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
    use crate::tidy::tree::Tree;

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

    /// The repository.
    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
    }

    #[test]
    fn every_path_of_a_lane_exists() {
        for lane in [BEDROCK, BENCH, FUZZ] {
            for path in lane.files.iter().chain(lane.interfaces) {
                let files = CommandLine::new("git", &["ls-files", "--", path]).answer(root());
                // A copy without history has no list of files either; every lane is due there.
                assert!(
                    files.is_none_or(|files| !files.is_empty()),
                    "{path} does not exist; update the lane"
                );
            }
        }
    }

    #[test]
    fn a_lane_lists_every_module_that_it_uses() {
        let tree = Tree::read(root()).expect("the repository is read");
        for (lane, folders) in [
            (BEDROCK, &["crates/ichido-bedrock/", "bench/llm/"][..]),
            (BENCH, &["bench/src/"][..]),
            (FUZZ, &["fuzz/"][..]),
        ] {
            for (path, text) in tree.files() {
                if !folders.iter().any(|folder| path.starts_with(folder)) {
                    continue;
                }
                for (library, source) in [
                    ("ichido::", "crates/ichido/src/"),
                    ("ichido_boundary::", "crates/ichido-boundary/src/"),
                    ("ichido_core::", "crates/ichido-core/src/"),
                    ("ichido_llm::", "crates/ichido-llm/src/"),
                    ("ichido_store::", "crates/ichido-store/src/"),
                ] {
                    for used in text.split(library).skip(1) {
                        let is_name = |mark: char| mark.is_ascii_lowercase() || mark == '_';
                        let module = used.split_once(|mark| !is_name(mark)).map_or(used, |(name, _)| name);
                        let file = format!("{source}{module}");
                        let all = format!("{source}*");
                        let knows =
                            lane.interfaces.iter().any(|known| known.starts_with(&file) || *known == all);
                        assert!(module.is_empty() || knows, "{path} uses {file}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_interface_is_distinguished_from_its_body() {
        let is_interface = |line: &str| {
            let grep = CommandLine::new(
                "sh",
                &["-c", &format!("printf '%s\\n' \"$1\" | grep -qE '{INTERFACE}'"), "sh", line],
            );
            grep.answer(root()).is_some()
        };
        for line in [
            "pub struct A {",
            "    pub field: u8,",
            "    fn method(&self);",
            "    async fn method(&self)",
            "    Variant,",
            "    Variant(u8),",
        ] {
            assert!(is_interface(line), "{line}");
        }
        for line in ["    let a = 1;", "//! A comment,", "    self.call(Variant)", "use std::fmt;"] {
            assert!(!is_interface(line), "{line}");
        }
    }

    #[test]
    fn the_versions_of_aws_are_read_from_a_lock_file() {
        let lock = "[[package]]\nname = \"aws-config\"\nversion = \"1.2.3\"\n\n[[package]]\nname = \"http\"\nversion = \"1\"\n";
        assert_eq!(aws_versions(lock), [("name = \"aws-config\"", "version = \"1.2.3\"")]);
    }

    #[test]
    fn a_shared_file_concerns_all_crates() {
        assert_eq!(changed_in("Cargo.lock\n", &packages()).len(), 4);
        assert_eq!(
            changed_in("docs/spec.md\nbench/src/main.rs\n", &packages()),
            ["bench", "xtask"].map(str::to_owned).into()
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
        assert!(changed(&folder, ANY, &["Cargo.lock"]));
        assert!(dependencies_changed(&folder) && aws_changed(&folder) && BEDROCK.is_due(&folder));
    }
}
