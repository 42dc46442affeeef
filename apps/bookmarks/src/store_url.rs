//! Where everything is kept, as it may be shown: an address may hold a password, and this never does.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use sqlx::postgres::PgConnectOptions;

/// A store's place, of an address such as `sqlite:FILE` or `postgres://…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file.
    Sqlite {
        /// Its path, as it was written.
        file: PathBuf,
    },
    /// A database of a server.
    Postgres {
        /// The server's host and port, or its socket.
        server: String,
        /// The database.
        database: String,
    },
    /// No place that is known, as it was written; `None` where a password may stand in it.
    Unknown(Option<String>),
}

impl StoreUrl {
    /// The place that an address names.
    pub fn new(address: &str) -> Self {
        match address.split_once(':') {
            // The path as it is written, as the store takes it.
            Some(("sqlite", path)) => Self::Sqlite { file: path.strip_prefix("//").unwrap_or(path).into() },
            Some(("postgres" | "postgresql", _)) => PgConnectOptions::from_str(address)
                .map_or(Self::Unknown(None), |options| Self::server(&options)),
            // `scheme://user:password@host`, mistyped or another's; or `password=…`.
            _ => Self::Unknown(Some(address.to_owned()).filter(|address| !address.contains(['@', '=']))),
        }
    }

    fn server(options: &PgConnectOptions) -> Self {
        let server = match options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        };
        // PostgreSQL's own rule, where none is named.
        let database = options.get_database().unwrap_or(options.get_username()).to_owned();
        Self::Postgres { server, database }
    }

    /// The file, where it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite { file } => Some(file),
            Self::Postgres { .. } | Self::Unknown(_) => None,
        }
    }

    /// The whole path of a file that is not there. Where nobody may say whether it is, opening it says why.
    pub fn missing_file(&self) -> Option<PathBuf> {
        self.file().filter(|file| matches!(file.try_exists(), Ok(false))).map(whole)
    }
}

fn whole(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned())
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { file } => write!(f, "SQLite, {}", whole(file).display()),
            Self::Postgres { server, database } => {
                write!(f, "PostgreSQL, database {database:?} on {server}")
            }
            Self::Unknown(Some(address)) => write!(f, "{address:?}"),
            Self::Unknown(None) => f.write_str("the address that was given"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_shown_by_host_port_and_database_and_never_with_a_password() {
        for (address, shown) in [
            (
                "postgres://ann:s3cret@db.example:5433/links",
                "PostgreSQL, database \"links\" on db.example:5433",
            ),
            ("postgresql://ann:s3cret@db.example/links", "PostgreSQL, database \"links\" on db.example:5432"),
            ("postgres://ann:s3cret@db.example", "PostgreSQL, database \"ann\" on db.example:5432"),
            ("postgres://ann:s3/cret@db.example/links", "the address that was given"),
            ("postgress://ann:s3cret@db.example/links", "the address that was given"),
            ("host=db.example password=s3cret", "the address that was given"),
            ("bookmarks.db", "\"bookmarks.db\""),
            ("sqlite:/links.db", "SQLite, /links.db"),
            ("sqlite:///links.db", "SQLite, /links.db"),
        ] {
            assert_eq!(StoreUrl::new(address).to_string(), shown);
        }
    }
}
