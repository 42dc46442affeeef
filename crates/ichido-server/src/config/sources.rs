//! What a configuration refers to outside its file: variables of the environment and other files.
//!
//! Secrets are given by reference alone, `env:NAME` or `file:PATH`, so that a configuration can be shown to anybody.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::sqlite_file;

/// The longest secret or certificate that is read.
const BYTES_MAX: usize = 1 << 20;

/// The text of a file, as far as it may be read and one byte more. What is no file, such as a device or a pipe, may have no end or
/// never begin, and is not read.
pub(super) fn read_file(path: &Path) -> io::Result<String> {
    // Before it is opened, since that alone waits for whoever writes into a pipe.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    read_up_to(path, BYTES_MAX)
}

/// The text of whatever there is under a name, up to so many bytes and one more, by which it is told that there are more.
pub(super) fn read_up_to(path: &Path, bytes_max: usize) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(bytes_max as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// The environment and the files that a configuration may name. Passed in, so that both can be tested.
pub struct Outside<'a> {
    /// The value of a variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file.
    pub file: &'a dyn Fn(&Path) -> io::Result<String>,
    /// The variables that are named after settings, and what they say.
    pub named: Vec<(String, String)>,
    /// The folder of the configuration: paths in it are counted from there.
    pub folder: PathBuf,
}

/// How a reference to a variable of the environment begins, and one to a file.
const VARIABLE: &str = "env:";
const FILE: &str = "file:";

impl Outside<'_> {
    /// The text itself, or what it refers to. An error says what is wrong without a character of a secret.
    pub(super) fn resolve(&self, text: &str) -> Result<String, String> {
        if let Some(name) = text.strip_prefix(VARIABLE) {
            return match (self.variable)(name) {
                Some(value) if !value.is_empty() => Ok(value),
                Some(_) => Err(format!("the variable {name} is empty; set it")),
                None => Err(format!("the variable {name} is not set; export it before you start")),
            };
        }
        let Some(path) = text.strip_prefix(FILE) else { return Ok(text.to_owned()) };
        // A file ends with a line's end, which is no part of a secret.
        self.read(path).map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// What is referred to; a text that is no reference is refused, because it would be a secret in the file.
    pub(super) fn secret(&self, text: &str) -> Result<String, String> {
        if text.starts_with(VARIABLE) || text.starts_with(FILE) {
            return self.resolve(text);
        }
        Err("is a secret, which does not belong into the file; write \"env:NAME\" for a variable of the environment, or \"file:PATH\"".to_owned())
    }

    /// An address whose path, where it is that of an SQLite file, is counted from the configuration's folder.
    pub(super) fn resolve_store_path(&self, url: String) -> Result<String, String> {
        let Some(file) = sqlite_file(&url).filter(|file| file.is_relative()) else { return Ok(url) };
        let whole = self.folder.join(file);
        let text = whole.to_str().ok_or("the folder of this file has a name that is no UTF-8; rename it")?;
        Ok(format!("sqlite:{text}"))
    }

    /// The text of a file, whose path is counted from the configuration's folder.
    pub(super) fn read(&self, path: &str) -> Result<String, String> {
        let whole = self.folder.join(path);
        let shown = whole.display();
        let text = (self.file)(&whole).map_err(|error| format!("{shown} cannot be read: {error}"))?;
        if text.len() <= BYTES_MAX {
            Ok(text)
        } else {
            Err(format!("{shown} is larger than {BYTES_MAX} bytes"))
        }
    }
}
