//! Which of our crates may depend on which.
//!
//! Guarantee: every crate of the workspace is in the table and depends only on those of our crates that the table
//! allows, whether for building, running or testing. So the core stays free of I/O, and a store can be changed without
//! looking at the crates above it.

use std::path::Path;

use serde_json::Value;

use super::TidyFinding;
use crate::command_line::CommandLine;

/// Each crate, and those of our crates that it may use. A crate may always use itself in its own tests.
const ARROWS: [(&str, &[&str]); 22] = [
    ("ichido-core", &[]),
    ("ichido-rules", &["ichido-core"]),
    ("ichido-boundary", &["ichido-core", "ichido-rules"]),
    // Tests from outside, so it knows only what is on the wire.
    ("ichido-probe", &["ichido-core", "ichido-http", "ichido-rules"]),
    ("ichido-store", &["ichido-core"]),
    (
        "ichido",
        &[
            "ichido-core",
            "ichido-client",
            "ichido-http",
            "ichido-store",
            // Its tests probe the layer.
            "ichido-probe",
            "http-for-tests",
            "nats-for-tests",
            "process-for-tests",
        ],
    ),
    ("ichido-llm", &["ichido-core", "ichido-http", "ichido-store", "ichido", "fake-llm"]),
    ("ichido-bedrock", &["ichido-core", "ichido-http", "ichido", "ichido-llm", "fake-llm"]),
    ("ichido-http", &["ichido-core"]),
    ("ichido-client", &["ichido-core", "ichido-http", "http-for-tests"]),
    (
        "ichido-server",
        // It shows the boundary files, and what the rules find in them.
        &[
            "ichido-core",
            "ichido-boundary",
            "ichido-http",
            "ichido-store",
            "ichido",
            "ichido-llm",
            "ichido-client",
            "process-for-tests",
        ],
    ),
    ("ichido-proxy", &["ichido-core", "ichido-boundary", "ichido-http", "ichido-store", "ichido"]),
    ("ichido-mock-broker", &["ichido-core", "ichido-http"]),
    (
        "ichido-cli",
        &[
            "ichido-core",
            "ichido-llm",
            "ichido-mock-broker",
            "ichido-probe",
            "ichido-proxy",
            "ichido-server",
            "ichido-boundary",
            "ichido-store",
            "ichido",
            "ichido-bedrock",
            "ichido-client",
            "ichido-http",
            "fake-llm",
            "http-for-tests",
            "nats-for-tests",
        ],
    ),
    // Measures from outside, so it may use everything that a user may.
    ("ichido-bench", &["ichido-core", "ichido-store", "ichido", "ichido-client"]),
    (
        "ichido-bench-llm",
        &["ichido-core", "ichido-store", "ichido", "ichido-llm", "ichido-bedrock", "fake-llm"],
    ),
    // Shows what a user may write.
    (
        "ichido-example-lambda",
        &["ichido-core", "ichido-http", "ichido-llm", "ichido-bedrock", "fake-llm", "http-for-tests"],
    ),
    // Imitates an external service, so it knows only what is on the wire.
    ("fake-llm", &[]),
    // Imitates any server.
    ("http-for-tests", &[]),
    // Starts an external server.
    ("nats-for-tests", &[]),
    // Starts the test program again.
    ("process-for-tests", &[]),
    // The chores check the crates from outside, so a crate that does not compile can still be checked.
    ("xtask", &[]),
];
/// What everything under `apps/` may use: the libraries and, in tests, the probe and the scripted model; never the binary.
const ARROWS_OF_APPS: &[&str] = &[
    "ichido-core",
    "ichido-http",
    "ichido-store",
    "ichido",
    "ichido-llm",
    "ichido-client",
    "ichido-probe",
    "fake-llm",
    "http-for-tests",
    "process-for-tests",
];

/// A crate of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// The manifest's path, relative to the repository's root.
    pub manifest: String,
    /// The names of all dependencies of every kind, ours and others'.
    pub needs: Vec<String>,
}

/// Returns the crates of the workspace at `root`, according to cargo.
pub fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let line = CommandLine::cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let answer = line.answer(root).ok_or_else(|| format!("`{line}` failed"))?;
    let metadata: Value = serde_json::from_str(&answer).map_err(|error| format!("`{line}`: {error}"))?;
    read(&metadata)
        .ok_or_else(|| format!("`{line}` returned an unknown format; update xtask/src/tidy/arrows.rs"))
}

fn read(metadata: &Value) -> Option<Vec<Package>> {
    let root = metadata["workspace_root"].as_str()?;
    let packages = metadata["packages"].as_array()?.iter().map(|package| {
        let manifest = package["manifest_path"].as_str()?;
        let needs = package["dependencies"].as_array()?.iter();
        Some(Package {
            name: package["name"].as_str()?.to_owned(),
            manifest: manifest.strip_prefix(root)?.trim_start_matches(['/', '\\']).replace('\\', "/"),
            needs: needs.map(|need| Some(need["name"].as_str()?.to_owned())).collect::<Option<_>>()?,
        })
    });
    packages.collect()
}

