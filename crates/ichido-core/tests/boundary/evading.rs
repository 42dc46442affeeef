//! Files that look as if they kept their promises, and do not.

mod fingerprints;
mod headers;
mod owners;
mod reactions;
