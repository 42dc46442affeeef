//! The environment variables and files that a configuration refers to.
//!
//! Secrets are given by reference only, `env:NAME` or `file:PATH`, so a configuration can be shown to anybody.

use std::io;
use std::path::{Path, PathBuf};

use ichido_http::small_file::{self, MAX_BYTES};

use super::{env_overlay, sqlite_file};
use crate::environment;

/// The environment and the files that a configuration may refer to.
///
/// Passed in, so tests can replace both.
pub struct ConfigSources<'a> {
    /// Returns the value of a variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Returns the text of a file.
    pub file: &'a dyn Fn(&Path) -> io::Result<String>,
    /// The variables named after settings, with their values.
    pub named: Vec<(String, String)>,
    /// The folder of the configuration, which its paths are relative to.
    pub folder: PathBuf,
    /// Whether secrets are read. Only what delivers messages needs them.
    pub needs_secrets: bool,
}

/// The prefixes of references to environment variables and files.
const VARIABLE: &str = "env:";
const FILE: &str = "file:";

impl ConfigSources<'_> {
    /// Returns the environment of this process and its files, for a configuration in a folder.
    pub fn of_process(folder: PathBuf) -> Self {
        Self {
            variable: &|name| environment::variable(name).ok(),
            file: &small_file::read_text,
            named: env_overlay::named_variables(),
            folder,
            needs_secrets: true,
        }
    }

    /// Returns files alone: the environment cannot change the configuration.
    pub fn of_files(folder: PathBuf) -> Self {
        Self { variable: &|_| None, named: Vec::new(), ..Self::of_process(folder) }
    }

    /// Returns the text, or what it refers to. Errors contain no character of a secret.
    pub(super) fn resolve(&self, text: &str) -> Result<String, String> {
        if let Some(name) = text.strip_prefix(VARIABLE) {
            return match (self.variable)(name) {
                Some(value) if !value.is_empty() => Ok(value),
                Some(_) => Err(format!("the variable {name} is empty; set it")),
                None => Err(format!("the variable {name} is not set; set it")),
            };
        }
        let Some(path) = text.strip_prefix(FILE) else { return Ok(text.to_owned()) };
        // The final line break of a file is not part of the secret.
        self.read(path).map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// Resolves a reference; refuses any other text, which would be a secret in the file.
    ///
    /// `None` if secrets are not read.
    pub(super) fn secret(&self, text: &str) -> Result<Option<String>, String> {
        if text.starts_with(VARIABLE) || text.starts_with(FILE) {
            return if self.needs_secrets { self.resolve(text).map(Some) } else { Ok(None) };
        }
        Err("is a secret, which must not be in the file; write \"env:NAME\" for an environment variable, or \"file:PATH\"".to_owned())
    }

    /// Resolves a text of a destination, such as its URL; `None` if what it refers to is missing and not needed.
    pub(super) fn resolve_if_needed(&self, text: &str) -> Result<Option<String>, String> {
        match self.resolve(text) {
            Err(_) if !self.needs_secrets => Ok(None),
            resolved => resolved.map(Some),
        }
    }

    /// Resolves the path of an SQLite file relative to the configuration's folder.
    pub(super) fn resolve_store_path(&self, url: String) -> Result<String, String> {
        let Some(file) = sqlite_file(&url).filter(|file| file.is_relative()) else { return Ok(url) };
        let whole = self.folder.join(file);
        let text = whole.to_str().ok_or("the path of this file's folder is not UTF-8; rename the folder")?;
        Ok(format!("sqlite:{text}"))
    }

    /// Reads a file whose path is relative to the configuration's folder.
    pub(super) fn read(&self, path: &str) -> Result<String, String> {
        let whole = self.folder.join(path);
        let shown = whole.display();
        let text = (self.file)(&whole).map_err(|error| format!("cannot read {shown}: {error}"))?;
        if text.len() <= MAX_BYTES {
            Ok(text)
        } else {
            Err(format!("{shown} is larger than {MAX_BYTES} bytes"))
        }
    }
}
