//! The chores of this repository, started by `cargo xtask`.
//!
//! Guarantee: a chore either does all it says or fails with a message that a person can act on; it never
//! skips a check in silence. Errors are plain strings here, because only people read them.
//!
//! Where to start: [`mod@test`] is what CI runs; [`tidy`] holds the rules about the repository itself.

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

/// The folder that holds the workspace.
///
/// # Panics
/// When the crate was moved out of the workspace, which cannot happen to a binary that cargo built in it.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in a folder of the workspace").to_path_buf()
}

/// Where cargo puts programs that are not for release.
fn built(root: &Path) -> PathBuf {
    // Where cargo was told to build, or where it builds by itself.
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root.join(target).join("debug")
}
