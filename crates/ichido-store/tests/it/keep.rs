//! Backups, and database diagnostics.

mod backup;
mod vitals;
