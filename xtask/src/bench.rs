//! The benchmarks: the contest with the peers, and parts beside the least work for the same result.
//!
//! Guarantee: nothing here decides whether a change may land; it shows a person how fast things are. Peers are installed
//! below `target`, at the versions of their lock files.

use std::num::NonZeroU32;
use std::path::Path;

use crate::chore::BenchDatabase;
use crate::command_line::CommandLine;
use crate::tools::{node, venv};

/// How our side is built.
const PROFILE: &str = "--profile=contest";

/// The peers' sources, and where they are installed.
const RUST: &str = "bench/peers/rust/Cargo.toml";
const NPM: &str = "bench/peers/npm";
const PYTHON: &str = "bench/peers/python/requirements.txt";
const INSTALLED_RUST: &str = "target/peers/rust";
const INSTALLED_NPM: &str = "target/peers/npm";
const INSTALLED_PYTHON: &str = "target/peers/python";

/// Runs every contestant in turn; a quick run only shows that all of them work.
pub fn contest(root: &Path, is_quick: bool) -> Result<(), String> {
    install_peers(root)?;
    ours(if is_quick { &["contest", "--quick"] } else { &["contest"] }).run(root)
}

/// Renders the tables and charts from the stored results.
pub fn report(root: &Path) -> Result<(), String> {
    ours(&["report"]).run(root)
}

/// Measures a part beside the least work for the same result, on both databases or on one.
///
/// Accepting over HTTP and the dashboard are measured on the program.
pub fn part(root: &Path, part: &str, database: Option<BenchDatabase>) -> Result<(), String> {
    if ["serve", "dashboard"].contains(&part) {
        CommandLine::cargo(&["build", PROFILE, "--package", "ichido-cli"]).run(root)?;
    }
    ours(&[part]).and(&database.map(BenchDatabase::word).into_iter().collect::<Vec<_>>()).run(root)
}

/// Measures a batch of calls to a throttled model; a separate crate, so the others need not build AWS's SDK.
pub fn llm(root: &Path, items: Option<NonZeroU32>, rate: Option<NonZeroU32>) -> Result<(), String> {
    let given = [("--items", items), ("--rate", rate)];
    let options = given.iter().filter_map(|(name, count)| Some([(*name).to_owned(), (*count)?.to_string()]));
    let options: Vec<String> = options.flatten().collect();
    CommandLine::cargo(&["run", PROFILE, "--package", "ichido-bench-llm", "--"])
        .and(&options.iter().map(String::as_str).collect::<Vec<_>>())
        .run(root)
}

fn ours(words: &[&str]) -> CommandLine {
    CommandLine::cargo(&["run", PROFILE, "--package", "ichido-bench", "--"]).and(words)
}

fn install_peers(root: &Path) -> Result<(), String> {
    println!("building the Rust peers into {INSTALLED_RUST}");
    CommandLine::cargo(&["build", "--release", "--locked", "--manifest-path", RUST])
        .and(&["--target-dir", INSTALLED_RUST])
        .run(root)?;
    copy_files(&root.join(NPM), &root.join(INSTALLED_NPM))?;
    node::ensure_packages(root, INSTALLED_NPM)?;
    venv::ensure(root, INSTALLED_PYTHON, PYTHON)
}

/// Copies the files of a folder: Node finds packages only in the folders above a script.
fn copy_files(from: &Path, to: &Path) -> Result<(), String> {
    let explain =
        |error: std::io::Error| format!("cannot copy {} to {}: {error}", from.display(), to.display());
    std::fs::create_dir_all(to).map_err(explain)?;
    for entry in std::fs::read_dir(from).map_err(explain)? {
        let entry = entry.map_err(explain)?;
        if entry.file_type().map_err(explain)?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).map_err(explain)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_copied_and_folders_are_not() {
        let folder = std::env::temp_dir().join(format!("ichido-xtask-copy-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        std::fs::create_dir_all(from.join("node_modules")).expect("a folder");
        std::fs::write(from.join("a.js"), "1").expect("a file");
        copy_files(&from, &to).expect("copied");
        let copied: Vec<_> =
            std::fs::read_dir(&to).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(copied, ["a.js"]);
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
