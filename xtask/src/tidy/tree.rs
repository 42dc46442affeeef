//! The repository's own text files, read once.
//!
//! Guarantee: a [`Tree`] contains each file that a person writes and nothing that a tool generates: no build folder, no
//! lock file, no hidden folder. Paths are relative, with `/`, in order.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The extensions of files that people write. Test data (`.json`, `.txt`, …) is not read: it may have any length and
/// form.
const EXTENSIONS: [&str; 10] = ["rs", "md", "toml", "sql", "js", "mjs", "ts", "css", "html", "sh"];
/// Folders that tools fill.
const FOLDERS_SKIPPED: [&str; 4] = ["target", "node_modules", "corpus", "artifacts"];

/// Files by path.
#[derive(Clone, Debug, Default)]
pub struct Tree(BTreeMap<String, String>);

impl Tree {
    /// Reads the repository at `root`.
    pub fn read(root: &Path) -> Result<Self, String> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    /// Creates a tree of paths and contents, for testing a rule.
    pub fn new(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    /// Returns the text of the file at `path`.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// Returns each path with its text, in order.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the Rust files of our crates.
    pub fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_ours = |path: &str| {
            ["crates/", "apps/", "examples/", "testing/", "xtask/"]
                .iter()
                .any(|folder| path.starts_with(folder))
        };
        self.files().filter(move |(path, _)| is_ours(path) && extension(path) == Some("rs"))
    }

    /// Returns the JavaScript tests, as Node's runner finds them.
    pub fn js_tests(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".test.js"))
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> Result<(), String> {
        let explain = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(folder).map_err(explain)? {
            let entry = entry.map_err(explain)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().map_err(explain)?;
            let path = format!("{prefix}{name}");
            if kind.is_dir() && !name.starts_with('.') && !FOLDERS_SKIPPED.contains(&name.as_str()) {
                self.read_folder(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() && is_written_by_people(&name) {
                let text = fs::read_to_string(entry.path()).map_err(|error| format!("{path}: {error}"))?;
                self.0.insert(path, text);
            }
        }
        Ok(())
    }
}

fn is_written_by_people(name: &str) -> bool {
    extension(name).is_some_and(|extension| EXTENSIONS.contains(&extension))
}

fn extension(path: &str) -> Option<&str> {
    path.rsplit_once('.').map(|(_, extension)| extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rust_files_of_our_folders_are_returned() {
        let paths = ["apps/b/src/main.rs", "crates/a/README.md", "crates/a/src/lib.rs", "fuzz/src/lib.rs"];
        let tree = Tree::new(&paths.map(|path| (path, "")));
        let rust: Vec<&str> = tree.rust().map(|(path, _)| path).collect();
        assert_eq!(rust, ["apps/b/src/main.rs", "crates/a/src/lib.rs"]);
    }

    #[test]
    fn generated_files_are_not_read() {
        let tree = Tree::read(&crate::root()).expect("readable");
        assert!(tree.get("Cargo.toml").is_some());
        assert!(tree.get("xtask/src/tidy/tree.rs").is_some());
        assert!(tree.get("Cargo.lock").is_none());
        assert!(tree.files().all(|(path, _)| !path.starts_with("target/") && !path.starts_with(".git/")));
    }
}
