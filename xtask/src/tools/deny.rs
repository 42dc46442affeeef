//! cargo-deny: the one on the path if it is new enough, else a pinned one built into `target/tools`.

use std::path::Path;

use crate::command_line::CommandLine;

/// Pinned, so a new release cannot break an old commit. It is also the oldest version that is used from the path,
/// because an older one may not know a setting in `deny.toml`.
const VERSION: &str = "0.20.2";
/// Under `target`, so `cargo clean` removes it and git does not see it.
const FOLDER: &str = "target/tools";

/// Returns the command line that runs cargo-deny.
pub(crate) fn ensure(root: &Path) -> Result<CommandLine, String> {
    let on_path = CommandLine::cargo(&["deny"]);
    let ours = CommandLine::new(&format!("{FOLDER}/bin/cargo-deny"), &[]);
    for line in [&on_path, &ours] {
        let answer = line.clone().and(&["--version"]).answer(root);
        if answer.is_some_and(|answer| is_new_enough(&answer)) {
            return Ok(line.clone());
        }
    }
    println!("cargo-deny {VERSION} is not on PATH; building it into {FOLDER} (once, a minute or two)");
    install().run(root)?;
    Ok(ours)
}

fn install() -> CommandLine {
    CommandLine::cargo(&["install", "cargo-deny", "--locked", "--quiet", "--force", "--debug"])
        .and(&["--version", VERSION, "--root", FOLDER])
        // It checks some tens of crates, so the build time is what counts.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
}

/// Returns whether `cargo-deny 0.20.2` is the pinned version or a later one.
fn is_new_enough(answer: &str) -> bool {
    let found = answer.trim().strip_prefix("cargo-deny ").and_then(numbers);
    found.is_some_and(|found| numbers(VERSION) <= Some(found))
}

fn numbers(version: &str) -> Option<Vec<u32>> {
    version.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_version_and_later_ones_are_accepted() {
        for answer in ["cargo-deny 0.20.2\n", "cargo-deny 0.20.10", "cargo-deny 0.21.0", "cargo-deny 1.0.0"] {
            assert!(is_new_enough(answer), "{answer:?}");
        }
    }

    #[test]
    fn older_and_unknown_versions_are_refused() {
        for answer in ["cargo-deny 0.20.1", "cargo-deny 0.9.99", "cargo-deny", "cargo-deny next", ""] {
            assert!(!is_new_enough(answer), "{answer:?}");
        }
    }
}
