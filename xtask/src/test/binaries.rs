//! Builds all tests, with clippy's lints in the same pass.
//!
//! Guarantee: every test binary that cargo built is returned, at least one, and a lint or compile error fails the
//! build.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command_line::CommandLine;

/// A test binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binary {
    /// The crate that it tests.
    pub(super) package: String,
    /// Whether it is the crate's `tests/it`. Unit tests are fast and pure; they run together in one process.
    pub(super) is_integration: bool,
    /// The file to run.
    pub(super) path: PathBuf,
    /// The crate's folder, where cargo starts its tests.
    pub(super) folder: PathBuf,
}

/// Returns `command` with clippy in place of rustc for our own crates, and every warning as an error.
///
/// clippy's driver compiles like rustc and checks its lints on the way, so linting and building the tests is one pass
/// over our code and its dependencies. `cargo clippy` would compile everything a second time, in a form that cannot
/// run. Use it for these builds only: the driver optimises less than rustc.
pub(super) fn linted(command: &[&str], chosen: &[String]) -> CommandLine {
    CommandLine::cargo(command)
        .and(&["--locked"])
        .and_all(chosen)
        .env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
        .env("CLIPPY_ARGS", "-Dwarnings")
}

/// Builds the tests of the chosen crates.
pub(super) fn build(root: &Path, chosen: &[String]) -> Result<Vec<Binary>, String> {
    let line = linted(&["test", "--no-run"], chosen);
    let messages = line.clone().and(&["--message-format", "json-render-diagnostics"]);
    let mut child = messages.spawn_piped(root)?;
    let out = child.stdout.take().ok_or("cargo has no output")?;
    let lines = BufReader::new(out).lines().map_while(Result::ok);
    let binaries: Vec<Binary> = lines.filter_map(|line| binary(&serde_json::from_str(&line).ok()?)).collect();
    match child.wait() {
        Ok(status) if status.success() && binaries.is_empty() => {
            Err(format!("cargo reported no test binary; has its message format changed?\n  {line}"))
        }
        Ok(status) if status.success() => Ok(binaries),
        Ok(status) => Err(format!("the build failed ({status})\nTo run it alone:\n\n  {line}")),
        Err(error) => Err(format!("`{line}`: {error}")),
    }
}

/// Returns the binary that a cargo message reports, if it has tests to run.
fn binary(message: &Value) -> Option<Binary> {
    let kind = message["target"]["kind"][0].as_str()?;
    // A benchmark is only compiled.
    if message["profile"]["test"] != true || kind == "bench" {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    Some(Binary {
        // The end of `path+file:///…/crates/ichido-core#0.1.0`, or of `…/bench#ichido-bench@0.1.0` where the names
        // differ.
        package: package(message["package_id"].as_str()?)?.to_owned(),
        is_integration: kind == "test",
        path: message["executable"].as_str()?.into(),
        folder: folder.to_owned(),
    })
}

fn package(id: &str) -> Option<&str> {
    let (path, version) = id.split_once('#')?;
    version.split_once('@').map(|(name, _)| name).or_else(|| path.rsplit('/').next())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(kind: &str, test: bool) -> Value {
        json!({
            "reason": "compiler-artifact",
            "package_id": "path+file:///repo/crates/ichido-core#0.1.0",
            "manifest_path": "/repo/crates/ichido-core/Cargo.toml",
            "target": { "kind": [kind], "name": "it" },
            "profile": { "test": test },
            "executable": "/repo/target/debug/deps/it-1234",
        })
    }

    #[test]
    fn test_binaries_are_read_from_cargos_messages() {
        let found = binary(&message("test", true)).expect("a test binary");
        assert!(found.is_integration && found.package == "ichido-core", "{found:?}");
        assert_eq!(found.folder, Path::new("/repo/crates/ichido-core"));
        assert!(!binary(&message("lib", true)).expect("unit tests").is_integration);
    }

    #[test]
    fn programs_and_other_messages_are_not_tests() {
        assert_eq!(binary(&message("bin", false)), None);
        assert_eq!(binary(&message("bench", true)), None);
        assert_eq!(binary(&json!({ "reason": "build-finished", "success": true })), None);
    }

    #[test]
    fn a_package_id_names_its_package_in_both_forms() {
        assert_eq!(package("path+file:///repo/crates/ichido-core#0.1.0"), Some("ichido-core"));
        assert_eq!(package("path+file:///repo/bench#ichido-bench@0.1.0"), Some("ichido-bench"));
    }
}