/// Finds crates that are missing in the table, and dependencies that it does not allow.
pub fn check(packages: &[Package]) -> Vec<TidyFinding> {
    packages.iter().flat_map(|package| check_one(package, packages)).collect()
}

fn check_one(package: &Package, packages: &[Package]) -> Vec<TidyFinding> {
    let Some(allowed) = allowed(package) else {
        return vec![TidyFinding {
            what: format!("the table of dependencies does not list `{}`", package.name),
            location: package.manifest.clone(),
            fix: "add it to the table in xtask/src/tidy/arrows.rs and to ARCHITECTURE.md".to_owned(),
        }];
    };
    let is_ours = |name: &str| {
        ARROWS.iter().any(|(ours, _)| *ours == name) || packages.iter().any(|other| other.name == name)
    };
    let against = package
        .needs
        .iter()
        .filter(|need| is_ours(need) && **need != package.name && !allowed.contains(&need.as_str()));
    against
        .map(|need| TidyFinding {
            what: format!("`{}` must not depend on `{need}`", package.name),
            location: package.manifest.clone(),
            fix: format!(
                "move the shared code into a crate below both, or pass it in; allowed: {}",
                listed(allowed)
            ),
        })
        .collect()
}

fn allowed(package: &Package) -> Option<&'static [&'static str]> {
    if package.manifest.starts_with("apps/") {
        return Some(ARROWS_OF_APPS);
    }
    ARROWS.iter().find(|(name, _)| *name == package.name).map(|(_, allowed)| *allowed)
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none of our crates".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, manifest: &str, needs: &[&str]) -> Package {
        let needs = needs.iter().map(|need| (*need).to_owned()).collect();
        Package { name: name.to_owned(), manifest: manifest.to_owned(), needs }
    }

    #[test]
    fn allowed_dependencies_pass() {
        let house = [
            package("ichido-core", "crates/ichido-core/Cargo.toml", &["sha2", "ichido-core"]),
            package("ichido-boundary", "crates/ichido-boundary/Cargo.toml", &["ichido-core"]),
            package("ichido-store", "crates/ichido-store/Cargo.toml", &["ichido-core", "sqlx"]),
            package("ichido", "crates/ichido/Cargo.toml", &["ichido-core", "ichido-store"]),
            package("ichido-client", "crates/ichido-client/Cargo.toml", &["ichido-core"]),
            package("ichido-cli", "crates/ichido-cli/Cargo.toml", &["ichido", "ichido-client"]),
            package("bookmarks", "apps/bookmarks/Cargo.toml", &["ichido", "ichido-client", "axum"]),
            package("xtask", "xtask/Cargo.toml", &["serde_json"]),
        ];
        assert_eq!(check(&house), []);
    }

    #[test]
    fn a_forbidden_dependency_is_found() {
        let against = [
            ("ichido-core", "crates/ichido-core/Cargo.toml", "ichido-store"),
            ("ichido-core", "crates/ichido-core/Cargo.toml", "ichido-boundary"),
            ("ichido", "crates/ichido/Cargo.toml", "ichido-boundary"),
            ("ichido-store", "crates/ichido-store/Cargo.toml", "ichido"),
            ("ichido-client", "crates/ichido-client/Cargo.toml", "ichido-store"),
            ("ichido", "crates/ichido/Cargo.toml", "ichido-cli"),
            ("bookmarks", "apps/bookmarks/Cargo.toml", "ichido-cli"),
            ("xtask", "xtask/Cargo.toml", "ichido-core"),
        ];
        for (name, manifest, need) in against {
            let findings = check(&[package(name, manifest, &[need])]);
            assert_eq!(findings.len(), 1, "{name} on {need}");
            assert_eq!(findings[0].what, format!("`{name}` must not depend on `{need}`"));
            assert_eq!(findings[0].location, manifest);
        }
    }

    #[test]
    fn nothing_may_depend_on_an_app() {
        let app = package("bookmarks", "apps/bookmarks/Cargo.toml", &[]);
        let cli = package("ichido-cli", "crates/ichido-cli/Cargo.toml", &["bookmarks"]);
        assert_eq!(check(&[app, cli]).len(), 1);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_found() {
        let findings = check(&[package("ichido-utils", "crates/ichido-utils/Cargo.toml", &[])]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].fix.starts_with("add it to the table"));
    }

    #[test]
    fn renamed_and_dev_dependencies_count_too() {
        let metadata = json!({
            "workspace_root": "/house",
            "packages": [{
                "name": "ichido-core",
                "manifest_path": "/house/crates/ichido-core/Cargo.toml",
                "dependencies": [{ "name": "ichido-store", "rename": "harmless", "kind": "dev" }],
            }],
        });
        let packages = read(&metadata).expect("well formed");
        assert_eq!(packages, [package("ichido-core", "crates/ichido-core/Cargo.toml", &["ichido-store"])]);
        assert_eq!(check(&packages).len(), 1);
    }
}
