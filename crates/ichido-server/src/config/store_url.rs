//! The URL of a store, checked without opening it.
//!
//! Guarantee: errors repeat no part of a URL, which may contain a password.

use std::path::Path;

/// Default maximum of connections to PostgreSQL. Writes are batched, so few are busy at once.
pub const CONNECTIONS_DEFAULT: u32 = 16;

/// The default store.
pub const DEFAULT_URL: &str = "sqlite:ichido.db";

/// Checks whether [`Store::open`](ichido_store::Store::open) accepts a URL, without opening it.
///
/// The error does not repeat the URL, which may contain a password.
pub fn check(url: &str) -> Result<(), &'static str> {
    let in_memory = |file: &str| file.contains(":memory:") || file.contains("mode=memory");
    match (url.split_once(':'), sqlite_file(url).and_then(Path::to_str)) {
        (_, Some(file)) if in_memory(file) => Err(
            "is an in-memory database, which loses messages when the process stops; name a file, such as \"sqlite:ichido.db\"",
        ),
        (_, Some(file)) if file.is_empty() || file.contains('?') || file.starts_with("file:") => {
            Err("is not an SQLite file; write \"sqlite:FILE\", without parameters")
        }
        (_, Some(_)) | (Some(("postgres" | "postgresql", _)), _) => Ok(()),
        _ => Err("is not a supported database; write \"sqlite:FILE\" or \"postgres://USER@HOST/DATABASE\""),
    }
}

/// Returns the file that a URL names, if it names one.
pub fn sqlite_file(url: &str) -> Option<&Path> {
    let address = url.strip_prefix("sqlite:")?;
    Some(Path::new(address.strip_prefix("//").unwrap_or(address)))
}
