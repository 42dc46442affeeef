//! Reads boundary files, or returns all errors of unreadable paths and files.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use ichido_boundary::{Boundary, Finding, Location, MAX_BYTES, UNREADABLE};
use ichido_core::json::LineColumn;
use ichido_core::settings::ConfigErrors;

use super::args::Format;
use super::report::report_unread;
use crate::exit::Exit;

/// The maximum number of files per run. They are checked together, so all are in memory.
const MAX_FILES: usize = 10_000;

/// A path or a file that cannot be read.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// Its text could not be read.
    NoText { file: String, why: String },
    /// Its text is not a boundary file.
    NoBoundary(Finding),
}

impl Unreadable {
    fn no_text(path: &Path, why: impl Into<String>) -> Self {
        Self::NoText { file: display_path(path), why: why.into() }
    }

    /// Adds the error to the list, with line and column if known.
    pub(crate) fn add_to(&self, faults: &mut ConfigErrors) {
        match self {
            Self::NoText { file, why } => faults.add(file, why),
            Self::NoBoundary(Finding { place, what, .. }) => {
                faults.add(format!("{}:{}", place.file, place.at), what);
            }
        }
    }

    /// Converts the error into a finding for machine formats, which require a line.
    fn finding(self) -> Finding {
        match self {
            Self::NoBoundary(finding) => finding,
            Self::NoText { file, why } => {
                let at = LineColumn { line: 1, column: 1 };
                let place = Location { file, at, pointer: String::new() };
                Finding { rule: &UNREADABLE, place, what: why, help: UNREADABLE.help.to_owned() }
            }
        }
    }
}

/// All paths and files that cannot be read.
#[derive(Debug)]
pub(super) struct UnreadableFiles(Vec<Unreadable>);

impl UnreadableFiles {
    /// Ends the command with code 2.
    ///
    /// Machine formats get a report with only these findings: without the missing files, the others cannot be checked
    /// together.
    pub(super) fn into_exit(self, format: Format) -> Exit {
        let mut faults = ConfigErrors::default();
        for one in &self.0 {
            one.add_to(&mut faults);
        }
        let findings: Vec<Finding> = self.0.into_iter().map(Unreadable::finding).collect();
        match report_unread(&findings, format) {
            Ok(()) => faults.into(),
            Err(exit) => exit,
        }
    }

    /// Combines two lists.
    pub(super) fn merge(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

/// Reads files and all `*.json` of folders, each file once.
pub(super) fn read_all(paths: &[PathBuf]) -> Result<Vec<Boundary>, UnreadableFiles> {
    let mut unread = Vec::new();
    let mut files = Vec::new();
    for path in paths {
        match expand(path) {
            Ok(found) => files.extend(found),
            Err(error) => unread.push(error),
        }
    }
    if MAX_FILES < files.len() {
        let why = format!("{} files are too many; pass at most {MAX_FILES} at once", files.len());
        return Err(UnreadableFiles(vec![Unreadable::NoText { file: "FILE".to_owned(), why }]));
    }
    let mut seen = HashSet::new();
    let mut boundaries = Vec::new();
    for file in files {
        // A missing file has no other name.
        if !seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone())) {
            continue;
        }
        match read_file(&file) {
            Ok(boundary) => boundaries.push(boundary),
            Err(errors) => unread.extend(errors),
        }
    }
    if unread.is_empty() { Ok(boundaries) } else { Err(UnreadableFiles(unread)) }
}

/// Returns the files of a path: itself, or the `*.json` of a folder.
fn expand(path: &Path) -> Result<Vec<PathBuf>, Unreadable> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let files = json_files(path).map_err(|error| Unreadable::no_text(path, describe_io_error(&error)))?;
    if files.is_empty() {
        let why = "there is no *.json file in this folder; pass the folder with the boundary files, or run \
                   `ichido check --init` in it";
        return Err(Unreadable::no_text(path, why));
    }
    Ok(files)
}

/// Lists the `*.json` of a folder.
fn json_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let file = entry?.path();
        let is_hidden = file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if file.extension().is_some_and(|extension| extension == "json") && !is_hidden && !file.is_dir() {
            files.push(file);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Returns whether there is no such path, or a folder without boundary files.
///
/// A folder that cannot be read may contain some.
pub(super) fn has_no_files(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Err(error) => error.kind() == ErrorKind::NotFound,
        Ok(_) => path.is_dir() && json_files(path).is_ok_and(|files| files.is_empty()),
    }
}

/// Reads one file, or returns everything that is wrong with it.
pub(crate) fn read_file(path: &Path) -> Result<Boundary, Vec<Unreadable>> {
    let bytes = read_bounded(path).map_err(|error| vec![error])?;
    Boundary::read(&display_path(path), &bytes)
        .map_err(|errors| errors.into_iter().map(|error| Unreadable::NoBoundary(error.into())).collect())
}

/// Reads at most one byte more than allowed, to detect large files.
fn read_bounded(path: &Path) -> Result<Vec<u8>, Unreadable> {
    let unread = |error: io::Error| Unreadable::no_text(path, describe_io_error(&error));
    // Checked before opening: opening a pipe waits for a writer, possibly forever.
    let kind = fs::metadata(path).map_err(unread)?.file_type();
    if kind.is_dir() {
        return Err(Unreadable::no_text(path, "this is a folder; pass a file"));
    }
    if !kind.is_file() {
        let why = "this is a pipe or a device; write it to a file first";
        return Err(Unreadable::no_text(path, why));
    }
    let bound = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(bound).read_to_end(&mut bytes)).map_err(unread)?;
    Ok(bytes)
}

fn describe_io_error(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file or folder".to_owned(),
        ErrorKind::PermissionDenied => "permission denied; check its permissions".to_owned(),
        _ => format!("cannot read it: {error}"),
    }
}

/// Formats a path as in the repository, because annotations are matched by it.
///
/// Callers escape it for display.
pub(super) fn display_path(path: &Path) -> String {
    let path = path.strip_prefix(".").ok().filter(|rest| !rest.as_os_str().is_empty()).unwrap_or(path);
    let shown = path.display().to_string();
    if cfg!(windows) { shown.replace('\\', "/") } else { shown }
}
