//! The chores of this repository, started by `cargo xtask`.
//!
//! Guarantee: a chore either does everything it says or fails with a message that a person can act on; it never skips a
//! check silently. Errors are plain strings here, because only people read them.
//!
//! Start at [`mod@test`], which CI runs. [`tidy`] has the rules about the repository itself.

pub mod bench;
pub mod chore;
mod command_line;
pub mod fuzz;
pub mod fuzz_api;
mod js;
pub mod long;
mod packages;
pub mod rustdoc;
pub mod test;
pub mod tidy;
pub mod tools;

use std::path::{Path, PathBuf};

/// Returns the folder of the workspace.
///
/// # Panics
/// If the crate was moved out of the workspace, which cannot happen to a binary that cargo built in it.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask is a folder of the workspace").to_path_buf()
}

/// Returns cargo's folder for debug builds.
fn built(root: &Path) -> PathBuf {
    // The configured target folder, or cargo's default.
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root.join(target).join("debug")
}
