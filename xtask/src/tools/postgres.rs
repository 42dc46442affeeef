//! PostgreSQL's server binaries, with which tests start their own servers.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::debian;
use crate::command_line::CommandLine;

/// The oldest major version that PostgreSQL still supports.
const MIN_MAJOR: u32 = 14;
/// The programs that create a database, start it, copy it to a standby and stop it.
const PROGRAMS: [&str; 4] = ["initdb", "pg_basebackup", "pg_ctl", "postgres"];
/// Debian keeps each major version in its own folder here, not on the path.
const DEBIAN_FOLDER: &str = "/usr/lib/postgresql";
/// Debian reads settings for new clusters from here, even before the package that owns the folder is installed.
const CLUSTER_SETTINGS: &str = "/etc/postgresql-common/createcluster.d";

/// Server binaries that tests can use.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Postgres {
    pub(super) folder: PathBuf,
    pub(super) major: u32,
}

/// Finds the binaries; as root on Debian, installs them first if necessary.
pub(super) fn ensure(root: &Path) -> Result<Postgres, String> {
    if let Some(found) = find(root) {
        return Ok(found);
    }
    if !debian::is_root_on_it(root) {
        return Err(advice());
    }
    println!("PostgreSQL's server binaries are missing; installing them");
    install(root).map_err(|error| format!("{error}\n{}", advice()))?;
    find(root).ok_or_else(advice)
}

fn advice() -> String {
    format!(
        "the tests need PostgreSQL {MIN_MAJOR} or later: {} in one folder, on PATH or in {DEBIAN_FOLDER}/*/bin.
Install it with `sudo apt-get install postgresql` (Debian, Ubuntu), `sudo dnf install postgresql-server`
(Fedora) or `brew install postgresql` (macOS). No server has to run: the tests start their own.",
        PROGRAMS.join(", ")
    )
}

fn find(root: &Path) -> Option<Postgres> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = folders_on(&path).into_iter().chain(debian_folders());
    choose(folders.filter(|folder| is_whole(folder)).map(|folder| {
        let postgres = folder.join("postgres").to_string_lossy().into_owned();
        let answer = CommandLine::new(&postgres, &["--version"]).answer(root).unwrap_or_default();
        (folder, answer)
    }))
}

fn folders_on(path: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect()
}

fn debian_folders() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(DEBIAN_FOLDER).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join("bin")).collect()
}

/// Returns whether all programs are in one folder: a `postgres` from elsewhere would not match another's `initdb`.
fn is_whole(folder: &Path) -> bool {
    PROGRAMS.iter().all(|program| folder.join(program).is_file())
}

/// Returns the newest supported version, from folders and the output of their `postgres --version`.
fn choose(found: impl Iterator<Item = (PathBuf, String)>) -> Option<Postgres> {
    let known = found.filter_map(|(folder, answer)| Some(Postgres { folder, major: major(&answer)? }));
    known.filter(|postgres| MIN_MAJOR <= postgres.major).max_by_key(|postgres| postgres.major)
}

/// Returns the major version in `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, or in `… 19beta1`.
fn major(answer: &str) -> Option<u32> {
    let version = answer.strip_prefix("postgres (PostgreSQL) ")?;
    let end = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version[..end].parse().ok()
}

fn install(root: &Path) -> Result<(), String> {
    // Debian creates and starts a database when the package is installed. We want only the binaries.
    std::fs::create_dir_all(CLUSTER_SETTINGS)
        .and_then(|()| {
            let settings = Path::new(CLUSTER_SETTINGS).join("ichido-tests.conf");
            std::fs::write(settings, "create_main_cluster = false\n")
        })
        .map_err(|error| format!("{CLUSTER_SETTINGS}: {error}"))?;
    debian::install(root, "postgresql")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(found: &[(&str, &str)]) -> Option<(String, u32)> {
        let found = found.iter().map(|(folder, answer)| (PathBuf::from(folder), (*answer).to_owned()));
        choose(found).map(|postgres| (postgres.folder.display().to_string(), postgres.major))
    }

    #[test]
    fn the_major_version_is_parsed_from_postgres() {
        assert_eq!(major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 19beta1\n"), Some(19));
        assert_eq!(major("postgres (PostgreSQL) 17"), Some(17));
    }

    #[test]
    fn another_program_of_the_same_name_is_refused() {
        for answer in ["", "15", "postgres 15.1", "postgres (Other) 15.1", "postgres (PostgreSQL) devel"] {
            assert_eq!(major(answer), None, "{answer:?}");
        }
    }

    #[test]
    fn the_newest_is_chosen_and_the_old_refused() {
        let old = ("/a", "postgres (PostgreSQL) 9.6.24");
        let new = ("/b", "postgres (PostgreSQL) 17.2");
        let middle = ("/c", "postgres (PostgreSQL) 14.0");
        assert_eq!(chosen(&[old, middle, new]), Some(("/b".to_owned(), 17)));
        assert_eq!(chosen(&[old]), None);
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn a_folder_without_all_programs_is_refused() {
        assert!(!is_whole(Path::new(env!("CARGO_MANIFEST_DIR"))));
    }
}
