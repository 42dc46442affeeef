//! Runs the fuzz targets, one after another.
//!
//! Guarantee: every file in `fuzz/fuzz_targets` is run, and the first target that fails ends the chore.

use std::path::Path;

use crate::command_line::CommandLine;

/// Runs each target for `seconds`.
pub fn run(root: &Path, seconds: u32) -> Result<(), String> {
    if CommandLine::cargo(&["fuzz", "--version"]).answer(root).is_none() {
        return Err("cargo-fuzz is missing; install it with `cargo install cargo-fuzz --locked`".to_owned());
    }
    for target in targets(root)? {
        println!("\n== fuzz {target}");
        // Without a sanitizer a target builds on stable, and our code has no unsafe code for one to check.
        let time = format!("-max_total_time={seconds}");
        CommandLine::cargo(&["fuzz", "run", "-s", "none", &target, "--", &time]).run(root)?;
    }
    Ok(())
}

fn targets(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut targets = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if let (Some(stem), Some("rs")) = (path.file_stem(), path.extension().and_then(|end| end.to_str())) {
            targets.push(stem.to_string_lossy().into_owned());
        }
    }
    targets.sort();
    Ok(targets)
}
