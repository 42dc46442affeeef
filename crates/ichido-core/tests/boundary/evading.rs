//! Files that look as if they kept their promises, and do not.

mod fingerprints;
mod headers;
mod operations;
mod owners;
mod reactions;
