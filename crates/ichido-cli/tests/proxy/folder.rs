//! A temporary folder for the files of one test.

use std::path::PathBuf;

use ichido_core::boundary::STARTING;
use serde_json::Value;

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

    /// Writes a file of the starting set, changed as a JSON merge patch says (RFC 7396); answers its path.
    pub(crate) fn boundary(&self, name: &str, patch: &Value) -> String {
        let (_, text) = STARTING.into_iter().find(|(file, _)| *file == name).expect("it is of the set");
        let mut file = serde_json::from_str(text).expect("it is JSON");
        merge(&mut file, patch);
        self.write(name, &file.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let (Value::Object(members), Value::Object(changes)) = (&mut *target, patch) else {
        target.clone_from(patch);
        return;
    };
    for (name, change) in changes {
        if change.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name).or_insert(Value::Null), change);
        }
    }
}
