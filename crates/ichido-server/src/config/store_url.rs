//! The address of a store, as far as it can be checked without opening it.
//!
//! Guarantee: nothing of an address is repeated in an error; it may hold a password.

use std::path::Path;

/// The most connections to PostgreSQL. Writes are batched, so that few are busy at once.
pub const CONNECTIONS_DEFAULT: u32 = 16;

/// The store where nobody names one.
pub const DEFAULT_URL: &str = "sqlite:ichido.db";

/// Whether an address is one that [`Store::open`](ichido_store::Store::open) takes, as far as that can be told without opening it. It may hold a password,
/// and is not repeated.
pub fn check(url: &str) -> Result<(), &'static str> {
    let in_memory = |file: &str| file.contains(":memory:") || file.contains("mode=memory");
    match (url.split_once(':'), sqlite_file(url).and_then(Path::to_str)) {
        (_, Some(file)) if in_memory(file) => {
            Err("is in memory, which forgets what it acknowledged; name a file, as in \"sqlite:ichido.db\"")
        }
        (_, Some(file)) if file.is_empty() || file.contains('?') || file.starts_with("file:") => {
            Err("is no SQLite file; write \"sqlite:FILE\", without parameters")
        }
        (_, Some(_)) | (Some(("postgres" | "postgresql", _)), _) => Ok(()),
        _ => {
            Err("names no database that is known; write \"sqlite:FILE\" or \"postgres://USER@HOST/DATABASE\"")
        }
    }
}

/// The file that an address names, where it names one.
pub fn sqlite_file(url: &str) -> Option<&Path> {
    let address = url.strip_prefix("sqlite:")?;
    Some(Path::new(address.strip_prefix("//").unwrap_or(address)))
}
