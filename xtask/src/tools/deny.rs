//! cargo-deny: the one on the path, else a pinned one built into `target/tools`.

use std::path::Path;

use crate::line::Line;

/// Pinned, so that a new release cannot turn an old commit red.
const VERSION: &str = "0.20.2";
/// Under `target`, so that `cargo clean` removes it and git does not see it.
const FOLDER: &str = "target/tools";

/// The line that runs cargo-deny.
pub(super) fn ensure(root: &Path) -> Result<Line, String> {
    let on_path = Line::cargo(&["deny"]);
    if on_path.clone().and(&["--version"]).answer(root).is_some() {
        return Ok(on_path);
    }
    let ours = Line::new(&format!("{FOLDER}/bin/cargo-deny"), &[]);
    let is_pinned = |answer: String| answer.trim() == format!("cargo-deny {VERSION}");
    if ours
        .clone()
        .and(&["--version"])
        .answer(root)
        .is_some_and(is_pinned)
    {
        return Ok(ours);
    }
    println!("cargo-deny is not on the path; building {VERSION} into {FOLDER} (once, a few minutes)");
    install().run(root)?;
    Ok(ours)
}

fn install() -> Line {
    let version = ["--version", VERSION, "--root", FOLDER];
    Line::cargo(&["install", "cargo-deny", "--locked", "--quiet", "--debug"])
        .and(&version)
        // It checks some tens of crates, so the time that counts is the time to build it.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
}
