//! The store's URL for display: a URL may contain a password, and this never does.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use sqlx::postgres::PgConnectOptions;

/// A store, parsed from a URL such as `sqlite:FILE` or `postgres://…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// An SQLite file.
    Sqlite {
        /// The path, as written.
        file: PathBuf,
    },
    /// A PostgreSQL database.
    Postgres {
        /// The server's host and port, or its socket.
        server: String,
        /// The name of the database.
        database: String,
    },
    /// An unknown URL, as written; `None` if it may contain a password.
    Unknown(Option<String>),
}

impl StoreUrl {
    /// Parses a URL.
    pub fn new(address: &str) -> Self {
        match address.split_once(':') {
            // The path as written, as the store reads it.
            Some(("sqlite", path)) => Self::Sqlite { file: path.strip_prefix("//").unwrap_or(path).into() },
            Some(("postgres" | "postgresql", _)) => PgConnectOptions::from_str(address)
                .map_or(Self::Unknown(None), |options| Self::server(&options)),
            // `scheme://user:password@host` with a typo or another scheme; or `password=…`.
            _ => Self::Unknown(Some(address.to_owned()).filter(|address| !address.contains(['@', '=']))),
        }
    }

    fn server(options: &PgConnectOptions) -> Self {
        let server = match options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        };
        // PostgreSQL's own default.
        let database = options.get_database().unwrap_or(options.get_username()).to_owned();
        Self::Postgres { server, database }
    }

    /// Returns the file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite { file } => Some(file),
            Self::Postgres { .. } | Self::Unknown(_) => None,
        }
    }

    /// Returns the absolute path of a file that does not exist. If that cannot be determined, opening the file reports
    /// why.
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
            Self::Unknown(None) => f.write_str("the given URL"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_url_is_displayed_without_its_password() {
        for (address, shown) in [
            (
                "postgres://ann:s3cret@db.example:5433/links",
                "PostgreSQL, database \"links\" on db.example:5433",
            ),
            ("postgresql://ann:s3cret@db.example/links", "PostgreSQL, database \"links\" on db.example:5432"),
            ("postgres://ann:s3cret@db.example", "PostgreSQL, database \"ann\" on db.example:5432"),
            ("postgres://ann:s3/cret@db.example/links", "the given URL"),
            ("postgress://ann:s3cret@db.example/links", "the given URL"),
            ("host=db.example password=s3cret", "the given URL"),
            ("bookmarks.db", "\"bookmarks.db\""),
            ("sqlite:/links.db", "SQLite, /links.db"),
            ("sqlite:///links.db", "SQLite, /links.db"),
        ] {
            assert_eq!(StoreUrl::new(address).to_string(), shown);
        }
    }
}
