//! Files that look as if they kept their guarantees, and do not.

mod fingerprints;
mod headers;
mod members;
mod operations;
mod owners;
mod reactions;
mod redactions;
