//! A folder that is removed after its test.

use std::path::{Path, PathBuf};

pub(crate) struct TempFolder(PathBuf);

/// Creates an empty folder.
pub(crate) fn fresh() -> TempFolder {
    let path = std::env::temp_dir().join(format!("ichido-cli-{}", uuid::Uuid::now_v7()));
    std::fs::create_dir(&path).expect("a folder can be made");
    TempFolder(path)
}

impl TempFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file; returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("it can be written");
        path.display().to_string()
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // It may already be gone.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
