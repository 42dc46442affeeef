//! Converse of the Bedrock runtime.

mod read;
mod reply;
mod signature;

pub(crate) use read::read;
pub(crate) use reply::{answer, fail, refuse};
