//! Boundary files for one test.

use ichido_boundary::STARTING;
use serde_json::Value;

use crate::folder::TempFolder;

impl TempFolder {
    /// Writes a file of the starting set, changed with a JSON merge patch (RFC 7396); returns its path.
    pub(crate) fn boundary(&self, name: &str, patch: &Value) -> String {
        let (_, text) = STARTING.into_iter().find(|(file, _)| *file == name).expect("it is of the set");
        let mut file = serde_json::from_str(text).expect("it is JSON");
        merge(&mut file, patch);
        self.write(name, &file.to_string())
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
