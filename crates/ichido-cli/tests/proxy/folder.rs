//! A temporary folder for the files of one test.

use std::path::PathBuf;

pub(crate) struct Folder(PathBuf);

pub(crate) fn fresh() -> Folder {
    let folder = std::env::temp_dir().join(format!("ichido-cli-{}", uuid::Uuid::now_v7().simple()));
    std::fs::create_dir(&folder).expect("a temporary folder can be made");
    Folder(folder)
}

impl Folder {
    /// Writes a file; answers its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("it can be written");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
