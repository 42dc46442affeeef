//! Replaces rustdoc in `cargo test --doc`: documents each library, then runs its examples.
//!
//! Guarantee: a rustdoc warning, such as a broken link, fails it. `cargo doc` would report the same, after compiling
//! every dependency a second time in a form that cannot run; this uses the libraries of the test build.

use std::path::Path;
use std::process::{Command, ExitCode};

/// The variable with the folder for the pages. If it is set, this program runs as rustdoc.
pub const FOLDER_VARIABLE: &str = "ICHIDO_RUSTDOC_FOLDER";

/// Runs rustdoc for the pages, unless they are newer than the library, then with cargo's arguments for the examples.
pub fn run(folder: &Path, words: &[String]) -> ExitCode {
    let rustdoc = |words: &[String]| {
        let status = Command::new("rustdoc").args(words).env_remove(FOLDER_VARIABLE).status();
        status.is_ok_and(|status| status.success())
    };
    let has_pages = has_pages(folder, words).unwrap_or(false) || rustdoc(&for_pages(folder, words));
    if has_pages && rustdoc(words) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns whether the pages are newer than this library. rustdoc writes none when it fails.
fn has_pages(folder: &Path, words: &[String]) -> Option<bool> {
    let (name, library) = library(words)?;
    let changed = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
    Some(changed(library)? < changed(&folder.join(name).join("index.html"))?)
}

/// Returns the crate's name, and its library among those that its examples use.
fn library(words: &[String]) -> Option<(&str, &Path)> {
    let name = words.iter().skip_while(|word| *word != "--crate-name").nth(1)?;
    let library = words.iter().find_map(|word| word.strip_prefix(name.as_str())?.strip_prefix('='))?;
    Some((name, Path::new(library)))
}

/// Returns the arguments without those about examples.
fn for_pages(folder: &Path, words: &[String]) -> Vec<String> {
    let mut kept = vec!["-Dwarnings".to_owned(), format!("--out-dir={}", folder.display())];
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--test" => (),
            // The folder to run them in follows.
            "--test-run-directory" => drop(words.next()),
            _ => kept.push(word.clone()),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_built_without_the_arguments_about_examples() {
        let words =
            ["--crate-name", "a", "--test", "a/src/lib.rs", "--test-run-directory", "a", "--extern", "b"];
        let kept = for_pages(Path::new("target/doc"), &words.map(str::to_owned));
        let expected =
            ["-Dwarnings", "--out-dir=target/doc", "--crate-name", "a", "a/src/lib.rs", "--extern", "b"];
        assert_eq!(kept, expected);
    }

    #[test]
    fn a_crates_own_library_is_found_among_others() {
        let words = ["--crate-name", "a", "--extern", "ab=/ab.rlib", "--extern", "a=/a.rlib"];
        assert_eq!(library(&words.map(str::to_owned)), Some(("a", Path::new("/a.rlib"))));
        assert_eq!(library(&["--version".to_owned()]), None);
    }
}
