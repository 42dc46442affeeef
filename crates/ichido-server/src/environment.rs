//! The variables of this process, and beneath them those of a file `.env` in the working folder.
//!
//! Guarantee: a variable of the process wins over the file. Only names with one of the prefixes `BEDROCK_`, `OUTBOX_` and `ICHIDO_` are read from the file. They are
//! never set in the process, so child processes do not inherit them. No error contains a value.
//!
//! Start at [`load_env_file`], which only the binary `ichido` calls: a library must not depend on the working folder.
// Spec: B5.

mod env_file;

use std::collections::BTreeMap;
use std::env::VarError;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::OnceLock;

use ichido_core::settings::ConfigErrors;

use env_file::Assignment;

/// The name of the file.
const ENV_FILE: &str = ".env";
/// The prefixes of the names that are read from the file.
const PREFIXES: [&str; 3] = ["BEDROCK_", "OUTBOX_", "ICHIDO_"];
/// Maximum size of the file.
const MAX_ENV_FILE_BYTES: usize = 64 << 10;

/// The file's variables, once it was read.
static FILE: OnceLock<BTreeMap<String, Assignment>> = OnceLock::new();

/// Reads the file `.env` of the working folder, if there is one; call it once, before anything else.
pub fn load_env_file() -> Result<(), ConfigErrors> {
    let text = read(Path::new(ENV_FILE)).map_err(|what| ConfigErrors::one(ENV_FILE, what))?;
    let mut faults = ConfigErrors::default();
    let is_ours = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let mut assignments = env_file::parse(ENV_FILE, &text.unwrap_or_default(), is_ours, &mut faults);
    // An empty value is that of a template which nobody filled in.
    assignments.retain(|_, assignment| !assignment.value.is_empty());
    let assignments = faults.or(Some(assignments))?;
    // Each process reads it once.
    _ = FILE.set(assignments);
    Ok(())
}

/// Returns a variable of the process, or else of the file.
pub fn variable(name: &str) -> Result<String, VarError> {
    match std::env::var(name) {
        Err(VarError::NotPresent) => {
            from_file(name).map(|assignment| assignment.value.clone()).ok_or(VarError::NotPresent)
        }
        known => known,
    }
}

/// Describes where a variable comes from: `the variable NAME`, or `.env:3 NAME`.
pub fn origin(name: &str) -> String {
    match from_file(name) {
        Some(Assignment { line, .. }) => format!("{ENV_FILE}:{line} {name}"),
        None => format!("the variable {name}"),
    }
}

/// Returns the name of the person who runs this process, for the audit trail.
pub fn user() -> String {
    let named = |name| std::env::var(name).ok().filter(|user| !user.is_empty());
    named("USER").or_else(|| named("LOGNAME")).or_else(user_id).unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(unix)]
fn user_id() -> Option<String> {
    let process = std::fs::metadata("/proc/self").ok()?;
    Some(format!("uid {}", std::os::unix::fs::MetadataExt::uid(&process)))
}

#[cfg(not(unix))]
fn user_id() -> Option<String> {
    None
}

/// Returns the names and values of all variables with a prefix, sorted by name.
pub(crate) fn variables_with(prefix: &str) -> Vec<(String, String)> {
    let in_process = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())));
    let in_file = FILE.get().into_iter().flatten();
    let in_file = in_file.map(|(name, assignment)| (name.clone(), assignment.value.clone()));
    // Later ones win.
    let all: BTreeMap<String, String> = in_file.chain(in_process).collect();
    all.into_iter().filter(|(name, _)| name.starts_with(prefix)).collect()
}

/// Returns the file's value of a variable that the process does not set.
pub fn value_from_file(name: &str) -> Option<&'static str> {
    from_file(name).map(|assignment| assignment.value.as_str())
}

fn from_file(name: &str) -> Option<&'static Assignment> {
    FILE.get()?.get(name).filter(|_| std::env::var_os(name).is_none())
}

/// Reads the file; `None` if there is none.
fn read(path: &Path) -> Result<Option<String>, String> {
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}; fix it, or remove it")),
    };
    // Python keeps virtual environments in folders of this name.
    if found.is_dir() {
        return Ok(None);
    }
    // A link may lead to a file of another user, and a pipe blocks.
    if !found.is_file() {
        return Err(
            "is not a regular file and is not followed; replace it with a file, or remove it".to_owned()
        );
    }
    let mut text = String::new();
    let limit = MAX_ENV_FILE_BYTES as u64 + 1;
    let read = File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text));
    match read {
        Err(error) => Err(format!("cannot be read: {error}; fix it, or remove it")),
        Ok(bytes) if MAX_ENV_FILE_BYTES < bytes => {
            Err(format!("is larger than {MAX_ENV_FILE_BYTES} bytes; remove what is not a variable"))
        }
        Ok(_) => Ok(Some(text)),
    }
}
